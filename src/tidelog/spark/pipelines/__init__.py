"""Whole jobs on the sources and the sink: `tidelog pipeline NAME`, `spark-submit …/NAME.py`, or a function on frames.

One file a pipeline, each with its declaration as `PIPELINE`: the command, the documentation and spark-submit are made
from it. None of these files loads PySpark before it runs, so that help costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.spark.pipelines.declaration import Pipeline

NAMES = ("land", "audit", "replicas", "timeline", "mirror")
"""Every pipeline, in the order of the help."""


def load(name: str) -> Pipeline:
    """The declaration of a pipeline."""
    pipeline: Pipeline = import_module(f"tidelog.spark.pipelines.{name}").PIPELINE
    return pipeline
