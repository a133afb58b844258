"""The event topic tells what happened to the replicas, with reasons, and never speaks of itself."""

from __future__ import annotations

import json
from typing import Any

from tests.node.support import OneNode
from tests.sim.test_three_nodes import Cluster
from tidelog.node.replication_events import TOPIC
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import iterate_batches, iterate_records
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic


def events(cluster: Any, node_id: int) -> list[dict[str, Any]]:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 22)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[partition])])
    data = cluster.ask(node_id, ApiKey.FETCH, 12, request).responses[0].partitions[0]
    assert data.error_code == 0
    return [json.loads(record.value) for batch in iterate_batches(data.records) for record in iterate_records(batch)]


def test_a_failover_can_be_read_from_the_topic() -> None:
    cluster = Cluster(3, nodes=3)
    cluster.start_all()
    cluster.create()
    assert cluster.world.run_until(lambda: cluster.leader() > 0)
    cluster.produce(b"a")
    cluster.world.run_for(5_000)
    old = cluster.leader()
    cluster.world.kill(old)
    cluster.world.run_for(20_000)
    cluster.produce(b"b")
    cluster.world.start(old)
    assert cluster.world.run_until(lambda: cluster.isr() == {1, 2, 3})
    cluster.world.run_for(5_000)
    node = next(
        one for one in cluster.living() if cluster.process(one).node.image.topic(TOPIC).partitions[0].leader == one
    )
    story = events(cluster, node)
    elected = [one for one in story if one["kind"] == "leader-elected" and one["topic"] == "events"]
    assert elected
    assert elected[0]["previous_leader"] == old
    assert f"broker {old} fenced" in elected[0]["reason"]
    assert next(one["broker"] for one in story if one["kind"] == "broker-fenced") == old
    changes = [one for one in story if one["kind"] == "isr-changed" and one["topic"] == "events"]
    assert (changes[0]["left"], changes[-1]["joined"]) == ([old], [old])
    positions = [one for one in story if one["kind"] == "replica-positions" and one["topic"] == "events"]
    assert positions[-1]["log_end_offset"] == 2
    assert all(one.get("topic") != TOPIC for one in story)


def test_a_controller_that_is_no_broker_writes_what_it_decides_too() -> None:
    cluster = Cluster(3, brokers=[1, 2, 3], controllers=[9])
    cluster.start_all()
    cluster.create()
    assert cluster.world.run_until(lambda: cluster.leader() > 0)
    cluster.world.run_for(5_000)
    old = cluster.leader()
    cluster.world.kill(old)
    cluster.world.run_for(20_000)
    node = next(
        one for one in cluster.living() if cluster.process(one).node.image.topic(TOPIC).partitions[0].leader == one
    )
    story = [(one["kind"], one["node"]) for one in events(cluster, node) if one.get("topic") in (None, "events")]
    assert {("controller-active", 9), ("topic-created", 9), ("broker-fenced", 9), ("leader-elected", 9)} <= set(story)
    assert story.count(("broker-fenced", 9)) == 1, "nothing is told twice"


def test_one_node_can_do_without() -> None:
    node = OneNode(replication_events_enable="false")
    node.produce({0: node.batch(b"a")})
    node.world.run_for(10_000)
    assert node.process(1).node.image.topic(TOPIC) is None


def test_a_buffer_that_is_full_drops_and_counts() -> None:
    node = OneNode(replication_events_buffer_max_records="3")
    core = node.process(1).node
    node.world.run_for(5_000)
    written = len(events(node, 1))
    for number in range(10):
        core.outbox.tell("leader-elected", topic="x", partition=number, reason="test")
    core.outbox.take_effects()
    assert core.replication_events is not None
    assert core.replication_events.dropped == 7
    node.produce({0: node.batch(b"wake")})
    node.world.run_for(5_000)
    core.outbox.tell("leader-elected", topic="x", partition=99, reason="test")
    node.produce({0: node.batch(b"wake")})
    node.world.run_for(5_000)
    story = [one for one in events(node, 1)[written:] if one["kind"] != "replica-positions"]
    assert [one["partition"] for one in story] == [0, 1, 2, 99]
    assert 7 in [one.get("dropped_before") for one in events(node, 1)[written:]], "the next event says how many"
