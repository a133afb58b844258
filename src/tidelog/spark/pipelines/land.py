"""`land`: topics to a table of a lake, each record exactly once, whatever dies on the way.

    topics -> shape (raw, JSON, Avro) -> records, partitioned by topic and day
                                      -> quarantine, with the reason

Delta by default: a batch's rows carry the stream's id and the batch's number, so that a batch which is repeated after a
crash is recognised. Only committed records are landed. What it rests on: table and checkpoint belong together. One
without the other is refused, since the one would land everything twice and the other would leave records out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from tidelog.errors import ConfigError
from tidelog.spark import checkpoints
from tidelog.spark.pipelines import cluster, lake, values
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
from tidelog.spark.pipelines.failures import PipelineError, reason_and_advice, reason_of
from tidelog.spark.pipelines.lake import Lake
from tidelog.spark.pipelines.progress import Progress, batches_text
from tidelog.spark.pipelines.streams import Ends, Follower, stopped_by_signals
from tidelog.spark.stopping import told_briefly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OFFICIAL, OURS = "kafka", "tidelog"
MANY_FILES = 32
"""So many files in a table are worth one OPTIMIZE at the end of a run that ends."""
_COLUMNS = "topic string, partition int, offset bigint, timestamp timestamp, timestampType int, key binary"


def settings(options: Options) -> dict[str, str]:
    """The jars of Delta and Avro, where they are needed."""
    from tidelog.spark.pipelines import jars

    wanted: dict[str, str] = {
        # Without it each task sorts its rows by topic and day before it writes them; this many files are kept open.
        "spark.sql.maxConcurrentOutputFileWriters": "64"
    }
    paths = []
    if options.format == lake.DELTA:
        paths += jars.find(jars.DELTA, "writing Delta (--format parquet does without)")
        wanted |= jars.DELTA_SETTINGS
    if options.values == values.AVRO:
        paths += jars.find(jars.AVRO, "--values avro")
    return wanted | ({"spark.jars": ",".join(map(str, paths))} if paths else {})


def run(spark: SparkSession, options: Options, progress: Progress) -> Outcome:
    """Check everything that can be checked, then stream until the end, or until Ctrl-C or SIGTERM."""
    return stream(spark, options, progress, lambda: False)


def stream(spark: SparkSession, options: Options, progress: Progress, is_over: Callable[[], bool]) -> Outcome:
    """The same for a program that says itself when it is over; a batch that has begun is finished by the next run."""
    named = words(options.topics)
    if bool(named) == bool(options.pattern):
        raise ConfigError("land reads --topics or --pattern: name one of them")
    value_format = values.read_format(options.values, options.schema)
    client = cluster.connect(options.bootstrap)

    def topics() -> list[str]:
        return cluster.topics_matching(client, options.pattern) if options.pattern else named

    try:
        cluster.topics_named(client, named)
        ends = Ends(lambda earliest: cluster.ends_of(client, topics(), earliest=earliest))
        job = _Job(spark, options, value_format, progress)
        follower = Follower(progress, ends, to_the_end=options.once)
        with stopped_by_signals() as is_stopped:
            follower.follow(job.start(), lambda: is_over() or is_stopped())
        if not is_stopped():  # what a stop cuts short may look like a failure
            job.raise_failure()
        elif options.once:
            raise KeyboardInterrupt
        job.finish()
    finally:
        client.close()
    quarantined = job.quarantined()
    lines = [
        f"landed {follower.rows - quarantined:,} records in {batches_text(follower.batches)} into {job.lake.records}",
        *([f"quarantined {quarantined:,} records in {job.lake.quarantine}"] if quarantined else []),
    ]
    details = {"records": follower.rows, "batches": follower.batches, "quarantined": quarantined, "path": options.path}
    return Outcome(True, lines, details)


class _Job:
    """One run: its queries, and what they do with a batch."""

    def __init__(
        self, spark: SparkSession, options: Options, value_format: values.ValueFormat, progress: Progress
    ) -> None:
        self.lake = Lake(options.path, options.format)
        self._spark = spark
        self._options = options
        self._values = value_format
        self._progress = progress
        self._checkpoint = options.checkpoint or f"{self.lake.state}/checkpoint"
        self._queries: list[StreamingQuery] = []
        self._is_first_batch = True
        self._quarantined_before = self._count_quarantined()
        self._check_state()

    def _check_state(self) -> None:
        """Table and checkpoint belong together, and the columns must fit what is there."""
        table = self.lake.read(self._spark, self.lake.records)
        stream_id = checkpoints.stream_id_in(self._spark, self._checkpoint)
        if stream_id is not None:
            self._check_batches(self.lake.records, self._checkpoint, stream_id)
            if self._values.is_parsed:
                self._check_quarantine(stream_id)
        elif table is not None:
            raise PipelineError(
                f"{self.lake.records} has records but there is no checkpoint in {self._checkpoint}: everything "
                "would be landed a second time; name the old --checkpoint, or another --path"
            )
        if table is not None:
            rows = values.accepted(self._shaped(streaming=False), self._values, keep_value=self._options.keep_value)
            for column in lake.check_schema(table.schema, rows.schema):
                self._progress.say(f"the table gets a new column: {column}")

    def _check_batches(self, table: str, checkpoint: str, stream_id: str, *, has_all: bool = True) -> None:
        """What is landed lies between the last batch that is done and the last that was planned."""
        spark = self._spark
        landed = lake.landed_batch(spark, self.lake, table, lake.application_of(stream_id))
        done, planned = checkpoints.last_done(spark, checkpoint), checkpoints.last_planned(spark, checkpoint)
        if landed < done and has_all:
            what = "is gone" if landed < 0 else f"has none after batch {landed}"
            raise PipelineError(
                f"{checkpoint} says that records were landed, up to batch {done}, but {table} {what}: they would be "
                "left out; bring the table back, or remove the checkpoint to land everything anew"
            )
        if landed > planned:
            raise PipelineError(
                f"{checkpoint} is an older copy: it knows of batch {planned}, and {table} has batch {landed}: new "
                "records would go by the numbers of old batches and be left out; bring back the table's checkpoint, "
                "or name another --path"
            )

    def _check_quarantine(self, stream_id: str) -> None:
        """Of Delta it has only the batches with something for it; of Parquet it is a stream of its own."""
        if self.lake.table_format == lake.DELTA:
            self._check_batches(self.lake.quarantine, self._checkpoint, stream_id, has_all=False)
        else:
            self._check_batches(self.lake.quarantine, self._quarantine_checkpoint, stream_id)

    @property
    def _quarantine_checkpoint(self) -> str:
        return f"{self._checkpoint}-quarantine"

    # --- reading ---

    def _shaped(self, *, streaming: bool) -> DataFrame:
        options, spark = self._options, self._spark
        if not streaming:  # only the columns are wanted
            columns = values.RECORD_COLUMNS + ("" if options.without_headers else f", {values.HEADERS_COLUMN}")
            return values.shape(spark.createDataFrame([], columns), self._values, headers=not options.without_headers)
        reader = spark.readStream.format(options.source).options(**self._source_options())
        return values.shape(reader.load(), self._values, headers=not options.without_headers)

    def _source_options(self, *, commits_group: bool = True) -> dict[str, str]:
        options = self._options
        given = {
            "kafka.bootstrap.servers": options.bootstrap,
            # A transaction that was aborted is written again by whoever repeats it: both would be landed.
            "kafka.isolation.level": "read_committed",
            "startingOffsets": options.starting_offsets,
            "includeHeaders": "false" if options.without_headers else "true",
            "failOnDataLoss": "false" if options.accept_loss else "true",
        }
        given |= {"subscribePattern": options.pattern} if options.pattern else {"subscribe": options.topics}
        if options.max_records:
            given["maxOffsetsPerTrigger"] = str(options.max_records)
        if options.source == OURS and commits_group:
            given["groupId"] = options.group or f"land-{PurePosixPath(options.path).name}"
        return given

    # --- writing ---

    def start(self) -> list[StreamingQuery]:
        """The queries: one, and with Parquet a second one where records can be refused."""
        shaped = self._shaped(streaming=True)
        if self.lake.table_format == lake.DELTA:
            batch = told_briefly()(self._land_batch)
            query = self._start(shaped, "records", lambda writer: writer.foreachBatch(batch))
            self._queries.append(query)
            return self._queries
        rows = values.accepted(shaped, self._values, keep_value=self._options.keep_value)
        self._queries.append(self._start(rows, "records", _into_parquet(self.lake.records)))
        if self._values.is_parsed:
            bad = values.refused(self._shaped(streaming=True), self._values)
            self._queries.append(self._start(bad, "quarantine", _into_parquet(self.lake.quarantine)))
        return self._queries

    def _start(self, rows: DataFrame, name: str, into: Callable[[Any], Any]) -> StreamingQuery:
        place = self._checkpoint if name == "records" else self._quarantine_checkpoint
        writer = into(rows.writeStream.queryName(f"land {name}")).option("checkpointLocation", place)
        every = f"{int(self._options.every * 1000)} milliseconds"
        triggered = writer.trigger(availableNow=True) if self._options.once else writer.trigger(processingTime=every)
        query: StreamingQuery = triggered.start()
        return query

    def _land_batch(self, shaped: DataFrame, batch_id: int) -> None:
        """One batch into Delta. The stream's id is in the checkpoint: it lives exactly as long as the batch numbers."""
        stream_id = shaped.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        assert stream_id, "without the stream's id Delta could not tell its batches from those of another"
        application = lake.application_of(stream_id)
        rows = values.accepted(shaped, self._values, keep_value=self._options.keep_value)
        if not self._values.is_parsed:
            lake.append_once(rows, self.lake.records, application, batch_id, may_grow=True)
        else:
            shaped.persist()  # it is read twice, and parsing is dear
            try:
                self._land_parsed(shaped, rows, application, batch_id)
            finally:
                shaped.unpersist()
        if self._options.optimize_every and (batch_id + 1) % self._options.optimize_every == 0:
            self._compact(shaped.sparkSession)

    def _land_parsed(self, shaped: DataFrame, rows: DataFrame, application: str, batch_id: int) -> None:
        """Bad ones first. A batch that an earlier run began may have been told apart by another schema then."""
        spark, bad, name = shaped.sparkSession, values.refused(shaped, self._values), application
        if self._is_first_batch:
            self._is_first_batch = False
            if lake.landed_batch(spark, self.lake, self.lake.records, application) >= batch_id:
                return
            if lake.landed_batch(spark, self.lake, self.lake.quarantine, application) >= batch_id:
                aside = self.lake.read(spark, self.lake.quarantine)
                assert aside is not None
                bad, name = bad.join(aside, ["topic", "partition", "offset"], "left_anti"), f"{application}-again"
        if not bad.isEmpty():
            lake.append_once(bad, self.lake.quarantine, name, batch_id, may_grow=True)
        lake.append_once(rows, self.lake.records, application, batch_id, may_grow=True)

    def _compact(self, spark: SparkSession) -> None:
        """Small files cost readers, not correctness: what goes wrong here is told and the landing goes on."""
        try:
            gone, come = lake.compact(spark, self.lake.records)
        except Exception as error:  # of Spark, of the disk, of a second writer: all the same to the stream
            self._progress.say(f"OPTIMIZE did not work, the next one may: {reason_of(error)}")
            return
        if gone:
            self._progress.say(f"OPTIMIZE: {gone:,} small files are now {come:,}")

    # --- the end ---

    def raise_failure(self) -> None:
        """PipelineError with the reason when a query failed."""
        for query in self._queries:
            error = query.exception()
            if error is not None:
                where = f" under {self.lake.path}" if reason_of(error) == "the disk is full" else ""
                raise PipelineError(reason_and_advice(error, where))

    def finish(self) -> None:
        """After a run with an end: files worth joining are joined."""
        is_worth_it = self._options.once and self._options.optimize_every and self.lake.table_format == lake.DELTA
        if not is_worth_it or self.lake.read(self._spark, self.lake.records) is None:
            return
        if lake.file_count(self._spark, self.lake.records) > MANY_FILES:
            self._compact(self._spark)

    def quarantined(self) -> int:
        """Records this run has put aside."""
        return self._count_quarantined() - self._quarantined_before

    def _count_quarantined(self) -> int:
        if not self._values.is_parsed:
            return 0
        table = self.lake.read(self._spark, self.lake.quarantine)
        return 0 if table is None else table.count()


