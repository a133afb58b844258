"""Records of Kafka's own topics, and the texts of its files."""

from __future__ import annotations

from random import Random

import pytest

from tests.wire.values import draw_message
from tidelog.errors import DecodeError
from tidelog.wire.batch import check_crc, control_type, iterate_batches, iterate_records
from tidelog.wire.codec import decode_exact
from tidelog.wire.message import Message
from tidelog.wire.record_table import METADATA_RECORDS
from tidelog.wire.records.feature_level_record import FeatureLevelRecord
from tidelog.wire.records.group_metadata import GroupMetadataKey
from tidelog.wire.records.kraft_version_record import KRaftVersionRecord
from tidelog.wire.records.offset_commit import OffsetCommitKey, OffsetCommitValue
from tidelog.wire.records.partition_record import PartitionRecord
from tidelog.wire.records.snapshot_footer_record import SnapshotFooterRecord
from tidelog.wire.records.snapshot_header_record import SnapshotHeaderRecord
from tidelog.wire.records.transaction_log import TransactionLogKey, TransactionLogValue
from tidelog.wire.records.voters_record import VotersRecord
from tidelog.wire.stored import (
    decode_group_record,
    decode_metadata_record,
    decode_transaction_record,
    decode_versioned,
    encode_coordinator_key,
    encode_metadata_record,
    encode_versioned,
)
from tidelog.wire.uuids import ONE_UUID, ZERO_UUID, from_text, to_text
from tidelog.wire.varints import decode_signed, decode_unsigned, encode_signed, encode_unsigned

# A bootstrap.checkpoint and the first snapshot of a quorum, as Apache Kafka 4.3.1 formats them (standalone).
BOOTSTRAP = (
    "0000000000000000000000470000000002c30f9247002000000000000001a1dd7eba65000001a1dd7eba65ffffffffffffffffffffffffffff"
    "000000012a0000000800000003160000000000000000000000000000000000000001000000f10000000002c0be75ad000000000005000001a1"
    "dd7eba7b000001a1dd7eba7bffffffffffffffffffffffffffff000000063a000000012e010c00116d657461646174612e76657273696f6e00"
    "1e00005a000002014e010c0021656c696769626c652e6c65616465722e7265706c696361732e76657273696f6e00010000340000040128010c"
    "000e67726f75702e76657273696f6e00010000340000060128010c000e73686172652e76657273696f6e0001000038000008012c010c001073"
    "747265616d732e76657273696f6e000100004000000a0134010c00147472616e73616374696f6e2e76657273696f6e00020000000000000000"
    "00070000003f0000000002b37307b7002000000000000001a1dd7eba7b000001a1dd7eba7bffffffffffffffffffffffffffff000000011a00"
    "000008000000040600000000"
)
FIRST_SNAPSHOT = (
    "00000000000000000000009a00000000022cd66535002000000002000001a1dd7eba8d000001a1dd7eba8dffffffffffffffffffffffffffff"
    "000000032a0000000800000003160000000001a1dd7eba8500001e00000208000000050a000000010000820100000408000000066e00000200"
    "000001078730754a9446afb1f95c1eb3ed26a9020b434f4e54524f4c4c45520a3132372e302e302e314a950000000001000000000000000000"
    "0000030000003f00000000020386f473002000000000000001a1dd7eba92000001a1dd7eba92ffffffffffffffffffffffffffff000000011a"
    "00000008000000040600000000"
)
CONTROL_CLASSES: dict[int, type[Message]] = {
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}


def test_the_bootstrap_file_of_apache_kafka() -> None:
    levels = {}
    for batch in iterate_batches(bytes.fromhex(BOOTSTRAP)):
        check_crc(batch)
        if batch.is_control:
            continue
        for record in iterate_records(batch):
            assert record.value is not None
            decoded, version = decode_metadata_record(record.value)
            assert isinstance(decoded, FeatureLevelRecord)
            levels[decoded.name] = decoded.feature_level
            assert encode_metadata_record(decoded, version) == record.value
    assert levels["metadata.version"] == 30
    assert levels["transaction.version"] == 2
    assert len(levels) == 6


