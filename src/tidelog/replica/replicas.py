"""All replicas of this node: opens and removes them as the metadata says, flushes what must be.

Disk errors end here: the first one takes its log directory offline, with every partition in it, and the rest go on.
How all of them are closed is in stopping.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidelog.config import NodeConfig, TopicConfig
from tidelog.errors import CorruptionError, ErrorCode, KafkaError, StorageError
from tidelog.log import Log, names, partition_metadata
from tidelog.outbox import Outbox
from tidelog.replica import checkpoints
from tidelog.replica.directory import LogDirectory, TopicPartition
from tidelog.replica.partition import Partition, Role, Surroundings
from tidelog.replica.refused_batches import RefusedBatches
from tidelog.replica.throttle import ReplicationThrottles
from tidelog.storage import Storage
from tidelog.wire.uuids import ONE_UUID, ZERO_UUID


class Replicas:
    """The partitions this node holds, by name, and the directories they are in."""

    def __init__(
        self,
        node_id: int,
        config: NodeConfig,
        directories: Sequence[LogDirectory],
        outbox: Outbox,
        directory_failed: Callable[[LogDirectory], None],
        is_eligible: Callable[[int, int], bool],
    ) -> None:
        self.node_id = node_id
        self.surroundings = Surroundings(outbox, config, is_eligible)
        self.directories = list(directories)
        self.partitions: dict[TopicPartition, Partition] = {}
        self.is_loaded = False
        """Every replica of this broker was opened, or found to be damaged, in this life."""
        self.lost_nothing = False
        """The former life is vouched for: what is missing in a log that it left is damage. Set before any is opened."""
        self.damaged: dict[TopicPartition, str] = {}
        """Replicas whose records are not what was written, with where: not opened, not served."""
        self.on_damage: Callable[[Partition, str], None] = lambda _partition, _reason: None
        """Called with a replica in whose log rot was found, and where; the broker connects it."""
        self.on_refusal: Callable[[Partition], None] = lambda _partition: None
        """Called then when a follower was sent that again and cannot take it."""
        self.copied_anew: set[Partition] = set()
        """Empty logs in the place of damaged ones, whose first fetch is not answered yet."""
        self.on_copied: Callable[[Partition], None] = lambda _partition: None
        """Called when a leader has answered the first fetch of one of those."""
        self.outbox = outbox
        self._directory_failed = directory_failed
        self.propose_isr: Callable[[Partition, Sequence[int], str], None] = lambda _partition, _isr, _reason: None
        """Asks the controller for another ISR, and says why; the node connects it."""
        self._flushing: set[Partition] = set()
        """Partitions with a flush under way: at most one each, the next one starts when it ends."""
        self._flush_timers: set[Partition] = set()
        self._has_lost_logs = False
        """There is a log less than when the checkpoints were written."""
        self.moved: dict[Partition, None] = {}
        """Partitions that grew since their positions were last told."""
        self.is_stopping = False
        self.refused = RefusedBatches(outbox)
        self.throttles = ReplicationThrottles(node_id, outbox, lambda: self.config)

    @property
    def config(self) -> NodeConfig:
        """The node's settings in force."""
        return self.surroundings.config

    # --- looking up ---

    def find(self, topic: str, index: int) -> Partition:
        """The hosted replica; raises what a client is to be told when it is not here."""
        partition = self.partitions.get((topic, index))
        if partition is None:
            if (topic, index) in self.damaged:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.damaged[(topic, index)])
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{index} is not on this node")
        return partition

    def directory_of(self, partition: Partition) -> LogDirectory:
        """The directory a replica is in."""
        return next(one for one in self.directories if one.directory_id == partition.directory_id)

    # --- what the metadata says ---

    def host(
        self, topic: str, topic_id: bytes, index: int, directory_id: bytes, config: TopicConfig, is_new: bool
    ) -> Partition | None:
        """Open this replica, or make it; None when the directory it belongs to is offline."""
        partition = self.partitions.get((topic, index))
        if partition is not None and partition.topic_id == topic_id:
            return partition if self.directory_of(partition).online else None
        if partition is not None:
            self.remove(partition)  # the topic was deleted and made again under its name
        directory = self._directory_for((topic, index), topic_id, directory_id, is_new)
        if directory is None:
            return None
        try:
            partition = self._open(directory, topic, topic_id, index, config)
            recovered = partition.log.recovered
            if recovered is not None and recovered.removed_segments:
                self.flush(partition)  # another power loss must not bring them back among what is appended now
        except StorageError as error:
            self.storage_failed(directory.storage, error)
            return None
        except CorruptionError as error:
            # What was flushed and acknowledged is not what is there. Serving the rest would hide a loss, and an empty
            # log would be taken for a full one: it stays offline until somebody decides.
            self.damaged[(topic, index)] = str(error)
            self.outbox.tell("log-damaged", "error", topic=topic, partition=index, reason=str(error))
            return None
        self.damaged.pop((topic, index), None)
        self.partitions[(topic, index)] = partition
        return partition

    def remove(self, partition: Partition) -> None:
        """Delete a replica: its directory is renamed at once, and its files go a little later."""
        del self.partitions[(partition.topic, partition.index)]
        partition.go_offline(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        directory = self.directory_of(partition)
        name = names.directory_name(partition.topic, partition.index)
        doomed = names.deleted_directory_name(partition.topic, partition.index, self.outbox.chance.uuid())
        try:
            self._forget(directory, (partition.topic, partition.index))
            partition.log.close()
            directory.storage.rename(name, doomed)
        except StorageError as error:
            self.storage_failed(directory.storage, error)
            return
        self.outbox.after(partition.config.file_delete_delay_ms, lambda: self._delete(directory.storage, [doomed]))

    def remove_unopened(self, key: TopicPartition) -> None:
        """Delete a replica that could not be opened."""
        name = names.directory_name(*key)
        for directory in self.directories:
            if directory.online and directory.storage.exists(name):
                doomed = names.deleted_directory_name(*key, self.outbox.chance.uuid())
                self._forget(directory, key)
                directory.storage.rename(name, doomed)
                storage = directory.storage
                self.outbox.after(
                    self.config.log_segment_delete_delay_ms,
                    lambda storage=storage, doomed=doomed: self._delete(storage, [doomed]),  # type: ignore[misc]
                )

    def set_aside_strays(self, known: Callable[[str, int, bytes | None], bool]) -> list[str]:
        """Rename what is on disk but not in the metadata, so that it is kept and never served. Returns the names."""
        strays: list[str] = []
        for directory in [one for one in self.directories if one.online]:
            try:
                self._set_strays_aside(directory, known, strays)
            except StorageError as error:
                self.storage_failed(directory.storage, error)
        return strays

    def _set_strays_aside(
        self, directory: LogDirectory, known: Callable[[str, int, bytes | None], bool], strays: list[str]
    ) -> None:
        storage = directory.storage
        for name in storage.list(""):
            if names.is_deleted_directory(name):
                storage.delete(name)
                continue
            topic_partition = names.parse_directory_name(name)
            if topic_partition is None or topic_partition[0] == "__cluster_metadata":
                continue
            if not known(*topic_partition, partition_metadata.read(storage, name)):
                self._set_aside(directory, topic_partition)
                strays.append(f"{storage.root}/{name}")

    def _set_aside(self, directory: LogDirectory, key: TopicPartition) -> None:
        self._forget(directory, key)
        directory.storage.rename(
            names.directory_name(*key), names.stray_directory_name(*key, self.outbox.chance.uuid())
        )

    def _forget(self, directory: LogDirectory, key: TopicPartition) -> None:
        """A log is gone. The checkpoints know logs by name, so they are written before one of its name has records."""
        directory.forget(key)
        if not self._has_lost_logs:
            self._has_lost_logs = True
            self.outbox.at_end_of_step(self._write_without_lost_logs)

    def _write_without_lost_logs(self) -> None:
        self._has_lost_logs = False
        if self.is_loaded:
            checkpoints.write_all(self)

    def _directory_for(
        self, key: TopicPartition, topic_id: bytes, directory_id: bytes, is_new: bool
    ) -> LogDirectory | None:
        """Where the replica is, else where the controller wants it, else the emptiest directory."""
        name = names.directory_name(*key)
        # One that failed may be back with what was moved away from it: the directory that is known comes first.
        order = sorted(self.directories, key=lambda one: one.directory_id != directory_id)
        for directory in [one for one in order if one.online]:
            storage = directory.storage
            try:
                if storage.exists(name) and partition_metadata.read(storage, name) in (topic_id, None):
                    return directory
            except StorageError as error:
                self.storage_failed(storage, error)
        for directory in self.directories:
            if directory.directory_id == directory_id and directory_id != ZERO_UUID:
                return directory if directory.online else None
        online = [one for one in self.directories if one.online]
        is_unknown = directory_id in (ZERO_UUID, ONE_UUID)
        if not is_new and any(not one.online and (is_unknown or one.meta is None) for one in self.directories):
            return None  # nobody knows where it is, or who has that directory: it may be in one that failed
        held = {one.directory_id: 0 for one in online}
        for partition in self.partitions.values():
            if partition.directory_id in held:
                held[partition.directory_id] += 1
        return min(online, key=lambda one: held[one.directory_id], default=None)

    def _open(self, directory: LogDirectory, topic: str, topic_id: bytes, index: int, config: TopicConfig) -> Partition:
        storage, key, name = directory.storage, (topic, index), names.directory_name(topic, index)
        if storage.exists(name):
            found = partition_metadata.read(storage, name)
            if found is None and partition_metadata.has_records(storage, name):
                # Whose records these are was made durable with the first of them that were. Where none ever was, a
                # power loss may have taken the file, and nothing that counts goes with them. Anything else is damage:
                # an empty log in their place would be taken for one that has them.
                if self.lost_nothing or directory.stopped_cleanly or directory.recovery_points.get(key, 0):
                    raise CorruptionError(f"{name} has records, but its {names.PARTITION_METADATA} does not say whose")
                self._set_aside(directory, key)
            elif found not in (topic_id, None):
                # A topic of the same name that was deleted while this node was away: never serve its records.
                self._set_aside(directory, key)
        is_new = not storage.exists(name)
        if is_new or (key in directory.log_starts and not partition_metadata.has_records(storage, name)):
            directory.forget(key)  # what is said is of another log: this one would begin too late
        storage.make_directory(name)
        partition_metadata.write(storage, name, topic_id)
        log = Log.open(
            storage,
            name,
            config,
            recovery_point=directory.recovery_points.get(key, 0),
            log_start_offset=directory.log_starts.get(key, 0),
            clean=directory.stopped_cleanly or is_new,
            is_whole=self.lost_nothing,
            now_ms=self.outbox.now_ms,
            producer_expiry_ms=self.config.producer_id_expiration_ms,
        )
        recovered = log.recovered
        if recovered is not None and (recovered.truncated_bytes or recovered.removed_segments):
            self.outbox.tell(
                "log-recovered",
                "error" if recovered.is_below_recovery_point else "info",
                topic=topic,
                partition=index,
                offset=log.log_end_offset,
                truncated_bytes=recovered.truncated_bytes,
                removed_segments=recovered.removed_segments,
                reason="records that had been flushed are damaged"
                if recovered.is_below_recovery_point
                else "the end was torn by an unclean stop",
            )
        if is_new or directory.cleaner_offsets.get(key, 0) > log.log_end_offset:
            directory.forget_cleaner_offset(key)  # it was said of another log, or of one that lost its end
        high_watermark = directory.high_watermarks.get(key, 0)
        return Partition(
            self.node_id,
            topic,
            topic_id,
            index,
            log,
            config,
            high_watermark,
            directory.directory_id,
            self.surroundings,
        )

    # --- after an append ---

    def appended(self, partition: Partition, new_bytes: int) -> None:
        """Let new records count: at once, or after the flush that the settings demand."""
        partition.tell_followers(new_bytes)
        self.moved[partition] = None
        if partition.flush_is_due:
            first = partition.log.recovery_point  # lower than before where the log was cut under a flush
            partition.unflushed_from = (
                first if partition.unflushed_from is None else min(partition.unflushed_from, first)
            )
            self.flush(partition)
        elif partition.config.flush_ms < _NEVER_MS and partition not in self._flush_timers:
            self._flush_timers.add(partition)
            self.outbox.after(partition.config.flush_ms, lambda: self._flush_timer_due(partition))
        if partition.log.has_closed_segments_to_flush:
            self.flush(partition)
        partition.advance_high_watermark()

    def _flush_timer_due(self, partition: Partition) -> None:
        self._flush_timers.discard(partition)
        if partition.role is not Role.OFFLINE and partition.log.log_end_offset > partition.log.recovery_point:
            self.flush(partition)

    def flush(self, partition: Partition, then: Callable[[], None] | None = None) -> None:
        """Flush one partition's log up to its present end."""
        if partition in self._flushing and then is None:
            return
        end_offset = partition.log.log_end_offset
        storage = self.directory_of(partition).storage
        try:
            files, directories = partition.log.files_to_flush()
        except StorageError as error:
            self.storage_failed(storage, error)
            if then is not None:
                then()
            return
        self._flushing.add(partition)

        def flushed(error: str | None) -> None:
            self._flushing.discard(partition)
            if self.partitions.get((partition.topic, partition.index)) is not partition:
                pass  # its files were renamed, perhaps before the disk had got to them: no fault of the disk
            elif error is not None:
                self.storage_failed(storage, StorageError(storage.root, repr(partition), error))
            elif partition.role is not Role.OFFLINE:
                partition.log.flushed_through(min(end_offset, partition.log.log_end_offset))
                partition.unflushed_from = None
                if not self.is_stopping and partition.flush_is_due:
                    partition.unflushed_from = partition.log.recovery_point
                    self.flush(partition)
                partition.advance_high_watermark()
            if then is not None:
                then()

        self.outbox.flush(storage, flushed, files=files, directories=directories)

    # --- disk errors ---

    def storage_failed(self, storage: Storage, error: StorageError) -> None:
        """Take a directory offline with all it holds. Nothing acknowledged is lost: it stays on that disk."""
        directory = next(one for one in self.directories if one.storage is storage)
        if not directory.fail(error.reason):
            return
        hosted = [one for one in self.partitions.values() if one.directory_id == directory.directory_id]
        for partition in hosted:
            partition.go_offline()
        self.tell_offline(directory, str(error), len(hosted))
        self._directory_failed(directory)

    def tell_offline(self, directory: LogDirectory, reason: str, partitions: int) -> None:
        """Let people know that a directory is not used any more, and how many replicas are in it."""
        self.outbox.tell(
            "log-directory-offline", "error", directory=directory.storage.root, reason=reason, partitions=partitions
        )

    def disk_failed(self, partition: Partition, error: StorageError) -> KafkaError:
        """A replica could not be read or written for a client: its directory goes offline. What the client is told."""
        self.storage_failed(self.directory_of(partition).storage, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, error.reason)

    def look_for_damage(self, partition: Partition, offset: int, max_bytes: int, why: str) -> bool:
        """Look again at records that somebody has reason to doubt; whether they are damaged, which is told then."""
        try:
            damage = partition.log.find_damage(offset, max_bytes)
        except StorageError as error:
            self.disk_failed(partition, error)
            return False
        if damage is not None:
            self.on_damage(partition, f"{damage}; {why}")
        return damage is not None

    def offsets_in(
        self, directory: LogDirectory, checkpoint: str, offset_of: Callable[[Partition], int | None]
    ) -> dict[TopicPartition, int]:
        """What a checkpoint of a directory is to say: an offset of every replica, the old one where it is damaged."""
        former = directory.former(checkpoint)
        offsets = {key: former[key] for key in self.damaged if key in former}
        for key, partition in self.partitions.items():
            if partition.directory_id == directory.directory_id and partition.role is not Role.OFFLINE:
                offset = offset_of(partition)
                if offset is not None:
                    offsets[key] = offset
        return offsets

    def grow_isr(self, partition: Partition) -> None:
        """Propose a follower that has earned its place.

        Its own fetches need not say so again: a session names only what changed, and what changed may be that its
        broker was unfenced.
        """
        leadership = partition.leadership
        if leadership is None or len(leadership.isr) == len(leadership.replicas):
            return
        # One that was about to join, and was waited for, may be gone or may have stood still for too long.
        partition.advance_high_watermark()
        for broker_id in leadership.followers:
            # One that left for its lag may still have all that is committed, where too few are in sync to commit more:
            # it comes back by fetching, not by having been thrown out.
            isr = leadership.grown_isr(broker_id, partition.high_watermark) if partition.keeps_up(broker_id) else None
            if isr is not None:
                self.propose_growth(partition, isr)

    def propose_growth(self, partition: Partition, isr: Sequence[int]) -> None:
        """Propose an ISR with one member more."""
        assert partition.leadership is not None
        joining = next(one for one in isr if one not in partition.leadership.isr)
        self.propose_isr(partition, isr, partition.leadership.why_joining(joining, partition.log.log_end_offset))

    def delete_later(self, partition: Partition, paths: Sequence[str]) -> None:
        """Delete renamed files after file.delete.delay.ms, when no reader has them open any more."""
        storage = self.directory_of(partition).storage
        self.outbox.after(partition.config.file_delete_delay_ms, lambda: self._delete(storage, paths))

    def _delete(self, storage: Storage, paths: Sequence[str]) -> None:
        try:
            for path in paths:
                storage.delete(path)
        except StorageError as error:
            self.storage_failed(storage, error)

    def configure(self, configs: Mapping[str, TopicConfig]) -> None:
        """Let changed topic settings take effect."""
        for partition in self.partitions.values():
            config = configs.get(partition.topic)
            if config is not None:
                partition.config = config
                partition.log.config = config


_NEVER_MS = 9_223_372_036_854_775_807
"""Kafka's default of flush.ms: leave it to the operating system."""
