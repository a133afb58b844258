"""Record batches to Arrow: what a reader record by record would find, by the compiled loops and by numpy alone."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from tidelog.errors import KafkaError
from tidelog.spark import decode, decode_fallback, decode_kernels
from tidelog.spark.decode import Decoder
from tidelog.spark.source_schema import segments_schema, source_schema
from tidelog.wire.batch import Compression, Record, build_batch, build_end_marker

SCHEMA = to_arrow_schema(source_schema(include_headers=True), timezone="UTC")
KERNELS = pytest.mark.parametrize("kernels", [decode_kernels, decode_fallback], ids=["numba", "numpy"])
PLACE = {"topic": "orders", "partition": 3}


def decoder(kernels: ModuleType, schema: pa.Schema = SCHEMA, **settings: Any) -> Decoder:
    """A decoder with these loops."""
    made = Decoder(schema, PLACE | ({"path": "a.log"} if "path" in schema.names else {}), **settings)
    made._kernels = kernels
    return made


def rows_of(made: Decoder, data: bytes, first: int = 0, end: int = 1 << 62, aborted: Any = ()) -> list[dict[str, Any]]:
    """All rows, after Arrow itself has checked every column."""
    found = []
    for batch in made.decode(made.scan(memoryview(data)), first, end, aborted):
        batch.validate(full=True)
        found += batch.to_pylist()
    return found


def as_record(row: dict[str, Any]) -> Record:
    headers = [(each["key"], each["value"]) for each in row["headers"] or ()]
    timestamp = pa.scalar(row["timestamp"], pa.timestamp("us", tz="UTC")).value // 1000
    return Record(row["offset"], timestamp, row["key"], row["value"], headers)


small_bytes = st.none() | st.binary(max_size=40)
record_parts = st.tuples(
    st.integers(1, 3),
    st.integers(-(10**6), 10**12),
    small_bytes,
    small_bytes | st.binary(min_size=60, max_size=200),
    st.lists(st.tuples(st.text(max_size=5), small_bytes), max_size=3),
)


@KERNELS
@settings(max_examples=30)
@given(
    batches=st.lists(
        st.tuples(st.sampled_from(list(Compression)), st.lists(record_parts, min_size=1, max_size=20)), max_size=4
    ),
    cut=st.tuples(st.integers(0, 10), st.integers(0, 10)),
)
def test_rows_are_the_records(kernels: ModuleType, batches: list[Any], cut: tuple[int, int]) -> None:
    """All codecs, nulls, gaps as compaction leaves them, headers, and a range that begins and ends inside batches."""
    written: list[Record] = []
    data = b""
    offset = 5
    for kind, parts in batches:
        records = []
        for step, timestamp, key, value, headers in parts:
            offset += step
            records.append(Record(offset, timestamp, key, value, headers))
        written += records
        data += build_batch(records, compression=kind)
        offset += 2
    first, end = 5 + cut[0], offset - cut[1]
    rows = rows_of(decoder(kernels), data, first, end)
    assert [as_record(row) for row in rows] == [each for each in written if first <= each.offset < end]
    assert all((row["topic"], row["partition"], row["timestampType"]) == ("orders", 3, 0) for row in rows)


@KERNELS
def test_an_answer_may_end_inside_a_batch(kernels: ModuleType) -> None:
    whole = build_batch([Record(0, 1, None, b"a"), Record(1, 1, None, b"b")])
    cut = build_batch([Record(2, 1, None, b"c")])[:-1]
    made = decoder(kernels)
    batches = made.scan(memoryview(whole + cut))
    assert (batches.count, batches.next_offset, batches.size, batches.bad_at) == (1, 2, len(whole), None)
    assert made.scan(memoryview(whole + b"\0" * 80)).bad_at == len(whole)


@KERNELS
def test_the_time_of_appending_is_every_records_time(kernels: ModuleType) -> None:
    data = build_batch([Record(0, 7, None, b"a"), Record(1, 9, None, b"b")], log_append_time_ms=1234)
    rows = rows_of(decoder(kernels), data)
    assert [(as_record(row).timestamp, row["timestampType"]) for row in rows] == [(1234, 1), (1234, 1)]


@KERNELS
def test_a_wrong_checksum_is_found_and_named(kernels: ModuleType) -> None:
    good = build_batch([Record(0, 1, None, b"a" * 50)])
    bad = bytearray(build_batch([Record(1, 1, None, b"b" * 50)]))
    bad[-1] ^= 1
    with pytest.raises(KafkaError, match=rf"offset 1 \(byte {len(good)}\): its checksum is wrong"):
        rows_of(decoder(kernels), good + bytes(bad))
    told: list[tuple[int, str]] = []
    rows = rows_of(decoder(kernels, skip=lambda *trouble: told.append(trouble)), bytes(bad) + good)
    assert [row["value"] for row in rows] == [b"a" * 50]
    assert told[0][0] == 0


@KERNELS
@pytest.mark.parametrize("kind", [Compression.NONE, Compression.ZSTD])
def test_records_that_lie_are_refused_and_nothing_is_read_beyond_them(kernels: ModuleType, kind: Compression) -> None:
    """A producer's records are not checked by a broker: whatever they hold must end in rows or in an error."""
    noise = random.Random(5)
    outcomes = set()
    for _ in range(300):
        records = [Record(0, 1, b"k", b"value", [("h", b"x")]), Record(1, 1, None, b"v" * 70, [])]
        plain = bytearray(build_batch(records))
        for _ in range(noise.randrange(1, 4)):
            plain[noise.randrange(61, len(plain))] = noise.randrange(256)
        data = (
            bytes(plain) if kind is Compression.NONE else _with_payload(build_batch(records, compression=kind), plain)
        )
        try:
            rows_of(decoder(kernels, check_crcs=False), data)
            outcomes.add("rows")
        except KafkaError:
            outcomes.add("refused")
        except (UnicodeDecodeError, pa.ArrowInvalid):
            outcomes.add("no text")  # the test's own look at a header's key: Spark shows such a text as it is
    assert {"rows", "refused"} <= outcomes


