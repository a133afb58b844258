"""Answering other replicas: Fetch, held until there is something to say, and FetchSnapshot.

A fetch is held while its replica has the whole log and knows what is committed; KIP-1166 lets it say the latter, so a
commit reaches followers and brokers at once and not with the next record.
"""

from __future__ import annotations

from tidelog.errors import CorruptionError, ErrorCode
from tidelog.events import Request
from tidelog.outbox import Timer
from tidelog.quorum.core import Core
from tidelog.quorum.leadership import Leader, Leadership
from tidelog.quorum.metadata_log import TOPIC, TOPIC_ID, EpochEnd
from tidelog.quorum.requests import endpoints_of, is_for_cluster, leader_id_or_none
from tidelog.quorum.snapshot import BOOTSTRAP, SnapshotId
from tidelog.quorum.voters import ReplicaKey
from tidelog.storage import Slice
from tidelog.wire.messages import fetch, fetch_snapshot


class Parked:
    """A fetch that waits for records or a commit."""

    __slots__ = ("key", "partition", "request", "timer")

    def __init__(self, request: Request, key: ReplicaKey, partition: fetch.FetchPartition, timer: Timer) -> None:
        self.request = request
        self.key = key
        self.partition = partition
        self.timer = timer


class Fetches:
    """The leader's side of replication."""

    def __init__(self, core: Core, leadership: Leadership) -> None:
        self._core = core
        self._leadership = leadership
        self._parked: dict[ReplicaKey, Parked] = {}
        """At most one a replica, which bounds them: a newer fetch releases the older."""
        leadership.on_appended.append(lambda _: self._wake())
        leadership.on_committed.append(lambda _: self._wake())
        leadership.on_lost.append(lambda _: self._release_all())

    # --- Fetch ---

    def handle_fetch(self, request: Request) -> None:
        """Answer Fetch of the metadata log, from voters and observers."""
        core, body = self._core, request.body
        assert isinstance(body, fetch.FetchRequest)
        if not is_for_cluster(core, body.cluster_id):
            core.reply(request, fetch.FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
            return
        partition = self._partition_of(request)
        if partition is None:
            core.reply(request, fetch.FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        code = self._refusal(body, partition)
        leader = self._leadership.leader
        if code is not ErrorCode.NONE or leader is None:
            core.reply(request, self._answer(request, error_code=code))
            return
        replica_id = (
            body.replica_state.replica_id if request.api_version >= 15 and body.replica_state else body.replica_id
        )
        key = ReplicaKey(replica_id, partition.replica_directory_id)
        if self._mismatch(partition) is None:
            self._leadership.replica_fetched(leader, key, partition.fetch_offset)
        if core.role is not leader:
            core.reply(request, self._answer(request, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif body.max_wait_ms == 0 or self._has_news(leader, partition):
            self._reply(leader, request, partition)
        else:
            self._park(leader, request, key, partition, body.max_wait_ms)

    def _partition_of(self, request: Request) -> fetch.FetchPartition | None:
        topics = request.body.topics
        if len(topics) != 1 or len(topics[0].partitions) != 1:
            return None
        named = topics[0].topic_id == TOPIC_ID if request.api_version >= 13 else topics[0].topic == TOPIC
        partition: fetch.FetchPartition = topics[0].partitions[0]
        return partition if named and partition.partition == 0 else None

    def _refusal(self, body: fetch.FetchRequest, partition: fetch.FetchPartition) -> ErrorCode:
        if (
            body.max_wait_ms < 0
            or partition.fetch_offset < 0
            or partition.last_fetched_epoch < 0
            or partition.last_fetched_epoch > partition.current_leader_epoch
        ):
            return ErrorCode.INVALID_REQUEST
        return self._leader_refusal(partition.current_leader_epoch)

    def _leader_refusal(self, epoch: int) -> ErrorCode:
        core = self._core
        if epoch < core.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > core.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self._leadership.leader is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _mismatch(self, partition: fetch.FetchPartition) -> EpochEnd | SnapshotId | None:
        """What a replica has to do before it can go on: begin from a snapshot, or cut its log; None when nothing."""
        log = self._core.log
        latest = log.latest_snapshot
        if partition.fetch_offset == 0 and latest is not None and latest != BOOTSTRAP:
            return latest  # shorter than all the records it stands for
        return log.validate(partition.fetch_offset, partition.last_fetched_epoch)

    def _has_news(self, leader: Leader, partition: fetch.FetchPartition) -> bool:
        return (
            self._mismatch(partition) is not None
            or partition.fetch_offset < self._core.log.end_offset
            or partition.high_watermark < (leader.high_watermark or 0)
        )

    def _reply(self, leader: Leader, request: Request, partition: fetch.FetchPartition) -> None:
        mismatch = self._mismatch(partition)
        if mismatch is None:
            max_bytes = min(request.body.max_bytes, self._core.settings.controller_quorum_fetch_max_bytes)
            try:
                records = self._core.log.read(partition.fetch_offset, max_bytes)
            except CorruptionError as error:
                self._core.fail(str(error))
                return
            answer = self._answer(request, leader, records=records)
        elif isinstance(mismatch, SnapshotId):
            answer = self._answer(
                request, leader, snapshot_id=fetch.SnapshotId(end_offset=mismatch[0], epoch=mismatch[1])
            )
        else:
            answer = self._answer(
                request, leader, diverging_epoch=fetch.EpochEndOffset(epoch=mismatch[0], end_offset=mismatch[1])
            )
        self._core.reply(request, answer)

    def _answer(
        self,
        request: Request,
        leader: Leader | None = None,
        *,
        error_code: int = 0,
        records: bytes = b"",
        snapshot_id: fetch.SnapshotId | None = None,
        diverging_epoch: fetch.EpochEndOffset | None = None,
    ) -> fetch.FetchResponse:
        core = self._core
        high_watermark = leader.high_watermark if leader is not None else None
        partition = fetch.PartitionData(
            partition_index=0,
            error_code=error_code,
            high_watermark=-1 if high_watermark is None else high_watermark,
            log_start_offset=core.log.start_offset,
            current_leader=fetch.LeaderIdAndEpoch(leader_id=leader_id_or_none(core), leader_epoch=core.epoch),
            diverging_epoch=diverging_epoch,
            snapshot_id=snapshot_id,
            records=records,
        )
        return fetch.FetchResponse(
            responses=[fetch.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
            node_endpoints=endpoints_of(core, fetch.NodeEndpoint),
        )

    # --- held fetches ---

    def _park(
        self, leader: Leader, request: Request, key: ReplicaKey, partition: fetch.FetchPartition, wait_ms: int
    ) -> None:
        self._release(key)
        timer = self._core.after(leader, wait_ms, lambda: self._release(key))
        self._parked[key] = Parked(request, key, partition, timer)

    def _wake(self) -> None:
        leader = self._leadership.leader
        if leader is None:
            return
        for parked in list(self._parked.values()):
            if self._has_news(leader, parked.partition):
                self._release(parked.key)

    def _release(self, key: ReplicaKey) -> None:
        parked, leader = self._parked.pop(key, None), self._leadership.leader
        if parked is None:
            return
        parked.timer.cancel()
        if leader is None:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            self._core.reply(parked.request, self._answer(parked.request, error_code=code))
        else:
            self._reply(leader, parked.request, parked.partition)

    def _release_all(self) -> None:
        for key in list(self._parked):
            self._release(key)

    # --- FetchSnapshot ---

    def handle_fetch_snapshot(self, request: Request) -> None:
        """Answer FetchSnapshot with a piece of the snapshot's file."""
        core, body = self._core, request.body
        assert isinstance(body, fetch_snapshot.FetchSnapshotRequest)
        if not is_for_cluster(core, body.cluster_id):
            code = ErrorCode.INCONSISTENT_CLUSTER_ID
            core.reply(request, fetch_snapshot.FetchSnapshotResponse(error_code=code))
            return
        if len(body.topics) != 1 or len(body.topics[0].partitions) != 1:
            core.reply(request, fetch_snapshot.FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        try:
            core.reply(request, self._snapshot_answer(body, body.topics[0].partitions[0]))
        except CorruptionError as error:
            core.fail(str(error))

    def _snapshot_answer(
        self,
        body: fetch_snapshot.FetchSnapshotRequest,
        partition: fetch_snapshot.FetchSnapshotRequestPartitionSnapshot,
    ) -> fetch_snapshot.FetchSnapshotResponse:
        core, leader = self._core, self._leadership.leader
        snapshot_id = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        answer = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
            index=partition.partition,
            snapshot_id=fetch_snapshot.FetchSnapshotResponseSnapshotId(
                end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch
            ),
            current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=leader_id_or_none(core), leader_epoch=core.epoch),
            position=partition.position,
            unaligned_records=b"",
        )
        if body.topics[0].name != TOPIC or partition.partition != 0:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            answer.error_code = self._leader_refusal(partition.current_leader_epoch)
        if answer.error_code == ErrorCode.NONE and leader is not None:
            # The one that format wrote is never sent: its voters are in the log.
            file = core.log.snapshot_files.open(snapshot_id) if snapshot_id != BOOTSTRAP else None
            if file is None:
                answer.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
            elif not 0 <= partition.position < file.size:
                answer.error_code = ErrorCode.POSITION_OUT_OF_RANGE
            else:
                if partition.position == 0:
                    core.log.snapshot_files.read(snapshot_id)  # whoever asks for damage would ask for ever
                limit = min(body.max_bytes, core.settings.controller_quorum_fetch_snapshot_max_bytes)
                length = max(min(limit, file.size - partition.position), 0)
                answer.size = file.size
                answer.unaligned_records = Slice(file, partition.position, length)
                self._leadership.voter_heard(leader, ReplicaKey(body.replica_id, partition.replica_directory_id))
            if file is not None:
                file.close()
        return fetch_snapshot.FetchSnapshotResponse(
            topics=[fetch_snapshot.FetchSnapshotResponseTopicSnapshot(name=body.topics[0].name, partitions=[answer])],
            node_endpoints=endpoints_of(core, fetch_snapshot.NodeEndpoint),
        )
