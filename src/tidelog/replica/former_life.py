"""What a broker may say about its former life: the epoch in which it still has all that it acknowledged (KIP-966).

Kafka lets a broker say so after a clean stop alone. A killed process loses nothing either: what it appended is in the
page cache, which belongs to the machine. So each log directory has a small file with the broker epoch and the boot of
the machine. When a node starts in the boot that the file names, the machine has not been down since, and everything
that was ever acknowledged in that epoch is there; a batch that was half written at the kill counted for nobody.

    after a clean stop                      the epoch in .kafka_cleanshutdown
    killed, the machine still up            the epoch in .tidelog-registered
    the machine was down, or nobody knows   none
    a directory failed, is new or differs   none: all directories must name one epoch

A broker that vouches for itself may find otherwise: a log that does not end where the former life left it is damaged
(`lost_nothing`). That is known of logs that the former life had opened, and proven where the one before it was torn; a
life that was killed before it came to that says so in its file.

The file is written when the controller has given an epoch and before the broker uses it. It needs no flush: whatever a
power loss makes of it, it names a boot that is over. An older one names an epoch that the controller has replaced.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tidelog.errors import StorageError
from tidelog.replica.directory import LogDirectory
from tidelog.wire.uuids import to_text

REGISTERED = ".tidelog-registered"
NONE = -1


class FormerLife:
    """The former life of the broker in these directories, and the marks that the next one will read."""

    def __init__(self, directories: Sequence[LogDirectory], boot_id: str | None) -> None:
        self._directories = directories
        self._boot_id = boot_id
        """None where the system does not tell: then only a clean stop counts."""
        said = [self._said_of(one) for one in directories]
        epochs = {epoch for epoch, _ in said}
        self.broker_epoch = epochs.pop() if len(epochs) == 1 else NONE
        self.lost_nothing = self.broker_epoch != NONE and all(were_opened for _, were_opened in said)
        """Whatever is missing in its logs is damage: it had opened them, or had them from one that lost nothing."""

    def _said_of(self, directory: LogDirectory) -> tuple[int, bool]:
        """The epoch that a directory may be vouched for in, and whether its logs were opened in it."""
        if directory.stopped_cleanly and directory.last_broker_epoch >= 0:
            return directory.last_broker_epoch, True
        if self._boot_id is None:
            return NONE, False
        try:
            mark = json.loads(directory.storage.read_file(REGISTERED))
            same = (mark["bootId"], mark["directoryId"]) == (self._boot_id, to_text(directory.directory_id))
            return (int(mark["brokerEpoch"]), bool(mark["logsOpened"])) if same else (NONE, False)
        except (FileNotFoundError, StorageError, ValueError, KeyError, TypeError):
            return NONE, False

    def note(self, directory: LogDirectory, broker_epoch: int, *, logs_opened: bool) -> None:
        """The controller has given an epoch: the next life may name it, should this one be killed."""
        if self._boot_id is None or not directory.online:
            return
        mark = {
            "version": 0,
            "brokerEpoch": broker_epoch,
            "bootId": self._boot_id,
            "directoryId": to_text(directory.directory_id),
            "logsOpened": logs_opened or self.lost_nothing,
        }
        directory.storage.replace(REGISTERED, json.dumps(mark, separators=(",", ":")).encode())

    def forget(self) -> None:
        """A disk failed, so that what was in the page cache may be gone: the next life must not vouch for this one."""
        for directory in self._directories:
            try:
                directory.storage.delete(REGISTERED)
            except StorageError:
                continue  # the directory that failed, most likely: those that still work are enough to say no
