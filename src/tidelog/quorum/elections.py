"""Getting a leader: timeouts, pre-votes (KIP-996), votes, and what a voter grants to others.

A replica asks first whether it would be voted for, in its present epoch, which costs nobody anything; only with a
majority of yes does it raise the epoch, vote for itself (durably) and ask for votes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.quorum.core import Core
from tidelog.quorum.election_state import ElectionState
from tidelog.quorum.requests import (
    CONTROL_CHANNEL,
    is_for_cluster,
    is_for_replica,
    leader_told,
    only_partition,
    vote_request,
    vote_response,
)
from tidelog.quorum.roles import Candidate, Election, Follower, Prospective, Resigned, RoleName, Unattached
from tidelog.quorum.settings import MAX_EPOCH
from tidelog.quorum.voters import Peer, ReplicaKey
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.vote import VoteRequest, VoteResponse

VOTE_VERSION = 2
BACKOFF_BASE_MS = 100
EARLY_DELAY_DIVISOR = 10
"""A start and a broken connection to the leader are answered within the election timeout over this, at random, so that
two do not ask at once."""


class Elections:
    """The Unattached, Prospective, Candidate and Resigned roles."""

    def __init__(self, core: Core, lead: Callable[[Candidate], None]) -> None:
        self._core = core
        self._lead = lead
        self._lost_elections = 0
        self._early_attempts = 0
        """Pre-votes begun early since this replica last fetched: each waits longer, so a flapping link is no storm."""
        core.on_enter[RoleName.UNATTACHED].append(self._entered_unattached)
        core.on_enter[RoleName.PROSPECTIVE].append(self._entered_prospective)
        core.on_enter[RoleName.CANDIDATE].append(self._entered_candidate)

    # --- beginning an election ---

    def elect_alone(self) -> None:
        """The only voter needs to ask nobody: it leads a new epoch as soon as it starts."""
        self._become_prospective(None)

    def started(self) -> None:
        """A voter that starts and knows of no leader asks soon: a pre-vote disturbs nobody, and often all start."""
        core, role = self._core, self._core.role
        if isinstance(role, Unattached | Resigned) and core.can_stand:
            core.after(role, self._early_delay_ms(), lambda: self._become_prospective(None))

    def fetch_timed_out(self, role: Follower) -> None:
        """A follower has not heard from its leader for too long."""
        self._become_prospective(role.leader)

    def leader_connection_lost(self) -> None:
        """The connection to the leader broke: soon ask the others whether they still hear it.

        A leader that only closed an idle connection keeps its majority, the pre-vote fails, and nothing changes.
        """
        core, role = self._core, self._core.role
        if not isinstance(role, Follower) or not core.can_stand or core.stopping:
            return
        heard = role.answers
        core.after(role, self._early_delay_ms(), lambda: self._give_leader_up(role, heard))
        self._early_attempts += 1

    def leader_heard(self) -> None:
        """The leader answered: it is there."""
        self._lost_elections = 0
        self._early_attempts = 0

    def _give_leader_up(self, role: Follower, heard: int) -> None:
        if role.answers == heard:  # it has not answered meanwhile
            self._become_prospective(role.leader)

    def _become_prospective(self, leader: Peer | None) -> None:
        core = self._core
        if core.stopping:
            return
        if core.can_stand:
            core.become(Prospective(core.identity.node_id, self._lost_elections, leader), core.election)
        elif isinstance(core.role, Unattached | Candidate):
            core.become(Unattached(), core.election)  # a snapshot says that it votes no more: it has to look around

    def _become_candidate(self) -> None:
        core = self._core
        role = Candidate(core.identity.node_id, self._lost_elections)
        core.become(role, ElectionState(core.epoch + 1, None, core.identity.key))
        if core.voters.is_only_voter(core.identity.key) and core.role is role:
            # Nobody else can have voted in this epoch, so candidacy and leadership become durable in one write.
            self._won(role)

    def _won(self, role: Candidate) -> None:
        self._lost_elections = 0
        self._lead(role)

    # --- roles, once durable ---

    def _entered_unattached(self, role: Unattached) -> None:
        if self._core.can_stand:
            self._core.after(role, self._election_timeout_ms(), lambda: self._become_prospective(None))

    def _entered_prospective(self, role: Prospective) -> None:
        if self._has_majority(role):
            self._become_candidate()
            return
        self._core.after(role, self._election_timeout_ms(), lambda: self._lost_pre_vote(role))
        self._ask_all(role, pre_vote=True)

    def _entered_candidate(self, role: Candidate) -> None:
        if self._has_majority(role):
            self._won(role)
            return
        self._core.after(role, self._election_timeout_ms(), lambda: self._lost_vote(role))
        self._ask_all(role, pre_vote=False)

    def _lost_pre_vote(self, role: Prospective) -> None:
        core = self._core
        if role.leader is not None:
            core.become(Follower(role.leader), core.election)
        else:
            core.become(Unattached(), core.election)

    def _lost_vote(self, role: Candidate) -> None:
        self._lost_elections = role.retries + 1
        self._become_prospective(None)

    def _has_majority(self, role: Election) -> bool:
        voters = self._core.voters
        return len(role.granted.intersection(voters.ids)) >= voters.majority

    def _election_timeout_ms(self) -> int:
        timeout_ms = self._core.settings.controller_quorum_election_timeout_ms
        return timeout_ms + self._core.outbox.chance.below(max(timeout_ms, 1))

    def _early_delay_ms(self) -> int:
        longest_ms = self._core.settings.controller_quorum_election_timeout_ms // EARLY_DELAY_DIVISOR
        return self._core.outbox.chance.below(max(longest_ms << min(self._early_attempts, 8), 1))

    def _backoff_ms(self, retries: int) -> int:
        """Longer and more random with each lost election, so that two candidates do not meet again."""
        limit_ms = self._core.settings.controller_quorum_election_backoff_max_ms
        return self._core.outbox.chance.below(max(min(BACKOFF_BASE_MS << min(retries, 20), limit_ms), 1))

    # --- asking ---

    def _ask_all(self, role: Election, pre_vote: bool) -> None:
        for voter in self._core.other_voters():
            self._ask(role, voter.key, pre_vote)

    def _ask(self, role: Election, voter: ReplicaKey, pre_vote: bool) -> None:
        core = self._core
        peer = core.peer(voter.id)
        if peer is None or voter.id in role.granted or voter.id in role.rejected:
            return

        def answered(answer: VoteResponse | None, error: str | None) -> None:
            if answer is None:
                core.after(
                    role,
                    core.settings.controller_quorum_retry_backoff_ms,
                    lambda: self._ask(role, voter, pre_vote),
                )
            else:
                self._count(role, voter, answer)

        body = vote_request(core, voter, pre_vote)
        core.send(role, peer, CONTROL_CHANNEL, ApiKey.VOTE, VOTE_VERSION, body, answered)

    def _count(self, role: Election, voter: ReplicaKey, answer: VoteResponse) -> None:
        core = self._core
        partition = only_partition(answer.topics)
        if answer.error_code != ErrorCode.NONE or partition is None:
            return
        leader_id, leader = leader_told(partition.leader_id, answer.node_endpoints)
        if partition.leader_epoch > core.epoch or leader_id is not None:
            still_known = isinstance(role, Prospective) and core.election.leader_id == leader_id
            if not (still_known and partition.leader_epoch == core.epoch):
                core.learn(partition.leader_epoch, leader_id, leader)
            if core.role is not role:
                return
        if partition.error_code == ErrorCode.NONE and partition.vote_granted:
            role.granted.add(voter.id)
            if self._has_majority(role):
                if isinstance(role, Candidate):
                    self._won(role)
                else:
                    self._become_candidate()
            return
        role.rejected.add(voter.id)
        if len(core.voters) - len(role.rejected) < core.voters.majority:
            role.cancel_timers()
            if isinstance(role, Candidate):
                core.after(role, self._backoff_ms(role.retries + 1), lambda: self._lost_vote(role))
            elif isinstance(role, Prospective):
                # Not at once: the next pre-vote would be refused for the same reason.
                self._lost_pre_vote(role)

    # --- being asked ---

    def handle_vote(self, request: Request) -> None:
        """Answer Vote: durably vote for at most one replica an epoch, whose log is at least as long as this one."""
        core, body = self._core, request.body
        assert isinstance(body, VoteRequest)
        if not is_for_cluster(core, body.cluster_id):
            core.reply(request, VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
            return
        partition = only_partition(body.topics)
        if partition is None:
            core.reply(request, VoteResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        code = self._refusal(body.voter_id, partition)
        granted = False
        if code is ErrorCode.NONE:
            candidate = ReplicaKey(partition.replica_id, partition.replica_directory_id)
            if partition.replica_epoch > core.epoch:
                core.become(Unattached(), ElectionState(partition.replica_epoch))
            up_to_date = self._is_up_to_date(partition.last_offset_epoch, partition.last_offset)
            granted = self._grants(candidate, up_to_date, partition.pre_vote)
            if granted and not partition.pre_vote and core.election.voted is None:
                core.become(Unattached(), ElectionState(core.epoch, None, candidate))
        core.reply(request, vote_response(core, code, granted))

    def _refusal(self, voter_id: int, partition: Any) -> ErrorCode:
        core = self._core
        last_epoch, epoch = partition.last_offset_epoch, partition.replica_epoch
        if partition.last_offset < 0 or not 0 <= last_epoch <= epoch <= MAX_EPOCH:
            return ErrorCode.INVALID_REQUEST
        if last_epoch == epoch and not partition.pre_vote:  # nothing can be in the log yet of an epoch without leader
            return ErrorCode.INVALID_REQUEST
        if epoch < core.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if partition.replica_id < 0:
            return ErrorCode.INVALID_REQUEST
        if not is_for_replica(core, voter_id, partition.voter_directory_id):
            return ErrorCode.INVALID_VOTER_KEY
        return ErrorCode.NONE

    def _is_up_to_date(self, last_epoch: int, end_offset: int) -> bool:
        """Raft §5.4.1: a log that ends in a later epoch, or is longer in the same one, holds all that is committed."""
        log = self._core.log
        return (last_epoch, end_offset) >= (log.last_epoch, log.end_offset)

    def _grants(self, candidate: ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool:
        core, role = self._core, self._core.role
        if role.name is RoleName.LEADER or core.log.lost_records:
            return False
        if pre_vote:
            hears_leader = isinstance(role, Follower) and role.has_fetched and not role.leader_resigned
            return up_to_date and not hears_leader
        if core.election.voted is not None:
            return core.election.has_voted_for(candidate)
        if core.election.leader_id is not None or isinstance(role, Resigned):
            return False
        return up_to_date
