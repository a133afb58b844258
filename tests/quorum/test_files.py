"""Files that Apache Kafka wrote are read, and what is written is what Apache Kafka writes."""

from __future__ import annotations

import pytest

from tests.quorum.machines import record
from tidelog.errors import ConfigError, CorruptionError
from tidelog.quorum import ReplicaKey, SnapshotId, Voter, VoterSet, election_state, snapshot
from tidelog.quorum.bootstrap import initial_controllers, voters_snapshot
from tidelog.quorum.election_state import ElectionState
from tidelog.quorum.snapshot import read_timestamp_ms
from tidelog.wire.records.kraft_version_record import KRaftVersionRecord
from tidelog.wire.records.voters_record import VotersRecord
from tidelog.wire.uuids import from_text

DIRECTORY_ID = from_text("QvFeg9XtSgCyftQIs_3eHQ")
FORMATTED_BY_KAFKA = bytes.fromhex(
    "00000000000000000000009a0000000002450a865b002000000002000001a1dd6f066f000001a1dd6f066fffffffffff"
    "ffffffffffffffffff000000032a0000000800000003160000000001a1dd6f065500001e00000208000000050a000000"
    "010000820100000408000000066e0000020000000142f15e83d5ed4a00b27ed408b3fdde1d020b434f4e54524f4c4c45"
    "520a3132372e302e302e314e1900000000010000000000000000000000030000003f00000000024b4864050020000000"
    "00000001a1dd6f067a000001a1dd6f067affffffffffffffffffffffffffff000000011a000000080000000406000000"
    "00"
)
"""`kafka-storage format --standalone` of Apache Kafka 4.3.1: 00000000000000000000-0000000000.checkpoint."""


def test_a_directory_formatted_by_apache_kafka_names_its_voter() -> None:
    loaded = snapshot.read(FORMATTED_BY_KAFKA)
    version, voters = loaded.controls
    assert isinstance(version, KRaftVersionRecord)
    assert isinstance(voters, VotersRecord)
    assert version.kraft_version == 1
    expected = Voter(ReplicaKey(1, DIRECTORY_ID), {"CONTROLLER": ("127.0.0.1", 19993)}, (0, 1))
    assert VoterSet.from_record(voters) == VoterSet([expected])
    assert loaded.timestamp_ms == read_timestamp_ms(FORMATTED_BY_KAFKA) == 0x01A1DD6F0655
    assert loaded.records == []


def test_our_format_differs_from_kafkas_only_in_its_times() -> None:
    voter = Voter(ReplicaKey(1, DIRECTORY_ID), {"CONTROLLER": ("127.0.0.1", 19993)})
    ours = voters_snapshot(VoterSet([voter]), 0x01A1DD6F066F)
    assert len(ours) == len(FORMATTED_BY_KAFKA)
    differing = [index for index, (one, other) in enumerate(zip(ours, FORMATTED_BY_KAFKA, strict=True)) if one != other]
    checksums = {*range(17, 21), *range(183, 187)}
    times = {80, *range(193, 209)}
    assert set(differing) <= checksums | times


@pytest.mark.parametrize(
    ("state", "kraft_version", "text"),
    [
        (
            ElectionState(1, 1),
            1,
            '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
        ),
        (
            ElectionState(2, None, ReplicaKey(1, DIRECTORY_ID)),
            1,
            '{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"QvFeg9XtSgCyftQIs_3eHQ","data_version":1}',
        ),
        (
            ElectionState(1, 1),
            0,
            '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
            '"currentVoters":[{"voterId":1}],"data_version":0}',
        ),
        (
            ElectionState(7, None, ReplicaKey(3)),
            0,
            '{"clusterId":"","leaderId":-1,"leaderEpoch":7,"votedId":3,"appliedOffset":0,'
            '"currentVoters":[{"voterId":1}],"data_version":0}',
        ),
    ],
)
def test_quorum_state_is_kafkas_json(state: ElectionState, kraft_version: int, text: str) -> None:
    assert election_state.encode(state, kraft_version, [1]) == text.encode()
    assert election_state.decode(text.encode()) == state


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'{"data_version":9,"leaderId":1}', b"\xff\x00"])
def test_a_damaged_quorum_state_is_no_fresh_start(data: bytes) -> None:
    """A vote that is forgotten could be given twice."""
    with pytest.raises(CorruptionError):
        election_state.decode(data)


