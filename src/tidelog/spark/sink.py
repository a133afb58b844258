"""`write.format("tidelog")` and `writeStream.format("tidelog")`: what Spark's data source interface asks of a sink.

Spark gives such a sink no say in how rows are spread over tasks, so exactly-once is possible where each Kafka partition
has one writing task; it is checked, and refused with the way out. The driver's half runs in other processes than the
query's own: one that sends the writer to the executors, and a new one for each commit or abort. None of them sees
whether Spark ran a stage again, so before the commit what is in the log is read back and held against what the tasks
say they wrote, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tidelog.client.batches import BatchSender, Written
from tidelog.client.client import Client, TopicPartition
from tidelog.client.consumer import Consumer
from tidelog.client.offsets import LATEST, list_offsets
from tidelog.client.shared_transaction import FENCED, Identity
from tidelog.client.transactions import describe_transaction
from tidelog.errors import ConfigError, ErrorCode, KafkaError
from tidelog.spark import sink_tasks as tasks
from tidelog.spark.sink_open import OpenTransaction
from tidelog.spark.sink_options import SinkOptions, check_columns
from tidelog.spark.transactions import (
    LedgerEntry,
    SinkError,
    TransactionRun,
    is_written,
    read_ledger,
    require_one_writer,
)
from tidelog.wire.batch import iterate_batches

_BATCH_ID = "streaming.sql.batchId"
_QUERY_ID = "sql.streaming.queryId"
_OFFSETS_TOPIC = "__consumer_offsets"
_READ_BACK_BYTES = 8 * 1024 * 1024


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    """For `df.write`: all or nothing, or at least once."""
    if overwrite:
        raise ConfigError("a topic cannot be overwritten: use mode append")
    parsed = SinkOptions.parse(options)
    columns = check_columns(schema, parsed)
    return BatchWriter(parsed, columns) if parsed.exactly_once else AtLeastOnceBatchWriter(parsed, columns)


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
    """For `df.writeStream`: exactly once, or at least once."""
    if overwrite:
        raise ConfigError("a topic cannot be overwritten: use output mode append or update")
    parsed = SinkOptions.parse(options)
    columns = check_columns(schema, parsed)
    if not parsed.exactly_once:
        return AtLeastOnceStreamWriter(parsed, columns)
    checkpoint = {name.lower(): text for name, text in options.items()}.get("checkpointlocation", "")
    return StreamWriter(parsed, columns, checkpoint)


@dataclass
class TaskWrote(WriterCommitMessage):
    """What one task tells the driver."""

    identity: Identity | None = None
    query_id: str = ""
    ledger_topic: str = ""
    skipped: bool = False
    written: dict[TopicPartition, Written] = field(default_factory=dict)


# --- at least once ---


class _AtLeastOnce:
    """Each task has a producer of its own; a task or batch that runs again writes again."""

    def __init__(self, options: SinkOptions, columns: list[str]) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In an executor: the rows of one task, acknowledged."""
        tasks.append_rows(iterator, self._options, self._columns)
        return TaskWrote()


class AtLeastOnceBatchWriter(_AtLeastOnce, DataSourceArrowWriter):
    """`df.write` without a transaction."""


class AtLeastOnceStreamWriter(_AtLeastOnce, DataSourceStreamArrowWriter):
    """`df.writeStream` without transactions."""


# --- one transaction ---


