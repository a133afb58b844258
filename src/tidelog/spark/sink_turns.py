"""Several tasks write to one Kafka partition by turns, where all of them are on one machine.

A broker takes the batches of a producer only in the order of their sequences, and tells a repetition by them alone. So
each Kafka partition has one writing task, to which a shuffle must bring its rows. On one machine they need not move: a
file of each partition says which sequence is next, and whoever writes holds its lock until all that it sent is
acknowledged.

    8 bytes   the next sequence; -1 from the moment a task takes its turn until it has ended it well
    the rest  what ended a turn that did not end well, for the tasks that come after it

A task that dies leaves -1 behind, and nobody writes there any more: its last batches may be in the log, and other bytes
under the same sequences would be taken for a repetition. The driver makes the folder anew for every turn of a batch.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from types import TracebackType
from typing import Self

from tidelog.client.batches import MAX_SEQUENCE, BatchSender, Chunk
from tidelog.client.client import TopicPartition
from tidelog.errors import ErrorCode, KafkaError, TidelogError

_sequence = Struct("<q")
_TAKEN = _sequence.pack(-1)
_MOST_BYTES = 10_000
"""Of a file: a reason is a sentence or two."""


class Turns:
    """One task's side: sends chunks, each partition's when it is this task's turn there."""

    def __init__(self, folder: str, sender: BatchSender, first: int) -> None:
        """`first` tells tasks apart: each begins with another partition, so that they meet less often."""
        self._folder = folder
        self._sender = sender
        self._first = first
        self._files: dict[TopicPartition, int] = {}
        self._held: list[TopicPartition] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, TidelogError):
                for where in self._held:
                    os.pwrite(self._files[where], reason_of(error).encode()[:_MOST_BYTES], _sequence.size)
        finally:
            for file in self._files.values():
                os.close(file)

    def send(self, chunks: Mapping[TopicPartition, Sequence[Chunk]]) -> None:
        """All of these, each partition's in their order; when it returns they are acknowledged."""
        left = list(chunks)
        start = self._first % len(left) if left else 0
        left = left[start:] + left[:start]
        while left:
            where = next((each for each in left if self._take(each, wait=False)), None)
            if where is None:
                self._end()  # whoever waits holds nothing, so no two tasks wait for each other
                where = left[0]
                self._take(where, wait=True)
            left.remove(where)
            for chunk in chunks[where]:
                self._sender.send(where, chunk)
            for held in [each for each in self._held if not self._sender.is_in_flight(each)]:
                self._give_back(held)
        self._end()

    def _end(self) -> None:
        self._sender.flush()
        for where in tuple(self._held):
            self._give_back(where)

    def _take(self, where: TopicPartition, *, wait: bool) -> bool:
        file = self._files.get(where)
        if file is None:
            file = self._files[where] = os.open(_path(self._folder, where), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        sequence = _read(file, where)
        os.pwrite(file, _TAKEN, 0)
        self._held.append(where)
        self._sender.go_on(where, sequence)
        return True

    def _give_back(self, where: TopicPartition) -> None:
        file = self._files[where]
        os.pwrite(file, _sequence.pack(self._sender.next_sequence(where)), 0)
        self._held.remove(where)
        fcntl.flock(file, fcntl.LOCK_UN)


def is_complete(folder: str, written: Iterable[tuple[TopicPartition, int]]) -> bool:
    """Whether tasks wrote what they say, partitions and records, nothing more and nothing less."""
    records: Counter[TopicPartition] = Counter()
    for where, count in written:
        records[where] += count
    if {os.path.basename(_path(folder, where)) for where in records} != set(os.listdir(folder)):
        return False
    for where, count in records.items():
        file = os.open(_path(folder, where), os.O_RDONLY)
        try:
            if _sequence.unpack(os.read(file, _sequence.size)) != (count & MAX_SEQUENCE,):
                return False
        finally:
            os.close(file)
    return True


def reason_of(error: TidelogError) -> str:
    """An error as one task tells it the driver or another task; Kafka's own errors begin with their name."""
    code = f"{error.code.name}: " if isinstance(error, KafkaError) else ""
    return f"{code}{error}"


def _path(folder: str, where: TopicPartition) -> str:
    return os.path.join(folder, f"{where[0]}-{where[1]}")


def _read(file: int, where: TopicPartition) -> int:
    """The next sequence; raises what ended the last turn where that did not end well."""
    content = os.pread(file, _sequence.size + _MOST_BYTES, 0)
    if not content:
        return 0
    (sequence,) = _sequence.unpack_from(content)
    if sequence >= 0:
        return int(sequence)
    reason = content[_sequence.size :].decode(errors="replace")
    if not reason:
        raise KafkaError(
            ErrorCode.TRANSACTION_ABORTABLE, f"a task was lost while it wrote to {where[0]}-{where[1]}: begin anew"
        )
    code, _, text = reason.partition(": ")
    raise KafkaError(ErrorCode[code], text) if code in ErrorCode.__members__ else TidelogError(reason)
