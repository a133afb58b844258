"""Moving a replica takes the bytes a second that it is given, and nothing from those who serve (KIP-73)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tidelog.sim.simulated_stage import SimulatedStage
from tidelog.sim.stage import Plan
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

RECORD_BYTES = 10_000
RECORDS = 150
RATE = 100_000
TOPIC, BROKER = 2, 4
LEADER_SIDE = ({"leader.replication.throttled.replicas": "0:1"}, {1: "leader.replication.throttled.rate"})
FOLLOWER_SIDE = ({"follower.replication.throttled.replicas": "0:2"}, {2: "follower.replication.throttled.rate"})


def started() -> SimulatedStage:
    """A topic of 1.5 MB on node 1 alone, which gives away 20 kB at a time."""
    stage = SimulatedStage(1)
    stage.start(Plan((1, 2, 3), (9,), {"replica.fetch.max.bytes": "20000"}))
    assert stage.create_topic("events", [[1]], {}) == ""
    stage.add_producer("p", {"acks": "1"})
    for _ in range(RECORDS):
        stage.send("p", "events", 0, "x" * RECORD_BYTES)
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 60_000)
    return stage


def alter(stage: SimulatedStage, kind: int, name: str, changes: dict[str, str | None]) -> None:
    configs = [
        AlterableConfig(name=key, config_operation=1 if value is None else 0, value=value)
        for key, value in changes.items()
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)]
    )
    answer = stage.cluster.ask(int(name) if kind == BROKER else 1, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


def reassign(stage: SimulatedStage, replicas: list[int]) -> None:
    wanted = ReassignableTopic(name="events", partitions=[ReassignablePartition(partition_index=0, replicas=replicas)])
    request = AlterPartitionReassignmentsRequest(topics=[wanted], timeout_ms=10_000)
    answer = stage.cluster.ask(1, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
    assert answer.error_code == 0


def copied(stage: SimulatedStage, node_id: int = 2) -> int:
    return len(stage.log_bytes(node_id, "events", 0))


def is_in_sync(stage: SimulatedStage, *nodes: int) -> Callable[[], bool]:
    def look() -> bool:
        topic = stage.image.topic("events")
        return topic is not None and set(nodes) <= set(topic.partitions[0].isr)

    return look


@pytest.mark.parametrize("side", [LEADER_SIDE, FOLLOWER_SIDE], ids=["leader", "follower"])
def test_a_move_keeps_to_its_rate(side: Any) -> None:
    stage = started()
    on_topic, on_brokers = side
    alter(stage, TOPIC, "events", on_topic)
    for broker, name in on_brokers.items():
        alter(stage, BROKER, str(broker), {name: str(RATE)})
    begun_ms = stage.now_ms
    reassign(stage, [1, 2])
    for seconds in range(1, 12):
        stage.wait(begun_ms + seconds * 1000 - stage.now_ms)
        # A fetch is not cut in two, and the first second counts as a whole one.
        assert copied(stage) <= RATE * (seconds + 1) + 2 * 20_000, f"after {seconds} s"
    assert copied(stage) >= RATE * 6, "it is held back for no reason"
    assert stage.wait_until(is_in_sync(stage, 1, 2), 30_000)
    assert stage.now_ms - begun_ms >= 12_000


def test_a_change_of_the_rate_is_felt_at_once() -> None:
    stage = started()
    alter(stage, TOPIC, "events", LEADER_SIDE[0])
    alter(stage, BROKER, "1", {"leader.replication.throttled.rate": "1000"})
    reassign(stage, [1, 2])
    stage.wait(5_000)
    assert copied(stage) < 100_000
    alter(stage, BROKER, "1", {"leader.replication.throttled.rate": None})
    assert stage.wait_until(is_in_sync(stage, 1, 2), 5_000)


def test_replicas_that_are_in_sync_or_not_named_are_never_held_back() -> None:
    """A leader that held back its ISR would stop every producer; one that held back others would move nothing else."""
    stage = started()
    reassign(stage, [1, 2])
    assert stage.wait_until(is_in_sync(stage, 1, 2), 30_000)
    alter(stage, TOPIC, "events", {"leader.replication.throttled.replicas": "*"})
    alter(stage, BROKER, "1", {"leader.replication.throttled.rate": "1000"})
    stage.add_producer("q", {"acks": "all"})
    begun_ms = stage.now_ms
    for _ in range(30):
        stage.send("q", "events", 0, "y" * RECORD_BYTES)
    assert stage.wait_until(lambda: stage.unsettled("q") == 0, 30_000)
    assert stage.now_ms - begun_ms < 2_000
    alter(stage, TOPIC, "events", {"leader.replication.throttled.replicas": "0:2"})
    reassign(stage, [1, 2, 3])
    assert stage.wait_until(is_in_sync(stage, 1, 2, 3), 5_000), "only what node 2 leads is throttled"
