"""What a project of Spark's Declarative Pipelines needs of us, once at the head of its files.

spark = declared.session()
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ACCUMULATORS = "__python_accumulator__"


def session() -> SparkSession:
    """The session that `spark-pipelines` has opened, with our formats known to it."""
    from pyspark.sql import SparkSession

    import tidelog.spark

    spark = tidelog.spark.register(SparkSession.active())
    client = getattr(spark, "client", None)
    if client is not None:
        _leave_out_accumulators(client)
    return spark


def _leave_out_accumulators(client: Any) -> None:
    """Every Python source reports its (empty) profile with its rows.

    The pipelines of PySpark 4.2.0 do not know such a report and end with UNKNOWN_RESPONSE after everything is done.
    """
    original = client._execute_and_fetch_as_iterator
    if getattr(original, "leaves_out_accumulators", False):
        return

    def without_accumulators(*arguments: Any, **named: Any) -> Iterator[Any]:
        for response in original(*arguments, **named):
            if getattr(response, "name", None) != _ACCUMULATORS:
                yield response

    without_accumulators.leaves_out_accumulators = True  # type: ignore[attr-defined]
    client._execute_and_fetch_as_iterator = without_accumulators
