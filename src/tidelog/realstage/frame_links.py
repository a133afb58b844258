"""The network between real places, message by message: what passes can be held, let through by hand, cut, slowed, told.

Every node reaches every other through an entrance of its own, and clients reach a node through one that they share: a
client is known by the client id of its first request. A route is one direction between two places for one kind of
traffic, as in the simulated network, and means the same:

    held      what arrives waits; `let` delivers it by hand, `release` lets everything go on
    cut       what arrives waits, as under a retransmission, and a new connection gets no answer
    slow      everything takes longer

An entrance refuses while nobody listens behind it. A connection ends for both sides when it ends for one; what it had
waiting is gone, as what a dead process had in its buffers. ApiVersions passes a held route: it is how a connection is
made. All of it runs on a thread of its own.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from tidelog.errors import TidelogError
from tidelog.runtime import doors
from tidelog.runtime.cluster_plan import HOST
from tidelog.sim.network import KINDS, Message, Place
from tidelog.wire import frames
from tidelog.wire.api_table import ApiKey

RouteKey = tuple[Place, Place, str]
COUNTED = (ApiKey.PRODUCE, ApiKey.FETCH)
"""What scripts count and are told of; anything else on a held route passes together with what is behind it."""
MAX_FRAME_BYTES = 100_000_000
STREAM_BYTES = 1 << 20
LOOK_BEHIND_S = 0.02
"""How often it is looked whether a dead node listens again."""
_request_head = struct.Struct(">hhih")
Answer = TypeVar("Answer")


class Route:
    """One direction between two places for one kind of traffic."""

    def __init__(self) -> None:
        self.held = False
        self.cut = False
        self.delay_ms = 0
        self.waiting: deque[Parcel] = deque()

    @property
    def is_open(self) -> bool:
        """Whether what arrives may pass."""
        return not self.held and not self.cut


class Parcel:
    """One message on its way over one connection."""

    def __init__(
        self, pair: Pair, source: Place, target: Place, api_key: int, version: int, data: bytes, is_request: bool
    ) -> None:
        self.pair = pair
        self.source = source
        self.target = target
        self.api_key = api_key
        self.version = version
        self.data = data
        self.is_request = is_request

    @property
    def is_counted(self) -> bool:
        """Whether scripts count it."""
        return self.api_key in COUNTED

    def message(self) -> Message | None:
        """The message itself, where it is of a kind that is told."""
        if not self.is_counted:
            return None
        if self.is_request:
            body = frames.decode_request(self.data, {self.api_key: (self.version, self.version)}).body
        else:
            _, body = frames.decode_response(self.api_key, self.version, self.data)
        return Message(self.source, self.target, self.api_key, self.version, body, is_request=self.is_request)


class Pair:
    """The two halves of one connection: to the place that made it, and to the node it meant."""

    def __init__(self, near: asyncio.StreamWriter) -> None:
        self.near = near
        self.far: asyncio.StreamWriter | None = None
        self.asked: dict[int, tuple[int, int]] = {}
        """API and version of each request without an answer, by correlation id."""
        self.is_open = True

    def close(self) -> None:
        """End both halves."""
        self.is_open = False
        for half in (self.near, self.far):
            if half is not None:
                half.close()


class Target:
    """A port of a node, and the doors that lead there."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.doors: list[tuple[socket.socket, Callable[[], None]]] = []
        """Each with what is to be done when somebody comes."""
        self.is_shut = False


