"""`write_stream` and `write`: DataFrames to topics, exactly once, rows brought together by Kafka partition."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql.types import IntegerType

from tidelog.client.groups import committed_offsets
from tidelog.client.shared_transaction import Identity, protocol_of
from tidelog.errors import ConfigError, ErrorCode, KafkaError
from tidelog.spark import sink_tasks as tasks
from tidelog.spark.checkpoints import last_planned, stream_id_in
from tidelog.spark.contact import first_contact, require_topic
from tidelog.spark.sink_options import AT_LEAST_ONCE, SinkOptions, check_columns
from tidelog.spark.stopping import told_briefly
from tidelog.spark.transactions import (
    BatchWritten,
    Exclusive,
    LedgerEntry,
    SinkError,
    TransactionRun,
    is_written,
    judge,
    ledger_group,
    newest_entry,
    read_ledger,
    require_current,
    run_in_transaction,
    stage_books,
)

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OTHER_WAY = (
    f'without transactions there is df.write or df.writeStream.format("tidelog") with deliveryGuarantee={AT_LEAST_ONCE}'
)
_QUERY_ID = "sql.streaming.queryId"
"""Spark's name for the identity of a checkpoint: made with it, kept in it, gone with it."""
ARROW_BYTES, _ARROW_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch", 2_000_000


def write_stream(
    df: DataFrame,
    *,
    bootstrap_servers: str,
    transactional_id: str,
    checkpoint_location: str,
    topic: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    options: Mapping[str, str] | None = None,
    gathered: bool = False,
    on_batch: Callable[[BatchWritten], None] | None = None,
) -> StreamingQuery:
    """Start a query that writes a stream to a topic, or to the topic each row names, exactly once.

    `trigger` is what `DataStreamWriter.trigger` takes, `{"availableNow": True}` for one. `gathered` says that the rows
    of each Kafka partition are in one task already, which saves a shuffle and is checked. `on_batch` hears of every
    batch that is in the cluster.
    """
    if not df.isStreaming:
        raise ConfigError("this DataFrame is not a stream: use tidelog.spark.write, or df.write")
    sink = sink_for(df, bootstrap_servers, transactional_id, topic, options, gathered=gathered, on_batch=on_batch)
    sink.check_checkpoint(df.sparkSession, checkpoint_location)
    writer = df.select(*sink.columns).writeStream.foreachBatch(sink)
    writer = writer.option("checkpointLocation", checkpoint_location)
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.start()


def write(
    df: DataFrame,
    *,
    bootstrap_servers: str,
    topic: str | None = None,
    transactional_id: str | None = None,
    options: Mapping[str, str] | None = None,
    gathered: bool = False,
) -> BatchWritten:
    """Write a DataFrame, all of it or nothing: one transaction, rows brought together by Kafka partition."""
    if df.isStreaming:
        raise ConfigError("this DataFrame is a stream: use tidelog.spark.write_stream")
    name = transactional_id or f"tidelog-batch-{uuid4()}"
    sink = sink_for(df, bootstrap_servers, name, topic, options, gathered=gathered)
    begun_s = time.monotonic()
    try:
        run = sink.run()
        written, turns = run_in_transaction(run, sink.job(df.select(*sink.columns)), lambda _: None, run.begin())
        assert written is not None, "there is no ledger that could have it"
    finally:
        sink.close()
    return BatchWritten(0, False, written.records, written.bytes, written.partitions, turns, time.monotonic() - begun_s)


def sink_for(
    df: DataFrame,
    bootstrap_servers: str,
    transactional_id: str,
    topic: str | None,
    options: Mapping[str, str] | None,
    *,
    gathered: bool = False,
    on_batch: Callable[[BatchWritten], None] | None = None,
) -> MicroBatchSink:
    """Check all that can be checked before anything starts: options, columns, brokers, topic, transactions."""
    if type(df).__module__.startswith("pyspark.sql.connect"):
        raise ConfigError(
            "a client of Spark Connect cannot see whether Spark ran a task twice, on which this way rests: run it "
            'where the driver is, or write with format("tidelog"), which reads back what is in the log before it '
            "commits (bring rows together with tidelog.spark.by_partition)"
        )
    given = {**(options or {}), "kafka.bootstrap.servers": bootstrap_servers, "transactionalId": transactional_id}
    if topic is not None:
        given["topic"] = topic
    parsed = SinkOptions.parse(given)
    if not parsed.exactly_once:
        raise ConfigError(f"this way is exactly-once; {OTHER_WAY}")
    columns = check_columns(df.schema, parsed)
    sink = MicroBatchSink(parsed, columns, gathered=gathered, on_batch=on_batch)
    sink.check_cluster()
    return sink


