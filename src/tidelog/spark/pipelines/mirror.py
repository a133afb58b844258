"""`mirror`: topics from one cluster to another, each record exactly once, in the same partition and order.

    source topics -> the same rows -> one transaction a batch on the target, the batch's number in it

Keys, values, headers and timestamps are kept, and each record stays in the partition it was in: whoever reads a key in
order at the source does so at the target. Offsets are the target's own. Only committed records are copied. Topics that
the target does not have are made there with as many partitions.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidelog.errors import ConfigError, ErrorCode, KafkaError
from tidelog.spark.pipelines import cluster
from tidelog.spark.pipelines.declaration import (
    ACCEPT_LOSS,
    BOOTSTRAP,
    Option,
    Options,
    Outcome,
    Pipeline,
    seconds,
    whole,
    words,
)
from tidelog.spark.pipelines.failures import PipelineError, reason_and_advice
from tidelog.spark.pipelines.progress import Progress, Silent, batches_text
from tidelog.spark.pipelines.streams import Ends, Follower, stopped_by_signals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tidelog.client.client import Client
    from tidelog.spark.sink_stream import MicroBatchSink

COLUMNS = (
    "topic string, partition int, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>"
)


def mirror(spark: SparkSession, *, progress: Progress | None = None, **options: Any) -> Outcome:
    """Mirror topics; the options are those of the command: bootstrap, to, topics or pattern, checkpoint, …"""
    return run(spark, PIPELINE.options_of(**options), progress or Silent())


def run(spark: SparkSession, options: Options, progress: Progress) -> Outcome:
    """Check everything that can be checked, then stream until the end, or until it is stopped."""
    named = words(options.topics)
    if bool(named) == bool(options.pattern):
        raise ConfigError("mirror reads --topics or --pattern: name one of them")
    with contextlib.ExitStack() as connections:
        source, watch, target = (
            connections.enter_context(cluster.connect(where))
            for where in (options.bootstrap, options.bootstrap, options.to)
        )
        cluster.topics_named(source, named)
        if not options.prefix and source.metadata.cluster_id == target.metadata.cluster_id:
            raise PipelineError("source and target are the same cluster: topics need another name there, see --prefix")
        job = _Job(spark, options, source, target, progress)
        job.make_topics()
        # A client is for one thread: the query's has `source` and `target`, this one watches.
        ends = Ends(lambda earliest: cluster.ends_of(watch, topics_of(watch, options), earliest=earliest))
        follower = Follower(progress, ends, to_the_end=options.once)
        with stopped_by_signals() as is_stopped:
            query = job.start()
            follower.follow([query], is_stopped)
        error = query.exception()
        if error is not None and not is_stopped():  # what a stop cuts short may look like a failure
            raise PipelineError(reason_and_advice(error))
        if is_stopped() and options.once:
            raise KeyboardInterrupt
        topics = topics_of(watch, options)
    line = (
        f"mirrored {job.records:,} records in {batches_text(job.batches)} from {options.bootstrap} to {options.to}"
        f"{f' ({batches_text(job.skipped)} of them there already)' if job.skipped else ''}"
    )
    details = {"records": job.records, "batches": job.batches, "skipped": job.skipped, "topics": topics}
    return Outcome(True, [line], details)


class _Job:
    """One run: its query, and what it does with a batch."""

    def __init__(
        self,
        spark: SparkSession,
        options: Options,
        source: Client,
        target: Client,
        progress: Progress,
    ) -> None:
        self.records = self.batches = self.skipped = 0
        self._spark = spark
        self._options = options
        self._source = source
        self._target = target
        self._progress = progress
        self._known: dict[str, int] = {}
        """Topics of the target that are fit for their sources, and for how many partitions."""

    def make_topics(self) -> None:
        """See to it that the target has every topic, with partitions enough."""
        from tidelog.client.admin import create_partitions, create_topic

        for name in topics_of(self._source, self._options):
            count = len(self._source.topic(name).partitions)
            there = self._options.prefix + name
            self._refuse_copies_of_copies(there)
            if self._known.get(there, 0) >= count:
                continue
            try:
                have = len(self._target.topic(there).partitions)
                if have < count:
                    create_partitions(self._target, there, count)
                    self._progress.say(f"{there} on the target has {count} partitions now, as its source has")
            except KafkaError as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                create_topic(self._target, there, partitions=count, replication_factor=self._options.replication)
                self._progress.say(f"made {there} on the target, with {count} partitions")
            self._known[there] = count

    def _refuse_copies_of_copies(self, there: str) -> None:
        pattern, is_same = self._options.pattern, self._source.metadata.cluster_id == self._target.metadata.cluster_id
        if is_same and pattern and re.fullmatch(pattern, there):
            raise PipelineError(
                f"--pattern {pattern!r} fits {there!r} too, on the same cluster: each copy would be copied again; take "
                f"a pattern that leaves out names with {self._options.prefix!r}"
            )

    def start(self) -> StreamingQuery:
        """The query; it goes on where its checkpoint stopped."""
        rows = mirrored(self._read(), self._options.prefix)
        sink = self._sink(rows)
        sink.check_checkpoint(self._spark, self._options.checkpoint)
        every = f"{int(self._options.every * 1000)} milliseconds"
        writer = rows.writeStream.queryName("mirror").foreachBatch(self._batch(sink))
        writer = writer.option("checkpointLocation", self._options.checkpoint)
        query: StreamingQuery = (
            writer.trigger(availableNow=True) if self._options.once else writer.trigger(processingTime=every)
        ).start()
        return query

    def _read(self) -> DataFrame:
        options = self._options
        given = {
            "kafka.bootstrap.servers": options.bootstrap,
            "kafka.isolation.level": "read_committed",
            "startingOffsets": options.starting_offsets,
            "includeHeaders": "true",
            "failOnDataLoss": "false" if options.accept_loss else "true",
            "groupId": options.group or f"mirror-{self._id()}",
            # One task reads a partition from end to end, and writes it: the order holds, nothing is shuffled.
            "minPartitions": "1",
        }
        given |= {"subscribePattern": options.pattern} if options.pattern else {"subscribe": options.topics}
        if options.max_records:
            given["maxOffsetsPerTrigger"] = str(options.max_records)
        return self._spark.readStream.format("tidelog").options(**given).load()

    def _sink(self, rows: DataFrame) -> MicroBatchSink:
        from tidelog.spark.sink_stream import sink_for

        given = {"includeTimestamp": "true", "kafka.compression.type": self._options.compression}
        return sink_for(rows, self._options.to, self._id(), None, given, gathered=True, on_batch=self._count)

    def _batch(self, sink: MicroBatchSink) -> Callable[[DataFrame, int], None]:
        def write(rows: DataFrame, batch_id: int) -> None:
            self.make_topics()  # of a pattern, new ones may have come
            sink(rows, batch_id)

        return write

    def _count(self, written: Any) -> None:
        self.batches += 1
        self.skipped += written.skipped
        self.records += written.records

    def _id(self) -> str:
        return str(self._options.name)


def topics_of(source: Client, options: Options) -> list[str]:
    """What is mirrored now: internal topics are each cluster's own."""
    if not options.pattern:
        return words(options.topics)
    found = cluster.topics_matching(source, options.pattern)
    return [name for name in found if not source.metadata.topics[name].is_internal]


