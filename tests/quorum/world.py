"""A few replicas of a quorum on simulated disks and a simulated network, one seed deciding everything.

Requests and answers go through their bytes. A connection keeps its order; a cut link or a dead node fails what is
under way. Flushes take time, and what was appended after a flush began is not part of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from tests.quorum.machines import CLUSTER, LISTENER, Node, address, directory_id
from tidelog.effects import Flush, Reply, Send, Tell
from tidelog.events import Request
from tidelog.outbox import Chance
from tidelog.quorum import (
    QuorumSettings,
    ReplicaKey,
    Voter,
    VoterSet,
)
from tidelog.quorum.bootstrap import SNAPSHOT_PATH, voters_snapshot
from tidelog.quorum.metadata_log import DIRECTORY
from tidelog.sim.disk import SimulatedDisk
from tidelog.wire import codec
from tidelog.wire.api_table import ApiKey
from tidelog.wire.apis import request_class, response_class
from tidelog.wire.messages import add_raft_voter, remove_raft_voter
from tidelog.wire.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from tidelog.wire.records.config_record import ConfigRecord

SHOWN = (
    "quorum-truncated",
    "quorum-majority-lost",
    "quorum-snapshot",
    "quorum-snapshot-download",
    "quorum-records-lost",
    "quorum-records-regained",
)


class World:
    """Time, network and machines."""

    def __init__(
        self,
        seed: int = 1,
        voters: Iterable[int] = (1, 2, 3),
        *,
        static: bool = False,
        settings: QuorumSettings | None = None,
    ) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now_ms = 1_000_000
        self.settings = settings or QuorumSettings()
        self.nodes: dict[int, Node] = {}
        self.broker_ids: set[int] = set()
        self.bootstrap_ids = tuple(voters)
        self.cut: set[tuple[int, int]] = set()
        self.lines: list[str] = []
        self.show_messages = False
        self.committed_end_offset = 0
        """The end of what anybody was told is committed."""
        self.drop_rate = 0.0
        self.delay_ms = (1, 3)
        self.flush_delay_ms = (1, 3)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._connection_clear_at: dict[tuple[int, int, str], int] = {}
        self._waiting: dict[int, tuple[Node, int, Send, Node]] = {}
        self.initial = VoterSet(Voter(ReplicaKey(i, directory_id(i)), {LISTENER: address(i)}) for i in voters)
        self.static_voters = VoterSet()
        if static:
            self.static_voters = VoterSet.parse_static(
                [f"{i}@{address(i)[0]}:{address(i)[1]}" for i in voters], LISTENER
            )
        for node_id in voters:
            self.add_machine(node_id, formatted=not static)

    # --- machines ---

    def add_machine(self, node_id: int, *, formatted: bool = False, broker: bool = False) -> Node:
        node = self.nodes[node_id] = Node(self, node_id)
        if broker:
            self.broker_ids.add(node_id)
        if formatted:
            self.format(node)
        return node

    def format(self, node: Node) -> None:
        node.disk.make_directory(DIRECTORY)
        snapshot = voters_snapshot(self.initial, self.now_ms)
        assert node.disk.apply_flush(Flush(0, node.disk, (), [(SNAPSHOT_PATH, snapshot)], ["", DIRECTORY])) is None

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids or self.nodes:
            self.nodes[node_id].start()

    def kill(self, node_id: int, *, power: bool = False) -> None:
        node = self.nodes[node_id]
        node.stop()
        if power:
            node.disk.power_loss(Chance(self.random.getrandbits(64)))
        else:
            node.disk.kill()
        self._fail_connections(lambda source, target: node in (source, target))

    def wipe(self, node_id: int) -> None:
        """The disk is replaced by an empty one: the directory id is another."""
        self.kill(node_id)
        node = self.nodes[node_id]
        node.disk = SimulatedDisk(f"disk{node_id}")
        node.directory_id = directory_id(node_id, node.directory_id[0] - 0x40 + 1)

    # --- time ---

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (max(at_ms, self.now_ms), self._number, action))

    def run(self, duration_ms: int, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; with `until`, no longer than it takes to come true. Whether it did."""
        end_ms = self.now_ms + duration_ms
        while self._events and self._events[0][0] <= end_ms:
            if until is not None and until():
                return True
            self.now_ms, _, action = heapq.heappop(self._events)
            action()
        if until is not None and until():
            return True
        self.now_ms = end_ms
        return False

    def flush_ms(self, node: Node) -> int:
        return self.random.randint(*(node.flush_delay_ms or self.flush_delay_ms))

    # --- network ---

    def cut_link(self, one: int, other: int, *, silently: bool = False) -> None:
        self.cut |= {(one, other), (other, one)}
        if not silently:
            self._fail_connections(lambda source, target: {source.id, target.id} == {one, other})

    def heal(self) -> None:
        self.cut.clear()

    def _fail_connections(self, concerned: Callable[[Node, Node], bool]) -> None:
        for number, (source, life, effect, target) in list(self._waiting.items()):
            if concerned(source, target):
                del self._waiting[number]
                self._fail(source, life, effect, "connection lost")

    def _fail(self, source: Node, life: int, effect: Send, reason: str) -> None:
        def failed() -> None:
            if source.life == life:
                source.step(lambda: source.outbox.resume(effect.request_id, None, reason))

        self.at(self.now_ms, failed)

    def _deliver_at(self, source: int, target: int, channel: str) -> int:
        key = (source, target, channel)
        at_ms = max(self.now_ms + self.random.randint(*self.delay_ms), self._connection_clear_at.get(key, 0))
        self._connection_clear_at[key] = at_ms
        return at_ms

    def send(self, source: Node, effect: Send) -> None:
        target = self.nodes.get(effect.port - 9000)
        self._number += 1
        number, life = self._number, source.life
        if target is None or not target.up or target.halted:
            self._fail(source, life, effect, "connection refused")
            return
        if self.show_messages:
            self.say(f"{source.id}->{target.id} {effect.body!r}")
        self._waiting[number] = (source, life, effect, target)
        data = codec.encode(effect.body, effect.api_version)

        def timed_out() -> None:
            if self._waiting.pop(number, None) is not None:
                self._fail(source, life, effect, "timed out")

        self.at(self.now_ms + effect.timeout_ms, timed_out)
        if self._lost(source.id, target.id):
            return
        target_life = target.life

        def arrived() -> None:
            if number in self._waiting and target.up and target.life == target_life and not target.halted:
                if target.paused:
                    target.held.append(arrived)
                    return
                body, _ = codec.decode(request_class(effect.api_key), effect.api_version, data)
                request = Request(number, 0, effect.api_key, effect.api_version, None, body, listener=LISTENER)
                if effect.api_key == ApiKey.API_VERSIONS:
                    feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
                    self.reply(target, Reply(number, 0, ApiVersionsResponse(supported_features=[feature])))
                else:
                    target.step(lambda: target.quorum.handle(request))

        self.at(self._deliver_at(source.id, target.id, effect.channel), arrived)

    def reply(self, responder: Node, effect: Reply) -> None:
        entry = self._waiting.get(effect.connection_id)
        if entry is None:
            return
        source, life, send, _ = entry
        if self.show_messages:
            self.say(f"{responder.id}->{source.id} {effect.body!r}")
        data = codec.encode(effect.body, send.api_version)
        if self._lost(responder.id, source.id):
            return

        def arrived() -> None:
            if effect.connection_id not in self._waiting or source.life != life:
                return
            if source.paused:
                source.held.append(arrived)
                return
            del self._waiting[effect.connection_id]
            body, _ = codec.decode(response_class(send.api_key), send.api_version, memoryview(data))
            source.step(lambda: source.outbox.resume(send.request_id, body, None))

        self.at(self._deliver_at(responder.id, source.id, send.channel), arrived)

    def _lost(self, source: int, target: int) -> bool:
        return (source, target) in self.cut or self.random.random() < self.drop_rate

    def request(self, node_id: int, api_key: int, api_version: int, body: Any) -> Any:
        """Ask a node as a client would; the answer, once time has passed, is in the list returned."""
        client = Client(self)
        client.ask(self.nodes[node_id], api_key, api_version, body)
        return client.answers

    def add_voter(self, node_id: int, voter: Node) -> Any:
        """Ask a node to make another one a voter."""
        host, port = address(voter.id)
        body = add_raft_voter.AddRaftVoterRequest(
            cluster_id=CLUSTER,
            timeout_ms=3000,
            voter_id=voter.id,
            voter_directory_id=voter.directory_id,
            listeners=[add_raft_voter.Listener(name=LISTENER, host=host, port=port)],
        )
        return self.request(node_id, ApiKey.ADD_RAFT_VOTER, 1, body)

    def remove_voter(self, node_id: int, key: ReplicaKey) -> Any:
        """Ask a node to remove a voter."""
        body = remove_raft_voter.RemoveRaftVoterRequest(
            cluster_id=CLUSTER, voter_id=key.id, voter_directory_id=key.directory_id
        )
        return self.request(node_id, ApiKey.REMOVE_RAFT_VOTER, 0, body)

    # --- what is seen; checkers override these ---

    def leader(self) -> Node | None:
        """The node that leads in the highest epoch and may serve."""
        leading = [node for node in self.nodes.values() if node.up and not node.halted and node.quorum.is_leader]
        leading = [node for node in leading if node.listener.activated_epoch is not None]
        return max(leading, key=lambda node: node.quorum.epoch, default=None)

    def say(self, line: str) -> None:
        self.lines.append(line)

    def told(self, node: Node, effect: Tell) -> None:
        if effect.kind in SHOWN:
            fields = ", ".join(f"{name} {value}" for name, value in effect.fields.items())
            self.say(f"{node.id} {effect.kind}: {fields}")

    def role_changed(self, node: Node) -> None:
        self.say(f"{node.id} is {node.quorum.role.value} in epoch {node.quorum.epoch}")

    def activated(self, node: Node, epoch: int) -> None:
        self.say(f"{node.id} may serve epoch {epoch}")

    def committed(self, node: Node, offset: int, epoch: int, message: ConfigRecord) -> None:
        pass

    def snapshot_loaded(self, node: Node, end_offset: int, state: dict[str, str]) -> None:
        pass

    def stepped(self, node: Node) -> None:
        pass


class Client:
    """Somebody outside the quorum who asks a question."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.answers: list[Any] = []
        self.id = -1
        self.life = 0
        self.paused = False
        self.held: list[Callable[[], None]] = []
        self.outbox = self

    def ask(self, node: Node, api_key: int, api_version: int, body: Any) -> None:
        effect = Send(node.id, *address(node.id), "client", 0, api_key, api_version, body, 60_000)
        self.world.send(self, effect)  # type: ignore[arg-type]

    def step(self, action: Callable[[], Any]) -> None:
        action()

    def resume(self, number: int, body: Any, error: str | None) -> None:
        self.answers.append(body if error is None else error)
