"""The sources without a Spark around them: what the driver would plan and the executors would read, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from tests.support.nodes import Node
from tidelog.spark.source import BatchReader
from tidelog.spark.source_schema import source_schema
from tidelog.spark.source_stream import StreamReader


def options_for(node: Node, **given: str) -> dict[str, str]:
    """Options with this node's address; underscores after `kafka` stand for dots."""
    named = {name.replace("_", ".") if name.startswith("kafka_") else name: text for name, text in given.items()}
    return {"kafka.bootstrap.servers": node.bootstrap} | named


def batch_reader(node: Node, schema: StructType | None = None, **given: str) -> BatchReader:
    """The reader of one query."""
    headers = given.get("includeHeaders") == "true"
    return BatchReader(options_for(node, **given), schema or source_schema(headers), 2)


def stream_reader(node: Node, **given: str) -> StreamReader:
    """The reader of one streaming query."""
    return StreamReader(options_for(node, **given), source_schema(False), 2)


def rows(reader: BatchReader | StreamReader, tasks: list[InputPartition] | None = None) -> list[dict[str, Any]]:
    """All rows of a query, or of some of its tasks, sorted by place."""
    if tasks is None:
        assert isinstance(reader, BatchReader)
        tasks = reader.partitions()
    found = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def offsets(found: list[Mapping[str, Any]] | list[dict[str, Any]]) -> dict[int, list[int]]:
    """The offsets of each partition, in order."""
    by_partition: dict[int, list[int]] = {}
    for row in found:
        by_partition.setdefault(row["partition"], []).append(row["offset"])
    return by_partition