def mirrored(rows: DataFrame, prefix: str) -> DataFrame:
    """The rows of the source as the target gets them."""
    from pyspark.sql import functions as f

    return rows.select(
        f.concat(f.lit(prefix), f.col("topic")).alias("topic"), "partition", "timestamp", "key", "value", "headers"
    )


PIPELINE = Pipeline(
    name="mirror",
    summary="topics from one cluster to another, exactly once",
    examples="""\
  tidelog pipeline mirror --bootstrap old:9092 --to new:9092 --topics orders,payments --checkpoint ./mirror
  tidelog pipeline mirror --bootstrap old:9092 --to new:9092 --pattern 'shop-.*' --checkpoint ./mirror --once

Keys, values, headers, timestamps, partitions and the order in each are kept; offsets are the target's own. Killed at
any point and started again, it goes on where it stopped. The target needs transactions; the source may be any Kafka
cluster. The group mirror-NAME on the source shows the progress to every Kafka tool. Keep checkpoint and --name
together: a checkpoint that was removed needs another name, or it is refused.""",
    options=(
        BOOTSTRAP,
        Option("to", "brokers of the target", metavar="HOST:PORT,…", required=True),
        Option("topics", "topics to mirror", metavar="T,…"),
        Option("pattern", "mirror every topic whose whole name fits, also those that come later", metavar="REGEX"),
        Option("checkpoint", "where the stream keeps how far it is", metavar="PATH", required=True),
        Option("name", "transactional id on the target: one mirror, one name", default="mirror"),
        Option("prefix", "put before the names of topics on the target", default=""),
        Option("once", "mirror what is there now, then end", kind=bool),
        Option("every", "time between two batches", default=1.0, kind=seconds, metavar="SECONDS"),
        Option("max_records", "most records of one batch (default: all that is there)", kind=whole, metavar="N"),
        Option("starting_offsets", "where a new checkpoint begins: earliest, latest or JSON", default="earliest"),
        ACCEPT_LOSS,
        Option("group", "group whose offsets on the source show the progress (default: mirror-NAME)"),
        Option("replication", "replicas of topics that are made (default: the target's)", default=-1, kind=int),
        Option("compression", "of what is written", default="none", choices=("none", "gzip", "snappy", "lz4", "zstd")),
    ),
    reads={"topics": COLUMNS},
    writes={"topics": COLUMNS},
    run=run,
)

if __name__ == "__main__":
    from tidelog.spark.pipelines.launch import main

    sys.exit(main(PIPELINE))