class _OneTransaction:
    """What both writers share. The transaction is begun when the writer is first sent to somebody."""

    def __init__(self, options: SinkOptions, columns: list[str], transactional_id: str) -> None:
        self._options = options
        self._columns = columns
        self._transactional_id = transactional_id
        self._identity: Identity | None = None
        self._entry: LedgerEntry | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Spark makes a writer in every process of the driver, and sends one: only that one may begin an epoch."""
        if self._identity is None:
            run = TransactionRun(self._options, self._transactional_id)
            try:
                self._identity = self._begin(run)
                self._entry = self._read_ledger(run.client)
            finally:
                run.close()
        return self.__dict__

    def _begin(self, run: TransactionRun) -> Identity:
        return run.begin()

    def _read_ledger(self, _client: Client) -> LedgerEntry | None:
        return None

    def _write_rows(self, iterator: Iterator[pa.RecordBatch]) -> dict[TopicPartition, Written]:
        place = tasks.here()
        if place.attempt > 0:
            raise SinkError(
                "a task that writes exactly once was lost and may not run again in the same transaction: nothing is "
                "committed; start the query again (tidelog.spark.write_stream does so by itself)"
            )
        assert self._identity is not None
        with self._options.client() as client:
            sender = BatchSender(client, self._identity, delivery_timeout_ms=self._options.delivery_timeout_ms)
            batches = (batch.select(self._columns) for batch in iterator)
            try:
                tasks.send_rows(batches, self._options, client, sender, tasks.spread_to_one(place.task))
                sender.flush()
            except KafkaError as error:
                if error.code in FENCED:
                    raise SinkError(
                        f"{error}: the transaction was ended before this task was done, by another task that failed "
                        "and says why, or by another query with the same transactional id; nothing is committed"
                    ) from error
                if error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                    raise SinkError(
                        f"{error}: another task writes there too, or the broker was killed and refuses a repetition; "
                        f"nothing is committed. In the first case, {WAY_OUT}; in the second, start the query again"
                    ) from error
                raise
        return sender.written

    def _commit(self, messages: list[TaskWrote | None], entry: LedgerEntry | None) -> None:
        wrote = [message for message in messages if message is not None]
        identity = next(message.identity for message in wrote if message.identity is not None)
        run = TransactionRun(self._options, self._transactional_id)
        try:
            require_one_writer(where for message in wrote for where in message.written)
            written = {where: one for message in wrote for where, one in message.written.items()}
            require_all_reported(run.client, self._transactional_id, written)
            require_in_log(run.client, identity, written)
            if entry is None and not written:
                run.abort(identity)
            else:
                run.commit(identity, entry)
        except SinkError:
            run.abort_quietly(identity)
            raise
        finally:
            run.close()

    def _abort(self, messages: list[TaskWrote | None], noted: Identity | None = None) -> None:
        """End it where it is known who it was; else the next begin does, or the transaction's timeout."""
        told = next((message.identity for message in messages if message is not None), None)
        identity = self._identity or told or noted
        if identity is not None:
            run = TransactionRun(self._options, self._transactional_id)
            run.abort_quietly(identity)
            run.close()


WAY_OUT = (
    "write with tidelog.spark.write_stream or tidelog.spark.write, which bring rows together, or bring them together "
    "with tidelog.spark.by_partition"
)


