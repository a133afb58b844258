"""The table of partitions says what is known, and no more."""

from __future__ import annotations

from tidelog.cli.cluster_watch import partition_lines
from tidelog.client.replicas import PartitionPicture, ReplicaView


def replica(broker: int, end: int | None) -> ReplicaView:
    return ReplicaView(broker, "follower", 0, end, None, None, False, None, 4, None, [])


def row(leader: int | None, isr: list[int], high_watermark: int | None) -> list[str]:
    shown = PartitionPicture("t", 0, leader, 4, isr, None, [], high_watermark, [replica(1, 7), replica(2, None)])
    return partition_lines([shown], 1)[1].split()


def test_a_follower_outside_the_isr_is_marked() -> None:
    assert row(1, [1], 7) == ["t-0", "1", "4", "1", "7", "1:7", "2:?", "out"]


def test_nobody_is_said_to_be_out_when_the_leader_is_silent() -> None:
    assert row(3, [], None) == ["t-0", "3", "4", "?", "-", "1:7", "2:?"]


def test_without_a_leader_everybody_is_out() -> None:
    assert row(None, [], None) == ["t-0", "none", "4", "-", "-", "1:7", "out", "2:?", "out"]
