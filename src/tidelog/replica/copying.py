"""What a follower does with its own log: append what the leader sent, cut where it parts from the leader's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidelog.errors import CorruptionError, StorageError
from tidelog.log import validation
from tidelog.log.checkpoints import CLEANER_OFFSETS, LOG_STARTS, RECOVERY_POINTS
from tidelog.replica import checkpoints
from tidelog.replica.directory import LogDirectory, TopicPartition
from tidelog.replica.partition import Partition, Role
from tidelog.replica.replicas import Replicas
from tidelog.storage import File


def append_from_leader(replicas: Replicas, partition: Partition, records: memoryview) -> None:
    """Append what a leader sent for the end of our log; what we have already answers a question asked twice."""
    log = partition.log
    first_offset = int.from_bytes(records[:8], "big")
    if first_offset < log.log_end_offset and log.log_start_offset == log.log_end_offset:
        # The leader's log starts in the middle of a batch (DeleteRecords): an empty copy takes the batch whole.
        validation.check_as_follower(records)  # a damaged one must not leave the log shorter than it was
        start_offset = log.log_start_offset
        log.truncate_fully_and_start_at(first_offset)
        log.append_as_follower(records, replicas.outbox.now_ms)
        log.raise_log_start(start_offset)
        replicas.appended(partition, len(records))
    elif first_offset >= log.log_end_offset:  # it may begin later than our log ends: compaction leaves gaps
        log.append_as_follower(records, replicas.outbox.now_ms)
        replicas.appended(partition, len(records))


def truncate_to_leader(
    replicas: Replicas,
    partition: Partition,
    leader_epoch: int,
    leader_end_offset: int,
    leader_start_offset: int,
    then: Callable[[], None],
) -> None:
    """Cut our log where it parts from the leader's: at the end of the last epoch both have (KIP-101, KIP-279)."""
    if leader_end_offset <= leader_start_offset:
        # The leader has deleted its records of our epochs, so where the logs part lies anywhere below its start. What
        # we would keep may never have been committed, and would count as known when its producer sends it again.
        _start_anew(replicas, partition, leader_start_offset, then)
        return
    _, own_end_offset = partition.log.end_offset_for_epoch(leader_epoch)
    cut_at = min(max(own_end_offset, partition.log.log_start_offset), leader_end_offset)
    _truncate(replicas, partition, cut_at, f"epoch {leader_epoch} ends there", then)


def start_within(
    replicas: Replicas, partition: Partition, leader_start_offset: int, leader_end_offset: int, then: Callable[[], None]
) -> None:
    """Our log and the leader's do not overlap: cut to its end, or begin again at its start."""
    log = partition.log
    try:
        if leader_end_offset < log.log_end_offset:
            _truncate(replicas, partition, leader_end_offset, "the leader's log ends there", then)
            return
        if log.log_end_offset < leader_start_offset:
            _start_anew(replicas, partition, leader_start_offset, then)
            return
        _recovery_point_lowered(replicas, partition, then)
    except StorageError as error:
        replicas.disk_failed(partition, error)
    except CorruptionError as error:
        replicas.on_damage(partition, str(error))


def _start_anew(replicas: Replicas, partition: Partition, leader_start_offset: int, then: Callable[[], None]) -> None:
    def cut() -> None:
        partition.log.truncate_fully_and_start_at(leader_start_offset, replicas.outbox.now_ms)
        partition.high_watermark = leader_start_offset
        replicas.outbox.tell(
            "log-restarted",
            "warning",
            topic=partition.topic,
            partition=partition.index,
            offset=leader_start_offset,
            reason="the leader's log starts there",
        )

    _cut(replicas, partition, 0, cut, then)


def _truncate(replicas: Replicas, partition: Partition, offset: int, reason: str, then: Callable[[], None]) -> None:
    log = partition.log

    def cut() -> None:
        records = log.log_end_offset - offset
        log.truncate_to(offset, replicas.outbox.now_ms)
        if records > 0:
            partition.high_watermark = min(partition.high_watermark, log.log_end_offset)
            replicas.outbox.tell(
                "log-truncated",
                topic=partition.topic,
                partition=partition.index,
                offset=log.log_end_offset,
                records=records,
                leader=partition.leader_id,
                reason=reason,
            )

    _cut(replicas, partition, log.end_when_cut_at(offset), cut, then)