def test_the_first_snapshot_of_apache_kafka() -> None:
    found = {}
    for batch in iterate_batches(bytes.fromhex(FIRST_SNAPSHOT)):
        check_crc(batch)
        assert batch.is_control
        for record in iterate_records(batch):
            cls = CONTROL_CLASSES[control_type(record.key)]
            assert record.value is not None
            found[cls] = decode_exact(cls, 0, record.value)
    assert found[KRaftVersionRecord] == KRaftVersionRecord(kraft_version=1)
    voters = found[VotersRecord]
    assert isinstance(voters, VotersRecord)
    (voter,) = voters.voters
    assert (voter.voter_id, voter.endpoints[0].host, voter.endpoints[0].port) == (1, "127.0.0.1", 19093)
    assert voter.kraft_version_feature.max_supported_version == 1
    assert SnapshotFooterRecord in found


def test_every_metadata_record_finds_its_class_again() -> None:
    random = Random(1)
    for record_type, (module, name) in METADATA_RECORDS.items():
        cls = getattr(__import__(f"tidelog.wire.records.{module}", fromlist=[name]), name)
        assert record_type == cls.API_KEY
        for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
            record = draw_message(cls, version, random)
            data = encode_metadata_record(record, version)
            again, found_version = decode_metadata_record(data)
            assert found_version == version
            assert encode_metadata_record(again, version) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cut short"),
        (b"\x01", "cut short"),
        (b"\x02\x02\x00", "frame version 2"),
        (b"\x01\x63\x00", "unknown type 99"),
        (b"\x01\x02\x63", "TopicRecord has no version 99"),
        (b"\x01\x02\x00\x02t" + bytes(18), "too many"),
    ],
)
def test_a_metadata_record_is_never_guessed_at(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_metadata_record(data)


def test_partition_records_keep_null_and_empty_apart() -> None:
    record = PartitionRecord(replicas=[1, 2], isr=[1], directories=[ONE_UUID, ZERO_UUID], eligible_leader_replicas=[])
    again, _ = decode_metadata_record(encode_metadata_record(record, 2))
    assert again.eligible_leader_replicas == []
    assert again.last_known_elr is None
    assert again.directories == [ONE_UUID, ZERO_UUID]


def test_group_and_transaction_records() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    value = OffsetCommitValue(offset=77, leader_epoch=2, metadata="m", commit_timestamp=5)
    assert encode_coordinator_key(key).hex() == "0001" + "000167" + "000174" + "00000003"
    assert decode_group_record(encode_coordinator_key(key), encode_versioned(value, 3)) == (key, value)
    assert decode_group_record(encode_coordinator_key(GroupMetadataKey(group="g")), None) == (
        GroupMetadataKey(group="g"),
        None,
    )
    assert decode_group_record(b"\x00\x63rest", b"") is None
    transaction = TransactionLogKey(transactional_id="x")
    state = TransactionLogValue(producer_id=9, producer_epoch=1, transaction_timeout_ms=60000, transaction_status=4)
    stored = encode_versioned(state, 1)
    assert decode_transaction_record(encode_coordinator_key(transaction), stored) == (transaction, state)
    assert decode_versioned(TransactionLogValue, stored) == (state, 1)
    for broken in (b"", b"\x00", b"\x00\x09"):
        with pytest.raises(DecodeError):
            decode_versioned(TransactionLogValue, broken)


def test_uuids_as_people_write_them() -> None:
    assert to_text(bytes(range(16))) == "AAECAwQFBgcICQoLDA0ODw"
    assert from_text("AAECAwQFBgcICQoLDA0ODw") == bytes(range(16))
    assert to_text(b"\xfb\xff" * 8) == "-__7__v_-__7__v_-__7_w"
    assert from_text(to_text(b"\xfb\xff" * 8)) == b"\xfb\xff" * 8
    assert to_text(ZERO_UUID) == "A" * 22
    for wrong in ("", "short", "A" * 23, "A" * 21 + "ü", "+" * 22):
        with pytest.raises(DecodeError, match="not a UUID"):
            from_text(wrong)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16383, 16384, 2**21, 2**28, 2**32 - 1])
def test_unsigned_varints(value: int) -> None:
    data = encode_unsigned(value)
    assert decode_unsigned(b"x" + data + b"y", 1) == (value, 1 + len(data))


@pytest.mark.parametrize("value", [0, -1, 1, 63, -64, 64, -65, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
def test_signed_varints(value: int) -> None:
    data = encode_signed(value)
    assert decode_signed(data, 0) == (value, len(data))


def test_varints_that_never_end() -> None:
    with pytest.raises(DecodeError):
        decode_unsigned(b"\xff" * 20, 0)
    with pytest.raises(DecodeError):
        decode_signed(b"\xff" * 20, 0)
    with pytest.raises(IndexError):
        decode_signed(b"\xff\xff", 0)
