"""One log directory of this node: whose it is, what its checkpoints say, whether it still works.

    ONLINE -> OFFLINE      the first disk error; its partitions go offline, the rest go on serving (KIP-112)
    OFFLINE                from the start where not even its `meta.properties` can be read: its id is not known

An offline directory stays offline until the node is started again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tidelog.errors import DirectoryError, StorageError
from tidelog.log import checkpoints
from tidelog.log.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from tidelog.storage import Storage
from tidelog.wire.uuids import ZERO_UUID, from_text, to_text

META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

TopicPartition = tuple[str, int]


class MetaProperties:
    """What `meta.properties` says: cluster, node and directory (version 1, KIP-631 and KIP-858)."""

    __slots__ = ("cluster_id", "directory_id", "node_id")

    def __init__(self, cluster_id: str, node_id: int, directory_id: bytes) -> None:
        self.cluster_id = cluster_id
        self.node_id = node_id
        self.directory_id = directory_id

    @classmethod
    def read(cls, storage: Storage) -> MetaProperties:
        """Read and check the file; a directory without one was never formatted."""
        try:
            text = storage.read_file(META_PROPERTIES).decode()
        except FileNotFoundError:
            raise DirectoryError(
                f"{storage.root} is not formatted: no {META_PROPERTIES} in it (run 'tidelog format')"
            ) from None
        properties = dict(
            line.strip().split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#")
        )
        try:
            if properties["version"] != "1":
                raise DirectoryError(f"{storage.root}/{META_PROPERTIES}: version {properties['version']} is not known")
            return cls(properties["cluster.id"], int(properties["node.id"]), from_text(properties["directory.id"]))
        except (KeyError, ValueError) as error:
            raise DirectoryError(f"{storage.root}/{META_PROPERTIES} is damaged: {error}") from None

    def to_bytes(self) -> bytes:
        """The file's content, in Kafka's form."""
        lines = ("version=1", f"cluster.id={self.cluster_id}", f"node.id={self.node_id}")
        return ("\n".join((*lines, f"directory.id={to_text(self.directory_id)}")) + "\n").encode()


class LogDirectory:
    """A storage with its identity, its state and the offsets it was last known to hold."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.meta: MetaProperties | None = None
        self.online = True
        self.offline_reason = ""
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_starts: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.cleaner_offsets: dict[TopicPartition, int] = {}
        """Up to where each log is compacted; kept up to date, unlike the others, which are of the last life."""
        self.stopped_cleanly, self.last_broker_epoch = False, -1
        self._written: dict[str, dict[TopicPartition, int]] = {}
        try:
            self.meta = MetaProperties.read(storage)
            self.recovery_points = checkpoints.read(storage, RECOVERY_POINTS)
            self.log_starts = checkpoints.read(storage, LOG_STARTS)
            self.high_watermarks = checkpoints.read(storage, HIGH_WATERMARKS)
            self.cleaner_offsets = checkpoints.read(storage, CLEANER_OFFSETS)
            self.stopped_cleanly, self.last_broker_epoch = _read_clean_shutdown(storage)
        except StorageError as error:
            self.fail(error.reason)

    @property
    def directory_id(self) -> bytes:
        """The id the controller knows this directory by (KIP-858); none where it could not be read."""
        return ZERO_UUID if self.meta is None else self.meta.directory_id

    def fail(self, reason: str) -> bool:
        """Go offline; False when it was already."""
        was_online, self.online = self.online, False
        self.offline_reason = self.offline_reason or reason
        return was_online

    def forget_clean_shutdown(self) -> None:
        """From here on a crash must be seen as one: called once the node has read the mark."""
        self.storage.delete(CLEAN_SHUTDOWN)

    def mark_clean_shutdown(self, broker_epoch: int) -> tuple[str, bytes]:
        """The file that proves a clean stop, with the epoch it ended in (KIP-966); for a flush's replacements."""
        return CLEAN_SHUTDOWN, json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()

    def write_checkpoint(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Replace a checkpoint when it says something new."""
        if not self.online or self._written.get(name) == offsets:
            return
        self.storage.replace(name, checkpoints.to_bytes(offsets))
        self._written[name] = offsets

    def former(self, name: str) -> dict[TopicPartition, int]:
        """A checkpoint as the last life left it: what is known of logs that this one could not open."""
        return {
            RECOVERY_POINTS: self.recovery_points,
            LOG_STARTS: self.log_starts,
            HIGH_WATERMARKS: self.high_watermarks,
            CLEANER_OFFSETS: self.cleaner_offsets,
        }[name]

    def forget(self, key: TopicPartition) -> None:
        """A log is gone: what was said of it is not said of one of the same name that comes later."""
        for known in (self.recovery_points, self.log_starts, self.high_watermarks):
            known.pop(key, None)
        self.forget_cleaner_offset(key)

    def forget_cleaner_offset(self, key: TopicPartition) -> None:
        """A log is gone: one of the same name that comes later is not compacted at all."""
        if self.cleaner_offsets.pop(key, None) is not None:
            self.write_checkpoint(CLEANER_OFFSETS, dict(self.cleaner_offsets))

    def highest(self, name: str, key: TopicPartition) -> int:
        """The highest offset that a start may read of a log in a checkpoint, the last life's or one of this life."""
        return max(known.get(key, 0) for known in (self.former(name), self._written.get(name, {})))

    def durable_checkpoint(self, name: str, offsets: dict[TopicPartition, int]) -> tuple[str, bytes]:
        """The same as a replacement of a flush, for whoever must know that it is on the medium."""
        self._written[name] = offsets
        return name, checkpoints.to_bytes(offsets)

    def restore_newer(self, flushed: Mapping[str, dict[TopicPartition, int]]) -> None:
        """Such checkpoints are in place: they have taken the place of what was written while they were on their way."""
        for name, offsets in flushed.items():
            newest = self._written[name]
            if newest is not offsets and self.online:
                self.storage.replace(name, checkpoints.to_bytes(newest))


def _read_clean_shutdown(storage: Storage) -> tuple[bool, int]:
    """Whether the last stop was clean, and the broker epoch it ended in (-1 when the file does not say)."""
    try:
        content = storage.read_file(CLEAN_SHUTDOWN)
    except (FileNotFoundError, StorageError):
        return False, -1
    try:
        return True, int(json.loads(content)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return True, -1


def check_directories(node_id: int, directories: Sequence[LogDirectory], metadata_directory: str) -> str:
    """All directories are this node's and of one cluster, which is returned; those that cannot be read are left out.

    One must be left that can, and a node can do nothing without its metadata.
    """
    for one in directories:
        if not one.online and (one.storage.root == metadata_directory or len(directories) == 1):
            raise StorageError(one.storage.root, META_PROPERTIES, one.offline_reason)
    known = [(one.storage.root, one.meta) for one in directories if one.meta is not None]
    if not known:
        raise DirectoryError("none of the log directories can be read")
    first_root, first = known[0]
    for root, meta in known:
        if meta.node_id != node_id:
            raise DirectoryError(f"{root} belongs to node {meta.node_id}, not to node {node_id}")
        if meta.cluster_id != first.cluster_id:
            raise DirectoryError(f"{root} belongs to cluster {meta.cluster_id}, but {first_root} to {first.cluster_id}")
    if len({meta.directory_id for _, meta in known}) != len(known):
        raise DirectoryError("two log directories have the same directory.id: one is a copy of the other")
    return first.cluster_id
