"""Record batches against Kafka's own bytes, against another client's code, and against tampering."""

from __future__ import annotations

from random import Random

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire import crc
from tidelog.wire.batch import (
    Compression,
    ControlType,
    Record,
    build_batch,
    build_end_marker,
    check_crc,
    check_produced,
    control_type,
    crc32c,
    end_marker_coordinator_epoch,
    iterate_batches,
    iterate_records,
    read_header,
    stamp,
    stamp_log_append_time,
)
from tidelog.wire.murmur2 import murmur2, partition_for_key

# One transactional batch of Apache Kafka 4.3.1 in each codec.
KAFKA_HEADS = (
    "000000000000002a{length}0000000502{crc}{attributes}0000000200000000000003e800000000000005dc000000000000004d0003"
)
KAFKA_BATCHES = {
    Compression.NONE: KAFKA_HEADS.format(length="0000006f", crc="8d5b840d", attributes="0010")
    + "00000009000000035c000000066b65793a76616c75652076616c75652076616c75652076616c75652076616c756504026804"
    "0102026e010c0013020101000e00e80704000000",
    Compression.GZIP: KAFKA_HEADS.format(length="0000006d", crc="70a61bbe", attributes="0011")
    + "00000009000000031f8b08000000000000ff8b61606060cb4eadb42a4bcc294d55c041b23065b0303231e531f23008333132"
    "32f031bc606701ea04004f41983e3e000000",
    Compression.SNAPPY: KAFKA_HEADS.format(length="00000072", crc="3fc5b25c", attributes="0012")
    + "000000090000000382534e415050590000000001000000010000002d3e385c000000066b65793a76616c7565205a06005c04"
    "0268040102026e010c0013020101000e00e80704000000",
    Compression.LZ4: KAFKA_HEADS.format(length="0000006e", crc="7f099fc7", attributes="0013")
    + "000000090000000304224d186040822e000000ff005c000000066b65793a76616c756520060004f009040268040102026e01"
    "0c0013020101000e00e8070400000000000000",
    Compression.ZSTD: KAFKA_HEADS.format(length="0000006b", crc="1a9c7775", attributes="0014")
    + "000000090000000328b52ffd005874010074025c000000066b65793a76616c756520040268040102026e010c001302010100"
    "0e00e807040000000100a94b1d010000",
}
KAFKA_RECORDS = [
    Record(42, 1000, b"key", b"value value value value value", [("h", b"\x01\x02"), ("n", None)]),
    Record(43, 990, None, None),
    Record(44, 1500, b"", b""),
]
KAFKA_COMMIT_MARKER = (
    "000000000000000b000000420000000202d22f04ed00300000000000000000000030390000000000003039000000000000004d0003ffffffff"
    "000000012000000008000000010c00000000000600"
)

maybe_bytes = st.none() | st.binary(max_size=200)
record_shapes = st.lists(
    st.tuples(
        st.integers(0, 2**42),
        maybe_bytes,
        maybe_bytes,
        st.lists(st.tuples(st.text(max_size=9), maybe_bytes), max_size=3),
    ),
    min_size=1,
    max_size=8,
)


def refusal(data: bytearray) -> ErrorCode | None:
    """The code that reading a batch's records ends in; whatever else is raised is a fault."""
    try:
        list(iterate_records(read_header(data), 1_000_000))
    except KafkaError as error:
        return error.code
    return None


