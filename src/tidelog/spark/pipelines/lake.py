"""Tables of a lake on disk: `records` and `quarantine` in one folder, and beside them how far the stream is.

    PATH/records       the rows, partitioned by topic and day
    PATH/quarantine    what could not be parsed, with the reason
    PATH/_state        the stream's checkpoints

Delta tables take a batch once: each write carries the stream's id and the batch's number (txnAppId, txnVersion), and a
batch that was written before a crash is recognised and left out when the stream repeats it. Parquet is written by
Spark's own file sink, which keeps the same promise with a list of its files that only Spark reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidelog.spark.checkpoints import exists, last_number
from tidelog.spark.pipelines.failures import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELTA, PARQUET = "delta", "parquet"
PARTITION_BY = ("topic", "day")
_NOTHING_YET = (
    "UNABLE_TO_INFER_SCHEMA",  # of Parquet, when no batch had a row for it yet
    "DELTA_TABLE_NOT_FOUND",  # when the first batch was cut short: there is a folder for the log and nothing in it
)


@dataclass(frozen=True)
class Lake:
    """Where the tables are and how they are written."""

    path: str
    table_format: str = DELTA

    @property
    def records(self) -> str:
        """The table of what was landed."""
        return f"{self.path.rstrip('/')}/records"

    @property
    def quarantine(self) -> str:
        """The table of what could not be parsed."""
        return f"{self.path.rstrip('/')}/quarantine"

    @property
    def state(self) -> str:
        """Where the checkpoints are unless they are put elsewhere."""
        return f"{self.path.rstrip('/')}/_state"

    def read(self, spark: SparkSession, table: str) -> DataFrame | None:
        """A table as it is now; None when nothing was ever written to it."""
        marker = f"{table}/_delta_log" if self.table_format == DELTA else f"{table}/_spark_metadata"
        if not exists(spark, marker):
            return None
        from pyspark.errors import AnalysisException

        try:
            return spark.read.format(self.table_format).load(table)
        except AnalysisException as error:
            if error.getCondition() in _NOTHING_YET:
                return None
            raise


def lake_at(spark: SparkSession, path: str) -> Lake:
    """The lake in a folder, in whichever format it is there; PipelineError when there is none."""
    for table_format, marker in ((DELTA, "_delta_log"), (PARQUET, "_spark_metadata")):
        if exists(spark, f"{path.rstrip('/')}/records/{marker}"):
            return Lake(path, table_format)
    raise PipelineError(f"there is no table {path.rstrip('/')}/records: nothing was landed there")


def landed_batch(spark: SparkSession, lake: Lake, table: str, application: str) -> int:
    """The number of the last batch that a table has of a stream; -1 for none. Parquet knows of one stream only."""
    if lake.table_format == PARQUET:
        return last_number(spark, f"{table}/_spark_metadata")
    if lake.read(spark, table) is None:  # which also brings what Delta knows of a table up to date
        return -1
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table)
    found = log.unsafeVolatileSnapshot().transactions().get(application)
    return int(found.get()) if found.isDefined() else -1


def application_of(stream_id: str) -> str:
    """Under which name a stream's batches are in a Delta table."""
    return f"tidelog-land-{stream_id}"


def append_once(rows: DataFrame, table: str, application: str, batch_id: int, *, may_grow: bool) -> None:
    """Add a batch to a Delta table, unless this batch of this application is in it already."""
    (
        rows.write.format("delta")
        .mode("append")
        .partitionBy(*PARTITION_BY)
        .option("txnAppId", application)
        .option("txnVersion", batch_id)
        .option("mergeSchema", "true" if may_grow else "false")
        .save(table)
    )


def compact(spark: SparkSession, table: str) -> tuple[int, int]:
    """Make few large files of many small ones (OPTIMIZE); how many went and how many came."""
    from delta.tables import DeltaTable

    metrics: Any = DeltaTable.forPath(spark, table).optimize().executeCompaction().select("metrics.*").first()
    return (0, 0) if metrics is None else (int(metrics.numFilesRemoved), int(metrics.numFilesAdded))


def file_count(spark: SparkSession, table: str) -> int:
    """How many files a Delta table consists of now."""
    from delta.tables import DeltaTable

    row: Any = DeltaTable.forPath(spark, table).detail().select("numFiles").first()
    return 0 if row is None else int(row.numFiles)


def check_schema(before: Any, after: Any, place: str = "") -> list[str]:
    """What a table gains by a new schema; PipelineError where a column would change its type or go.

    Rows that are there keep their meaning, so a column may come and never change.
    """
    gained: list[str] = []
    columns = {column.name.lower(): column for column in before.fields}
    for column in after.fields:
        name = f"{place}{column.name}"
        known = columns.pop(column.name.lower(), None)
        if known is None:
            gained.append(name)
        elif hasattr(column.dataType, "fields") and hasattr(known.dataType, "fields"):
            gained += check_schema(known.dataType, column.dataType, f"{name}.")
        elif _kind(column.dataType) != _kind(known.dataType):
            raise PipelineError(
                f"the schema changed: {name} is {_kind(known.dataType)} in the table and {_kind(column.dataType)} now; "
                "land into another --path, or give the schema the table has"
            )
    if columns:
        gone = ", ".join(f"{place}{column.name}" for column in columns.values())
        raise PipelineError(
            f"the schema changed: the table has {gone}, which is no longer there; keep it in the schema"
        )
    return gained


def _kind(data_type: Any) -> str:
    return str(data_type.simpleString())
