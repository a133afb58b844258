"""Leading: appending, what counts as committed, keeping a majority, and giving leadership up.

A record is committed when a majority of the voters has it on the medium and a record of the leader's own epoch is
committed with it (Raft §5.4.2: counting alone must not commit what an earlier leader left). The leader counts its own
log only as far as it is flushed; a follower's fetch offset says how far that one is flushed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidelog.errors import ErrorCode, KafkaError
from tidelog.outbox import Timer
from tidelog.quorum.batches import RecordAndVersion, build_control_batch, build_data_batch, frame
from tidelog.quorum.core import Core
from tidelog.quorum.election_state import ElectionState
from tidelog.quorum.requests import (
    CONTROL_CHANNEL,
    begin_request,
    end_request,
    leader_told,
    only_partition,
)
from tidelog.quorum.roles import Candidate, Resigned, Role, RoleName, Unattached
from tidelog.quorum.settings import CHECK_QUORUM_FACTOR, MAX_BATCH_BYTES, OBSERVER_SESSION_MS
from tidelog.quorum.voters import ReplicaKey, VoterSet
from tidelog.wire.api_table import ApiKey
from tidelog.wire.message import Message
from tidelog.wire.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from tidelog.wire.messages.end_quorum_epoch import EndQuorumEpochResponse
from tidelog.wire.records.kraft_version_record import KRaftVersionRecord
from tidelog.wire.records.leader_change_message import LeaderChangeMessage, Voter

BEGIN_VERSION = 1
END_VERSION = 1


class Progress:
    """How far another replica is, by its fetches."""

    __slots__ = ("end_offset", "last_caught_up_ms", "last_fetch_leader_end_offset", "last_fetch_ms")

    def __init__(self) -> None:
        self.end_offset = -1
        """All below is on its medium and equal to this log; -1 before its first fetch."""
        self.last_fetch_ms = -1
        self.last_fetch_leader_end_offset = -1
        self.last_caught_up_ms = -1

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """It fetches from `offset`, so it has all before."""
        if offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif 0 < self.last_fetch_leader_end_offset <= offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.last_fetch_leader_end_offset = leader_end_offset
        self.last_fetch_ms = now_ms
        self.end_offset = offset


class Leader(Role):
    """What a leader knows in its epoch."""

    name = RoleName.LEADER

    def __init__(self, epoch_start_offset: int) -> None:
        super().__init__()
        self.epoch_start_offset = epoch_start_offset
        """Where the first record of this epoch stands; commits begin after it."""
        self.high_watermark: int | None = None
        """What this leader has committed; None before it committed a record of its epoch. Never goes down."""
        self.progress: dict[ReplicaKey, Progress] = {}
        """By replica; a node that came back with another directory is another replica."""
        self.fetched_voters: set[int] = set()
        """Voters heard since the majority was last complete."""
        self.check_quorum_timer: Timer | None = None
        self.pending: list[tuple[int, list[bytes]]] = []
        """Appends of this step, each with its first offset: not in the log yet."""
        self.pending_end_offset = 0

    def progress_of(self, key: ReplicaKey) -> Progress:
        """How far a replica is."""
        return self.progress.setdefault(key, Progress())

    def end_offset_of(self, key: ReplicaKey) -> int:
        """Up to where a replica has flushed this log; -1 when that is not known."""
        return self.progress[key].end_offset if key in self.progress else -1


class Leadership:
    """The Leader role and the way out of it."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.on_appended: list[Callable[[Leader], None]] = []
        self.on_committed: list[Callable[[Leader], None]] = []
        self.on_lost: list[Callable[[Leader], None]] = []
        self._resignation_done: Callable[[], None] | None = None
        core.on_enter[RoleName.LEADER].append(self._entered)
        core.on_leave[RoleName.LEADER] = self._left
        core.on_enter[RoleName.RESIGNED].append(self._entered_resigned)
        core.on_leave[RoleName.RESIGNED] = lambda _: self._finish_resignation()
        core.on_log_flushed[RoleName.LEADER] = self.update_high_watermark

    @property
    def leader(self) -> Leader | None:
        """The role, if this replica leads."""
        role = self._core.role
        return role if isinstance(role, Leader) else None

    # --- becoming leader ---

    def lead(self, candidate: Candidate) -> None:
        """A majority voted for this replica: lead, beginning with a record of the new epoch."""
        core = self._core
        leader = Leader(core.log.end_offset)
        core.become(leader, ElectionState(core.epoch, core.identity.node_id))
        controls: list[Message] = [
            LeaderChangeMessage(
                version=0,
                leader_id=core.identity.node_id,
                voters=[Voter(voter_id=voter_id) for voter_id in core.voters.ids],
                granting_voters=[Voter(voter_id=voter_id) for voter_id in sorted(candidate.granted)],
            )
        ]
        history = core.log.history
        if history.kraft_version >= 1:
            # The first leader copies what format wrote into the log, for the snapshot 0-0 is never sent to anyone;
            # and a leader whose address changed says so (KIP-853).
            known = core.voters.get(core.identity.node_id)
            if history.voters_offset == -1 or (known is not None and known != core.local_voter):
                controls.append(KRaftVersionRecord(version=0, kraft_version=history.kraft_version))
                controls.append(core.voters.with_voter(core.local_voter).to_record())
        self.append_controls(leader, controls)

    def _entered(self, leader: Leader) -> None:
        self._restart_check_quorum(leader)
        self._tell_voters(leader)
        self.update_high_watermark(leader)

    def _left(self, leader: Leader) -> None:
        leader.pending.clear()
        for lost in self.on_lost:
            lost(leader)
        self._core.listener.on_resigned()

    # --- appending ---

    def append(self, records: Sequence[RecordAndVersion]) -> int:
        """Append records together; the offset of the last of them. They are in the log when this step ends."""
        leader = self.leader
        if leader is None or self._core.failed:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this replica does not lead the quorum")
        if not records:
            raise ValueError("an append needs records")
        values = [frame(record, version) for record, version in records]
        if sum(map(len, values)) > MAX_BATCH_BYTES:
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, "more metadata records than fit into one batch")
        if not leader.pending:
            leader.pending_end_offset = self._core.log.end_offset
            self._core.outbox.at_end_of_step(self._drain)
        leader.pending.append((leader.pending_end_offset, values))
        leader.pending_end_offset += len(values)
        return leader.pending_end_offset - 1

    def append_controls(self, leader: Leader, controls: Sequence[Message]) -> int:
        """Append the quorum's own records at once; the offset of the last of them."""
        core = self._core
        self._drain()
        core.log.append(
            build_control_batch(
                controls, base_offset=core.log.end_offset, epoch=core.epoch, timestamp_ms=core.outbox.now_ms
            )
        )
        self._appended(leader)
        return core.log.end_offset - 1

    def append_voters(self, leader: Leader, voters: VoterSet) -> int:
        """Make this the voter set: in force at once, for good once committed."""
        return self.append_controls(leader, [voters.to_record()])

    def _drain(self) -> None:
        leader, core = self.leader, self._core
        if leader is None or not leader.pending or core.failed:
            return
        appends, leader.pending = leader.pending, []
        gathered: list[bytes] = []
        size = 0
        for _, values in appends:
            added = sum(map(len, values))
            if gathered and size + added > MAX_BATCH_BYTES:
                self._append_values(gathered)
                gathered, size = [], 0
            gathered += values
            size += added
        self._append_values(gathered)
        self._appended(leader)

    def _append_values(self, values: list[bytes]) -> None:
        core = self._core
        core.log.append(
            build_data_batch(values, base_offset=core.log.end_offset, epoch=core.epoch, timestamp_ms=core.outbox.now_ms)
        )

    def _appended(self, leader: Leader) -> None:
        for appended in self.on_appended:
            appended(leader)

    # --- committing ---

    def update_high_watermark(self, leader: Leader) -> None:
        """Commit what a majority has."""
        if not self._core.is_durable:
            return
        end_offset = self._majority_end_offset(leader)
        if end_offset <= leader.epoch_start_offset or end_offset <= (leader.high_watermark or 0):
            return
        first = leader.high_watermark is None
        leader.high_watermark = end_offset
        self._core.commits.advance(end_offset)
        if self._core.role is not leader or self._core.failed:
            return
        if first:
            self._core.listener.on_activated(self._core.epoch)
        for committed in self.on_committed:
            committed(leader)

    def _majority_end_offset(self, leader: Leader) -> int:
        """The offset below which more than half of the voters have flushed."""
        core = self._core
        ends = []
        for voter in core.voters:
            if voter.id == core.identity.node_id:
                ends.append(core.log.flushed_offset if core.is_voter else -1)
            else:
                ends.append(leader.end_offset_of(voter.key))
        ends.sort(reverse=True)
        return ends[len(ends) // 2] if ends else -1

    def replica_fetched(self, leader: Leader, key: ReplicaKey, offset: int) -> None:
        """Another replica fetches from `offset`."""
        core = self._core
        if key.id < 0 or key.id == core.identity.node_id:
            return
        leader.progress_of(self._as_voter(key)).fetched(offset, core.log.end_offset, core.outbox.now_ms)
        self.voter_heard(leader, key)
        if core.voters.is_voter(key):
            self.update_high_watermark(leader)

    def _as_voter(self, key: ReplicaKey) -> ReplicaKey:
        """The replica as the voter set names it: static voters are known without their directories."""
        voter = self._core.voters.get(key.id)
        return voter.key if voter is not None and self._core.voters.is_voter(key) else key

    # --- keeping a majority ---

    def voter_heard(self, leader: Leader, key: ReplicaKey) -> None:
        """A replica fetched, which shows that it follows this leader."""
        voters = self._core.voters
        if voters.is_voter(key):
            leader.fetched_voters.add(key.id)
            if len(leader.fetched_voters) >= voters.majority - self._core.is_voter:
                self._restart_check_quorum(leader)

    def _restart_check_quorum(self, leader: Leader) -> None:
        leader.fetched_voters.clear()
        if leader.check_quorum_timer is not None:
            leader.check_quorum_timer.cancel()
        delay_ms = int(self._core.settings.controller_quorum_fetch_timeout_ms * CHECK_QUORUM_FACTOR)
        leader.check_quorum_timer = self._core.after(leader, delay_ms, lambda: self._check_quorum(leader))

    def _check_quorum(self, leader: Leader) -> None:
        core = self._core
        if core.voters.is_only_voter(core.identity.key):
            self._restart_check_quorum(leader)
            return
        core.outbox.tell(
            "quorum-majority-lost",
            "warning",
            epoch=core.epoch,
            heard=sorted(leader.fetched_voters),
            voters=core.voters.ids,
        )
        self.resign()

    def _tell_voters(self, leader: Leader) -> None:
        """Tell voters that do not fetch that there is a leader, again and again."""
        core = self._core
        interval_ms = max(core.settings.controller_quorum_fetch_timeout_ms // 2, 1)
        for voter in core.other_voters():
            peer = core.peer(voter.id)
            progress = leader.progress.get(voter.key)
            silent = progress is None or core.outbox.now_ms - progress.last_fetch_ms >= interval_ms
            if peer is not None and silent:
                body = begin_request(core, voter.key)
                core.send(
                    leader, peer, CONTROL_CHANNEL, ApiKey.BEGIN_QUORUM_EPOCH, BEGIN_VERSION, body, self._told_voter
                )
        core.after(leader, interval_ms, lambda: self._tell_voters(leader))

    def _told_voter(self, answer: BeginQuorumEpochResponse | None, error: str | None) -> None:
        partition = only_partition(answer.topics) if answer is not None else None
        if answer is not None and partition is not None:
            leader_id, leader = leader_told(partition.leader_id, answer.node_endpoints)
            if partition.leader_epoch > self._core.epoch:
                self._core.learn(partition.leader_epoch, leader_id, leader)

    def forget_silent_observers(self, leader: Leader) -> None:
        """Forget replicas that are no voters and have not fetched for long."""
        core = self._core
        for key, progress in list(leader.progress.items()):
            if not core.voters.is_voter(key) and core.outbox.now_ms - progress.last_fetch_ms >= OBSERVER_SESSION_MS:
                del leader.progress[key]

    # --- giving it up ---

    def resign(self, then: Callable[[], None] | None = None) -> None:
        """Give leadership up and tell the voters who would lead best; `then` when they know, or nobody needs to."""
        core, leader = self._core, self.leader
        self._resignation_done = then
        if leader is None:
            self._finish_resignation()
            return
        others = core.other_voters()
        ends = {voter.key: leader.end_offset_of(voter.key) for voter in others}
        preferred = sorted(ends, key=lambda key: (-ends[key], key.id))
        core.become(Resigned({voter.id: voter.key for voter in others}, preferred), core.election)

    def _entered_resigned(self, role: Resigned) -> None:
        core = self._core
        timeout_ms = core.settings.controller_quorum_election_timeout_ms
        core.after(
            role, timeout_ms + core.outbox.chance.below(max(timeout_ms, 1)), lambda: self._resigned_long_ago(role)
        )
        for voter_id in list(role.unacknowledged):
            self._tell_resigned(role, voter_id)
        if not role.unacknowledged:
            self._finish_resignation()

    def _tell_resigned(self, role: Resigned, voter_id: int) -> None:
        core = self._core
        peer = core.peer(voter_id)
        if voter_id not in role.unacknowledged:
            return
        if peer is None:
            self._resignation_acknowledged(role, voter_id)
            return

        def answered(answer: EndQuorumEpochResponse | None, error: str | None) -> None:
            if answer is None:
                backoff_ms = core.settings.controller_quorum_retry_backoff_ms
                core.after(role, backoff_ms, lambda: self._tell_resigned(role, voter_id))
                return
            partition = only_partition(answer.topics)
            if partition is not None:
                core.learn(partition.leader_epoch, *leader_told(partition.leader_id, answer.node_endpoints))
            if core.role is role:
                self._resignation_acknowledged(role, voter_id)

        body = end_request(core, role.preferred)
        core.send(role, peer, CONTROL_CHANNEL, ApiKey.END_QUORUM_EPOCH, END_VERSION, body, answered)

    def _resignation_acknowledged(self, role: Resigned, voter_id: int) -> None:
        role.unacknowledged.pop(voter_id, None)
        if not role.unacknowledged:
            self._finish_resignation()

    def _resigned_long_ago(self, role: Resigned) -> None:
        """Nobody leads yet: take part again, one epoch later, for in its own epoch it must not vote."""
        self._finish_resignation()
        if not self._core.stopping:
            self._core.become(Unattached(), ElectionState(self._core.epoch + 1))

    def _finish_resignation(self) -> None:
        then, self._resignation_done = self._resignation_done, None
        if then is not None:
            then()
