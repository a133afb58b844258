"""What replicas tell of themselves becomes one picture: the newest epoch is believed, the rest is shown beside it."""

from __future__ import annotations

from typing import Any

from tidelog.client.metadata import PartitionView
from tidelog.client.replicas import ReplicaView, picture
from tidelog.errors import ErrorCode, KafkaError


def view(leader: int, epoch: int, isr: list[int]) -> PartitionView:
    return PartitionView(0, leader, epoch, [1, 2, 3], isr, [], [], [])


def told(role: str, leader: int, epoch: int, end: int, **more: Any) -> dict[str, Any]:
    replica = {
        "topic": "t",
        "partition": 0,
        "role": role,
        "leader": leader,
        "leader_epoch": epoch,
        "log_start_offset": 0,
        "log_end_offset": end,
        "high_watermark": more.pop("high_watermark", end),
        "epochs": [{"epoch": 0, "start_offset": 0}],
        **more,
    }
    return {"node": 0, "replicas": [replica]}


def followers(**ends: Any) -> list[dict[str, Any]]:
    return [
        {"node": int(name[1:]), "log_end_offset": end, "lag": 9 - end, "why_not": why}
        for name, (end, why) in ends.items()
    ]


def by_broker(replicas: list[ReplicaView]) -> dict[int, ReplicaView]:
    return {one.broker: one for one in replicas}


def test_the_newest_leader_is_believed_and_the_old_one_shown_as_it_is() -> None:
    leading = followers(b1=(7, "its broker is fenced"), b3=(8, None))
    answers = {
        1: told("leader", 1, 0, 12, isr=[1, 2, 3], followers=[]),
        2: told("leader", 2, 1, 9, isr=[2, 3], followers=leading, high_watermark=8),
        3: told("follower", 2, 1, 8),
    }
    # The metadata asked for came from the one that was cut off.
    seen = picture("t", view(1, 0, [1, 2, 3]), answers)
    assert (seen.leader, seen.leader_epoch, seen.isr, seen.high_watermark) == (2, 1, [2, 3], 8)
    replicas = by_broker(seen.replicas)
    assert (replicas[1].in_isr, replicas[1].why_not) == (False, "its broker is fenced")
    assert replicas[1].note == "believes in epoch 0, led by 1"
    assert replicas[1].lag is None, "records that will be cut are no lead"
    assert (replicas[3].lag, replicas[3].note) == (1, None)


def test_a_broker_that_does_not_answer_is_shown_with_what_its_leader_heard() -> None:
    silent = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no answer in time")
    leading = followers(b1=(9, None), b3=(-1, "it has not fetched from this leader yet"))
    answers = {
        1: silent,
        2: told("leader", 2, 1, 9, isr=[1, 2], followers=leading),
        3: {"node": 3, "replicas": []},
    }
    replicas = by_broker(picture("t", view(2, 1, [1, 2]), answers).replicas)
    assert (replicas[1].role, replicas[1].log_end_offset) == ("unreachable", 9)
    assert replicas[1].note == "cannot be asked: no answer in time"
    assert (replicas[3].role, replicas[3].log_end_offset) == ("absent", None)
    assert replicas[3].why_not == "it has not fetched from this leader yet"


def test_without_a_leader_it_is_said_who_is_waited_for() -> None:
    nobody = PartitionView(0, -1, 5, [1, 2], [], [], [1], [])
    answers = {1: KafkaError(ErrorCode.NETWORK_EXCEPTION, "connection refused"), 2: told("follower", -1, 5, 7)}
    replicas = by_broker(picture("t", nobody, answers).replicas)
    assert "leads when its broker is back" in (replicas[1].why_not or "")
    assert replicas[2].why_not == "nobody leads, and it may lack committed records"


def test_without_a_leader_the_metadata_counts() -> None:
    gone = KafkaError(ErrorCode.NETWORK_EXCEPTION, "connection refused")
    answers = {1: gone, 2: gone, 3: told("follower", 1, 4, 5)}
    seen = picture("t", view(-1, 5, [1]), answers)
    assert (seen.leader, seen.leader_epoch, seen.isr, seen.high_watermark) == (None, 5, [1], None)
    assert by_broker(seen.replicas)[3].note == "believes in epoch 4, led by 1"
    # A broker that knows of a newer leader is believed over metadata that does not.
    seen = picture("t", view(-1, 3, [1]), answers)
    assert (seen.leader, seen.leader_epoch) == (1, 4)
