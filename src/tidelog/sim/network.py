"""What lies between machines: routes that can be held, cut and slowed, and the connections over them.

A route is one direction between two places, for one kind of traffic: `data` goes to the listeners of brokers (and the
answers come back), `control` to those of controllers. What travels on a connection keeps its order, as TCP does.

    held      what arrives waits; `let` delivers it by hand, `release` lets everything go on
    cut       what arrives waits as under a retransmission, and nobody can connect
    slow      everything takes longer
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog.sim.machines import Process

Place = int | str
"""A node's id, or a client's name."""
DATA, CONTROL = "data", "control"
KINDS = (DATA, CONTROL)
RouteKey = tuple[Place, Place, str]


class Message:
    """A request or an answer on its way; what a reader of a trace wants to know of it."""

    __slots__ = ("api_key", "api_version", "body", "is_request", "source", "target")

    def __init__(
        self, source: Place, target: Place, api_key: int, api_version: int, body: Any, *, is_request: bool
    ) -> None:
        self.source = source
        self.target = target
        self.api_key = api_key
        self.api_version = api_version
        self.body = body
        self.is_request = is_request


Parcel = tuple[Callable[[], None], Message | None]
"""What happens on arrival, and the message; None for the end of a connection."""


class Route:
    """One direction between two places for one kind of traffic."""

    __slots__ = ("cut", "extra_delay_ms", "held", "waiting")

    def __init__(self) -> None:
        self.held = False
        self.cut = False
        self.extra_delay_ms = 0
        self.waiting: deque[Parcel] = deque()
        """What has arrived and is kept back, oldest first."""

    @property
    def is_open(self) -> bool:
        """Whether what arrives may pass."""
        return not self.held and not self.cut


class Link:
    """One direction of one connection: delivers in order."""

    __slots__ = ("drains", "key", "last_at_ms", "open")

    def __init__(self, key: RouteKey) -> None:
        self.key = key
        self.last_at_ms = 0
        self.open = True
        self.drains = False
        """Closed, and what was sent before still arrives: a kernel sends on for a process that is gone."""

    @property
    def delivers(self) -> bool:
        """Whether what is on its way arrives."""
        return self.open or self.drains


class Connection:
    """A client's or a peer's connection to one process of a node; answers leave it in the order of the requests."""

    __slots__ = (
        "answered",
        "connection_id",
        "deadlines",
        "listener",
        "next_reply",
        "next_slot",
        "owner",
        "process",
        "replies",
        "to_client",
        "to_node",
        "watched",
    )

    def __init__(
        self, connection_id: int, source: Place, owner: Process | None, process: Process, listener: str, kind: str
    ) -> None:
        self.connection_id = connection_id
        self.listener = listener
        self.owner = owner
        """The process that made it; None for a client's."""
        self.process = process
        target = process.host.name
        self.to_node = Link((source, target, kind))
        self.to_client = Link((target, source, kind))
        self.next_slot = 0
        self.next_reply = 0
        self.replies: dict[int, Any] = {}
        """Answers that must not leave before those of earlier requests."""
        self.answered: dict[int, tuple[int, int, Callable[[Any], None]]] = {}
        """API, version and continuation of each request under way, by slot."""
        self.deadlines: dict[int, int] = {}
        """When each request under way is given up, where its sender does that."""
        self.watched = False

    @property
    def is_open(self) -> bool:
        """Whether it may still be used by the side that made it."""
        return self.to_node.open


class Network:
    """Every route that is not as it should be; one that nobody touched is open."""

    def __init__(self) -> None:
        self._routes: dict[RouteKey, Route] = {}
        self.get = self._routes.get
        """The state of a route, None if nobody ever touched it."""

    def routes(self, source: Place, target: Place, kinds: Iterable[str] = KINDS) -> list[Route]:
        """The routes of one direction, made where nobody touched them before."""
        return [self._routes.setdefault((source, target, kind), Route()) for kind in kinds]

    def is_cut(self, source: Place, target: Place, kind: str) -> bool:
        """Whether no connection can be made: a handshake needs both directions."""
        return any(
            route is not None and route.cut
            for route in (self._routes.get((source, target, kind)), self._routes.get((target, source, kind)))
        )

    def forget(self, name: Place) -> None:
        """Drop what waits on its way from a place that is gone, and its buffers with it."""
        for (source, _, _), route in self._routes.items():
            if source == name:
                route.waiting = deque(parcel for parcel in route.waiting if parcel[1] is None)

    # --- what scripts and swarms do to it; never from within a node's step ---

    def hold(self, source: Place, target: Place, kinds: Iterable[str] = KINDS) -> None:
        """Keep back what arrives in one direction."""
        for route in self.routes(source, target, kinds):
            route.held = True

    def let(self, source: Place, target: Place, kinds: Iterable[str] = KINDS, count: int | None = None) -> int:
        """Deliver what waits in a held direction, at most `count` messages; it stays held. Returns how many passed."""
        passed = 0
        for route in self.routes(source, target, kinds):
            while route.waiting and (count is None or passed < count):
                arrive, message = route.waiting.popleft()
                passed += message is not None
                arrive()
        return passed

    def release(self, source: Place, target: Place, kinds: Iterable[str] = KINDS) -> None:
        """Let a held direction go on, beginning with what waited."""
        for route in self.routes(source, target, kinds):
            route.held = False
        self._drain()

    def cut(self, source: Place, target: Place, kinds: Iterable[str] = KINDS) -> None:
        """Nothing passes in one direction, and nobody can connect."""
        for route in self.routes(source, target, kinds):
            route.cut = True

    def mend(self, source: Place, target: Place, kinds: Iterable[str] = KINDS) -> None:
        """A cut direction works again."""
        for route in self.routes(source, target, kinds):
            route.cut = False
        self._drain()

    def slow(self, source: Place, target: Place, extra_ms: int, kinds: Iterable[str] = KINDS) -> None:
        """Everything in one direction takes this much longer."""
        for route in self.routes(source, target, kinds):
            route.extra_delay_ms = extra_ms

    def heal(self) -> None:
        """Every direction is as it should be again."""
        for route in self._routes.values():
            route.held = route.cut = False
            route.extra_delay_ms = 0
        self._drain()

    def _drain(self) -> None:
        for route in list(self._routes.values()):
            while route.is_open and route.waiting:
                route.waiting.popleft()[0]()
