"""Tidelog and any other Kafka cluster as sources and sinks of Spark, in Python and without a jar.

    spark = tidelog.spark.session("orders")
    rows = (spark.read.format("tidelog").option("kafka.bootstrap.servers", "127.0.0.1:9092")
            .option("subscribe", "orders").load())

`register` makes the formats `tidelog` and `tidelog_segments` known to a session of the user's own. The executors need
this package too: on a cluster, install it there or ship it with `--py-files`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

__all__ = ["by_partition", "register", "session", "write", "write_stream"]


def __getattr__(name: str) -> Any:
    """The sink's functions, loaded when they are asked for: a reader needs none of them."""
    if name in ("by_partition", "write", "write_stream"):
        from tidelog.spark import sink_stream

        return getattr(sink_stream, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(spark: SparkSession) -> SparkSession:
    """Make the formats `tidelog` and `tidelog_segments` known to a session; returns the session.

    Spark looks up where a stream goes to in the session that is active in the thread which starts it, and in a thread
    of the user's own there is none: so this also makes the session the active one of the calling thread.
    """
    from tidelog.spark.datasource import sources_for

    for source in sources_for(_parallelism_of(spark)):
        spark.dataSource.register(source)
    _make_active(spark)
    return spark


def session(app_name: str = "tidelog", **conf: Any) -> SparkSession:
    """A session with the formats registered: `local[*]` unless a master is named, here or by spark-submit.

    Settings are Spark's, with their dots: `session("land", **{"spark.driver.memory": "2g"})`.
    """
    prepare_environment()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    known = _settings({name: str(value) for name, value in conf.items()})
    from tidelog.spark.home import installed_files, is_sure
    from tidelog.spark.nursery import nursery

    settings = dict(known.getAll())
    is_new = SparkContext._active_spark_context is None
    processes = nursery() if is_new and is_sure(settings) else None
    with installed_files(settings):
        spark = SparkSession.builder.config(conf=known).appName(app_name).getOrCreate()
    if processes is not None:
        processes.serve(spark.sparkContext)
    return register(spark)


def _settings(given: Mapping[str, str]) -> SparkConf:
    """What is given, what Spark was told before and, below both, our defaults."""
    from pyspark import SparkConf, SparkContext

    from tidelog.spark.submitted import told_before

    if "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()  # spark-submit has started us, and only its JVM knows what it was told
    known = SparkConf()
    before = told_before() if SparkContext._jvm is None else {}  # a JVM that runs has said it already
    for name, value in (before | dict(given)).items():
        known.set(name, value)
    is_local = str(known.get("spark.master", _DEFAULTS["spark.master"])).startswith("local")
    for name, value in (_DEFAULTS | (_LOCAL_DEFAULTS if is_local else {})).items():
        if not known.contains(name):
            known.set(name, value)
    return known


def prepare_environment() -> None:
    """Let Spark find this Python and, where the environment brings one, its Java."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if "JAVA_HOME" not in os.environ and (Path(sys.prefix) / "bin" / "java").exists():
        os.environ["JAVA_HOME"] = sys.prefix


_CORES = os.cpu_count() or 1
_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Between Spark and its Python workers half the work of TCP, and none for a secret.
    "spark.python.unix.domain.socket.enabled": str(os.name == "posix").lower(),
    # The fallback would read what a Python worker prints by tracebacks of the JVM: the short form names the cause.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}
_LOCAL_DEFAULTS = {
    # A name that does not resolve is the commonest reason why a local Spark does not start. On a cluster executors of
    # other machines come to the driver by its address, and there are more cores than those of this machine.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(max(2, _CORES)),
}


def _make_active(spark: Any) -> None:
    from pyspark.sql import SparkSession

    if isinstance(spark, SparkSession):  # one of Spark Connect has no threads of a JVM
        SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


def _parallelism_of(spark: SparkSession) -> int:
    """How many tasks run at once; Spark Connect does not say, so there it is taken from this machine."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Connect raises an error of its own that older versions of PySpark do not have
        return _CORES
