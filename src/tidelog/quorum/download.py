"""Copying a snapshot from the leader, a piece at a time, and beginning the log from it (KIP-630)."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.errors import CorruptionError, ErrorCode
from tidelog.quorum import snapshot
from tidelog.quorum.core import Core
from tidelog.quorum.metadata_log import TOPIC
from tidelog.quorum.requests import FETCH_CHANNEL, leader_told
from tidelog.quorum.roles import Follower, RoleName
from tidelog.quorum.snapshot import SnapshotId
from tidelog.storage import File
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestSnapshotId,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
)

FETCH_SNAPSHOT_VERSION = 1


class Download:
    """A snapshot on its way; `part` holds what came so far."""

    def __init__(self, snapshot_id: SnapshotId, part: File) -> None:
        self.snapshot_id = snapshot_id
        self.part = part


class Downloads:
    """What a follower does when its leader no longer has what comes next."""

    def __init__(
        self, core: Core, fetch: Callable[[Follower], None], restart_fetch_timer: Callable[[Follower], None]
    ) -> None:
        self._core = core
        self._fetch_log = fetch
        self._restart_fetch_timer = restart_fetch_timer
        self._installing: SnapshotId | None = None
        """A snapshot that is complete and being made durable, whatever becomes of the role meanwhile."""

    @property
    def is_installing(self) -> bool:
        """Whether the log is about to begin anew: what another leader would say of it now will be about no log."""
        return self._installing is not None

    def begin(self, role: Follower, snapshot_id: SnapshotId) -> bool:
        """The leader says: begin from this snapshot. False when that makes no sense."""
        core = self._core
        if snapshot_id in core.log.snapshots or snapshot_id.end_offset < core.commits.high_watermark:
            core.outbox.tell("quorum-snapshot-refused", "error", snapshot=str(snapshot_id), leader=role.leader[0])
            return False
        core.outbox.tell("quorum-snapshot-download", snapshot=str(snapshot_id), leader=role.leader[0])
        role.download = Download(snapshot_id, core.log.snapshot_files.create_part(snapshot_id))
        return True

    def abandon(self, role: Follower) -> None:
        """The role is over: another leader may name another snapshot."""
        if role.download is not None:
            role.download.part.close()
            role.download = None

    def fetch(self, role: Follower) -> None:
        """Ask for the next piece."""
        core, download = self._core, role.download
        assert download is not None
        snapshot_id = download.snapshot_id
        partition = FetchSnapshotRequestPartitionSnapshot(
            partition=0,
            current_leader_epoch=core.epoch,
            snapshot_id=FetchSnapshotRequestSnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
            position=download.part.size,
            replica_directory_id=core.identity.directory_id,
        )
        body = FetchSnapshotRequest(
            cluster_id=core.identity.cluster_id,
            replica_id=core.identity.node_id,
            max_bytes=core.settings.controller_quorum_fetch_snapshot_max_bytes,
            topics=[FetchSnapshotRequestTopicSnapshot(name=TOPIC, partitions=[partition])],
        )

        def answered(answer: FetchSnapshotResponse | None, error: str | None) -> None:
            role.fetching = False
            if answer is None or not self._took(role, download, answer):
                backoff_ms = core.settings.controller_quorum_retry_backoff_ms
                core.after(role, backoff_ms, lambda: self._fetch_log(role))

        role.fetching = True
        core.send(role, role.leader, FETCH_CHANNEL, ApiKey.FETCH_SNAPSHOT, FETCH_SNAPSHOT_VERSION, body, answered)

    def _took(self, role: Follower, download: Download, answer: FetchSnapshotResponse) -> bool:
        """Take a piece; False when the leader has to be asked again, and not at once."""
        core = self._core
        if answer.error_code != ErrorCode.NONE or len(answer.topics) != 1 or len(answer.topics[0].partitions) != 1:
            return False
        partition = answer.topics[0].partitions[0]
        if partition.current_leader is not None:
            told = partition.current_leader
            core.learn(told.leader_epoch, *leader_told(told.leader_id, answer.node_endpoints))
        if core.role is not role or role.download is not download:
            return True
        if partition.error_code in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
            self.abandon(role)  # deleted meanwhile: the next fetch names a newer one
        if partition.error_code != ErrorCode.NONE:
            return False
        self._restart_fetch_timer(role)
        return self._append(role, download, partition)

    def _append(self, role: Follower, download: Download, partition: FetchSnapshotResponsePartitionSnapshot) -> bool:
        snapshot_id = partition.snapshot_id
        if (snapshot_id.end_offset, snapshot_id.epoch) != download.snapshot_id:
            return False
        if partition.position != download.part.size or not partition.unaligned_records:
            return False
        download.part.append(partition.unaligned_records)
        if download.part.size < partition.size:
            self._fetch_log(role)
            return True
        try:
            snapshot.read(download.part.read(0, download.part.size), str(download.snapshot_id))
        except CorruptionError as error:
            self._core.outbox.tell("quorum-bad-snapshot", "error", leader=role.leader[0], reason=str(error))
            self.abandon(role)
            return False
        role.fetching = True  # no more fetches until it is in place
        role.download = None
        self._installing = download.snapshot_id
        self._core.log.install(download.part, download.snapshot_id, lambda: self._installed(role, download))
        return True

    def _installed(self, role: Follower, download: Download) -> None:
        core = self._core
        self._installing = None
        if core.role.name is not RoleName.LEADER and core.log.begin_from_latest_snapshot():
            core.outbox.tell("quorum-snapshot-loaded", snapshot=str(download.snapshot_id))
            core.commits.advance(download.snapshot_id.end_offset)
        role.fetching = False
        present = core.role
        if isinstance(present, Follower) and core.is_durable:  # else it fetches when it has entered its role
            self._restart_fetch_timer(present)
            self._fetch_log(present)
