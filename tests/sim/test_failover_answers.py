"""What clients are told the moment a leader dies: never to go back to it, and its successor once there is one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.test_three_nodes import TOPIC, Cluster, started
from tidelog.sim.consumer import Consumer
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def ask_metadata(cluster: Cluster, node_id: int) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    return cluster.ask(node_id, ApiKey.METADATA, 12, request)


@pytest.mark.parametrize("seed", range(10))
def test_a_client_that_asks_at_a_leaders_death_hears_of_the_next_leader(seed: int) -> None:
    cluster = started(seed)
    cluster.produce(b"a")
    assert cluster.world.run_until(lambda: cluster.isr() == {1, 2, 3})
    cluster.world.run_for(1_000)
    dead = cluster.leader()
    asked = next(one for one in cluster.node_ids if one != dead)
    cluster.world.kill(dead)
    cluster.world.run_for(10)  # the broken connections are seen, long before the controller has decided
    killed_ms = cluster.world.now_ms
    assert cluster.leader() == dead
    answer = ask_metadata(cluster, asked)
    waited_ms = cluster.world.now_ms - killed_ms
    assert answer.topics[0].partitions[0].leader_id != dead, "a client must not be sent back to a dead leader"
    assert waited_ms <= 600
    if answer.topics[0].partitions[0].leader_id < 0:
        # The controller died with it: that takes longer, and the client asks again.
        assert cluster.world.run_until(lambda: cluster.leader() not in (dead, -1))
        answer = ask_metadata(cluster, asked)
    assert answer.topics[0].partitions[0].leader_id == cluster.leader()
    assert dead in {broker.node_id for broker in answer.brokers}, "listed a little longer: clients still hold on to it"
    cluster.world.run_for(10_000)
    assert dead not in {broker.node_id for broker in ask_metadata(cluster, asked).brokers}


def test_without_a_death_nobody_waits() -> None:
    cluster = started(1)
    cluster.world.run_for(1_000)
    for _ in range(3):
        before_ms = cluster.world.now_ms
        assert ask_metadata(cluster, 1).topics[0].partitions[0].leader_id == cluster.leader()
        assert cluster.world.now_ms - before_ms < 100


def test_a_simulated_consumer_goes_back_to_no_older_epoch() -> None:
    """A former leader that woke was asked, told of itself, and found the position beyond its log (seed 209997)."""
    cluster = started(1)
    cluster.produce(b"a")
    consumer = Consumer(cluster.world, "c0", cluster.node_ids)
    consumer.leaders[TOPIC, 0] = (cluster.leader(), 5)
    consumer.read_on(TOPIC, 0, lambda _: None)
    cluster.world.run_for(2_000)
    assert consumer.leaders[TOPIC, 0] == (-1, 5)
    assert consumer.seen == []