def code_of(caught: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return caught.value.code


@pytest.mark.parametrize("codec", list(Compression))
def test_batches_written_by_apache_kafka(codec: Compression) -> None:
    data = bytes.fromhex(KAFKA_BATCHES[codec])
    (batch,) = iterate_batches(data)
    check_crc(batch)
    check_produced(batch)
    assert (batch.base_offset, batch.last_offset, batch.next_offset, batch.record_count) == (42, 44, 45, 3)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (77, 3, 9, 11)
    assert (batch.partition_leader_epoch, batch.base_timestamp, batch.max_timestamp) == (5, 1000, 1500)
    assert batch.compression == codec
    assert batch.is_transactional
    assert not batch.is_control
    assert not batch.is_log_append_time
    assert batch.size == len(data)
    assert list(iterate_records(batch)) == KAFKA_RECORDS


def test_an_uncompressed_batch_is_byte_for_byte_apache_kafkas() -> None:
    built = build_batch(
        KAFKA_RECORDS,
        partition_leader_epoch=5,
        producer_id=77,
        producer_epoch=3,
        base_sequence=9,
        is_transactional=True,
    )
    assert built.hex() == KAFKA_BATCHES[Compression.NONE]


def test_an_end_marker_is_byte_for_byte_apache_kafkas() -> None:
    built = build_end_marker(
        commit=True,
        coordinator_epoch=6,
        producer_id=77,
        producer_epoch=3,
        timestamp=12345,
        base_offset=11,
        partition_leader_epoch=2,
    )
    assert built.hex() == KAFKA_COMMIT_MARKER
    batch = read_header(built)
    assert batch.is_control
    assert batch.last_sequence == -1
    (marker,) = iterate_records(batch)
    assert control_type(marker.key) == ControlType.COMMIT
    assert end_marker_coordinator_epoch(marker.value) == 6
    with pytest.raises(KafkaError):
        control_type(None)
    with pytest.raises(KafkaError):
        end_marker_coordinator_epoch(b"\0")


@settings(max_examples=60, deadline=None)
@given(record_shapes, st.sampled_from(list(Compression)), st.integers(0, 2**50))
def test_records_survive_a_batch(
    shapes: list[tuple[int, bytes, bytes, list[tuple[str, bytes]]]], codec: int, base: int
) -> None:
    records = [Record(base + index, *shape) for index, shape in enumerate(shapes)]
    data = build_batch(records, compression=codec)
    batch = read_header(data)
    check_crc(batch)
    check_produced(batch)
    assert list(iterate_records(batch)) == records
    assert batch.max_timestamp == max(record.timestamp for record in records)


@pytest.mark.parametrize("codec", list(Compression))
def test_another_client_reads_our_batches(codec: Compression) -> None:
    records = [Record(7 + index, 1000 + index, b"k%d" % index, bytes(40_000), [("h", b"v")]) for index in range(4)]
    batch = DefaultRecordBatch(build_batch(records, compression=codec))
    assert batch.validate_crc()
    read = [Record(each.offset, each.timestamp, each.key, each.value, each.headers) for each in batch]
    assert read == records


def test_stamping_does_not_touch_the_checksum() -> None:
    buffer = bytearray(b"frame" + build_batch([Record(0, 5, b"k", b"v"), Record(1, 6, b"k", b"v")]))
    batch = read_header(memoryview(buffer), 5)
    stamp(batch, 1000, 9)
    assert batch.next_offset == 1002
    stamped = read_header(buffer, 5)
    check_crc(stamped)
    assert (stamped.base_offset, stamped.partition_leader_epoch) == (1000, 9)
    assert [record.offset for record in iterate_records(stamped)] == [1000, 1001]


def test_log_append_time_is_the_time_of_every_record() -> None:
    buffer = bytearray(build_batch([Record(0, 5, b"k", b"v"), Record(1, 6, b"k", b"v")], compression=Compression.GZIP))
    stamp_log_append_time(read_header(buffer), 777)
    batch = read_header(buffer)
    check_crc(batch)
    assert batch.is_log_append_time
    assert (batch.max_timestamp, batch.compression) == (777, Compression.GZIP)
    assert [record.timestamp for record in iterate_records(batch)] == [777, 777]


def test_what_compaction_leaves() -> None:
    holes = build_batch([Record(12, 30, b"k", None)], base_offset=10, last_offset=19, delete_horizon_ms=5000)
    batch = read_header(holes)
    assert (batch.base_offset, batch.last_offset, batch.record_count, batch.delete_horizon_ms) == (10, 19, 1, 5000)
    assert list(iterate_records(batch)) == [Record(12, 30, b"k", None)]
    empty = build_batch([], base_offset=10, last_offset=19, max_timestamp=60, producer_id=4, base_sequence=0)
    batch = read_header(empty)
    check_crc(batch)
    assert (batch.size, batch.record_count, batch.next_offset, batch.last_sequence) == (61, 0, 20, 9)
    assert batch.delete_horizon_ms is None
    assert list(iterate_records(batch)) == []


def test_several_batches_and_a_cut_one() -> None:
    one, two = build_batch([Record(0, 1, None, b"a")]), build_batch([Record(1, 1, None, b"b")])
    assert [batch.base_offset for batch in iterate_batches(one + two)] == [0, 1]
    for cut in (1, 20, len(two) - 1):
        data = one + two[:cut]
        assert [batch.base_offset for batch in iterate_batches(data, allow_partial=True)] == [0]
        with pytest.raises(KafkaError) as caught:
            list(iterate_batches(data))
        assert code_of(caught) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [17, 30, 100])
def test_old_message_formats_are_named(magic: int, size: int) -> None:
    old = bytes(8) + (size - 12).to_bytes(4, "big") + bytes(4) + bytes((magic,)) + bytes(size - 17)
    with pytest.raises(KafkaError, match=f"message format {magic}") as caught:
        read_header(old)
    assert code_of(caught) == ErrorCode.INVALID_RECORD


