"""Clients of a simulated cluster whose lives are written as scripts: generators that wait for what they yield.

A script reads from top to bottom, though many of them live in one world and nothing here waits. What it yields is a
wait: a function that is given how to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.outbox import Chance
from tidelog.sim.client import Client
from tidelog.sim.world import World
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.find_coordinator import FindCoordinatorRequest

Resume = Callable[[Any], None]
Script = Generator[Callable[[Resume], None], Any, Any]
"""Yields waits, is sent what came of them, and may return something to the script that it is part of."""
GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators."""
PATIENCE_MS = 4_000
ABANDONED_MS = 30_000
"""How long a request that its sender gave up may still be on its way."""
RETRY_MS = 60
BUSY = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    )
)
"""What a client comes again on, at whoever it is told to ask then."""


class Scripted(Client):
    """A client that plays scripts."""

    def __init__(self, world: World, name: str, brokers: Sequence[int], draw: int) -> None:
        super().__init__(world, name, brokers)
        self.chance = Chance(draw)
        """Decides what this client does, so that the world's own drawing is not disturbed by it."""
        self.operations = 0
        self._coordinators: dict[tuple[int, str], int] = {}

    def play(self, script: Script) -> None:
        """Let a script run until it ends, or until this client is gone."""

        def go_on(value: Any) -> None:
            if self.closed:
                return
            try:
                wait = script.send(value)
            except StopIteration:
                return
            wait(go_on)

        go_on(None)

    # --- waits ---

    def sleeping(self, duration_ms: int) -> Script:
        """Let time pass."""
        yield lambda resume: self.after(duration_ms, lambda: resume(None))

    def asking(
        self,
        node_id: int,
        api_key: int,
        version: int,
        body: Any,
        patience_ms: int = PATIENCE_MS,
        *,
        leaves: bool = False,
    ) -> Script:
        """One request; None when there was no answer in time.

        With `leaves` the request is not taken back with its connection: it may arrive when nobody waits any more.
        """
        self.operations += 1
        if not leaves:
            answer = yield lambda resume: self.ask(node_id, api_key, version, body, resume, patience_ms)
            return answer

        def wait(resume: Resume) -> None:
            is_over = False

            def end(answer: Any) -> None:
                nonlocal is_over
                if not is_over:
                    is_over = True
                    resume(answer)

            def give_up() -> None:
                if not is_over:
                    self._connections.pop(node_id, None)
                    end(None)

            self.ask(node_id, api_key, version, body, end, ABANDONED_MS)
            self.after(patience_ms, give_up)

        answer = yield wait
        return answer

    # --- coordinators and leaders ---

    def asking_coordinator(
        self,
        kind: int,
        key: str,
        api_key: int,
        version: int,
        body: Any,
        code_of: Callable[[Any], int],
        *,
        tries: int = 1_000_000,
        leaves: bool = False,
        patience_ms: int = PATIENCE_MS,
        again: Any = None,
    ) -> Script:
        """The code and the answer of a coordinator, after coming again while it is too early or elsewhere.

        After `tries` in vain the code is that of the last one, and nobody knows what came of the request. `again` is
        asked instead when the first time was in vain.
        """
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        for _ in range(tries):
            node_id = self._coordinators.get((kind, key))
            if node_id is None:
                node_id = yield from self._finding(kind, key)
            if node_id is not None:
                answer = yield from self.asking(node_id, api_key, version, body, patience_ms, leaves=leaves)
                code = ErrorCode.NETWORK_EXCEPTION if answer is None else ErrorCode(code_of(answer))
                if code not in BUSY:
                    return code, answer
                body = body if again is None else again
                if code not in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT):
                    self._coordinators.pop((kind, key), None)
            yield from self.sleeping(RETRY_MS)
        return code, None

    def _finding(self, kind: int, key: str) -> Script:
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=kind)
        answer = yield from self.asking(self.any_broker(), ApiKey.FIND_COORDINATOR, 4, request, 1_000)
        if answer is None or answer.coordinators[0].error_code:
            return None
        self._coordinators[kind, key] = answer.coordinators[0].node_id
        return answer.coordinators[0].node_id

    def leading(self, topic: str, index: int) -> Script:
        """Who leads a partition, as far as one can be told."""
        while True:
            leader = self.leaders.get((topic, index), (-1, -1))[0]
            if leader >= 0:
                return leader
            yield lambda resume: self.find_leader(topic, lambda: resume(None))
            if self.leaders.get((topic, index), (-1, -1))[0] < 0:
                yield from self.sleeping(RETRY_MS)

    def look_again(self, topic: str, index: int) -> None:
        """Whoever was known to lead a partition does not, or not any more."""
        self.leaders.pop((topic, index), None)
