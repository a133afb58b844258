"""A clean stop: every log is closed and flushed, then each directory gets its checkpoints and the mark of a clean stop.

close -> flush -> mark      the next start believes what it finds there (KIP-966: and the broker vouches for it)
|        |
+--------+-> no mark      a log could not be closed or flushed: to the next start its directory is one of a crash
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.errors import CorruptionError, StorageError
from tidelog.replica import checkpoints
from tidelog.replica.directory import LogDirectory
from tidelog.replica.partition import Role
from tidelog.replica.replicas import Replicas


def stop(replicas: Replicas, broker_epoch: int, then: Callable[[], None]) -> None:
    """Close all that a node has, as one that lives in this epoch, then continue."""
    replicas.is_stopping = True
    damaged: set[bytes] = set()
    """Directories with a log that could not be closed because of what is in its files."""
    remaining = 1

    def one_done() -> None:
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            closed = [one for one in replicas.directories if one.directory_id not in damaged]
            _mark(replicas, closed, broker_epoch, then)

    for partition in replicas.partitions.values():
        if partition.role is Role.OFFLINE:
            continue
        try:
            partition.log.close()
        except StorageError as error:
            replicas.disk_failed(partition, error)
            continue
        except CorruptionError as error:
            damaged.add(partition.directory_id)
            replicas.outbox.tell("log-close-failed", "error", partition=repr(partition), reason=str(error))
            continue
        remaining += 1
        replicas.flush(partition, one_done)
    one_done()


def _mark(replicas: Replicas, directories: list[LogDirectory], broker_epoch: int, then: Callable[[], None]) -> None:
    """Write the checkpoints, and the marks of directories that are closed as they should be."""
    if replicas.is_loaded:
        checkpoints.write_all(replicas)
    else:  # what was not even opened is as the former life left it, cleanly or not
        directories = [one for one in directories if one.stopped_cleanly]
    marked_now = [one for one in directories if one.online]
    remaining = len(marked_now)

    def marked(_error: str | None) -> None:
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            then()

    for directory in marked_now:
        mark = directory.mark_clean_shutdown(broker_epoch)
        replicas.outbox.flush(directory.storage, marked, replacements=[mark], directories=[""])
    if not marked_now:
        then()
