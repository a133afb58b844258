"""Rows of Arrow batches to the records of Kafka's batches: which partition each goes to, and its bytes.

rows     columns as Spark hands them to a task: key, value, headers, topic, partition, timestamp
chunks   for each Kafka partition, encoded records, compressed, ready for a header (see client/batches.py)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.client.batches import Chunk
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.compression import compress

try:
    from tidelog.spark import writing_kernels as kernels
except ImportError:  # numba is optional
    from tidelog.spark import writing_fallback as kernels  # type: ignore[no-redef]

Array = Any
"""A numpy array; its shape and type stand where it is made."""
_RECORD_BOUND_BYTES = 40
"""What a record may need besides key, value and headers: six numbers of at most ten bytes, and never all of them."""
_HEADER_BOUND_BYTES = 10
_BATCH_HEADER_BYTES = 61


class TopicPlan(NamedTuple):
    """What an executor must know of a topic in order to encode for it."""

    partition_count: int
    max_message_bytes: int


class Plan(NamedTuple):
    """How rows become records."""

    topic: str | None
    """Where all rows go; None where each names its own."""
    compression: int
    batch_bytes: int
    keep_timestamps: bool


class _Binary(NamedTuple):
    data: Array
    offsets: Array
    present: Array


def encode(
    batch: pa.RecordBatch,
    plan: Plan,
    topic_plan: Callable[[str], TopicPlan],
    spread: Callable[[str, int, int], Array],
) -> Iterator[tuple[str, int, Chunk]]:
    """The chunks of one Arrow batch, partition by partition, rows in their order.

    `spread(topic, partition count, rows)` says where rows go that have neither a partition nor a key.
    """
    columns = _Columns(batch, plan)
    for topic, rows in columns.by_topic(plan.topic):
        known = topic_plan(topic)
        partitions = columns.partitions(topic, rows, known.partition_count, spread)
        order = np.argsort(partitions, kind="stable")
        bounds = np.searchsorted(partitions[order], np.arange(known.partition_count + 1))
        limit = min(plan.batch_bytes, known.max_message_bytes - _BATCH_HEADER_BYTES)
        for partition in np.flatnonzero(np.diff(bounds)).tolist():
            chosen = rows[order[bounds[partition] : bounds[partition + 1]]]
            for chunk in columns.chunks(chosen, limit, plan.compression):
                if len(chunk.payload) + _BATCH_HEADER_BYTES > known.max_message_bytes:
                    raise KafkaError(
                        ErrorCode.MESSAGE_TOO_LARGE,
                        f"a record of {len(chunk.payload)} bytes for {topic}-{partition} is larger than the topic's "
                        f"max.message.bytes ({known.max_message_bytes}) allows",
                    )
                yield topic, partition, chunk


def compile_loops() -> None:
    """Encode one row: numba keeps what it compiled for that, and the first task need not wait."""
    batch = pa.record_batch({"key": pa.array([b"k"]), "value": pa.array([b"v"])})
    for _ in encode(batch, Plan("any", 0, 1_000, False), lambda _: TopicPlan(1, 1_000), lambda *_: np.int64(0)):
        pass


def partitions_of(
    batch: pa.RecordBatch, plan: Plan, partition_count: int, spread: Callable[[str, int, int], Array]
) -> Array:
    """The partition of each row, as `encode` would choose it, for a plan with one topic."""
    assert plan.topic is not None
    rows = np.arange(batch.num_rows, dtype=np.int64)
    return _Columns(batch, plan).partitions(plan.topic, rows, partition_count, spread)


class _Columns:
    """The columns of an Arrow batch as numpy arrays over the same memory."""

    def __init__(self, batch: pa.RecordBatch, plan: Plan) -> None:
        self.count = batch.num_rows
        self._batch = batch
        self.key = self._binary("key")
        self.value = self._binary("value")
        self.timestamps = self._timestamps(plan.keep_timestamps)
        self.header_offsets, self.names, self.contents = self._headers()
        self._bytes_a_row: Array = (
            (self.key.offsets[1:] - self.key.offsets[:-1]).astype(np.int64)
            + (self.value.offsets[1:] - self.value.offsets[:-1])
            + _RECORD_BOUND_BYTES
        )
        if len(self.header_offsets):
            sizes = np.zeros(len(self.names.offsets), np.int64)
            np.cumsum(np.diff(self.names.offsets) + np.diff(self.contents.offsets) + _HEADER_BOUND_BYTES, out=sizes[1:])
            self._bytes_a_row += sizes[self.header_offsets[1:]] - sizes[self.header_offsets[:-1]]

    def by_topic(self, topic: str | None) -> Iterator[tuple[str, Array]]:
        """Each topic with its rows, in their order."""
        everything = np.arange(self.count, dtype=np.int64)
        if topic is not None:
            yield topic, everything
            return
        column = self._batch.column(self._batch.schema.get_field_index("topic"))
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"null topic in row {row} of a batch: give every row a topic, or name one with the option topic",
            )
        encoded = pc.dictionary_encode(column)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        for code, name in enumerate(encoded.dictionary.to_pylist()):
            yield name, np.flatnonzero(codes == code).astype(np.int64)

    def partitions(
        self, topic: str, rows: Array, partition_count: int, spread: Callable[[str, int, int], Array]
    ) -> Array:
        """Of each row: what its column says, else the Java client's choice for its key, else what `spread` says."""
        found = np.full(self.count, -1, np.int64)
        kernels.murmur2_partitions(self.key.data, self.key.offsets, self.key.present, partition_count, found)
        index = self._batch.schema.get_field_index("partition")
        if index >= 0:
            column = self._batch.column(index)
            given = column.is_valid().to_numpy(zero_copy_only=False)
            found[given] = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)[given]
            wrong = rows[given[rows] & ((found[rows] < 0) | (found[rows] >= partition_count))]
            if len(wrong):
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"a row is for partition {found[wrong[0]]} of topic {topic!r}, which has {partition_count}",
                )
        found = found[rows]
        free = np.flatnonzero(found < 0)
        if len(free):
            found[free] = spread(topic, partition_count, len(free))
        return found

    def chunks(self, rows: Array, limit_bytes: int, compression: int) -> Iterator[Chunk]:
        """The records of these rows in chunks below a size."""
        bound = int(self._bytes_a_row[rows].sum())
        out = np.empty(bound, np.uint8)
        most = len(rows) if limit_bytes <= 0 else min(len(rows), 2 * (bound // limit_bytes) + 2)
        ends = np.empty(most, np.int64)
        counts = np.empty(most, np.int64)
        times = np.empty((most, 2), np.int64)
        made = kernels.encode_records(
            *(rows, self.timestamps, *self.key, *self.value),
            *(self.header_offsets, self.names.data, self.names.offsets, *self.contents),
            *(limit_bytes, out, ends, counts, times),
        )
        view = out.data
        position = first = 0
        for number in range(made):
            end, last = int(ends[number]), int(counts[number])
            payload = view[position:end]
            yield Chunk(
                compress(compression, payload),
                last - first,
                int(times[number, 0]),
                int(times[number, 1]),
                compression,
            )
            position, first = end, last

    def _binary(self, name: str) -> _Binary:
        index = self._batch.schema.get_field_index(name)
        if index < 0:
            return _fixed(_NOTHING, np.zeros(self.count + 1, np.int32), np.zeros(self.count, np.bool_))
        return _as_binary(self._batch.column(index))

    def _timestamps(self, keep: bool) -> Array:
        now_ms = int(time.time() * 1000)
        index = self._batch.schema.get_field_index("timestamp") if keep else -1
        if index < 0:
            return _read_only(np.full(self.count, now_ms, np.int64))
        column = self._batch.column(index).cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
        return _read_only(pc.fill_null(column, now_ms).to_numpy(zero_copy_only=False))

    def _headers(self) -> tuple[Array, _Binary, _Binary]:
        nothing = _fixed(_NOTHING, np.zeros(1, np.int32), np.zeros(0, np.bool_))
        index = self._batch.schema.get_field_index("headers")
        if index < 0 or self._batch.column(index).null_count == self.count:
            return _read_only(np.zeros(0, np.int32)), nothing, nothing
        lists = self._batch.column(index)
        if lists.null_count:
            lists = pc.if_else(lists.is_valid(), lists, pa.scalar([], lists.type))
        entries = lists.values
        offsets = _read_only(lists.offsets.to_numpy(zero_copy_only=False).astype(np.int32))
        names, contents = entries.field(0), entries.field(1)
        if names.null_count:
            raise KafkaError(ErrorCode.INVALID_RECORD, "a row has a header without a key")
        return offsets, _as_binary(names), _as_binary(contents)


_NOTHING: Array = np.zeros(0, np.uint8)


def _read_only(array: Array) -> Array:
    """As most of Arrow's memory is anyway: numba compiles once more for every mixture of the two kinds."""
    array.flags.writeable = False
    return array


def _fixed(data: Array, offsets: Array, present: Array) -> _Binary:
    return _Binary(_read_only(data), _read_only(offsets), _read_only(present))


def _as_binary(column: pa.Array) -> _Binary:
    """A string or binary column as bytes, offsets into them and a mark for each row that is not null."""
    if column.type not in (pa.binary(), pa.string()):
        column = column.cast(pa.binary())
    _, offsets, data = column.buffers()
    all_offsets = np.frombuffer(offsets, np.int32) if offsets is not None else np.zeros(1, np.int32)
    present = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else np.ones(len(column), np.bool_)
    return _fixed(
        np.frombuffer(data, np.uint8) if data is not None and data.size else _NOTHING,
        all_offsets[column.offset : column.offset + len(column) + 1],
        present,
    )
