"""Kill -9 in the middle of everything: three nodes, confluent-kafka, and nothing acknowledged is lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import TopicMetadata
from confluent_kafka.cimpl import NewTopic

from tests.cluster.support import (
    WAIT_S,
    admin,
    ask,
    cluster_of,
    create_topic,
    load_on,
    wait_in_step,
    wait_in_sync,
    wait_until,
)
from tidelog.verify.cluster import LocalCluster
from tidelog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.wire.messages.elect_leaders import ElectLeadersRequest
from tidelog.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

PARTITIONS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """One cluster for the module, with metadata snapshots after every few records; each test leaves it whole."""
    with cluster_of(3, metadata_log_max_record_bytes_between_snapshots="1000") as started:
        yield started


def test_all_nodes_are_killed_at_once_under_load(cluster: LocalCluster) -> None:
    create_topic(cluster, "at-once", PARTITIONS)
    with load_on(cluster, "at-once", PARTITIONS) as load:
        for _ in range(2):
            cluster.kill(*cluster.node_ids)
            cluster.start()
            load.go_on()
    wait_in_step(cluster, "at-once", PARTITIONS)


def test_a_topic_is_made_whole_or_not_at_all_when_the_controller_dies(cluster: LocalCluster) -> None:
    client = admin(cluster)
    made: list[str] = []
    enough = threading.Event()

    def make() -> None:
        for number in range(10_000):
            if enough.is_set():
                return
            name = f"made-{number}"
            with contextlib.suppress(KafkaException):  # what was under way when the controller died may have failed
                maker_client = admin(cluster)  # see _made
                maker_client.create_topics([NewTopic(name, 4, 3)], request_timeout=5)[name].result(60)
                made.append(name)

    maker = threading.Thread(target=make)
    maker.start()
    try:
        wait_until(lambda: len(made) >= 5, "topics are made")
        controller = cluster.controller()
        assert controller is not None
        cluster.kill(controller)
        after = len(made) + 3
        wait_until(lambda: len(made) >= after, "topics are made by the next controller")
        cluster.start(controller)
        cluster.wait_ready(WAIT_S)
    finally:
        enough.set()
        maker.join(60)

    def topics() -> dict[str, TopicMetadata]:
        return {name: topic for name, topic in client.list_topics(timeout=WAIT_S).topics.items() if "made-" in name}

    # Whoever is asked may learn of the last one a moment after the broker that answered for it.
    wait_until(lambda: set(made) <= set(topics()), "every topic that was answered for is there")
    known = topics()
    for name, topic in known.items():
        assert sorted(topic.partitions) == [0, 1, 2, 3], name
        assert all(partition.leader > 0 for partition in topic.partitions.values()), name
    for outcome in client.delete_topics(list(known)).values():
        outcome.result(WAIT_S)


def leader_beside_controller(cluster: LocalCluster, topic: str) -> tuple[int, int]:
    """The controller, and a node that leads without being it: the leaders are being spread."""
    found: list[tuple[int, int]] = []

    def is_found() -> bool:
        controller = cluster.controller()
        leaders = {cluster.leader(topic, partition) for partition in range(PARTITIONS)} - {controller, None}
        if controller is not None and leaders:
            found.extend((controller, leader) for leader in leaders if leader is not None)
        return bool(found)

    wait_until(is_found, "somebody leads who is not the controller")
    return found[0]


def test_the_controller_dies_while_it_elects(cluster: LocalCluster) -> None:
    """The leader is killed, and the controller in the moment in which it would fence it."""
    create_topic(cluster, "elected", PARTITIONS)
    with load_on(cluster, "elected", PARTITIONS) as load:
        for pause_s in (0.1, 0.22):
            wait_in_sync(cluster, "elected", PARTITIONS)
            ask(cluster, ElectLeadersRequest(topic_partitions=None, timeout_ms=5_000))  # spreads the leaders again
            controller, victim = leader_beside_controller(cluster, "elected")
            cluster.kill(victim)
            time.sleep(pause_s)  # not a wait for something: where in the election the second kill falls
            cluster.kill(controller)
            cluster.start(controller, victim)
            load.go_on()
    wait_in_step(cluster, "elected", PARTITIONS)


def is_nothing_moved(cluster: LocalCluster) -> bool:
    """Whether no reassignment is under way, as somebody says who has heard from the controller."""
    found = ask(cluster, ListPartitionReassignmentsRequest())
    return not found.error_code and found.topics == []


def test_nodes_die_in_the_middle_of_a_reassignment(cluster: LocalCluster) -> None:
    create_topic(cluster, "moved", 2, 2, min_insync_replicas="1")
    with load_on(cluster, "moved", 2, rate=300) as load:
        load.go_on(500)
        for target, victim in (([2, 3], 3), ([3, 1], 1), ([1, 2], 3)):
            request = AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name="moved",
                        partitions=[ReassignablePartition(partition_index=one, replicas=target) for one in range(2)],
                    )
                ]
            )
            wait_until(
                lambda request=request: not ask(cluster, request).error_code,  # type: ignore[misc]
                "the reassignment is begun",
            )
            cluster.kill(victim)
            load.go_on(50)
            cluster.start(victim)
            cluster.wait_ready(WAIT_S)
            wait_until(lambda: is_nothing_moved(cluster), "the reassignment is done")
    partitions = admin(cluster).list_topics("moved", timeout=WAIT_S).topics["moved"].partitions
    assert [sorted(one.replicas) for one in partitions.values()] == [[1, 2], [1, 2]]


def test_nodes_die_in_the_middle_of_metadata_snapshots(cluster: LocalCluster) -> None:
    create_topic(cluster, "snapshots", 1)
    numbers = iter(range(10_000))

    def change_something() -> str:
        name = f"short-lived-{next(numbers)}"
        wait_until(lambda: _made(cluster, name), f"{name} is made")
        return name

    for victim in cluster.node_ids:
        before = change_something()
        # A snapshot follows every few records: some kill falls into one.
        cluster.kill(victim)
        during = change_something()
        cluster.start(victim)
        cluster.wait_ready(WAIT_S)
        answer = cluster.ask(victim, "replicas")
        assert answer is not None
        held = {replica["topic"] for replica in answer["replicas"]}
        assert {before, during, "snapshots"} <= held, "the restarted node knows what was made before and meanwhile"
    for node_id in cluster.node_ids:
        log = Path(cluster.plan_of(node_id).data_directory) / "__cluster_metadata-0"
        snapshots = [path for path in log.glob("*.checkpoint") if not path.name.startswith("0" * 20)]
        assert snapshots, f"node {node_id} has taken snapshots"
        assert not list(log.glob("*.part")) or cluster.ask(node_id, "node"), "a half snapshot does not stop a node"


def _made(cluster: LocalCluster, name: str) -> bool:
    """Ask once. Each time with a client of its own: librdkafka goes on trying the broker that it last took for the
    controller, for minutes, and when that one is dead no request of its leaves.
    """
    client = admin(cluster)
    try:
        client.create_topics([NewTopic(name, 1, 3)], request_timeout=5)[name].result(60)
    except KafkaException as error:
        return bool(error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
    return True


def test_nodes_are_restarted_one_by_one_under_load(cluster: LocalCluster) -> None:
    create_topic(cluster, "rolling", PARTITIONS)
    with load_on(cluster, "rolling", PARTITIONS) as load:
        for node_id in cluster.node_ids:
            assert cluster.stop(node_id) == 0
            load.go_on(50)
            cluster.start(node_id)
            wait_in_sync(cluster, "rolling", PARTITIONS)
        # Each stop moved its leaderships away before: nobody had to wait for a session to end.
        assert load.ledger.failed == 0
    wait_in_step(cluster, "rolling", PARTITIONS)