def _cut(
    replicas: Replicas, partition: Partition, offset: int, cut: Callable[[], None], then: Callable[[], None]
) -> None:
    """Cut from an offset on, once no checkpoint says that what goes is flushed, and continue when that is durable.

    A power loss in the middle of a cut may leave segments behind and take the end of the one before them: a start that
    believes them to be flushed would not look, and the log would have a hole.
    """
    directory, log = replicas.directory_of(partition), partition.log
    key = (partition.topic, partition.index)
    if directory.highest(RECOVERY_POINTS, key) <= offset:
        cut()
        _recovery_point_lowered(replicas, partition, then)
        return
    log.lower_recovery_point(offset)
    directory.recovery_points[key] = directory.highest(RECOVERY_POINTS, key)  # until it is lowered on the medium
    known = (partition.leader_epoch, log.cut_count, log.log_end_offset)

    def lowered() -> None:
        directory.recovery_points[key] = min(offset, directory.recovery_points.get(key, 0))
        if (
            replicas.is_stopping
            or partition.role is not Role.FOLLOWER
            or known != (partition.leader_epoch, log.cut_count, log.log_end_offset)
        ):
            return  # another leads now, or it was cut already
        try:
            cut()
            _recovery_point_lowered(replicas, partition, then)
        except StorageError as failure:
            replicas.storage_failed(directory.storage, failure)
        except CorruptionError as damage:
            replicas.on_damage(partition, str(damage))

    offsets = replicas.offsets_in(directory, RECOVERY_POINTS, lambda one: one.log.recovery_point)
    _flush(replicas, directory, {RECOVERY_POINTS: offsets}, lowered)


def _recovery_point_lowered(replicas: Replicas, partition: Partition, then: Callable[[], None]) -> None:
    """Continue once the checkpoint has the lower point: a crash would else trust new bytes it never checked.

    The cut itself is on the medium by then, too: a power loss might else bring back what was cut, below a watermark
    that was written since and is of the records that took its place.
    """
    directory = replicas.directory_of(partition)
    written = {RECOVERY_POINTS: replicas.offsets_in(directory, RECOVERY_POINTS, lambda one: one.log.recovery_point)}
    key = (partition.topic, partition.index)
    if directory.cleaner_offsets.get(key, 0) > partition.log.log_end_offset:  # what comes there is not compacted
        directory.cleaner_offsets[key] = partition.log.log_end_offset
        written[CLEANER_OFFSETS] = dict(directory.cleaner_offsets)
    if directory.highest(LOG_STARTS, key) > partition.log.log_start_offset:  # a start would begin the log there again
        directory.log_starts.pop(key, None)
        written[LOG_STARTS] = replicas.offsets_in(directory, LOG_STARTS, checkpoints.log_start_of)
    files, directories = partition.log.files_of_cut()
    cut_at = partition.log.log_end_offset
    partition.unflushed_cuts.append(cut_at)  # another may lead meanwhile, whom nobody keeps from going on

    def durable() -> None:
        partition.unflushed_cuts.remove(cut_at)
        then()

    _flush(replicas, directory, written, durable, files, directories)


def _flush(
    replicas: Replicas,
    directory: LogDirectory,
    written: dict[str, dict[TopicPartition, int]],
    then: Callable[[], None],
    files: Sequence[File] = (),
    directories: Sequence[str] = ("",),
) -> None:
    """Make checkpoints durable after files, then continue; a disk that fails takes its directory offline."""
    storage = directory.storage

    def done(error: str | None) -> None:
        try:
            if error is not None:
                raise StorageError(storage.root, RECOVERY_POINTS, error)
            directory.restore_newer(written)
        except StorageError as failure:
            replicas.storage_failed(storage, failure)
        else:
            then()

    replacements = [directory.durable_checkpoint(name, offsets) for name, offsets in written.items()]
    replicas.outbox.flush(storage, done, files=files, directories=directories, replacements=replacements)