class FrameLinks:
    """Every entrance and every route of one cluster."""

    def __init__(self, on_message: Callable[[Message], None]) -> None:
        """`on_message` sees what is counted when it is delivered, on the thread of the links."""
        self._on_message = on_message
        self._routes: dict[RouteKey, Route] = {}
        self._pairs: set[Pair] = set()
        self._targets: dict[int, Target] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="frame-links", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End every connection, then the thread."""

        async def end() -> None:
            for target in self._targets.values():
                target.is_shut = True
                for door, _ in target.doors:
                    self._loop.remove_reader(door)
                    door.close()
            while self._tasks:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)
            for pair in list(self._pairs):
                pair.close()

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def open_entrance(self, source: int | None, target: int, kind: str, target_port: int) -> int:
        """Listen for those who mean a port of a node: another node or, without a source, clients. Returns the port."""

        async def serve(accepted: socket.socket) -> None:
            reader, writer = await asyncio.open_connection(sock=accepted, limit=STREAM_BYTES)
            pair = Pair(writer)
            self._pairs.add(pair)
            try:
                await self._serve(pair, reader, source, target, kind, target_port)
            except (OSError, asyncio.IncompleteReadError):
                await self._look_behind(self._targets[target_port])
            finally:
                pair.close()
                self._pairs.discard(pair)
                self._drop(pair)

        async def listen() -> int:
            door = doors.open_door(HOST)
            door.setblocking(False)

            def come() -> None:
                with suppress(OSError):
                    accepted, _ = door.accept()
                    accepted.setblocking(False)
                    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._keep(serve(accepted))

            self._targets.setdefault(target_port, Target(target_port)).doors.append((door, come))
            self._loop.add_reader(door, come)
            port: int = door.getsockname()[1]
            return port

        return self._run(listen())

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._loop.call_exception_handler({"message": "a link failed", "exception": task.exception()})

    async def _look_behind(self, target: Target) -> None:
        """A connection broke: shut the doors to a port where nobody listens, until somebody does."""
        if target.is_shut or await _listens(target.port) or target.is_shut:  # many break at once, and look at once
            return
        target.is_shut = True
        for door, _ in target.doors:
            self._loop.remove_reader(door)
            doors.shut(door)
        self._keep(self._wait_for(target))

    async def _wait_for(self, target: Target) -> None:
        while True:
            await asyncio.sleep(LOOK_BEHIND_S)
            if await _listens(target.port):
                break
        target.is_shut = False
        for door, come in target.doors:
            doors.reopen(door)
            self._loop.add_reader(door, come)

    # --- what scripts do to it ---

    def hold(self, source: Place, target: Place, kind: str) -> None:
        """Keep back what arrives in one direction."""
        self._change(source, target, kind, "held", True)

    def release(self, source: Place, target: Place, kind: str) -> None:
        """Let a held direction go on, beginning with what waited."""
        self._change(source, target, kind, "held", False)

    def cut(self, source: Place, target: Place, kind: str) -> None:
        """Nothing passes in one direction, and nobody is answered who connects."""
        self._change(source, target, kind, "cut", True)

    def mend(self, source: Place, target: Place, kind: str) -> None:
        """A cut direction works again."""
        self._change(source, target, kind, "cut", False)

    def slow(self, source: Place, target: Place, kind: str, extra_ms: int) -> None:
        """Everything in one direction takes this much longer."""
        self._change(source, target, kind, "delay_ms", extra_ms)

    def heal(self) -> None:
        """Every direction is as it should be."""

        async def change() -> None:
            for route in self._routes.values():
                route.held, route.cut, route.delay_ms = False, False, 0
                self._drain(route)

        self._run(change())

    def let(self, source: Place, target: Place, kind: str, count: int | None) -> None:
        """Deliver what waits, at most `count` messages that are counted; the way stays held."""

        async def deliver() -> None:
            left = count
            for route in self._routes_of(source, target, kind):
                while route.waiting and (left is None or left > 0 or not route.waiting[0].is_counted):
                    parcel = route.waiting.popleft()
                    if left is not None and parcel.is_counted:
                        left -= 1
                    self._deliver(parcel)

        self._run(deliver())

    def waiting(self, source: Place, target: Place, kind: str) -> int:
        """How many messages that are counted wait in one direction."""

        async def count() -> int:
            routes = self._routes_of(source, target, kind)
            return sum(parcel.is_counted for route in routes for parcel in route.waiting)

        return self._run(count())

    # --- on the thread of the links ---

    def _run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def _route(self, source: Place, target: Place, kind: str) -> Route:
        return self._routes.setdefault((source, target, kind), Route())

    def _routes_of(self, source: Place, target: Place, kind: str) -> list[Route]:
        return [self._route(source, target, one) for one in (KINDS if kind == "both" else (kind,))]

    def _change(self, source: Place, target: Place, kind: str, name: str, value: Any) -> None:
        async def change() -> None:
            for route in self._routes_of(source, target, kind):
                setattr(route, name, value)
                self._drain(route)

        self._run(change())

    def _drain(self, route: Route) -> None:
        while route.is_open and route.waiting:
            self._deliver(route.waiting.popleft())

    def _drop(self, pair: Pair) -> None:
        for route in self._routes.values():
            if any(parcel.pair is pair for parcel in route.waiting):
                route.waiting = deque(parcel for parcel in route.waiting if parcel.pair is not pair)

    async def _serve(
        self, pair: Pair, reader: asyncio.StreamReader, source: int | None, target: int, kind: str, target_port: int
    ) -> None:
        first = await _read_frame(reader)
        place: Place = _client_id(first) if source is None else source
        while self._route(place, target, kind).cut or self._route(target, place, kind).cut:
            await asyncio.sleep(0.05)
            if reader.at_eof():
                return
        far_reader, pair.far = await asyncio.open_connection(HOST, target_port, limit=STREAM_BYTES)
        self._request_came(pair, place, target, kind, first)
        ends = [
            asyncio.ensure_future(self._pump_requests(pair, reader, place, target, kind)),
            asyncio.ensure_future(self._pump_answers(pair, far_reader, target, place, kind)),
        ]
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if ends[1] in done:
                raise ConnectionResetError("the node ended it")
        finally:
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)

    async def _pump_requests(
        self, pair: Pair, reader: asyncio.StreamReader, source: Place, target: Place, kind: str
    ) -> None:
        while True:
            self._request_came(pair, source, target, kind, await _read_frame(reader))
            assert pair.far is not None
            await pair.far.drain()

    def _request_came(self, pair: Pair, source: Place, target: Place, kind: str, data: bytes) -> None:
        api_key, version, correlation_id, _ = _request_head.unpack_from(data)
        pair.asked[correlation_id] = (api_key, version)
        self._came(Parcel(pair, source, target, api_key, version, data, True), kind)

    async def _pump_answers(
        self, pair: Pair, reader: asyncio.StreamReader, source: Place, target: Place, kind: str
    ) -> None:
        while True:
            data = await _read_frame(reader)
            api_key, version = pair.asked.pop(int.from_bytes(data[:4], "big", signed=True), (-1, -1))
            self._came(Parcel(pair, source, target, api_key, version, data, False), kind)
            await pair.near.drain()

    def _came(self, parcel: Parcel, kind: str) -> None:
        route = self._route(parcel.source, parcel.target, kind)
        passes = route.is_open or (parcel.api_key == ApiKey.API_VERSIONS and not route.cut)
        if not passes:
            route.waiting.append(parcel)
        elif route.delay_ms:
            self._loop.call_later(route.delay_ms / 1000, self._deliver, parcel)
        else:
            self._deliver(parcel)

    def _deliver(self, parcel: Parcel) -> None:
        if not parcel.pair.is_open:
            return
        with suppress(TidelogError):  # what we cannot read is for the one it is meant for to refuse
            message = parcel.message()
            if message is not None:
                self._on_message(message)
        half = parcel.pair.far if parcel.is_request else parcel.pair.near
        assert half is not None
        half.write(len(parcel.data).to_bytes(4, "big") + parcel.data)


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    # A connection to a dead node's port may be given that very port, and reach nobody but itself.
    return bool(writer.get_extra_info("sockname") != writer.get_extra_info("peername"))


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > MAX_FRAME_BYTES:
        raise OSError(f"a frame of {size} bytes")
    return await reader.readexactly(size)


def _client_id(frame: bytes) -> str:
    """Who sent a request, as it calls itself; the place of those without a name is empty."""
    length = _request_head.unpack_from(frame)[3]
    return frame[10 : 10 + length].decode("utf-8", "replace") if length > 0 else ""
