"""Every change of an ISR says why, in numbers that a person can act on, and so does a replica that is out of it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tidelog.sim.simulated_stage import SimulatedStage
from tidelog.sim.stage import Plan
from tidelog.wire.apis import PRIVATE_QUERY
from tidelog.wire.codec import decode_exact, encode
from tidelog.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
)
from tidelog.wire.private_query import TidelogQueryRequest


@pytest.fixture
def stage() -> SimulatedStage:
    """Five records on three nodes; a follower may lag for two seconds."""
    stage = SimulatedStage(1)
    stage.start(Plan((1, 2, 3), (9,), {"replica.lag.time.max.ms": "2000"}))
    assert stage.create_topic("events", [[1, 2, 3]], {}) == ""
    stage.add_producer("p", {"acks": "1"})
    write(stage, 5)
    stage.wait(1_000)
    stage.take_told()
    return stage


def write(stage: SimulatedStage, count: int) -> None:
    for number in range(count):
        stage.send("p", "events", 0, f"M{number}")
    assert stage.wait_until(lambda: stage.unsettled("p") == 0, 10_000)


def change(stage: SimulatedStage) -> dict[str, Any]:
    """The next change of the ISR."""
    found: list[Any] = []

    def look() -> bool:
        found.extend(one for one in stage.take_told() if one.kind == "isr-changed")
        return bool(found)

    assert stage.wait_until(look, 30_000)
    return dict(found[0].fields)


def follower(stage: SimulatedStage, node_id: int) -> dict[str, Any]:
    request = TidelogQueryRequest(question="replicas", arguments=json.dumps({"topic": "events"}))
    answer = json.loads(stage.cluster.ask(1, PRIVATE_QUERY, 0, request).answer)
    return next(one for one in answer["replicas"][0]["followers"] if one["node"] == node_id)


def test_one_that_lags_is_dropped_with_how_far_and_taken_in_with_where_it_is(stage: SimulatedStage) -> None:
    stage.hold(1, 3, "data")
    write(stage, 4)
    left = change(stage)
    assert (left["left"], left["joined"]) == ([3], [])
    assert re.fullmatch(r"follower 3 lagged \d\.\d s behind, log end 5 of 9", left["reason"])
    assert stage.wait_until(lambda: follower(stage, 3)["why_not"] is not None, 1_000)
    why_not = follower(stage, 3)["why_not"]
    assert why_not.startswith("it is at 5, behind the high watermark (9); it left because follower 3 lagged ")
    stage.release(1, 3, "data")
    joined = change(stage)
    assert (joined["joined"], joined["reason"]) == ([3], "follower 3 caught up, log end 9 of 9")
    assert stage.wait_until(lambda: follower(stage, 3)["why_not"] is None, 1_000)
    assert follower(stage, 3)["dropped_for"] is None


def test_one_that_dies_is_fenced_and_one_that_stops_says_so(stage: SimulatedStage) -> None:
    stage.kill(3)
    assert change(stage)["reason"] == "broker 3 fenced: its connection broke and it did not come back"
    assert stage.wait_until(lambda: follower(stage, 3)["why_not"] == "its broker is fenced", 1_000)
    stage.stop_node(1)
    assert change(stage)["reason"] == "broker 1 is in controlled shutdown: in-sync replica"


def test_the_reason_travels_as_a_field_that_others_pass_over() -> None:
    """Without it the bytes are Kafka's; with it they are longer by one tagged field (KIP-482)."""
    data = AlterPartitionRequestPartitionData(partition_index=1, leader_epoch=2, partition_epoch=3)
    request = AlterPartitionRequest(broker_id=1, broker_epoch=2, topics=[AlterPartitionRequestTopicData()])
    request.topics[0].partitions.append(data)
    plain = encode(request, 3)
    data.reason = "why"
    tagged = encode(request, 3)
    assert plain.endswith(b"\0\0\0\3\0\0\0")
    assert tagged == plain[:-3] + b"\1\x90\x4e\4\4why" + b"\0\0"
    assert decode_exact(AlterPartitionRequest, 3, tagged).topics[0].partitions[0].reason == "why"
