"""What a Python worker of Spark is spared: looking through all its modules for garbage after every task.

PySpark collects garbage whenever a worker has ended a task and may be given another. By then the worker holds PySpark,
pyarrow and, for many records, numba: over a hundred thousand objects that are never garbage, and 20 to 60 ms of work a
task, more than reading a small batch of a stream takes.
"""

from __future__ import annotations

import gc
import sys

from pyspark import TaskContext

_settled_modules = 0


def settle() -> None:
    """Leave everything that is there now out of later collections; done again when more modules were loaded.

    To be called by a task before it makes objects of its own. Does nothing outside of a worker.
    """
    global _settled_modules  # noqa: PLW0603 - of this process
    if len(sys.modules) == _settled_modules or TaskContext.get() is None:
        return
    _settled_modules = len(sys.modules)
    gc.freeze()
