"""Following: fetching from the leader, appending what it sends, cutting what it does not have.

One fetch is under way at a time. The next one goes out only when what the last one brought is flushed, because the
leader takes a fetch offset for "all before this is on my medium".
"""

from __future__ import annotations

from typing import Any

from tidelog.errors import CorruptionError, ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.quorum.batches import whole_batches
from tidelog.quorum.core import Core
from tidelog.quorum.download import Downloads
from tidelog.quorum.elections import Elections
from tidelog.quorum.metadata_log import TOPIC_ID, EpochEnd
from tidelog.quorum.requests import (
    FETCH_CHANNEL,
    begin_response,
    end_response,
    is_for_cluster,
    is_for_replica,
    leader_of_request,
    leader_told,
    only_partition,
)
from tidelog.quorum.roles import Follower, Role, RoleName, Unattached
from tidelog.quorum.settings import MAX_EPOCH, MAX_FETCH_WAIT_MS
from tidelog.quorum.snapshot import SnapshotId
from tidelog.quorum.voters import Peer
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from tidelog.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from tidelog.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)

FETCH_VERSION = 18
FETCH_TIMEOUT_SPREAD_DIVISOR = 4


class Following:
    """The Follower role, and the search for a leader by a replica that may not hold elections."""

    def __init__(self, core: Core, elections: Elections) -> None:
        self._core = core
        self._elections = elections
        self._downloads = Downloads(core, self._fetch, self._restart_fetch_timer)
        core.on_enter[RoleName.FOLLOWER].append(self._entered)
        core.on_leave[RoleName.FOLLOWER] = self._downloads.abandon
        core.on_log_flushed[RoleName.FOLLOWER] = self._flushed
        core.on_enter[RoleName.UNATTACHED].append(self._search)

    # --- the role ---

    def _entered(self, role: Follower) -> None:
        self._restart_fetch_timer(role)
        self._fetch(role)

    def _restart_fetch_timer(self, role: Follower) -> None:
        # Never shorter than asked for, and at random longer: the followers of a leader that went silent all fetched
        # last at the same time, and would split their votes.
        settings = self._core.settings
        spread_ms = max(settings.controller_quorum_election_timeout_ms // FETCH_TIMEOUT_SPREAD_DIVISOR, 1)
        delay_ms = settings.controller_quorum_fetch_timeout_ms + self._core.outbox.chance.below(spread_ms)
        self._set_fetch_timer(role, delay_ms)

    def _set_fetch_timer(self, role: Follower, delay_ms: int) -> None:
        if role.fetch_timer is not None:
            role.fetch_timer.cancel()
        role.fetch_timer = self._core.after(role, delay_ms, lambda: self._timed_out(role))

    def _timed_out(self, role: Follower) -> None:
        if self._core.can_stand:
            self._elections.fetch_timed_out(role)
        else:
            role.has_fetched = False  # it may be a voter that has not read so: its word may decide who leads next
            self._search(role)
        if self._core.role is role:
            self._restart_fetch_timer(role)

    # --- fetching ---

    def _fetch(self, role: Follower) -> None:
        core = self._core
        if core.role is not role or role.fetching or self._downloads.is_installing:
            return
        if not core.is_durable:
            return  # a start would take records of an epoch that it does not know for damage; `_entered` goes on
        if core.log.flushed_offset < core.log.end_offset:
            core.log.schedule_flush()  # `_flushed` goes on
            return
        if role.download is not None:
            self._downloads.fetch(role)
            return
        if core.log.lost_records and role.leader_high_watermark is not None:
            self._check_lost(role.leader_high_watermark)
        role.fetching = True
        sent_ms = core.outbox.now_ms

        def answered(answer: FetchResponse | None, error: str | None) -> None:
            role.fetching = False
            if answer is None:
                self._failed(role, sent_ms)
            else:
                self._fetched(role, answer)

        core.send(role, role.leader, FETCH_CHANNEL, ApiKey.FETCH, FETCH_VERSION, self._request(), answered)

    def _check_lost(self, leader_high_watermark: int) -> None:
        """All that is committed is below what the leader has committed in its own epoch: with that, nothing is lost."""
        log = self._core.log
        if log.end_offset >= leader_high_watermark:
            log.has_all_again()
            self._core.outbox.tell("quorum-records-regained", end_offset=log.end_offset)

    def _flushed(self, role: Follower) -> None:
        self._fetch(role)

    def _fetch_later(self, role: Follower) -> None:
        self._core.after(role, self._core.settings.controller_quorum_retry_backoff_ms, lambda: self._fetch(role))

    def _request(self) -> FetchRequest:
        core = self._core
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=core.epoch,
            fetch_offset=core.log.end_offset,
            last_fetched_epoch=core.log.last_epoch,
            log_start_offset=core.log.start_offset,
            replica_directory_id=core.identity.directory_id,
            high_watermark=core.commits.high_watermark,
        )
        return FetchRequest(
            cluster_id=core.identity.cluster_id,
            replica_id=core.identity.node_id,
            replica_state=ReplicaState(replica_id=core.identity.node_id),
            max_wait_ms=MAX_FETCH_WAIT_MS,
            max_bytes=core.settings.controller_quorum_fetch_max_bytes,
            topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
        )

    def _failed(self, role: Follower, sent_ms: int) -> None:
        """No answer. Before its time was up, that is a broken connection: the leader may be gone."""
        core = self._core
        if core.outbox.now_ms - sent_ms < core.settings.controller_quorum_request_timeout_ms:
            self._elections.leader_connection_lost()
        if core.role is role:
            if not core.can_stand:
                self._search(role)
            self._fetch_later(role)

    def _fetched(self, role: Follower, answer: FetchResponse) -> None:
        core = self._core
        partition = self._learn(answer)
        if core.role is not role:
            return
        told_epoch = (
            -1 if partition is None or partition.current_leader is None else partition.current_leader.leader_epoch
        )
        if partition is None or partition.error_code != ErrorCode.NONE or told_epoch != core.epoch:
            if (
                partition is not None
                and partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                and told_epoch == core.epoch
            ):
                # Its leader says that it leads no more, and names no other: it restarted or gave up.
                role.leader_resigned = True
                self._elections.leader_connection_lost()
            if not core.can_stand:
                self._search(role)
            self._fetch_later(role)
            return
        role.has_fetched = True
        role.answers += 1
        self._elections.leader_heard()
        self._restart_fetch_timer(role)
        diverging, snapshot_id = partition.diverging_epoch, partition.snapshot_id
        if diverging is not None and diverging.epoch >= 0:
            self._truncate(role, EpochEnd(diverging.epoch, diverging.end_offset))
        elif snapshot_id is not None and snapshot_id.end_offset >= 0 and snapshot_id.epoch >= 0:
            if not self._downloads.begin(role, SnapshotId(snapshot_id.end_offset, snapshot_id.epoch)):
                self._fetch_later(role)
                return
        elif not self._append(role, partition):
            self._fetch_later(role)
            return
        if core.role is role:
            self._fetch(role)

    def _append(self, role: Follower, partition: PartitionData) -> bool:
        core = self._core
        try:
            data = whole_batches(partition.records or b"")
            if len(data):
                core.log.append(data)
        except (KafkaError, CorruptionError) as error:
            core.outbox.tell("quorum-bad-records", "error", leader=role.leader[0], reason=str(error))
            return False
        if partition.high_watermark >= 0:
            role.leader_high_watermark = partition.high_watermark
            core.commits.advance(min(partition.high_watermark, core.log.end_offset))
        return True

    def _truncate(self, role: Follower, end: EpochEnd) -> None:
        core = self._core
        before = core.log.end_offset
        if end.end_offset < core.commits.high_watermark:
            core.fail(
                f"leader {role.leader[0]} of epoch {core.epoch} asks to cut the metadata log to {end.end_offset}, "
                f"below {core.commits.high_watermark}, which is committed"
            )
            return

        def truncated(after: int) -> None:
            role.fetching = False
            core.outbox.tell("quorum-truncated", "warning", from_offset=before, to_offset=after, leader=role.leader[0])
            self._fetch(role)

        role.fetching = True  # no fetch before it is done
        core.log.truncate_to_epoch_end(end, lambda: core.role is role and not core.failed, truncated)

    def _learn(self, answer: FetchResponse) -> PartitionData | None:
        """Take note of the leader an answer tells of; the partition it is about."""
        if (
            answer.error_code != ErrorCode.NONE
            or len(answer.responses) != 1
            or len(answer.responses[0].partitions) != 1
        ):
            return None
        partition = answer.responses[0].partitions[0]
        if partition.current_leader is not None:
            told = partition.current_leader
            self._core.learn(told.leader_epoch, *leader_told(told.leader_id, answer.node_endpoints))
        return partition

    # --- searching a leader ---

    def _search(self, role: Role) -> None:
        """Ask any voter or bootstrap server who leads; only replicas that are no voters need to."""
        core = self._core
        places = self._places()
        if core.can_stand or core.stopping or not places:
            return

        def answered(answer: FetchResponse | None, error: str | None) -> None:
            if answer is not None:
                self._learn(answer)
            if core.role is role and isinstance(role, Unattached):
                backoff_ms = max(core.settings.controller_quorum_retry_backoff_ms, 1)
                core.after(role, backoff_ms, lambda: self._search(role))

        request = self._request()
        request.max_wait_ms = 0
        # Whoever is asked may lead, and must not count on a log that may not be flushed.
        request.replica_id = -1
        request.replica_state = ReplicaState(replica_id=-1, replica_epoch=-1)
        place = places[core.outbox.chance.below(len(places))]
        core.send(role, place, FETCH_CHANNEL, ApiKey.FETCH, FETCH_VERSION, request, answered)

    def _places(self) -> list[Peer]:
        core = self._core
        known = [core.peer(voter.id) for voter in core.other_voters()]
        servers = [(-2 - index, *address) for index, address in enumerate(core.identity.bootstrap_servers)]
        return [peer for peer in known if peer is not None] + servers

    # --- a leader tells of itself ---

    def handle_begin(self, request: Request) -> None:
        """Answer BeginQuorumEpoch: follow the leader it tells of."""
        core, body = self._core, request.body
        assert isinstance(body, BeginQuorumEpochRequest)
        partition = only_partition(body.topics)
        if not is_for_cluster(core, body.cluster_id):
            core.reply(request, BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
            return
        if partition is None:
            core.reply(request, BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        code = self._refusal(partition)
        if code is ErrorCode.NONE:
            leader = leader_of_request(core, partition.leader_id, body.leader_endpoints)
            core.learn(partition.leader_epoch, partition.leader_id, leader)
            if not is_for_replica(core, body.voter_id, partition.voter_directory_id):
                code = ErrorCode.INVALID_VOTER_KEY
        core.reply(request, begin_response(core, code))

    def handle_end(self, request: Request) -> None:
        """Answer EndQuorumEpoch: its leader is going, so hold an election, the best candidate first."""
        core, body = self._core, request.body
        assert isinstance(body, EndQuorumEpochRequest)
        partition = only_partition(body.topics)
        if not is_for_cluster(core, body.cluster_id):
            core.reply(request, EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
            return
        if partition is None:
            core.reply(request, EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        code = self._refusal(partition)
        if code is ErrorCode.NONE:
            leader = leader_of_request(core, partition.leader_id, body.leader_endpoints)
            core.learn(partition.leader_epoch, partition.leader_id, leader)
            role = core.role
            if isinstance(role, Follower) and role.leader[0] == partition.leader_id:
                role.leader_resigned = True
                if core.is_voter:
                    self._set_fetch_timer(role, self._succession_delay_ms(partition))
        core.reply(request, end_response(core, code))

    def _refusal(self, partition: Any) -> ErrorCode:
        if partition.leader_epoch < self._core.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if partition.leader_id < 0 or partition.leader_epoch > MAX_EPOCH:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE

    def _succession_delay_ms(self, partition: Any) -> int:
        """None for the first of the preferred successors, and ever longer for those after it."""
        order = [candidate.candidate_id for candidate in partition.preferred_candidates]
        order = order or list(partition.preferred_successors)
        longest_ms = self._core.settings.controller_quorum_election_backoff_max_ms
        if self._core.identity.node_id not in order:
            return longest_ms
        position = order.index(self._core.identity.node_id)
        if position == 0:
            return 0
        return min(longest_ms, max(longest_ms >> (len(order) - 1), 1) << (position - 1))