class BatchWriter(_OneTransaction, DataSourceArrowWriter):
    """`df.write`, all or nothing. Spark keeps the writer it sent out and commits with it."""

    def __init__(self, options: SinkOptions, columns: list[str]) -> None:
        super().__init__(options, columns, options.transactional_id or f"tidelog-batch-{uuid4()}")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In an executor: the rows of one task into the open transaction."""
        return TaskWrote(identity=self._identity, written=self._write_rows(iterator))

    def commit(self, messages: list[Any]) -> None:
        """All tasks are done: check what they wrote, and make it visible."""
        self._commit(messages, None)

    def abort(self, messages: list[Any]) -> None:
        """A task failed: nothing becomes visible."""
        self._abort(messages)


class StreamWriter(_OneTransaction, DataSourceStreamArrowWriter):
    """`df.writeStream`, exactly once. What the driver knows at a commit is what the tasks tell it."""

    def __init__(self, options: SinkOptions, columns: list[str], checkpoint: str) -> None:
        super().__init__(options, columns, options.require_transactional_id())
        self._open = OpenTransaction(options.bootstrap, self._transactional_id, checkpoint)

    def _begin(self, run: TransactionRun) -> Identity:
        identity = super()._begin(run)
        self._open.note(identity)
        return identity

    def _read_ledger(self, client: Client) -> LedgerEntry | None:
        return read_ledger(client, self._transactional_id, self._options.delivery_timeout_ms, self._options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In an executor: the rows of one task, unless the ledger has the batch."""
        context = TaskContext.get()
        assert context is not None
        batch_id, query_id = int(context.getLocalProperty(_BATCH_ID) or -1), context.getLocalProperty(_QUERY_ID) or ""
        accept = self._options.accept_missing_ledger
        message = TaskWrote(identity=self._identity, query_id=query_id)
        if is_written(self._entry, batch_id, query_id, self._transactional_id, accept_missing=accept):
            message.skipped = True
            return message
        message.ledger_topic = self._options.topic or (self._entry.topic if self._entry else "")
        try:
            message.written = self._write_rows(iterator)
        except Exception:
            # The process that Spark will ask to abort knows only what tasks told it, and this one tells nothing more:
            # unless it finds a note it could not end the transaction, which would hold back readers until its timeout.
            self._abort([message])
            raise
        return message

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 - Spark's name
        """All tasks are done: check what they wrote, and make it visible together with the batch's number."""
        wrote: list[TaskWrote] = [message for message in messages if message is not None]
        if any(message.skipped for message in wrote):
            return
        topics = sorted({topic for message in wrote for topic, _ in message.written})
        topic = wrote[0].ledger_topic or next(iter(topics), "")
        if not topic:
            raise SinkError("an empty first batch and no option topic: there is no place for the ledger")
        self._commit(list(messages), LedgerEntry(batchId, wrote[0].query_id, topic))
        self._open.forget()

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 - Spark's name
        """A task failed, or the query was stopped: nothing becomes visible, and the query ends."""
        self._abort(messages, self._open.read())
        self._open.forget()


def require_all_reported(client: Client, transactional_id: str, written: Mapping[TopicPartition, Written]) -> None:
    """That the transaction has no partition of which no task reports: a run that nobody waits for wrote there."""
    try:
        found = describe_transaction(client, transactional_id).partitions
    except KafkaError as error:
        if error.code == ErrorCode.UNSUPPORTED_VERSION:  # brokers before 3.0 do not tell
            return
        raise
    for topic, partition in found:
        if topic != _OFFSETS_TOPIC and (topic, partition) not in written:
            raise SinkError(
                f"something was written to {topic}-{partition} that no task reports: Spark ran a task again, with its "
                f"rows for other partitions; nothing is committed, start the query again. {WAY_OUT} to have that done "
                "for you"
            )


def require_in_log(client: Client, identity: Identity, written: Mapping[TopicPartition, Written]) -> None:
    """That the log holds, of this epoch, the very batches that the tasks report: no more, no fewer, no others."""
    if not written:
        return
    starts = {where: one.first_offset for where, one in written.items()}
    ends = {where: found.offset for where, found in list_offsets(client, dict.fromkeys(written, LATEST)).items()}
    consumer = Consumer(client, starts, partition_max_bytes=_READ_BACK_BYTES)
    consumer.ends = ends
    found: dict[TopicPartition, list[int]] = {where: [] for where in written}
    while any(consumer.positions[where] < ends[where] for where in written):
        for fetched in consumer.fetch(client.timeout_ms):
            found[fetched.topic, fetched.partition] += [
                batch.crc
                for batch in iterate_batches(fetched.batches, allow_partial=True)
                if (batch.producer_id, batch.producer_epoch) == identity[1:3] and not batch.is_control
            ]
    for (topic, partition), checksums in found.items():
        if checksums != written[topic, partition].checksums:
            raise SinkError(
                f"{topic}-{partition} does not hold what its task reports: Spark ran the task again; nothing is "
                f"committed, start the query again. {WAY_OUT} to have that done for you"
            )
