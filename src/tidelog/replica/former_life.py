"""What a broker may say about its former life: the epoch in which it still has all that it acknowledged (KIP-966).

Kafka lets a broker say so after a clean stop alone. A killed process loses nothing either: what it appended is in the
page cache, which belongs to the machine. So each log directory has a small file with the broker epoch and the boot of
the machine. When a node starts in the boot that the file names, the machine has not been down since, and everything
that was ever acknowledged in that epoch is there; a batch that was half written at the kill counted for nobody.

    after a clean stop                      the epoch in .kafka_cleanshutdown
    killed, the machine still up            the epoch in .tidelog-registered
    the machine was down, or nobody knows   none
    a directory failed, is new or differs   none: all directories must name one epoch, and its end the same way

One that failed cannot be relied on to forget its mark of the second kind. The others have lost theirs; but should the
node then stop cleanly, they have one of the first kind, of the same epoch, and what failed must not pass for killed.

A broker that vouches for itself may find otherwise: a log that does not end where the former life left it is damaged
(`lost_nothing`). That is known of logs that the former life had opened, and proven where the one before it was torn; a
life that was killed before it came to that says so in its file.

The file is written when the controller has given an epoch and before the broker uses it. It needs no flush: whatever a
power loss makes of it, it names a boot that is over. An older one names an epoch that the controller has replaced.

It is written before the broker registers, too, with the incarnation that it registers as. A life that ends before it is
answered may yet be registered, by a request that waited somewhere, and the epoch that comes of it replaces the one that
can be vouched for; nobody ever used it. So the next life registers as the same incarnation, which is the same epoch.
After a clean stop that holds in another boot, too, and so this much of the file is flushed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from tidelog.errors import DecodeError, StorageError
from tidelog.replica.directory import LogDirectory
from tidelog.storage import File
from tidelog.wire.uuids import from_text, to_text

REGISTERED = ".tidelog-registered"
NONE = -1


class _Said(NamedTuple):
    """What is known of the former life from one directory."""

    broker_epoch: int
    is_clean: bool
    logs_opened: bool
    unanswered: bytes | None


class FormerLife:
    """The former life of the broker in these directories, and the marks that the next one will read."""

    def __init__(self, directories: Sequence[LogDirectory], boot_id: str | None) -> None:
        self._directories = directories
        self._boot_id = boot_id
        """None where the system does not tell: then only a clean stop counts."""
        self._is_unsure = False
        """A disk failed in this life: whatever happens, it leaves no mark by which the next one could vouch for it."""
        said = [self._said_of(one) for one in directories]
        ends = {(one.broker_epoch, one.is_clean) for one in said}
        self.broker_epoch = ends.pop()[0] if len(ends) == 1 else NONE
        self.lost_nothing = self.broker_epoch != NONE and all(one.logs_opened for one in said)
        """Whatever is missing in its logs is damage: it had opened them, or had them from one that lost nothing."""
        incarnations = {one.unanswered for one in said}
        self.unanswered_incarnation_id = incarnations.pop() if len(incarnations) == 1 else None
        """As what it registered, where it was not answered."""

    def _said_of(self, directory: LogDirectory) -> _Said:
        """What a directory's marks say of the life before; nothing where it cannot be read."""
        if not directory.online:
            return _Said(NONE, False, False, None)
        is_clean = directory.stopped_cleanly and directory.last_broker_epoch >= 0
        mark = self._mark_in(directory, any_boot=is_clean)
        if is_clean:
            return _Said(directory.last_broker_epoch, True, True, None if mark is None else mark.unanswered)
        return _Said(NONE, False, False, None) if mark is None else mark

    def _mark_in(self, directory: LogDirectory, *, any_boot: bool) -> _Said | None:
        if self._boot_id is None:
            return None
        try:
            mark = json.loads(directory.storage.read_file(REGISTERED))
            if mark["directoryId"] != to_text(directory.directory_id):
                return None
            if mark["bootId"] != self._boot_id and not any_boot:
                return None
            unanswered = mark.get("registersAs")
            return _Said(
                int(mark["brokerEpoch"]),
                False,
                bool(mark["logsOpened"]),
                None if unanswered is None else from_text(unanswered),
            )
        except (FileNotFoundError, StorageError, DecodeError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def note_registering(self, directory: LogDirectory, incarnation_id: bytes) -> None:
        """This broker is about to register: until it is answered, the next life is what the former one left."""
        self._write(directory, self.broker_epoch, logs_opened=False, unanswered=incarnation_id)

    def note(self, directory: LogDirectory, broker_epoch: int, *, logs_opened: bool) -> None:
        """The controller has given an epoch: the next life may name it, should this one be killed."""
        self._write(directory, broker_epoch, logs_opened=logs_opened, unanswered=None)

    def _write(
        self, directory: LogDirectory, broker_epoch: int, *, logs_opened: bool, unanswered: bytes | None
    ) -> None:
        if self._boot_id is None or self._is_unsure or not directory.online:
            return
        mark = {
            "version": 0,
            "brokerEpoch": broker_epoch,
            "bootId": self._boot_id,
            "directoryId": to_text(directory.directory_id),
            "logsOpened": logs_opened or self.lost_nothing,
            "registersAs": None if unanswered is None else to_text(unanswered),
        }
        directory.storage.replace(REGISTERED, json.dumps(mark, separators=(",", ":")).encode())

    @staticmethod
    def files(directory: LogDirectory) -> list[File]:
        """The mark in a directory, to be flushed; none where it could not be written."""
        try:
            return [directory.storage.open(REGISTERED)] if directory.storage.exists(REGISTERED) else []
        except StorageError:
            return []

    def forget(self) -> None:
        """A disk failed, so that what was in the page cache may be gone: the next life must not vouch for this one."""
        self._is_unsure = True
        for directory in self._directories:
            try:
                directory.storage.delete(REGISTERED)
            except StorageError:
                continue  # the directory that failed, most likely: those that still work are enough to say no
