"""What a checkpoint of Spark's says of its stream, on whatever file system it is: whose it is, and how far it is.

CHECKPOINT/metadata     the stream's id, made with the checkpoint and gone with it
CHECKPOINT/offsets/N    batch N is planned
CHECKPOINT/commits/N    batch N is done
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a path is there."""
    file_system, where = _place(spark, path)
    return bool(file_system.exists(where))


def stream_id_in(spark: SparkSession, checkpoint: str) -> str | None:
    """Whose checkpoint it is; None where there is none."""
    file_system, where = _place(spark, f"{checkpoint}/metadata")
    if not file_system.exists(where):
        return None
    jvm: Any = spark._jvm
    stream = file_system.open(where)
    try:
        return str(json.loads(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))["id"])
    finally:
        stream.close()


def last_number(spark: SparkSession, path: str) -> int:
    """The greatest number that a file of a folder of Spark's is named by; -1 for none, or for no folder."""
    file_system, where = _place(spark, path)
    if not file_system.exists(where):
        return -1
    names = [str(each.getPath().getName()).removesuffix(".compact") for each in file_system.listStatus(where)]
    return max((int(name) for name in names if name.isdigit()), default=-1)


def last_planned(spark: SparkSession, checkpoint: str) -> int:
    """The last batch that was begun; -1 for none."""
    return last_number(spark, f"{checkpoint}/offsets")


def last_done(spark: SparkSession, checkpoint: str) -> int:
    """The last batch that Spark has seen the end of; -1 for none."""
    return last_number(spark, f"{checkpoint}/commits")


def _place(spark: SparkSession, path: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    where = jvm.org.apache.hadoop.fs.Path(path)
    return where.getFileSystem(spark._jsc.hadoopConfiguration()), where
