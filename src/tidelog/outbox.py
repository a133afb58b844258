"""What a room of the core may ask for: answers, flushes, sends, work, timers, the time and seeded chance.

One `Outbox` belongs to one node. Rooms put effects into it during a step and hand over what to do when the outcome
comes; the node gives the collected effects to the runtime at the end of the step. Nothing here reads a clock or waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.effects import Close, Effect, Flush, Halt, Reply, Send, Tell, Work
from tidelog.events import LOCAL_CONNECTION
from tidelog.storage import File, Storage

FlushContinuation = Callable[[str | None], None]
"""Called with None when the bytes are durable, or with the disk's complaint."""
SendContinuation = Callable[[Any, str | None], None]
"""Called with the peer's answer and None, or with None and why there will be no answer."""
WorkContinuation = Callable[[Any, str | None], None]


class Chance:
    """The seeded generator a node draws timeouts and ids from (splitmix64): the same seed gives the same life."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & 0xFFFFFFFFFFFFFFFF

    def bits64(self) -> int:
        """Sixty-four fresh bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return mixed ^ (mixed >> 31)

    def below(self, bound: int) -> int:
        """An integer from 0 to bound - 1."""
        self._state = mixed = (self._state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF  # `bits64`, without the call
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return (mixed ^ (mixed >> 31)) % bound

    def uuid(self) -> bytes:
        """Sixteen bytes of a version 4 UUID, never one whose text starts with a dash (as Kafka avoids)."""
        while True:
            raw = bytearray(self.bits64().to_bytes(8, "big") + self.bits64().to_bytes(8, "big"))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            if raw[0] >> 2 != 62:  # 62 is "-" in URL-safe base64
                return bytes(raw)


class Timer:
    """A callback at a time; `cancel` is cheap and may be called twice."""

    __slots__ = ("at_ms", "callback")

    def __init__(self, at_ms: int, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Never call back."""
        self.callback = None


class Outbox:
    """Collects the effects of one step and remembers who waits for which outcome."""

    def __init__(self, seed: int) -> None:
        self.now_ms = 0
        """The time of the step under way; time never goes back within a node (see Node.step)."""
        self.chance = Chance(seed)
        self._effects: list[Effect] = []
        self._timers: list[tuple[int, int, Timer]] = []
        self._next_number = 1
        self._waiting: dict[int, Callable[..., None]] = {}
        """Continuations by token or request id: each is removed when it is called, so each is called at most once."""
        self.on_tell: Callable[[str, Mapping[str, Any]], None] | None = None
        """Hears of everything told, besides the people."""
        self._at_end_of_step: list[Callable[[], None]] = []

    # --- effects ---

    def reply(self, connection_id: int, slot: int, body: Any) -> None:
        """Answer a request; None releases its slot without an answer."""
        if connection_id == LOCAL_CONNECTION:
            self.at_end_of_step(lambda: self.resume(slot, body, None))
        else:
            self._effects.append(Reply(connection_id, slot, body))

    def close(self, connection_id: int, reason: str) -> None:
        """Close a client's connection."""
        self._effects.append(Close(connection_id, reason))

    def flush(
        self,
        storage: Storage,
        then: FlushContinuation,
        *,
        files: Sequence[File] = (),
        replacements: Sequence[tuple[str, bytes]] = (),
        directories: Sequence[str] = (),
    ) -> None:
        """Make bytes durable, then continue."""
        self._effects.append(Flush(self._wait(then), storage, files, replacements, directories))

    def work(self, storage: Storage, job: Any, arguments: tuple[Any, ...], then: WorkContinuation) -> None:
        """Run a pure job off the loop, then continue with its result."""
        self._effects.append(Work(self._wait(then), storage, job, arguments))

    def send(
        self,
        peer: tuple[int, str, int],
        channel: str,
        api_key: int,
        api_version: int,
        body: Any,
        timeout_ms: int,
        then: SendContinuation,
    ) -> None:
        """Ask a peer (id, host, port), then continue with its answer."""
        peer_id, host, port = peer
        self._effects.append(
            Send(peer_id, host, port, channel, self._wait(then), api_key, api_version, body, timeout_ms)
        )

    def tell(self, kind: str, level: str = "info", /, **fields: Any) -> None:
        """Show something to people."""
        self.tell_fields(kind, fields, level)

    def tell_fields(self, kind: str, fields: Mapping[str, Any], level: str = "info") -> None:
        """The same, for fields that are already a mapping."""
        self._effects.append(Tell(kind, fields, level))
        if self.on_tell is not None:
            self.on_tell(kind, fields)

    def halt(self, exit_code: int, reason: str) -> None:
        """End the process."""
        self._effects.append(Halt(exit_code, reason))

    # --- time ---

    def at(self, at_ms: int, callback: Callable[[], None]) -> Timer:
        """Call back in the first step at or after `at_ms`; equal times run in the order they were set."""
        timer = Timer(at_ms, callback)
        heapq.heappush(self._timers, (at_ms, self._number(), timer))
        return timer

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Call back `delay_ms` from now."""
        return self.at(self.now_ms + delay_ms, callback)

    def at_end_of_step(self, callback: Callable[[], None]) -> None:
        """Call back once when all else of this step is done: what it gathered goes out in one batch, one flush."""
        self._at_end_of_step.append(callback)

    @property
    def wake_at_ms(self) -> int | None:
        """When the next live timer is due."""
        timers = self._timers
        while timers and timers[0][2].callback is None:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    # --- the node's side ---

    def run_due_timers(self) -> None:
        """Run what is due at `now_ms`. A timer set for now by a timer runs in the next step, so a step ends."""
        timers, now_ms = self._timers, self.now_ms
        if not timers or timers[0][0] > now_ms:
            return
        due: list[Timer] = []
        while timers and timers[0][0] <= now_ms:
            due.append(heapq.heappop(timers)[2])
        for timer in due:
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()

    def expect(self, then: Callable[..., None]) -> int:
        """A number that `resume` will continue: for answers that come from within this node."""
        return self._wait(then)

    def cancel(self, number: int) -> None:
        """Forget who waits for this number."""
        self._waiting.pop(number, None)

    def resume(self, number: int, *outcome: Any) -> None:
        """Continue whoever waits for this token or request id; an unknown one is a late answer and is ignored."""
        continuation = self._waiting.pop(number, None)
        if continuation is not None:
            continuation(*outcome)

    def take_effects(self) -> list[Effect]:
        """End the step and hand over what was collected since the last call."""
        while self._at_end_of_step:
            callbacks, self._at_end_of_step = self._at_end_of_step, []
            for callback in callbacks:
                callback()
        effects, self._effects = self._effects, []
        return effects

    def _number(self) -> int:
        number = self._next_number
        self._next_number = number + 1
        return number

    def _wait(self, then: Callable[..., None]) -> int:
        number = self._number()
        self._waiting[number] = then
        return number
