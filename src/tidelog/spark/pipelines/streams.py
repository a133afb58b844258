"""Follow a streaming query: show how far it is, stop it when asked, and say in one line why it ended."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from tidelog.errors import KafkaError
from tidelog.spark.pipelines.progress import Progress, Step

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.2
LAG_EVERY_S = 1.0
RATE_OVER_S = 10.0
STOP_GRACE_S = 5.0
"""For the batch in hand, when a stream is told to stop: one that is cut short is repeated by the next run."""

Offsets = dict[tuple[str, int], int]


class Follower:
    """Counts what the queries of one job have done, from what they report."""

    def __init__(self, progress: Progress, ends: Ends | None, *, to_the_end: bool) -> None:
        """`to_the_end`: the job stops at the ends that are there now, so that a bar can be drawn."""
        self._progress = progress
        self._ends = ends
        self._to_the_end = to_the_end
        self._seen: dict[int, int] = {}
        """Rows by batch of the first query, which is the one that counts."""
        self._begin: Offsets | None = None
        self._end: Offsets = {}
        self._moments: list[tuple[float, int]] = [(time.monotonic(), 0)]

    @property
    def rows(self) -> int:
        """Records the job has taken in."""
        return sum(self._seen.values())

    @property
    def batches(self) -> int:
        """Batches that had records in them."""
        return sum(1 for rows in self._seen.values() if rows)

    def follow(self, queries: Sequence[StreamingQuery], is_over: Callable[[], bool]) -> None:
        """Until all have ended, one has failed, or it is over; those that go on end their batch and are stopped."""
        try:
            while any(query.isActive for query in queries) and not is_over():
                time.sleep(POLL_S)
                if any(query.exception() is not None for query in queries):
                    return
                self._look(queries[0])
        finally:
            try:
                _finish_batches(queries)
                self._look(queries[0])
            finally:
                for query in queries:
                    query.stop()

    def _look(self, query: StreamingQuery) -> None:
        for report in query.recentProgress:
            told = _as_dict(report)
            self._seen[told["batchId"]] = max(self._seen.get(told["batchId"], 0), told["numInputRows"])
            for source in told["sources"]:
                end = offsets_in(source.get("endOffset"))
                self._end.update(end)
                if self._begin is None and end:
                    self._begin = offsets_in(source.get("startOffset"))
        now_s, rows = time.monotonic(), self.rows
        self._moments = [each for each in self._moments if now_s - each[0] < RATE_OVER_S] or self._moments[-1:]
        since_s, before = self._moments[0]
        rate = (rows - before) / (now_s - since_s) if now_s > since_s else None
        self._moments.append((now_s, rows))
        total, lag = self._total(), None if self._ends is None else self._ends.ahead_of(self._end)
        self._progress.show(Step(rows, rate, total=total, lag=lag, batches=self.batches))

    def _total(self) -> int | None:
        if not self._to_the_end or self._ends is None or self._begin is None:
            return None
        return sum(
            end - self._begin.get(where, self._ends.first.get(where, 0)) for where, end in self._ends.at_start.items()
        )


def _finish_batches(queries: Sequence[StreamingQuery]) -> None:
    """Wait until each has reported the batch that it has in hand, which it does a moment after its commit."""
    before = [_last_batch(query) for query in queries]
    deadline_s = time.monotonic() + STOP_GRACE_S
    for query, last in zip(queries, before, strict=True):
        while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == last:
            if time.monotonic() >= deadline_s:
                return
            time.sleep(0.02)


def _last_batch(query: StreamingQuery) -> int:
    report = query.lastProgress
    return -1 if report is None else int(_as_dict(report)["batchId"])


class Ends:
    """Where the topics of a job end, asked of the cluster at most once a second."""

    def __init__(self, ask: Any) -> None:
        """`ask(earliest)` returns an offset a partition."""
        self._ask = ask
        self.first: Offsets = ask(True)
        self.at_start: Offsets = ask(False)
        self._now = self.at_start
        self._next_s = 0.0

    def ahead_of(self, reached: Offsets) -> int:
        """Records that wait behind these offsets."""
        if time.monotonic() >= self._next_s:
            with contextlib.suppress(KafkaError):  # a leader that is being elected: the last answer serves
                self._now = self._ask(False)
            self._next_s = time.monotonic() + LAG_EVERY_S
        return sum(max(0, end - reached.get(where, self.first.get(where, 0))) for where, end in self._now.items())


def offsets_in(text: Any) -> Offsets:
    """The offsets of a report: JSON with topic -> partition -> offset, at its top or one level below it."""
    document = text
    if isinstance(text, str):
        try:
            document = json.loads(text)
        except ValueError:
            return {}
    if not isinstance(document, Mapping):
        return {}
    found: Offsets = {}
    for topic, partitions in document.items():
        if isinstance(partitions, Mapping):
            for partition, offset in partitions.items():
                if str(partition).isdigit() and isinstance(offset, int):
                    found[str(topic), int(partition)] = offset
    if not found:
        for inner in document.values():
            found.update(offsets_in(inner) if isinstance(inner, Mapping) else {})
    return found


def _as_dict(report: Any) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(report.json if hasattr(report, "json") else json.dumps(report))
    return told


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[Callable[[], bool]]:
    """In the block SIGTERM and Ctrl-C are only noted, so that a stream that is told to stop does so in order.

    An exception could come in the middle of a call into the JVM, which Py4J would tell with a trace; PySpark's own
    answer to Ctrl-C cancels the running batch, which would then look like a failure of the stream. A second signal is
    a KeyboardInterrupt, for those who will not wait.
    """
    is_told = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal is_told
        if is_told:
            signal.default_int_handler(number, frame)
        is_told = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, note) for number in numbers]
    try:
        yield lambda: is_told
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
