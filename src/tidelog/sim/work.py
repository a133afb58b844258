"""Groups and transactions of one simulated history: the clients, what they note, and what is left to do in the end."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.coordination.coordinator import partition_for
from tidelog.sim.client import Admin
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.committing import Committer, GroupNotes, IdleCommitter
from tidelog.sim.forgetting import BRIEF, Forgetful
from tidelog.sim.keyed import KeyedWriter
from tidelog.sim.members import Member
from tidelog.sim.producer import Producer, ProducerSettings
from tidelog.sim.reading import Reader
from tidelog.sim.scripted import Script
from tidelog.sim.transacting import Identity, Transactor
from tidelog.sim.work_shape import COPY, LEDGER, LEDGER_PARTITIONS, OFFSETS, STATE, WorkShape

LOOK_EVERY_MS = 500


class Auditor(Committer):
    """Asks for the offsets of those who transform, again and again, without waiting for what is not decided."""

    def __init__(self, work: Work, name: str) -> None:
        super().__init__(work.cluster.world, name, work.cluster.brokers, work.shape.draw, work.is_coordinator)
        self._work = work
        self.early_offsets: list[str] = []
        """Offsets that were told before anybody had asked for their commit."""
        self.play(self._life())

    def _life(self) -> Script:
        while True:
            for identity in self._work.identities.values():
                for one in self._work.transforming(identity):
                    offset = yield from self.finding(GroupNotes(identity.group), one.shape.partition, is_stable=False)
                    if offset is not None and offset >= 0:
                        self._look(identity, offset)
            yield from self.sleeping(LOOK_EVERY_MS)

    def _look(self, identity: Identity, offset: int) -> None:
        if not any(one.group_offset == offset and one.commit_asked_ms is not None for one in identity.attempts):
            self.early_offsets.append(
                f"{identity.group} had {offset} at {self.world.now_ms}, of no transaction that was to be committed"
            )


class Work:
    """The clients of a history that has groups and transactions."""

    def __init__(self, cluster: SimulatedCluster, shape: WorkShape, *, has_true_clocks: bool) -> None:
        self.cluster = cluster
        self.shape = shape
        self._has_true_clocks = has_true_clocks
        """Whether nobody sets the clock of a node."""
        self.identities: dict[str, Identity] = {}
        self.transactors: list[Transactor] = []
        self.groups: dict[str, GroupNotes] = {}
        self.members: list[Member] = []
        self.readers: list[Reader] = []
        self.auditor: Auditor | None = None
        self.idle: IdleCommitter | None = None
        self.forgetful: Forgetful | None = None
        self.writer: KeyedWriter | None = None
        self._awaited = "offsets are not found out"
        """What the last audit waits for; "" when it is over."""
        self._last_audit: Committer | None = None
        self._is_ending = False

    @property
    def operations(self) -> int:
        """Requests of all clients."""
        clients = [*self.transactors, *self.members, *self.readers]
        return sum(one.operations for one in clients)

    def make_topics(self, admin: Admin, made: list[object]) -> None:
        """Ask for the topics."""
        for topic in self.shape.topics:
            configs = {
                **dict(topic.configs),
                "min.insync.replicas": str(topic.min_insync_replicas),
                "unclean.leader.election.enable": str(topic.may_lose).lower(),
            }
            admin.create_topic(topic.name, topic.assignment, configs, made.append)

    def start(self) -> None:
        """Let everybody begin."""
        world, brokers = self.cluster.world, self.cluster.brokers
        for one in self.shape.transactors:
            identity = self.identities.setdefault(one.transactional_id, Identity(one.transactional_id))
            self.transactors.append(Transactor(world, brokers, one, identity, self.is_coordinator))
        for member in self.shape.members:
            notes = GroupNotes(member.group, has_true_clocks=self._has_true_clocks)
            notes = self.groups.setdefault(member.group, notes)
            self.members.append(Member(world, brokers, member, notes, self.is_coordinator))
        for number, (topic, index) in enumerate(self.shape.partitions):
            if topic in (LEDGER, COPY):
                draw = self.shape.draw + number
                self.readers.append(Reader(world, f"r{number}", brokers, draw, topic, index, is_committed=True))
        draw = self.shape.draw
        if self.readers:
            self.readers.append(Reader(world, "dirty", brokers, draw, LEDGER, 0, is_committed=False))
            self.idle = IdleCommitter(world, "idle", brokers, draw, self.is_coordinator)
        if self.members:
            self.forgetful = Forgetful(world, "forgetful", brokers, draw, self.is_coordinator)
        if any(one.transforms for one in self.shape.transactors):
            self.auditor = Auditor(self, "auditor")
        if self.shape.state_delivery_ms:
            settings = ProducerSettings(delivery_timeout_ms=self.shape.state_delivery_ms)
            self.writer = KeyedWriter(Producer(world, "keyed", brokers, settings), STATE, 0)
            self.writer.send_on()

    def end(self) -> None:
        """Faults are over: finish what is begun."""
        self._is_ending = True
        for transactor in self.transactors:
            transactor.is_ending = True
        for member in self.members:
            member.is_ending = True
        if self.forgetful is not None:
            self.forgetful.is_ending = True
        if self.writer is not None:
            self.writer.is_sending = False

    def transforming(self, identity: Identity) -> list[Transactor]:
        """The one to end what an identity has to transform; nobody for those that write."""
        return [one for one in self.transactors if one.identity is identity and one.shape.transforms][:1]

    def is_coordinator(self, node_id: int, group: str) -> bool:
        """Whether the newest metadata say so."""
        topic = self.cluster.newest_image().topic(OFFSETS)
        if topic is None:
            return False
        return topic.partitions[partition_for(group, len(topic.partitions))].leader == node_id

    # --- what is left to do ---

    def unfinished(self, is_lost: Callable[[str, int], bool]) -> str:
        """What is not done though it should be; "" when everything is.

        Nobody waits for who writes to a partition that is lost to rot. Only the one that is written by key can be: of
        the others records may not be lost, and a whole replica is left.
        """
        for transactor in self.transactors:
            if not transactor.is_done and not (transactor.shape.transforms and transactor.shape.is_first):
                return f"{transactor.name} has not ended its last transaction"
        for reader in self.readers:
            end = self._end(reader.topic, reader.index)
            if reader.position < end:
                return f"{reader.name} has read to {reader.position} of {end} of {reader.topic}-{reader.index}"
        for transactor in self.transactors:
            one = transactor.shape
            if one.transforms and one.is_first:
                end = self._end(LEDGER, one.partition)
                if transactor.position < end:
                    return f"{one.name} has transformed {transactor.position} of {end}"
        for notes in self.groups.values():
            for index in range(LEDGER_PARTITIONS):
                end = self._end(LEDGER, index)
                if notes.acknowledged.get(index, 0) < end:
                    return f"{notes.name} has committed {notes.acknowledged.get(index)} of {end} of {LEDGER}-{index}"
        if self.writer is not None and self.writer.producer.unsettled and not is_lost(STATE, 0):
            return "the keyed writer waits"
        return self._audit()

    def _end(self, topic: str, index: int) -> int:
        known = self.cluster.newest_image().topic(topic)
        assert known is not None
        hosted = self.cluster.process(known.partitions[index].leader).node.replicas.partitions.get((topic, index))
        return 1 << 60 if hosted is None else hosted.log.log_end_offset

    def _audit(self) -> str:
        """In the end everybody's offsets are asked for once more."""
        wanted = [(notes, index) for notes in self.groups.values() for index in range(LEDGER_PARTITIONS)]
        if self.idle is not None and self.idle.notes.acknowledged:
            wanted.append((self.idle.notes, 0))
        if self._last_audit is None:
            brokers, draw = self.cluster.brokers, self.shape.draw
            self._last_audit = Committer(self.cluster.world, "audit", brokers, draw, self.is_coordinator)
            self._last_audit.play(self._auditing(self._last_audit, wanted))
        return self._awaited

    def _auditing(self, audit: Committer, wanted: list[tuple[GroupNotes, int]]) -> Script:
        for notes, index in wanted:
            while (yield from audit.finding(notes, index)) is None:
                yield from audit.sleeping(100)
        if self.forgetful is not None and self.forgetful.has_left and self._has_true_clocks:
            self._awaited = f"the offset of {BRIEF} does not expire"
            while (yield from audit.finding(GroupNotes(BRIEF), 0)) != -1:
                yield from audit.sleeping(500)
        self._awaited = ""