def test_a_snapshot_holds_what_was_written() -> None:
    records = [record(f"k{index}", "v" * index) for index in range(300)]
    chunks = list(snapshot.chunks(records, epoch=4, now_ms=5, last_timestamp_ms=3, batch_bytes=2000))
    assert len(chunks) > 10
    loaded = snapshot.read(b"".join(chunks))
    assert loaded.records == [message for message, _ in records]
    assert loaded.timestamp_ms == 3
    assert loaded.controls == []


@pytest.mark.parametrize("cut", [1, 75, 80])
def test_half_a_snapshot_is_none(cut: int) -> None:
    data = snapshot.write([record("a", "1")], epoch=1, now_ms=5)
    with pytest.raises(CorruptionError):
        snapshot.read(data[:-cut])


def test_a_flipped_bit_in_a_snapshot_is_noticed() -> None:
    data = bytearray(voters_snapshot(VoterSet(), 5))
    data[-3] ^= 1
    with pytest.raises(CorruptionError):
        snapshot.read(bytes(data))


def test_file_names_are_kafkas() -> None:
    assert SnapshotId(13, 2).file_name == "00000000000000000013-0000000002.checkpoint"
    assert SnapshotId.of_file_name("00000000000000000013-0000000002.checkpoint") == SnapshotId(13, 2)
    assert SnapshotId.of_file_name("00000000000000000013.log") is None
    assert SnapshotId.of_file_name("bootstrap.checkpoint") is None
    assert snapshot.is_leftover("00000000000000000013-0000000002-77.checkpoint.part")
    assert snapshot.is_leftover("00000000000000000013-0000000002.checkpoint.deleted")
    assert not snapshot.is_leftover("00000000000000000013.log.deleted")


def test_initial_controllers_are_read_as_kafka_reads_them() -> None:
    voters = initial_controllers(
        ["1@localhost:9093:QvFeg9XtSgCyftQIs_3eHQ", "2@[::1]:9095:J8aAPcfLQt2bqs1JT_rMgQ"], "CONTROLLER"
    )
    assert voters.ids == [1, 2]
    assert voters.is_voter(ReplicaKey(1, DIRECTORY_ID))
    assert voters.peer(2, "CONTROLLER") == (2, "::1", 9095)


@pytest.mark.parametrize(
    "texts",
    [
        ["1@localhost:9093"],
        ["one@localhost:9093:QvFeg9XtSgCyftQIs_3eHQ"],
        ["1@localhost:9093:short"],
        ["1@localhost:99999:QvFeg9XtSgCyftQIs_3eHQ"],
        ["1@a:1:QvFeg9XtSgCyftQIs_3eHQ", "1@b:2:J8aAPcfLQt2bqs1JT_rMgQ"],
        ["1@a:1:QvFeg9XtSgCyftQIs_3eHQ", "2@b:2:QvFeg9XtSgCyftQIs_3eHQ"],
    ],
)
def test_bad_initial_controllers_are_refused(texts: list[str]) -> None:
    with pytest.raises(ConfigError):
        initial_controllers(texts, "CONTROLLER")


def test_static_voters_are_matched_by_id_alone() -> None:
    voters = VoterSet.parse_static(["1@localhost:9093", "2@localhost:9095"], "CONTROLLER")
    assert voters.is_voter(ReplicaKey(2, DIRECTORY_ID))
    assert not voters.is_voter(ReplicaKey(3))
    with pytest.raises(ConfigError):
        VoterSet.parse_static(["localhost:9093"], "CONTROLLER")


def test_a_voter_with_another_directory_is_another_replica() -> None:
    voters = VoterSet([Voter(ReplicaKey(1, DIRECTORY_ID))])
    assert voters.is_voter(ReplicaKey(1, DIRECTORY_ID))
    assert not voters.is_voter(ReplicaKey(1, bytes(15) + b"\x09"))
    assert VoterSet.from_record(voters.to_record()) == voters
