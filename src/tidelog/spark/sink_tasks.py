"""What runs on the executors: rows to chunks, chunks to brokers.

    gather   rows -> chunks      any number of tasks; may run again, since it only computes
    deliver  chunks -> brokers   one task a Kafka partition; must not run again in the same epoch
    both     rows -> brokers     where each Kafka partition's rows are in one task already, or where tasks can write by
                                 turns (see sink_turns.py); must not run again either

A second run of a task that delivers could put other bytes under sequences that a broker has seen, and be taken for a
repetition: it writes nothing, and says so. So does a copy of a task that Spark starts by speculation. The driver then
ends the transaction and begins the whole batch anew, in an epoch that shuts out whoever still writes.
"""

from __future__ import annotations

import heapq
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from tidelog.client.admin import ResourceType, describe_configs
from tidelog.client.batches import BatchSender, Chunk, new_idempotent_producer
from tidelog.client.client import Client, TopicPartition
from tidelog.client.shared_transaction import Identity
from tidelog.errors import KafkaError, TidelogError
from tidelog.spark.sink_options import SinkOptions
from tidelog.spark.sink_turns import Turns, reason_of
from tidelog.spark.workers import settle
from tidelog.spark.writing import TopicPlan, encode, partitions_of

CHUNK_COLUMNS = (
    "writer int, source int, number int, topic string, partition int, records int, "
    "base_timestamp long, max_timestamp long, payload binary"
)
_CHUNK_SCHEMA = pa.schema(
    [
        ("writer", pa.int32()),
        ("source", pa.int32()),
        ("number", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("records", pa.int32()),
        ("base_timestamp", pa.int64()),
        ("max_timestamp", pa.int64()),
        ("payload", pa.binary()),
    ]
)
RESULT_COLUMNS = (
    "outcome string, task int, stage int, topic string, partition int, records long, bytes long, message string"
)
_RESULT_SCHEMA = pa.schema(
    [
        ("outcome", pa.string()),
        ("task", pa.int32()),
        ("stage", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("records", pa.int64()),
        ("bytes", pa.int64()),
        ("message", pa.string()),
    ]
)
WRITTEN, RAN, FAILED, REPEATED = "written", "ran", "failed", "repeated"
_DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
_GATHER_BYTES = 8_000_000
"""Small Arrow batches are put together up to this, so that chunks are of a good size."""
SPECULATION_PATIENCE_S = 60.0
"""How long a copy made by speculation waits for the task it copies; Spark ends it when that one is done."""


class Where(NamedTuple):
    """Which task this is."""

    task: int
    stage: int
    attempt: int


def here() -> Where:
    """As Spark says it; outside of a task, the one and only."""
    context = TaskContext.get()
    if context is None:
        return Where(0, 0, 0)
    return Where(context.partitionId(), context.stageId(), context.attemptNumber())


# --- what a task knows of topics ---


class Topics:
    """Partition counts and size limits, asked once a task."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._plans: dict[str, TopicPlan] = {}

    def plan(self, topic: str) -> TopicPlan:
        """What the encoder must know; UNKNOWN_TOPIC_OR_PARTITION for a topic that is not there."""
        found = self._plans.get(topic)
        if found is None:
            count = len(self._client.topic(topic).partitions)
            found = self._plans[topic] = TopicPlan(count, self._max_message_bytes(topic))
        return found

    def _max_message_bytes(self, topic: str) -> int:
        try:
            (setting,) = describe_configs(self._client, ResourceType.TOPIC, topic, keys=["max.message.bytes"])
            return int(setting.value or _DEFAULT_MAX_MESSAGE_BYTES)
        except (KafkaError, ValueError):  # a user who may write need not be allowed to see settings
            return _DEFAULT_MAX_MESSAGE_BYTES


def spread_evenly(start: int) -> Callable[[str, int, int], Any]:
    """Rows without a key in runs, one a partition, each time beginning with another: full batches and an even load."""
    turn = [start]

    def spread(_topic: str, partition_count: int, rows: int) -> Any:
        turn[0] += 1
        return (np.arange(rows, dtype=np.int64) * partition_count // rows + turn[0]) % partition_count

    return spread


def spread_to_one(task: int) -> Callable[[str, int, int], Any]:
    """Rows without a key to the partition of the task's own number: how many tasks there are, it cannot know."""

    def spread(topic: str, partition_count: int, rows: int) -> Any:
        if task >= partition_count:
            raise TidelogError(
                f"more tasks write rows without a key than {topic!r} has partitions ({partition_count}): there is none "
                f"left for task {task}. Bring rows together (tidelog.spark.write_stream and tidelog.spark.write do), "
                "or ask for deliveryGuarantee=at-least-once"
            )
        return np.full(rows, task, np.int64)

    return spread


def spread_over_own(task: int, tasks: int) -> Callable[[str, int, int], Any]:
    """Rows without a key over the partitions that no other task has: every `tasks`-th from this task's number on."""

    def spread(_topic: str, partition_count: int, rows: int) -> Any:
        own = np.arange(task, partition_count, tasks, dtype=np.int64)
        return own[np.arange(rows, dtype=np.int64) * len(own) // rows]

    return spread


def _in_good_sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= _GATHER_BYTES:
            yield held[0] if len(held) == 1 else pa.concat_batches(held)
            held, size = [], 0
    if held:
        yield held[0] if len(held) == 1 else pa.concat_batches(held)


def writer_of(topic: str, partition: int, writers: int) -> int:
    """The one delivering task of a Kafka partition."""
    return (zlib.crc32(topic.encode()) + partition) % writers


# --- the tasks ---


def gather(options: SinkOptions, writers: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows to chunks, each marked with the task that will deliver it and with its place among its like."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        task = here().task
        numbers: dict[TopicPartition, int] = {}
        with options.client() as client:
            topics, spread = Topics(client), spread_evenly(task)
            for batch in _in_good_sizes(batches):
                rows: list[tuple[Any, ...]] = []
                for topic, partition, chunk in encode(batch, options.plan(), topics.plan, spread):
                    number = numbers.get((topic, partition), 0)
                    numbers[topic, partition] = number + 1
                    rows.append(
                        (
                            writer_of(topic, partition, writers),
                            *(task, number, topic, partition, chunk.record_count),
                            *(chunk.base_timestamp, chunk.max_timestamp, chunk.payload),
                        )
                    )
                columns = zip(*rows, strict=True)
                yield pa.record_batch(
                    [pa.array(column, field.type) for column, field in zip(columns, _CHUNK_SCHEMA, strict=True)],
                    schema=_CHUNK_SCHEMA,
                )

    return run


def place(options: SinkOptions, count: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows with the column `partition` filled in for each."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spread = spread_evenly(here().task)
        for batch in batches:
            found = pa.array(partitions_of(batch, options.plan(), count, spread), pa.int32())
            index = batch.schema.get_field_index("partition")
            others = batch if index < 0 else batch.remove_column(index)
            yield others.append_column("partition", found)

    return run


def deliver(
    options: SinkOptions, identity: Identity, speculation: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Chunks to brokers."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        def work(client: Client, sender: BatchSender) -> None:
            for where, chunk in in_order(batches, int(options.compression)):
                sender.send(where, chunk)

        yield _guarded(options, identity, speculation, work)

    return run


def write_directly(
    options: SinkOptions, identity: Identity, speculation: bool, tasks: int | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows to brokers in one go. `tasks`: how many there are at most, where rows have no keys and may go anywhere."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        def work(client: Client, sender: BatchSender) -> None:
            task = here().task
            spread = spread_to_one(task) if tasks is None else spread_over_own(task, tasks)
            send_rows(batches, options, client, sender, spread)

        yield _guarded(options, identity, speculation, work)

    return run


def write_by_turns(
    options: SinkOptions, identity: Identity, speculation: bool, folder: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows to brokers in one go, whatever partitions they are for. `folder` is new, and seen by all tasks alike."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        def work(client: Client, sender: BatchSender) -> None:
            task = here().task
            topics, spread = Topics(client), spread_evenly(task)
            with Turns(folder, sender, task) as turns:
                for batch in _in_good_sizes(batches):
                    chunks: dict[TopicPartition, list[Chunk]] = {}
                    for topic, partition, chunk in encode(batch, options.plan(), topics.plan, spread):
                        chunks.setdefault((topic, partition), []).append(chunk)
                    turns.send(chunks)

        yield _guarded(options, identity, speculation, work)

    return run


def send_rows(
    batches: Iterable[pa.RecordBatch],
    options: SinkOptions,
    client: Client,
    sender: BatchSender,
    spread: Callable[[str, int, int], Any],
) -> None:
    """Encode and send, without waiting for the last answers."""
    topics = Topics(client)
    for batch in _in_good_sizes(batches):
        for topic, partition, chunk in encode(batch, options.plan(), topics.plan, spread):
            sender.send((topic, partition), chunk)


def append_rows(
    batches: Iterable[pa.RecordBatch], options: SinkOptions, columns: list[str]
) -> dict[TopicPartition, int]:
    """At least once: rows to brokers with a producer of the task's own; how many each partition got."""
    with options.client() as client:
        sender = BatchSender(client, new_idempotent_producer(client), delivery_timeout_ms=options.delivery_timeout_ms)
        send_rows((batch.select(columns) for batch in batches), options, client, sender, spread_evenly(here().task))
        sender.flush()
        return {where: written.records for where, written in sender.written.items()}


def in_order(batches: Iterable[pa.RecordBatch], compression: int) -> Iterator[tuple[TopicPartition, Chunk]]:
    """The chunks of each gathering task and partition in the order they were made, however a shuffle brought them."""
    expected: dict[tuple[int, str, int], int] = {}
    early: dict[tuple[int, str, int], list[tuple[int, Chunk]]] = {}
    for batch in batches:
        payloads = batch.column(8)
        for index, row in enumerate(zip(*(column.to_pylist() for column in batch.columns[:8]), strict=True)):
            _, source, number, topic, partition, records, base, greatest = row
            line = (source, topic, partition)
            waiting = early.setdefault(line, [])
            payload = memoryview(payloads[index].as_buffer())
            heapq.heappush(waiting, (number, Chunk(payload, records, base, greatest, compression)))
            while waiting and waiting[0][0] == expected.get(line, 0):
                expected[line] = expected.get(line, 0) + 1
                yield (topic, partition), heapq.heappop(waiting)[1]
    for (source, topic, partition), waiting in early.items():
        if waiting:
            raise TidelogError(f"a shuffle lost rows of task {source} for {topic}-{partition}")


def _guarded(
    options: SinkOptions,
    identity: Identity,
    speculation: bool,
    work: Callable[[Client, BatchSender], None],
) -> pa.RecordBatch:
    """Run a delivering task once; its result, good or bad, is a row for the driver, which alone decides."""
    settle()
    place = here()
    if place.attempt > 0:
        if speculation:
            time.sleep(SPECULATION_PATIENCE_S)
        return _result(place, REPEATED, f"attempt {place.attempt} of a task")
    try:
        with options.client() as client:
            sender = BatchSender(client, identity, delivery_timeout_ms=options.delivery_timeout_ms)
            work(client, sender)
            sender.flush()
    except TidelogError as error:
        return _result(place, FAILED, reason_of(error))
    rows = [
        (WRITTEN, place.task, place.stage, topic, partition, written.records, written.bytes, "")
        for (topic, partition), written in sender.written.items()
    ]
    rows.append((RAN, place.task, place.stage, "", -1, 0, 0, ""))
    return _table(rows)


def _result(place: Where, outcome: str, message: str) -> pa.RecordBatch:
    return _table([(outcome, place.task, place.stage, "", -1, 0, 0, message)])


def _table(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, _RESULT_SCHEMA, strict=True)],
        schema=_RESULT_SCHEMA,
    )