def _with_payload(compressed: bytes, plain: bytearray) -> bytes:
    import cramjam

    payload = bytes(cramjam.zstd.compress(bytes(plain[61:])))
    return compressed[:8] + (len(payload) + 49).to_bytes(4, "big") + compressed[12:61] + payload


@KERNELS
def test_aborted_records_and_markers_are_left_out(kernels: ModuleType) -> None:
    def batch(offset: int, producer: int, value: bytes) -> bytes:
        record = Record(offset, 1, None, value)
        return build_batch([record], producer_id=producer, producer_epoch=0, base_sequence=0, is_transactional=True)

    def marker(offset: int, producer: int, commit: bool) -> bytes:
        return build_end_marker(
            commit=commit, coordinator_epoch=0, producer_id=producer, producer_epoch=0, timestamp=1, base_offset=offset
        )

    data = b"".join(
        [
            batch(0, 7, b"aborted"),
            batch(1, 8, b"committed"),
            build_batch([Record(2, 1, None, b"plain")]),
            marker(3, 7, False),
            batch(4, 7, b"the next of 7"),
            marker(5, 8, True),
            marker(6, 7, True),
        ]
    )
    committed = decoder(kernels, read_committed=True)
    assert [row["value"] for row in rows_of(committed, data, aborted=[(7, 0)])] == [
        b"committed",
        b"plain",
        b"the next of 7",
    ]
    everything = [row["value"] for row in rows_of(decoder(kernels), data)]
    assert everything == [b"aborted", b"committed", b"plain", b"the next of 7"]
    kept = rows_of(decoder(kernels, to_arrow_schema(segments_schema(), timezone="UTC"), keep_control=True), data)
    assert [(row["offset"], row["is_control"], row["producer_id"]) for row in kept if row["is_control"]] == [
        (3, True, 7),
        (5, True, 8),
        (6, True, 7),
    ]


@KERNELS
def test_what_only_files_tell(kernels: ModuleType) -> None:
    records = [Record(2**40 + number, 1, None, b"v") for number in range(3)]
    data = build_batch(records, producer_id=9, producer_epoch=4, base_sequence=2**31 - 2, partition_leader_epoch=6)
    size = len(data)
    data += build_batch([Record(2**40 + 3, 1, None, b"w")])
    rows = rows_of(decoder(kernels, to_arrow_schema(segments_schema(), timezone="UTC")), data)
    assert [row["sequence"] for row in rows] == [2**31 - 2, 2**31 - 1, 0, -1]
    assert [(row["producer_id"], row["producer_epoch"]) for row in rows] == [(9, 4)] * 3 + [(-1, -1)]
    assert [row["position"] for row in rows] == [0, 0, 0, size]
    assert rows[0]["leader_epoch"] == 6
    assert not rows[0]["is_transactional"]


def test_large_answers_become_several_arrow_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "MAX_ARROW_BATCH_BYTES", 1000)
    records = [Record(number, 1, b"k", bytes([number % 256]) * (number * 7)) for number in range(200)]
    made = decoder(decode_kernels)
    batches = list(made.decode(made.scan(memoryview(build_batch(records))), 0, 200))
    assert len(batches) > 100
    assert [as_record(row) for batch in batches for row in batch.to_pylist()] == records


def test_few_records_need_nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new worker would pay a second for loading it, which a small batch of a stream must not."""
    monkeypatch.setattr(decode, "_kernels", None)
    monkeypatch.setattr(decode, "_decoded_records", 0)
    assert decode.kernels(10).NAME == "numpy"
    monkeypatch.setattr(decode, "_decoded_records", decode.USED_TO_RECORDS)
    assert decode.kernels(10).NAME == "numba", "a worker that goes on and on is worth it"
    monkeypatch.setattr(decode, "_kernels", None)
    monkeypatch.setattr(decode, "_decoded_records", 0)
    assert decode.kernels(decode.MANY_RECORDS).NAME == "numba"
    assert decode.kernels(10).NAME == "numba", "loaded once, it serves everyone"


def test_without_numba_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_kernels", None)
    monkeypatch.setitem(__import__("sys").modules, "tidelog.spark.decode_kernels", None)
    monkeypatch.delattr("tidelog.spark.decode_kernels")
    assert decode.kernels(decode.MANY_RECORDS).NAME == "numpy"
