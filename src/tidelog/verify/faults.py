"""What is broken when: kinds of faults and their targets, drawn from one seed and rolling through all roles.

kill        SIGKILL of one node, and its restart a moment later
pause       SIGSTOP of one node for longer than its session, then SIGCONT
stop        a clean stop of one node, and its restart
partition   one node cut off from the others: reset, held silently, or only one way
slow        everything one node sends and receives takes longer
kill-all    SIGKILL of all nodes at once, and their restart
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tidelog.errors import TidelogError
from tidelog.runtime.links import CUT, HELD, LinkChange
from tidelog.verify.cluster import LocalCluster
from tidelog.verify.workload import now_ms

KINDS = ("kill", "pause", "partition", "slow", "stop", "kill-all")
LINK_KINDS = frozenset(("partition", "slow"))
"""Faults that need links between the nodes."""
TARGETS = ("leader", "follower", "controller")


class Fault(NamedTuple):
    """One thing that was done to the cluster."""

    kind: str
    target: str
    """The role of the node at that moment."""
    node_id: int
    at_ms: int
    lasted_ms: int

    @property
    def text(self) -> str:
        """In words, for a table."""
        return f"{self.kind} {self.target} {self.node_id}" if self.node_id else self.kind


class Faults:
    """Breaks a cluster every `interval_s` seconds, one fault at a time, and mends what it broke."""

    def __init__(
        self,
        cluster: LocalCluster,
        kinds: Sequence[str],
        *,
        topic: str,
        partitions: int,
        interval_s: float,
        session_timeout_s: float,
        seed: int,
    ) -> None:
        self.done: list[Fault] = []
        self._cluster = cluster
        self._topic = topic
        self._partitions = partitions
        self._interval_s = interval_s
        self._session_timeout_s = session_timeout_s
        self._chance = random.Random(seed)  # noqa: S311 (faults that can be drawn again)
        self._plan = self._rolling(kinds)
        self._actions: dict[str, Callable[[int], None]] = {
            "kill": self._kill,
            "pause": self._pause,
            "partition": self._partition,
            "slow": self._slow,
            "stop": self._stop,
            "kill-all": self._kill_all,
        }

    def _rolling(self, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Every kind with every target, shuffled, and again."""
        while True:
            pairs = [(kind, target) for kind in kinds for target in (TARGETS if kind != "kill-all" else ("",))]
            self._chance.shuffle(pairs)
            yield from pairs

    def run(self, stopping: threading.Event) -> None:
        """Break and mend until told to stop; TidelogError when a node ends by itself."""
        next_s = time.monotonic() + self._interval_s / 2
        while not stopping.wait(max(0.0, next_s - time.monotonic())):
            next_s += self._interval_s
            self._cluster.require_alive()
            kind, target = next(self._plan)
            node_id = 0 if kind == "kill-all" else self._choose(target)
            at_ms = now_ms()
            self.done.append(Fault(kind, target, node_id, at_ms, 0))
            self._actions[kind](node_id)
            self.done[-1] = self.done[-1]._replace(lasted_ms=now_ms() - at_ms)

    def _choose(self, target: str) -> int:
        """The node that has a role now; any node where nobody has it."""
        node_ids = self._cluster.node_ids
        controller = self._cluster.controller()
        leader = self._cluster.leader(self._topic, self._chance.randrange(self._partitions))
        anyone = self._chance.choice(node_ids)
        if target == "controller":
            return controller or anyone
        if target == "leader":
            return leader or anyone
        others = [node_id for node_id in node_ids if node_id not in (controller, leader)]
        return self._chance.choice(others) if others else anyone

    def _kill(self, node_id: int) -> None:
        self._cluster.kill(node_id)
        time.sleep(self._chance.choice((0.0, 0.3, 1.0, self._interval_s * 0.4)))
        self._cluster.start(node_id)

    def _kill_all(self, _: int) -> None:
        self._cluster.kill(*self._cluster.node_ids)
        order = self._cluster.node_ids
        self._chance.shuffle(order)
        for node_id in order:
            self._cluster.start(node_id)
            time.sleep(self._chance.choice((0.0, 0.0, 1.0)))

    def _stop(self, node_id: int) -> None:
        code = self._cluster.stop(node_id)
        if code:
            raise TidelogError(f"a clean stop of node {node_id} ended with code {code}")
        time.sleep(self._chance.choice((0.0, 0.5, 1.5)))
        self._cluster.start(node_id)

    def _partition(self, node_id: int) -> None:
        others = [other for other in self._cluster.node_ids if other != node_id]
        state = self._chance.choice((CUT, HELD))
        ways = self._chance.choice(("both", "both", "out", "in"))
        out = [LinkChange(node_id, other, state) for other in others] if ways != "in" else []
        back = [LinkChange(other, node_id, state) for other in others] if ways != "out" else []
        self._cluster.change_links([*out, *back])
        time.sleep(self._chance.choice((0.3, self._session_timeout_s * 0.5, self._session_timeout_s + 1.5)))
        self._cluster.mend_links()

    def _slow(self, node_id: int) -> None:
        delay_ms = self._chance.choice((20, 100, 400))
        others = [other for other in self._cluster.node_ids if other != node_id]
        self._cluster.change_links(
            LinkChange(*way, None, delay_ms) for other in others for way in ((node_id, other), (other, node_id))
        )
        time.sleep(self._session_timeout_s)
        self._cluster.mend_links()

    def _pause(self, node_id: int) -> None:
        self._cluster.pause(node_id)
        # Sometimes it wakes just before it would have been fenced.
        time.sleep(max(0.2, self._session_timeout_s + self._chance.choice((-0.2, 0.3, 1.0, 2.5))))
        self._cluster.resume(node_id)
