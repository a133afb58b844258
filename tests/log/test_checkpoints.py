"""Checkpoints in Kafka's form; one that a power loss ruined must count as absent, never as wrong offsets."""

from __future__ import annotations

import pytest

from tidelog.log import checkpoints, partition_metadata
from tidelog.log.epochs import EpochHistory
from tidelog.sim.disk import SimulatedDisk

OFFSETS = {("orders", 0): 17, ("a-b", 12): 9_000_000_000}


def test_offsets_come_back(disk: SimulatedDisk) -> None:
    disk.replace("c", checkpoints.to_bytes(OFFSETS))
    assert disk.read_file("c") == b"0\n2\norders 0 17\na-b 12 9000000000\n"
    assert checkpoints.read(disk, "c") == OFFSETS


@pytest.mark.parametrize(
    "content",
    [b"", b"0\n", b"1\n0\n", b"0\n2\norders 0 17\n", b"0\n1\norders 0\n", b"0\n1\norders x 1\n", b"\xff\xfe", b"x"],
)
def test_a_ruined_file_is_absent(disk: SimulatedDisk, content: bytes) -> None:
    disk.replace("c", content)
    assert checkpoints.read(disk, "c") == {}
    assert EpochHistory.read(disk, "c") is None


def test_every_torn_prefix_is_absent_or_whole(disk: SimulatedDisk) -> None:
    whole = checkpoints.to_bytes(OFFSETS)
    for size in range(len(whole)):
        disk.replace("c", whole[:size])
        found = checkpoints.read(disk, "c")
        # Without a checksum the format cannot tell a last number that lost digits; it is never ahead of the truth.
        assert found == {} or all(found[key] <= OFFSETS[key] for key in OFFSETS)


def test_a_missing_file_is_absent(disk: SimulatedDisk) -> None:
    assert checkpoints.read(disk, "nothing") == {}
    assert partition_metadata.read(disk, "nothing") is None


def test_the_topic_id_of_a_directory(disk: SimulatedDisk) -> None:
    disk.make_directory("t-0")
    partition_metadata.write(disk, "t-0", bytes(range(16)))
    assert disk.read_file("t-0/partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert partition_metadata.read(disk, "t-0") == bytes(range(16))
    writes = disk.writes
    partition_metadata.write(disk, "t-0", bytes(range(16)))
    assert disk.writes == writes, "an unchanged file is left alone"
    for ruined in (
        b"",
        b"version: 0\n",
        b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0\ntopic_id: AAEC",
    ):
        disk.replace("t-0/partition.metadata", ruined)
        assert partition_metadata.read(disk, "t-0") is None
