"""What all parts of a quorum replica share: who it is, its role and epoch, and the gate that keeps both honest.

The gate: `become` changes role and election state in memory at once, but nothing that tells of it leaves this replica
(no answer, no request, no word to the listener) before `quorum-state` is durable. So a crash can never take back what
another replica has heard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidelog.events import Request
from tidelog.outbox import Outbox, Timer
from tidelog.quorum import election_state
from tidelog.quorum.commits import Commits
from tidelog.quorum.election_state import ElectionState
from tidelog.quorum.listener import Listener
from tidelog.quorum.metadata_log import DIRECTORY, MetadataLog
from tidelog.quorum.roles import TRANSITIONS, Follower, Prospective, Resigned, Role, RoleName, Unattached
from tidelog.quorum.settings import MAX_EPOCH, QuorumSettings
from tidelog.quorum.voters import Address, Peer, ReplicaKey, Voter, VoterSet
from tidelog.storage import Storage

STATE_PATH = f"{DIRECTORY}/{election_state.FILE_NAME}"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which replica this is."""

    cluster_id: str
    node_id: int
    directory_id: bytes
    listener: str = "CONTROLLER"
    """The listener that voters talk through: the first of controller.listener.names."""
    endpoints: Mapping[str, Address] | None = None
    """Where this node's controller listeners are reached; None on a node that is a broker only."""
    static_voters: VoterSet = field(default_factory=VoterSet)
    """controller.quorum.voters; in force as long as the log names no voters (kraft.version 0)."""
    bootstrap_servers: tuple[Address, ...] = ()
    """controller.quorum.bootstrap.servers: where to ask for the leader when nothing else is known."""

    @property
    def key(self) -> ReplicaKey:
        """This replica, as a voter set would name it."""
        return ReplicaKey(self.node_id, self.directory_id)


