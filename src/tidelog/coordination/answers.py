"""Answers of one shard that wait for their records to be committed: bounded in number, and each in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.coordination.shard import Answer, KeyAndValue, Shard
from tidelog.errors import ErrorCode, KafkaError
from tidelog.outbox import Outbox, Timer

MAX_WAITING_ANSWERS = 10_000
"""Requests of one shard that may wait, for their records or for something else; a further one is told to try again."""

FAILED_WRITES: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a client is told when the coordinator's own write failed."""


class WaitingAnswers:
    """The door through which a shard's state writes. A client hears in time, whatever becomes of the records."""

    __slots__ = ("_outbox", "_shard", "_timeout_ms", "count")

    def __init__(self, outbox: Outbox, shard: Callable[[], Shard], timeout_ms: Callable[[], int]) -> None:
        self._outbox = outbox
        self._shard = shard
        self._timeout_ms = timeout_ms
        """How long a client waits for its records; then it is told to try again."""
        self.count = 0
        """Who waits now. Invariant: at most MAX_WAITING_ANSWERS, since whoever counts itself asks for room before."""

    def check_room(self) -> None:
        """Raise what a client is told when too many wait already."""
        if self.count >= MAX_WAITING_ANSWERS:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "too many requests wait")

    def write(self, content: Sequence[KeyAndValue], answer: Answer, **batch: Any) -> None:
        """Append and apply records; `answer` hears once that they, and all before them, are committed, or are not known
        to be. Raises KafkaError, with a code for clients, when nothing was written.
        """
        self.check_room()
        self.count += 1
        answered = False
        timer: Timer | None = None

        def finished(code: ErrorCode) -> None:
            self.count -= 1
            give(code)

        def give(code: ErrorCode) -> None:
            nonlocal answered
            if not answered:
                answered = True
                if timer is not None:
                    timer.cancel()
                answer(code)

        try:
            self._shard().write(content, finished, **batch)
        except KafkaError as error:
            self.count -= 1
            raise KafkaError(FAILED_WRITES.get(error.code, error.code), error.message) from None
        if not answered:
            timer = self._outbox.after(self._timeout_ms(), lambda: give(ErrorCode.COORDINATOR_NOT_AVAILABLE))
