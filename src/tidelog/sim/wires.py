"""The wires between simulated machines: connections that keep their order as TCP does, requests and answers on them.

What leaves a node passes a route of the network, which may hold it, cut it or slow it down. A slice is read when its
bytes leave, not when the step that made it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.effects import Reply, Send
from tidelog.errors import StorageError
from tidelog.events import CONNECTION_REFUSED, ConnectionClosed, Event, PeerAnswered, PeerFailed, Request
from tidelog.sim.machines import Host, Process
from tidelog.sim.network import CONTROL, DATA, Connection, Link, Message, Network, Place
from tidelog.sim.passing import hand_over_batches, pass_request, pass_response, record_bytes
from tidelog.sim.timeline import Timeline
from tidelog.wire.api_table import ApiKey

Answered = Callable[[Any], None]
"""Called with the response, or with None when the connection ended first."""
UNREAD = Message("", "", -1, -1, None, is_request=False)
"""Stands for any message where nobody reads them."""
CONNECT_TIMEOUT_MS = 2000
"""As the runtime's: how long a node tries to reach a peer that does not answer."""


class Wires(Timeline):
    """The network between hosts, and what is on its way on it."""

    def __init__(self, seed: int, start_ms: int) -> None:
        super().__init__(seed, start_ms)
        self.hosts: dict[int, Host] = {}
        self.network = Network()
        self.on_message: Callable[[Message], None] | None = None
        """Sees every message between nodes, and between clients and nodes, as it arrives."""
        self.through_bytes = True
        """Whether messages are encoded and decoded on their way, as on a wire."""
        self.has_narrow_sockets = False
        """Whether answers whose way is closed wait in the node that sends them, slices unread, as where sockets have no
        room for more; else they are on their way already."""
        self.may_send_on = False
        """Whether what was sent by an end that closes, or dies, may arrive after that, and late; else it is lost."""
        self.torn_answers: list[tuple[int, Place]] = []
        """From whom to whom answers went that had other bytes when they left than when they were given."""

    def step(self, process: Process, event: Event) -> None:
        """Give an event to a node: what a world does with what arrives."""
        raise NotImplementedError

    def connect(
        self, name: int, listener: str = "PLAINTEXT", source: Place = "client", owner: Process | None = None
    ) -> Connection | None:
        """Somebody connects; None when nobody listens there."""
        host = self.hosts[name]
        process = host.process
        if process is None or not process.alive:
            return None
        kind = CONTROL if listener in host.control_listeners else DATA
        connection = Connection(self._number(), source, owner, process, listener, kind)
        process.connections[connection.connection_id] = connection
        return connection

    def is_cut(self, source: Place, name: int, listener: str = "PLAINTEXT") -> bool:
        """Whether no connection can be made from a place to a node, because the network between them is cut."""
        return self.network.is_cut(source, name, CONTROL if listener in self.hosts[name].control_listeners else DATA)

    def request(
        self,
        connection: Connection,
        api_key: int,
        api_version: int,
        body: Any,
        answered: Answered,
        timeout_ms: int | None = None,
    ) -> None:
        """Send a request; `answered` is called exactly once. Past its time the whole connection is closed."""
        if not connection.is_open:
            answered(None)
            return
        slot = connection.next_slot
        connection.next_slot += 1
        connection.answered[slot] = (api_key, api_version, answered)
        if timeout_ms is not None:
            connection.deadlines[slot] = self.now_ms + timeout_ms
            if not connection.watched:
                self._watch_deadlines(connection)
        if self.through_bytes:
            body = pass_request(api_key, api_version, body, connection.process.node.api_versions)
        elif api_key == ApiKey.PRODUCE:
            hand_over_batches(body)

        def arrive() -> None:
            event = Request(
                connection.connection_id, slot, api_key, api_version, "sim", body, "sim", connection.listener
            )
            self.step(connection.process, event)

        message = UNREAD
        if self.on_message is not None:
            source, target, _ = connection.to_node.key
            message = Message(source, target, api_key, api_version, body, is_request=True)
        self._deliver(connection.to_node, arrive, message)

    def _reply(self, process: Process, effect: Reply) -> None:
        connection = process.connections.get(effect.connection_id)
        if connection is None:
            return
        if effect.slot == connection.next_reply and not connection.replies:
            connection.next_reply += 1
            self._leave(connection, effect.slot, effect.body)
            return
        connection.replies[effect.slot] = effect.body
        while connection.next_reply in connection.replies:
            slot = connection.next_reply
            connection.next_reply += 1
            self._leave(connection, slot, connection.replies.pop(slot))

    def _leave(self, connection: Connection, slot: int, body: Any) -> None:
        """Send an answer; the bytes leave a moment later, and that is when slices are read, and found to be cut."""
        waiting = connection.answered.get(slot)
        if waiting is None:
            return
        api_key, api_version, _ = waiting
        link = connection.to_client
        link.last_at_ms = max(link.last_at_ms, self.now_ms + self._delay_ms())
        self.at(link.last_at_ms, lambda: self._leave_now(connection, slot, api_key, api_version, body, None))

    def _leave_now(
        self, connection: Connection, slot: int, api_key: int, api_version: int, body: Any, promised: bytes | None
    ) -> None:
        """`promised`: the records it had when it could have left before, where its way was closed."""
        link = connection.to_client
        if not link.open:
            return
        route = self.network.get(link.key) if self.has_narrow_sockets else None
        if route is not None and not route.is_open:
            seen = record_bytes(api_key, body) if promised is None else promised
            route.waiting.append((lambda: self._leave_now(connection, slot, api_key, api_version, body, seen), UNREAD))
            return
        sent = body
        if sent is not None:
            try:
                sent = pass_response(api_key, api_version, sent, through_bytes=self.through_bytes)
            except (ConnectionAbortedError, StorageError):
                self.close(connection, by=connection.process)
                return
            if promised is not None and record_bytes(api_key, body) != promised:
                self.torn_answers.append((connection.process.host.name, link.key[1]))
        message = None if sent is None else UNREAD
        if message is not None and self.on_message is not None:
            source, target, _ = link.key
            message = Message(source, target, api_key, api_version, sent, is_request=False)
        self._deliver(link, lambda: self._answer(connection, slot, sent), message)

    @staticmethod
    def _answer(connection: Connection, slot: int, body: Any) -> None:
        waiting = connection.answered.pop(slot, None)
        connection.deadlines.pop(slot, None)
        if waiting is not None:
            waiting[2](body)

    def _send(self, process: Process, effect: Send) -> None:
        """A node asks a peer, over one connection a (peer, channel)."""

        def answered(body: Any) -> None:
            if body is None:
                self.step(process, PeerFailed(effect.peer_id, effect.request_id, "connection lost"))
            else:
                self.step(process, PeerAnswered(effect.peer_id, effect.request_id, body))

        key = (effect.peer_id, effect.channel)
        connection = process.peers.get(key)
        if connection is None or not connection.is_open:
            address = (effect.host, effect.port)
            target = next((one for one in self.hosts.values() if address in one.addresses), None)
            if target is not None and self.is_cut(process.host.name, target.name, target.addresses[address]):
                failed = PeerFailed(effect.peer_id, effect.request_id, f"no connection within {CONNECT_TIMEOUT_MS} ms")
                self.at(self.now_ms + min(CONNECT_TIMEOUT_MS, effect.timeout_ms), lambda: self.step(process, failed))
                return
            connection = (
                None
                if target is None
                else self.connect(target.name, target.addresses[address], process.host.name, process)
            )
            if connection is None:
                refused = PeerFailed(effect.peer_id, effect.request_id, CONNECTION_REFUSED)
                self.at(self.now_ms + self._delay_ms(), lambda: self.step(process, refused))
                return
            process.peers[key] = connection
        self.request(connection, effect.api_key, effect.api_version, effect.body, answered, effect.timeout_ms)

    def _watch_deadlines(self, connection: Connection) -> None:
        """One look a connection, at the earliest deadline, and another one for the next."""
        if connection.watched or not connection.deadlines:
            return
        connection.watched = True

        def look() -> None:
            connection.watched = False
            if not connection.is_open:
                return
            if connection.deadlines and min(connection.deadlines.values()) <= self.now_ms:
                self.close(connection, by=connection.owner)
            else:
                self._watch_deadlines(connection)

        self.at(min(connection.deadlines.values()), look)

    def _deliver(self, link: Link, action: Callable[[], None], message: Message | None) -> None:
        """Let something arrive after a drawn delay, in the connection's order, unless the route keeps it back."""
        get_route, key = self.network.get, link.key
        route = get_route(key)
        least_ms = self.least_delay_ms
        at_ms = self.now_ms + least_ms + self.chance.below(self.most_delay_ms - least_ms + 1)
        if route is not None:
            at_ms += route.extra_delay_ms
        at_ms = max(at_ms, link.last_at_ms)
        link.last_at_ms = at_ms

        def arrive() -> None:
            if message is not None and not link.delivers:
                return
            route = get_route(key)
            if route is None or (route.is_open and not route.waiting):
                if message is not None and self.on_message is not None:
                    self.on_message(message)
                action()
            else:
                route.waiting.append((lambda: self._pass_on(link, action, message), message))

        self.at(at_ms, arrive)

    def _pass_on(self, link: Link, action: Callable[[], None], message: Message | None) -> None:
        """Let something go on that a route had kept back."""
        if message is None or link.delivers:
            if message is not None and self.on_message is not None:
                self.on_message(message)
            action()

    def close(self, connection: Connection, by: Process | None, *, is_reset: bool = False) -> None:
        """One end closes; the other end is told over the network, behind what was sent before, unless that is lost."""
        if not connection.is_open:
            return
        connection.to_node.open = connection.to_client.open = False
        node = connection.process
        outgoing = connection.to_client if by is node else connection.to_node
        outgoing.drains = self.may_send_on and not is_reset and self.chance.below(2) == 0

        def node_sees() -> None:
            if node.connections.pop(connection.connection_id, None) is not None:
                self.step(node, ConnectionClosed(connection.connection_id, "connection lost", by_peer=True))

        def client_sees() -> None:
            waiting, connection.answered = connection.answered, {}
            for _, _, answered in waiting.values():
                answered(None)

        if by is node:
            node.connections.pop(connection.connection_id, None)
            self.step(node, ConnectionClosed(connection.connection_id, "closed here", by_peer=False))
            self._deliver(connection.to_client, client_sees, None)
        else:
            self.at(self.now_ms + self._delay_ms(), client_sees)
            self._deliver(connection.to_node, node_sees, None)

    def reset(self, connection: Connection) -> None:
        """A connection breaks: its node sees that at once, and the other end a moment later."""
        node = connection.process
        if connection.is_open and node.connections.pop(connection.connection_id, None) is not None:
            self.close(connection, by=None, is_reset=True)
            self.step(node, ConnectionClosed(connection.connection_id, "connection lost", by_peer=True))
