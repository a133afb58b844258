"""Changing the voters of a running quorum, one at a time (KIP-853).

A change is a VotersRecord. It is in force from the moment it is in a log, so old and new majority must overlap: a
change begins only when the one before it is committed and this leader has committed a record of its own epoch.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.outbox import Timer
from tidelog.quorum.core import Core
from tidelog.quorum.leadership import Leader, Leadership
from tidelog.quorum.requests import CONTROL_CHANNEL, is_for_cluster, leader_id_or_none
from tidelog.quorum.voters import ReplicaKey, Voter, VoterSet
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from tidelog.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from tidelog.wire.messages.update_raft_voter import CurrentLeader, UpdateRaftVoterRequest, UpdateRaftVoterResponse
from tidelog.wire.uuids import ZERO_UUID

API_VERSIONS_VERSION = 4
"""Below it a range that starts at 0 is not told, and that of kraft.version does."""
KRAFT_VERSION_FEATURE = "kraft.version"
CAUGHT_UP_WITHIN_MS = 3_600_000
"""A replica may become a voter when it had the whole log within this time (Kafka's bound)."""

Answer = Callable[[ErrorCode, str | None], None]


class Change:
    """A change under way; its answer is given when it is committed, refused, out of time or has lost its leader."""

    __slots__ = ("answer", "offset", "timer", "voter")

    def __init__(self, voter: Voter, answer: Answer, timer: Timer) -> None:
        self.voter = voter
        self.answer = answer
        self.timer = timer
        self.offset: int | None = None
        """Where its VotersRecord stands, once it does."""


class Membership:
    """AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter."""

    def __init__(self, core: Core, leadership: Leadership) -> None:
        self._core = core
        self._leadership = leadership
        self._change: Change | None = None
        leadership.on_committed.append(self._committed)
        leadership.on_lost.append(lambda _: self._finish(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    # --- AddRaftVoter ---

    def handle_add(self, request: Request) -> None:
        """Answer AddRaftVoter: make a caught-up observer a voter."""
        body = request.body
        assert isinstance(body, AddRaftVoterRequest)

        def answer(code: ErrorCode, message: str | None) -> None:
            self._core.reply(request, AddRaftVoterResponse(error_code=code, error_message=message))

        leader = self._begin(body.cluster_id, answer)
        if leader is None:
            return
        endpoints = {listener.name: (listener.host, listener.port) for listener in body.listeners}
        voter = Voter(ReplicaKey(body.voter_id, body.voter_directory_id), endpoints)
        address = endpoints.get(self._core.identity.listener)
        if body.voter_id < 0 or body.voter_directory_id == ZERO_UUID:
            answer(ErrorCode.INVALID_REQUEST, "a voter needs an id and a directory id")
        elif address is None:
            answer(ErrorCode.INVALID_REQUEST, f"the voter has no listener {self._core.identity.listener}")
        elif self._core.voters.get(body.voter_id) is not None:
            answer(ErrorCode.DUPLICATE_VOTER, f"{body.voter_id} is a voter already: {self._core.voters}")
        else:
            acknowledge_early = request.api_version >= 1 and not body.ack_when_committed
            timeout_ms = max(body.timeout_ms, 0) or self._core.settings.controller_quorum_request_timeout_ms
            self._ask_versions(leader, self._start(leader, voter, answer, timeout_ms), address, acknowledge_early)

    def _ask_versions(self, leader: Leader, change: Change, address: tuple[str, int], acknowledge_early: bool) -> None:
        """Before it may vote, a replica has to understand the kraft.version in force."""
        core = self._core

        def answered(answer: ApiVersionsResponse | None, error: str | None) -> None:
            if self._change is not change:
                return
            if answer is None or answer.error_code != ErrorCode.NONE:
                self._finish(ErrorCode.REQUEST_TIMED_OUT, f"{change.voter.key} does not answer: {error}")
                return
            ranges = {feature.name: (feature.min_version, feature.max_version) for feature in answer.supported_features}
            low, high = ranges.get(KRAFT_VERSION_FEATURE, (0, -1))
            if not low <= core.log.history.kraft_version <= high:
                self._finish(
                    ErrorCode.INVALID_REQUEST, f"{change.voter.key} does not support the kraft.version in force"
                )
            elif not self._is_caught_up(leader, change.voter.key):
                self._finish(ErrorCode.REQUEST_TIMED_OUT, f"{change.voter.key} has not caught up with the log yet")
            else:
                voter = Voter(change.voter.key, change.voter.endpoints, (low, high))
                self._append(leader, change, core.voters.with_voter(voter))
                if acknowledge_early:
                    change.answer(ErrorCode.NONE, None)
                    change.answer = lambda code, message: None

        peer = (change.voter.id, *address)
        body = ApiVersionsRequest(client_software_name="tidelog", client_software_version="quorum")
        core.send(leader, peer, CONTROL_CHANNEL, ApiKey.API_VERSIONS, API_VERSIONS_VERSION, body, answered)

    def _is_caught_up(self, leader: Leader, key: ReplicaKey) -> bool:
        progress = leader.progress.get(key)
        now_ms = self._core.outbox.now_ms
        return (
            progress is not None
            and progress.last_caught_up_ms >= 0
            and progress.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS
        )

    # --- RemoveRaftVoter ---

    def handle_remove(self, request: Request) -> None:
        """Answer RemoveRaftVoter; a leader that removes itself resigns once that is committed."""
        body = request.body
        assert isinstance(body, RemoveRaftVoterRequest)

        def answer(code: ErrorCode, message: str | None) -> None:
            self._core.reply(request, RemoveRaftVoterResponse(error_code=code, error_message=message))

        leader = self._begin(body.cluster_id, answer)
        if leader is None:
            return
        key = ReplicaKey(body.voter_id, body.voter_directory_id)
        voter = self._core.voters.get(key.id)
        if body.voter_id < 0 or body.voter_directory_id == ZERO_UUID:
            answer(ErrorCode.INVALID_REQUEST, "a voter has an id and a directory id")
        elif voter is None or voter.key != key or len(self._core.voters) == 1:
            answer(ErrorCode.VOTER_NOT_FOUND, f"{key} cannot be removed from the voters {self._core.voters}")
        else:
            timeout_ms = self._core.settings.controller_quorum_request_timeout_ms
            change = self._start(leader, voter, answer, timeout_ms)
            self._append(leader, change, self._core.voters.without(key))

    # --- UpdateRaftVoter ---

    def handle_update(self, request: Request) -> None:
        """Answer UpdateRaftVoter: a voter listens elsewhere or supports other versions now. Answered at once."""
        core, body = self._core, request.body
        assert isinstance(body, UpdateRaftVoterRequest)

        def answer(code: ErrorCode, message: str | None) -> None:
            leader = core.leader_peer()
            told = CurrentLeader(leader_id=leader_id_or_none(core), leader_epoch=core.epoch)
            if leader is not None:
                told.host, told.port = leader[1], leader[2]
            core.reply(request, UpdateRaftVoterResponse(error_code=code, current_leader=told))

        if body.current_leader_epoch != core.epoch:
            fenced = body.current_leader_epoch < core.epoch
            answer(ErrorCode.FENCED_LEADER_EPOCH if fenced else ErrorCode.UNKNOWN_LEADER_EPOCH, None)
            return
        leader = self._begin(body.cluster_id, answer)
        if leader is None:
            return
        key = ReplicaKey(body.voter_id, body.voter_directory_id)
        versions = body.kraft_version_feature.min_supported_version, body.kraft_version_feature.max_supported_version
        endpoints = {listener.name: (listener.host, listener.port) for listener in body.listeners}
        known = core.voters.get(key.id)
        supported = 0 <= versions[0] <= core.log.history.kraft_version <= versions[1]
        if not supported or core.identity.listener not in endpoints:
            answer(ErrorCode.INVALID_REQUEST, None)
        elif known is None or known.key != key:
            answer(ErrorCode.VOTER_NOT_FOUND, None)
        else:
            voter = Voter(key, endpoints, versions)
            if voter != known:
                self._leadership.append_voters(leader, core.voters.with_voter(voter))
            answer(ErrorCode.NONE, None)

    # --- what they share ---

    def _begin(self, cluster_id: str | None, answer: Answer) -> Leader | None:
        """The leader, if a change may begin now; otherwise the refusal is answered."""
        core, leader = self._core, self._leadership.leader
        voters_offset = core.log.history.voters_offset
        if not is_for_cluster(core, cluster_id):
            answer(ErrorCode.INCONSISTENT_CLUSTER_ID, f"this is cluster {core.identity.cluster_id}")
        elif leader is None:
            answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
        elif self._change is not None:
            answer(ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way")
        elif leader.high_watermark is None:
            answer(ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed a record of its epoch yet")
        elif core.log.history.kraft_version < 1 or voters_offset is None:
            answer(ErrorCode.UNSUPPORTED_VERSION, "kraft.version 0 has static voters")
        elif voters_offset >= leader.high_watermark:
            answer(ErrorCode.REQUEST_TIMED_OUT, "the last change of the voters is not committed yet")
        else:
            return leader
        return None

    def _start(self, leader: Leader, voter: Voter, answer: Answer, timeout_ms: int) -> Change:
        timer = self._core.after(leader, timeout_ms, lambda: self._finish(ErrorCode.REQUEST_TIMED_OUT))
        self._change = Change(voter, answer, timer)
        return self._change

    def _append(self, leader: Leader, change: Change, voters: VoterSet) -> None:
        change.offset = self._leadership.append_voters(leader, voters)
        self._core.outbox.tell("quorum-voters", epoch=self._core.epoch, voters=voters.ids, offset=change.offset)

    def _committed(self, leader: Leader) -> None:
        offset = self._change.offset if self._change is not None else None
        if offset is not None and leader.high_watermark is not None and leader.high_watermark > offset:
            self._finish(ErrorCode.NONE)
        # The record that removes the leader itself may also be one of a change that ran out of time.
        voters_offset = self._core.log.history.voters_offset
        if voters_offset is not None and (leader.high_watermark or 0) > voters_offset and not self._core.is_voter:
            self._leadership.resign()

    def _finish(self, code: ErrorCode, message: str | None = None) -> None:
        change, self._change = self._change, None
        if change is not None:
            change.timer.cancel()
            change.answer(code, message)
