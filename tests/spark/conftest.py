"""One Spark for all tests of this folder, with the official connector beside ours as a judge."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import tidelog.spark
from tests.clients.conftest import make_topic, node
from tidelog.spark.pipelines import jars
from tools import fetch_spark_connector

__all__ = ["make_topic", "node"]

# A test is over before a JVM has compiled its best code: the quick compiler alone costs a third of the time. The
# variable also reaches the drivers that tests start as processes of their own.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A directory for Spark's own files."""
    with tempfile.TemporaryDirectory(prefix="spark-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@pytest.fixture(scope="session")
def spark(scratch: Path) -> Iterator[SparkSession]:
    """A local Spark that knows `tidelog`, `tidelog_segments` and the official `kafka`."""
    connector = fetch_spark_connector.fetch(fetch_spark_connector.cache_directory())
    connector += jars.fetch((*jars.DELTA, *jars.AVRO), jars.directory(), tries=3)
    conf = {
        **jars.DELTA_SETTINGS,
        "spark.master": "local[2]",
        "spark.jars": ",".join(str(each) for each in connector),
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
    }
    session = tidelog.spark.session("tidelog-tests", **conf)
    yield session
    gateway = SparkContext._gateway
    session.stop()
    # Spark's JVM would live as long as this process, and a check for what is left behind would meet it.
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
    SparkContext._gateway = SparkContext._jvm = None
