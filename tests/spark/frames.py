"""Small frames with the columns of the sources, for the tests of the pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidelog.spark.pipelines.values import HEADERS_COLUMN, RECORD_COLUMNS

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def records_of(spark: SparkSession, rows: Iterable[Sequence[Any]]) -> DataFrame:
    """Records as a source gives them, from (topic, partition, offset, value)."""
    content = [
        (b"key", value, topic, partition, offset, NOON, 0, [("header", b"h")])
        for topic, partition, offset, value in rows
    ]
    return spark.createDataFrame(content, f"{RECORD_COLUMNS}, {HEADERS_COLUMN}")