class MicroBatchSink:
    """The function for `foreachBatch`. It lives in the driver for as long as the query runs."""

    def __init__(
        self,
        options: SinkOptions,
        columns: list[str],
        *,
        gathered: bool,
        on_batch: Callable[[BatchWritten], None] | None = None,
    ) -> None:
        self.options = options
        self.columns = columns
        self._gathered = gathered
        self._on_batch = on_batch
        self._run: TransactionRun | None = None
        self._transactional_id = options.require_transactional_id()

    def __getstate__(self) -> dict[str, Any]:
        """Connections stay where they are."""
        return {**self.__dict__, "_run": None}

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write one micro-batch, or find that it is written."""
        query_id = df.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        if not query_id:
            raise SinkError("Spark does not say which query this is: write_stream must start it")
        try:
            with told_briefly():
                result = self.write_batch(df, batch_id, query_id)
        except BaseException:
            self.close()  # whoever runs next takes the id over instead of holding it
            raise
        if self._on_batch is not None:
            self._on_batch(result)

    def write_batch(self, df: DataFrame, batch_id: int, query_id: str) -> BatchWritten:
        """The protocol of one micro-batch; see the head of transactions.py."""
        begun_s = time.monotonic()
        run = self.run()
        identity = run.begin()
        entry: LedgerEntry | None = None

        def is_done() -> bool:
            nonlocal entry
            name, accept = self._transactional_id, self.options.accept_missing_ledger
            entry = read_ledger(run.client, name, self.options.delivery_timeout_ms, self.options.topic)
            return is_written(entry, batch_id, query_id, name, accept_missing=accept)

        def entry_for(written: Exclusive) -> LedgerEntry:
            return LedgerEntry(batch_id, query_id, self._ledger_topic(entry, written))

        if is_done():
            return BatchWritten(batch_id, True)
        written, turns = run_in_transaction(run, self.job(df), entry_for, identity, is_done)
        if written is None:
            return BatchWritten(batch_id, True, turns=turns)
        return BatchWritten(
            batch_id, False, written.records, written.bytes, written.partitions, turns, time.monotonic() - begun_s
        )

    def run(self) -> TransactionRun:
        """The transactions of this query; one object for as long as all goes well."""
        if self._run is None:
            self._run = TransactionRun(self.options, self._transactional_id)
        return self._run

    def close(self) -> None:
        """Forget the connections and the epoch."""
        if self._run is not None:
            self._run.close()
            self._run = None

    def check_cluster(self) -> None:
        """That brokers answer, that they have transactions and, where one topic is named, that it is there."""
        bootstrap = self.options.bootstrap
        with self.options.client() as client:
            try:
                with first_contact(bootstrap):
                    protocol_of(client)
                    if self.options.topic is not None:
                        require_topic(client, self.options.topic, bootstrap)
            except KafkaError as error:
                if error.code == ErrorCode.UNSUPPORTED_VERSION:
                    raise SinkError(f"{error}; exactly-once needs them: {OTHER_WAY}") from error
                raise SinkError(str(error)) from error

    def check_checkpoint(self, spark: SparkSession, checkpoint: str) -> None:
        """That it is no older copy, as far as can be told before the query is; the rest is for each batch to see."""
        query_id = stream_id_in(spark, checkpoint)
        if query_id is None:
            return
        group = ledger_group(self._transactional_id)
        try:
            with self.options.client() as client, first_contact(self.options.bootstrap):
                entry = newest_entry(group, committed_offsets(client, group))
        except KafkaError as error:
            raise SinkError(f"the ledger, group {group!r}, cannot be read: {error.code.name}: {error}") from error
        require_current(entry, last_planned(spark, checkpoint), query_id, self._transactional_id)

    def job(self, df: DataFrame) -> Callable[[Identity], Exclusive]:
        """What writes the rows of a DataFrame, given who it writes as."""
        context = df.sparkSession.sparkContext
        speculation = context.getConf().get("spark.speculation", "false") == "true"
        count = None if self.options.topic is None else len(self.run().client.topic(self.options.topic).partitions)

        parallel = int(context.defaultParallelism)
        # Rows that may go anywhere need no shuffle: as many tasks as run at once, each with partitions of its own.
        is_free = count is not None and count >= parallel and self.columns in (["value"], ["value", "headers"])

        def write_rows(identity: Identity) -> Exclusive:
            books = stage_books(context)
            if self._gathered or is_free:
                direct = tasks.write_directly(self.options, identity, speculation, parallel if is_free else None)
                frame = df.coalesce(parallel) if is_free else df
                return judge(frame.mapInArrow(direct, tasks.RESULT_COLUMNS).collect(), books)
            if is_one_machine(context):
                with _common_folder(context) as folder:
                    by_turns = tasks.write_by_turns(self.options, identity, speculation, folder)
                    return judge(df.mapInArrow(by_turns, tasks.RESULT_COLUMNS).collect(), books, turns=folder)
            writers = max(1, parallel if count is None else min(parallel, count))
            chunks = df.mapInArrow(tasks.gather(self.options, writers), tasks.CHUNK_COLUMNS)
            deliver = tasks.deliver(self.options, identity, speculation)
            results = chunks.repartitionById(writers, "writer").mapInArrow(deliver, tasks.RESULT_COLUMNS)
            return judge(results.collect(), books)

        def run(identity: Identity) -> Exclusive:
            with small_arrow_batches(df.sparkSession):
                return write_rows(identity)

        return run

    def _ledger_topic(self, entry: LedgerEntry | None, written: Exclusive) -> str:
        """Where the ledger stands: always with the one topic there is; else where it was, as long as that exists."""
        if self.options.topic is not None:
            return self.options.topic
        client = self.run().client
        if entry is not None and entry.topic in client.refresh([entry.topic]).topics:
            return entry.topic
        if written.topics:
            return written.topics[0]
        names = sorted(name for name, view in client.refresh(None).topics.items() if not view.is_internal)
        if not names:
            raise SinkError("an empty batch on a cluster without topics: there is no place for the ledger")
        return names[0]


@contextlib.contextmanager
def small_arrow_batches(session: SparkSession) -> Iterator[None]:
    """Rows come from the JVM in pieces that it makes while the last is worked on, unless the user chose their size.

    Of Spark's own choice, 10,000 rows, a piece of large rows is so large that one side waits for the other.
    """
    if session.conf.get(ARROW_BYTES, None) is not None:
        yield
        return
    session.conf.set(ARROW_BYTES, _ARROW_BATCH_BYTES)
    try:
        yield
    finally:
        session.conf.unset(ARROW_BYTES)


def is_one_machine(context: SparkContext) -> bool:
    """Whether all tasks run in this machine's one JVM, so that they can write by turns."""
    return re.fullmatch(r"local(\[[^\]]*\])?", context.master or "") is not None