class Core:
    """The state that the parts of a replica share; see the module."""

    def __init__(
        self, outbox: Outbox, storage: Storage, listener: Listener, identity: Identity, settings: QuorumSettings
    ) -> None:
        self.outbox = outbox
        self.storage = storage
        self.listener = listener
        self.identity = identity
        self.settings = settings
        self.failed = False
        """The disk failed: nothing more leaves this replica."""
        self.stored_election = self._read_election()
        self.log = MetadataLog(
            outbox, storage, settings, identity.static_voters, self._highest_epoch(), self._log_flushed, self.fail
        )
        self.commits = Commits(self.log, listener, self.fail)
        # A leader that is the only voter appends before its state is durable: then the log knows a later epoch.
        self.election = max(self.stored_election, ElectionState(self.log.last_epoch), key=lambda state: state.epoch)
        self.role: Role = Unattached()
        self.stopping = False
        """A clean stop was asked for: no more elections."""
        self.on_enter: dict[RoleName, list[Callable[[Any], None]]] = {name: [] for name in RoleName}
        """What to do in a new role once its election state is durable."""
        self.on_leave: dict[RoleName, Callable[[Any], None]] = {}
        self.on_log_flushed: dict[RoleName, Callable[[Any], None]] = {}
        self._told_leader: tuple[int | None, int] | None = None
        self._version = 0
        """Counts changes of `election`; `_durable_version` of them are on the medium."""
        self._durable_version = 0
        self._persist_scheduled = False
        self._persisting = False
        self._at_gate: list[tuple[int, Callable[[], None]]] = []

    # --- who and where ---

    @property
    def epoch(self) -> int:
        """The epoch this replica is in."""
        return self.election.epoch

    @property
    def voters(self) -> VoterSet:
        """The voter set in force: the newest in the log, committed or not."""
        return self.log.history.voters

    @property
    def is_voter(self) -> bool:
        """Whether this replica votes."""
        return self.voters.is_voter(self.identity.key)

    @property
    def can_stand(self) -> bool:
        """Whether this replica may ask for votes. Not if its disk lost records, until it has them again.

        A replica that is removed by a record that is not committed yet may be the only one with that record, so that
        nobody else can win: it still may, though its own vote does not count (Raft thesis §4.2.2).
        """
        if self.log.lost_records:
            return False
        history = self.log.history
        uncommitted = history.voters_offset is not None and history.voters_offset >= self.commits.high_watermark
        return self.is_voter or (uncommitted and history.voters_before.is_voter(self.identity.key))

    @property
    def local_voter(self) -> Voter:
        """This replica, as the voter set should name it."""
        return Voter(self.identity.key, dict(self.identity.endpoints or {}))

    @property
    def leader_id(self) -> int | None:
        """The leader of this epoch as far as known; not this replica once it resigned."""
        leader_id = self.election.leader_id
        return None if leader_id == self.identity.node_id and self.role.name is not RoleName.LEADER else leader_id

    def leader_peer(self) -> Peer | None:
        """Where the leader of this epoch is reached."""
        if isinstance(self.role, Follower):
            return self.role.leader
        if self.leader_id is None:
            return None
        if self.leader_id == self.identity.node_id:
            address = (self.identity.endpoints or {}).get(self.identity.listener)
            return None if address is None else (self.leader_id, *address)
        return self.voters.peer(self.leader_id, self.identity.listener)

    def peer(self, node_id: int) -> Peer | None:
        """Where a voter is reached."""
        return self.voters.peer(node_id, self.identity.listener)

    def other_voters(self) -> list[Voter]:
        """All voters but this replica."""
        return [voter for voter in self.voters if voter.id != self.identity.node_id]

    # --- changing role ---

    def begin(self) -> None:
        """Take the first role: as far as possible the one this replica had."""
        election = self.election
        leader = None if election.leader_id is None else self.peer(election.leader_id)
        if election.leader_id == self.identity.node_id:
            # It may have lost records of that epoch that others got, so it must not lead in it again, nor vote in it.
            self.role = Resigned({}, [])
        elif leader is not None:
            self.role = Follower(leader)
        if election != self.stored_election:
            self._version += 1
            self._schedule_persist()
        self.log.schedule_flush()
        role = self.role
        self.when_durable(lambda: self._enter(role))

    def become(self, role: Role, election: ElectionState) -> None:
        """Take another role, in this or a later epoch."""
        old, old_election = self.role, self.election
        assert role.name in TRANSITIONS[old.name], f"{old.name} cannot become {role.name}"
        assert election.epoch >= old_election.epoch, "epochs never go down"
        if election.epoch == old_election.epoch:
            assert old_election.leader_id in (None, election.leader_id), "an epoch has one leader"
            assert election.leader_id is not None or old_election.voted in (None, election.voted), "one vote an epoch"
        old.cancel_timers()
        self.role = role
        if election != old_election:
            self.election = election
            self._version += 1
            self._schedule_persist()
        if old.name in self.on_leave:
            self.on_leave[old.name](old)
        self.when_durable(lambda: self._enter(role))

    def learn(self, epoch: int, leader_id: int | None, leader: Peer | None) -> None:
        """Take note of an epoch and its leader, whatever request or answer told of them."""
        if epoch < self.epoch or epoch > MAX_EPOCH:
            return
        if leader_id == self.identity.node_id:
            if epoch > self.epoch:  # led by this node, which does not remember it: never vote in that epoch
                self.become(Unattached(), ElectionState(epoch, None, self.identity.key))
            return
        if leader_id is not None and leader is None:
            leader = self.peer(leader_id)
        if epoch > self.epoch:
            role = Unattached() if leader is None else Follower(leader)
            self.become(role, ElectionState(epoch, leader_id))
        elif leader_id is not None and self.election.leader_id not in (None, leader_id):
            self.outbox.tell("quorum-two-leaders", "error", epoch=epoch, known=self.election.leader_id, told=leader_id)
        elif leader_id is not None and leader is not None:
            if isinstance(self.role, Follower):
                self.role.leader = leader
            elif self.election.leader_id is None or isinstance(self.role, Unattached | Prospective):
                self.become(Follower(leader), ElectionState(epoch, leader_id, self.election.voted))

    def _enter(self, role: Role) -> None:
        if self.role is not role:
            return
        leader = (self.leader_id, self.epoch)
        if leader != self._told_leader:
            self._told_leader = leader
            self.outbox.tell(
                "quorum-leader", epoch=self.epoch, leader=self.leader_id, role=role.name.value, voters=self.voters.ids
            )
            self.listener.on_leader_change(*leader)
        for entered in self.on_enter[role.name]:
            if self.role is role:
                entered(role)

    # --- the gate ---

    @property
    def is_durable(self) -> bool:
        """Whether the election state in memory is on the medium."""
        return self._durable_version == self._version

    def when_durable(self, action: Callable[[], None]) -> None:
        """Do something once the election state as it is now, or a later one, is on the medium."""
        if self.is_durable and not self._at_gate:
            action()
        else:
            self._at_gate.append((self._version, action))

    def reply(self, request: Request, body: Any) -> None:
        """Answer a request once what the answer tells is durable."""
        self.when_durable(lambda: self.outbox.reply(request.connection_id, request.slot, body))

    def send(self, role: Role, peer: Peer, channel: str, api_key: int, api_version: int, body: Any, then: Any) -> None:
        """Ask a peer; unless the role ends before, `then` gets its answer, or None and why there is none."""

        def answered(answer: Any, error: str | None) -> None:
            if self.role is role and not self.failed:
                then(answer, error)

        timeout_ms = self.settings.controller_quorum_request_timeout_ms
        self.outbox.send(peer, channel, api_key, api_version, body, timeout_ms, answered)

    def after(self, role: Role, delay_ms: int, action: Callable[[], None]) -> Timer:
        """Do something later, if the role is still the same."""

        def due() -> None:
            if self.role is role and not self.failed:
                action()

        timer = self.outbox.after(delay_ms, due)
        role.timers = [other for other in role.timers if other.callback is not None]
        role.timers.append(timer)
        return timer

    def fail(self, reason: str) -> None:
        """The disk failed under the metadata log: going on could break promises made to others."""
        if not self.failed:
            self.failed = True
            self.role.cancel_timers()
            self._at_gate.clear()
            self.outbox.halt(1, reason)

    def _schedule_persist(self) -> None:
        if not self._persist_scheduled:
            self._persist_scheduled = True
            self.outbox.at_end_of_step(self._persist)

    def _persist(self) -> None:
        self._persist_scheduled = False
        if self._persisting or self.is_durable or self.failed:
            return
        self._persisting = True
        version = self._version
        data = election_state.encode(self.election, self.log.history.kraft_version, self.voters.ids)

        def persisted(error: str | None) -> None:
            self._persisting = False
            if error is not None:
                self.fail(f"{STATE_PATH} cannot be written: {error}")
                return
            self._durable_version = version
            while self._at_gate and self._at_gate[0][0] <= version:
                self._at_gate.pop(0)[1]()
            if not self.is_durable:
                self._schedule_persist()

        self.outbox.flush(self.storage, persisted, replacements=[(STATE_PATH, data)], directories=["", DIRECTORY])

    def _read_election(self) -> ElectionState:
        if not self.storage.exists(STATE_PATH):
            return ElectionState()
        return election_state.decode(self.storage.read_file(STATE_PATH))

    def _highest_epoch(self) -> int | None:
        """No batch can be of a later epoch: appending waits for `quorum-state`, but for a leader that is alone."""
        return self.stored_election.epoch + 1 if self.storage.exists(STATE_PATH) else None

    def _log_flushed(self) -> None:
        hook = self.on_log_flushed.get(self.role.name)
        if hook is not None and not self.failed:
            hook(self.role)