def _into_parquet(table: str) -> Callable[[Any], Any]:
    return lambda writer: writer.format("parquet").partitionBy(*lake.PARTITION_BY).option("path", table)


PIPELINE = Pipeline(
    name="land",
    summary="topics to a table of a lake, exactly once",
    examples="""\
  tidelog pipeline land --topics orders,payments --path ./lake --once      what is there now, then end
  tidelog pipeline land --pattern 'shop-.*' --path ./lake                  and what comes, new topics too, until Ctrl-C
  tidelog pipeline land --topics orders --path ./lake --values json --schema orders.ddl
  spark-submit --master spark://host:7077 --jars $(tidelog pipeline fetch) land.py --topics orders --path s3a://lake

PATH gets the tables records and quarantine, partitioned by topic and day, and _state, the checkpoint: keep them
together. Killed at any point and started again, it goes on where it stopped, and every record is there once. The schema
of JSON values is a file with columns as Spark writes them (order bigint, city string); of Avro values, its own JSON.
What does not fit goes to quarantine with the reason, as it came.""",
    options=(
        BOOTSTRAP,
        Option("topics", "topics to land", metavar="T,…"),
        Option("pattern", "land every topic whose whole name fits, also those that come later", metavar="REGEX"),
        Option("path", "folder of the tables", metavar="PATH", required=True),
        Option("format", "format of the tables", default=lake.DELTA, choices=(lake.DELTA, lake.PARQUET)),
        Option(
            "values",
            "keep values as bytes, or parse them by --schema into a column data",
            default=values.RAW,
            choices=(values.RAW, values.JSON, values.AVRO),
        ),
        Option("schema", "file with the schema of JSON or Avro values", metavar="FILE"),
        Option("keep_value", "keep the bytes of parsed values, too", kind=bool),
        Option("without_headers", "leave the column headers out", kind=bool),
        Option("once", "land what is there now, then end", kind=bool),
        Option("every", "time between two batches", default=1.0, kind=seconds, metavar="SECONDS"),
        Option("max_records", "most records of one batch (default: all that is there)", kind=whole, metavar="N"),
        Option("starting_offsets", "where a new checkpoint begins: earliest, latest or JSON", default="earliest"),
        Option("checkpoint", "where the stream keeps how far it is (default: PATH/_state/checkpoint)", metavar="PATH"),
        ACCEPT_LOSS,
        Option("group", "group whose offsets show the progress to Kafka's tools (default: land-NAME of PATH)"),
        Option("optimize_every", "join small files of Delta after so many batches; 0: never", default=50, kind=whole),
        Option(
            "source", "our source, or Spark's own connector where its jars are", default=OURS, choices=(OURS, OFFICIAL)
        ),
    ),
    reads={"topics": f"{values.RECORD_COLUMNS}, {values.HEADERS_COLUMN}"},
    writes={
        "records": f"{_COLUMNS}, value binary (or data, by the schema), {values.HEADERS_COLUMN}, day date",
        "quarantine": f"{_COLUMNS}, value binary, {values.HEADERS_COLUMN}, day date, reason string",
    },
    run=run,
    settings=settings,
)

if __name__ == "__main__":
    from tidelog.spark.pipelines.launch import main

    sys.exit(main(PIPELINE))