def test_what_cannot_be_a_batch_is_corrupt() -> None:
    good = build_batch([Record(0, 1, None, b"a")])
    wrong_magic = good[:16] + b"\x09" + good[17:]
    short = good[:8] + (48).to_bytes(4, "big") + good[12:]
    negative = good[:8] + b"\xff\xff\xff\xf0" + good[12:]
    for data in (b"x", b"", wrong_magic, short, negative):
        with pytest.raises(KafkaError) as caught:
            read_header(data)
        assert code_of(caught) == ErrorCode.CORRUPT_MESSAGE


def test_every_flipped_bit_behind_the_checksum_is_seen() -> None:
    good = build_batch([Record(0, 1, b"k", b"value")], producer_id=3, producer_epoch=0, base_sequence=0)
    for position in range(17, len(good)):
        bad = bytearray(good)
        bad[position] ^= 1 << position % 8
        with pytest.raises(KafkaError) as caught:
            check_crc(read_header(bad))
        assert code_of(caught) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"record_count": 0}, ErrorCode.INVALID_RECORD),
        ({"record_count": 3}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x20}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 5}, ErrorCode.INVALID_RECORD),
        ({"attributes": 6}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
)
def test_headers_that_contradict_themselves(changes: dict[str, int], code: ErrorCode) -> None:
    batch = read_header(build_batch([Record(0, 1, None, b"a"), Record(1, 1, None, b"a")]))
    check_produced(batch)
    for name, value in changes.items():
        setattr(batch, name, value)
    with pytest.raises(KafkaError) as caught:
        check_produced(batch)
    assert code_of(caught) == code


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_a_bomb_is_refused_before_it_goes_off(codec: Compression) -> None:
    data = build_batch([Record(0, 1, None, bytes(4_000_000))], compression=codec)
    assert len(list(iterate_records(read_header(data), 5_000_000))) == 1
    with pytest.raises(KafkaError, match="more than 1000000 bytes") as caught:
        list(iterate_records(read_header(data), 1_000_000))
    assert code_of(caught) == ErrorCode.INVALID_RECORD


def test_a_snappy_block_cannot_claim_more_than_it_could_hold() -> None:
    data = bytearray(build_batch([Record(0, 1, None, b"a" * 20)], compression=Compression.NONE))
    batch = read_header(bytes(data[:61]) + b"\xff\xff\xff\x3f" + bytes(20))
    batch.attributes = Compression.SNAPPY
    batch.length = 61 - 12 + 24
    with pytest.raises(KafkaError, match="more than"):
        list(iterate_records(batch))


def test_raw_snappy_as_librdkafka_sends_it() -> None:
    plain = build_batch([Record(0, 1, b"k", b"value" * 100)])
    payload = bytes(cramjam.snappy.compress_raw(plain[61:]))
    batch = read_header(plain[:61] + payload)
    batch.attributes = Compression.SNAPPY
    batch.length = 61 - 12 + len(payload)
    assert [record.value for record in iterate_records(batch)] == [b"value" * 100]


@pytest.mark.parametrize("codec", list(Compression))
def test_tampered_records_are_invalid_and_nothing_worse(codec: Compression) -> None:
    random = Random(int(codec))
    records = [Record(index, 10**12, b"key", b"value" * 20, [("header", b"x")]) for index in range(5)]
    good = build_batch(records, compression=codec)
    refused = 0
    for _ in range(400):
        bad = bytearray(good)
        for _ in range(random.choice([1, 2, 4])):
            bad[random.randrange(61, len(bad))] = random.choice([0, 1, 0x7F, 0xFF, random.randrange(256)])
        code = refusal(bad)
        assert code in (None, ErrorCode.INVALID_RECORD)
        refused += code is not None
    assert refused > 50


@pytest.mark.parametrize("count", [-1, 1, 3, 2**31 - 1])
def test_a_count_that_is_not_the_number_of_records(count: int) -> None:
    batch = read_header(build_batch([Record(0, 1, b"k", b"v"), Record(1, 1, b"k", b"v")]))
    batch.record_count = count
    with pytest.raises(KafkaError) as caught:
        list(iterate_records(batch))
    assert code_of(caught) == ErrorCode.INVALID_RECORD


def test_sequences_start_again_after_the_largest() -> None:
    records = [Record(index, 1, None, b"") for index in range(4)]
    batch = read_header(build_batch(records, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2))
    assert batch.last_sequence == 1


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789", 0) == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345", 0)) == 0xE3069283


def test_the_checksum_is_found_without_its_extension_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.machinery.PathFinder.find_spec", lambda *_: None)
    assert crc._load()(b"123456789", 0) == 0xE3069283


def test_keys_go_where_the_java_client_puts_them() -> None:
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}
    for key, signed in known.items():
        assert murmur2(key) == signed & 0xFFFFFFFF
        assert partition_for_key(key, 7) == (signed & 0x7FFFFFFF) % 7
