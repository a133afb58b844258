"""A query that is stopped in the middle of a batch: Spark has to recognise the error that ends the batch.

It looks for its own interruption in what the function of `foreachBatch` raised, with a pattern that goes one step
deeper for every character. A Python traceback with a Java one in it is longer than its stack: instead of ending quietly
the query's thread dies with a StackOverflowError and a page of trace. So such an error is told in one line.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

_INTERRUPTED = re.compile(
    r"[\w.$]*\b(?:InterruptedException|InterruptedIOException|ClosedByInterruptException)\b[^\n]*"
    r"|org\.apache\.spark\.SparkException: [^\n]*\bcancelled\b[^\n]*"
)
"""What ends a batch when its query is stopped: its jobs are cancelled, and a moment later its thread is interrupted."""
_CALL = "An error occurred while calling"
"""As Py4J begins the text of every error of the JVM."""
_MOST_CHARACTERS = 400


class Interrupted(Exception):
    """The batch was cut short; when the query was not stopped, it failed by this."""


@contextlib.contextmanager
def told_briefly() -> Iterator[None]:
    """Around what a function for `foreachBatch` does."""
    try:
        yield
    except Exception as error:
        text = str(error)
        found = _INTERRUPTED.search(text)
        if found is None or _CALL not in text:
            raise
        where = text[text.index(_CALL) :].splitlines()[0][:_MOST_CHARACTERS]
        # In Spark's own words, and without the long error as its context.
        raise Interrupted(f"py4j.protocol.Py4JJavaError: {where}: {found[0][:_MOST_CHARACTERS]}") from None