@contextlib.contextmanager
def _common_folder(context: Any) -> Iterator[str]:
    """A new folder that all tasks see; its files are small."""
    wanted = (os.environ.get("SPARK_LOCAL_DIRS") or context.getConf().get("spark.local.dir", "")).partition(",")[0]
    parent = wanted if wanted and os.path.isdir(wanted) else None
    with tempfile.TemporaryDirectory(prefix="tidelog-sink-", dir=parent, ignore_cleanup_errors=True) as folder:
        yield folder


def by_partition(df: DataFrame, *, bootstrap_servers: str, topic: str) -> DataFrame:
    """The same rows with their Kafka partition in the column `partition`, and one task a partition.

    For `writeStream.format("tidelog")` and `write.format("tidelog")`, where Spark leaves the spreading to the user.
    """
    options = SinkOptions.parse({"kafka.bootstrap.servers": bootstrap_servers, "topic": topic})
    check_columns(df.schema, options)
    with options.client() as client, first_contact(bootstrap_servers):
        count = len(require_topic(client, topic, bootstrap_servers).partitions)
    columns = [name for name in df.columns if name.lower() != "partition"]
    schema = df.select(*columns).schema.add("partition", IntegerType())
    placed = df.mapInArrow(tasks.place(options, count), schema)
    return placed.repartitionById(count, "partition")
