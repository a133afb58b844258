"""Many seeds: played one after the other or in several processes, and what they came to as a whole."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from tidelog.sim import swarm
from tidelog.sim.swarm import Outcome

SIGHTS = {
    "truncation": "a follower cut its log",
    "divergence": "two logs had parted, and the leader said where",
    "ELR election": "somebody eligible led when nobody was in sync",
    "last-known-leader election": "the last known leader led when nobody was eligible either",
    "unclean election": "somebody led who may have lacked records",
    "snapshot install": "a node began anew from another's snapshot of the metadata",
    "controller change": "another controller took over",
    "min ISR change": "min.insync.replicas of a topic was changed",
    "lost directory": "a broker went on without one of its log directories",
}
"""What histories must contain often enough to be worth playing."""


def sights_of(outcome: Outcome) -> set[str]:
    """Which of those one history had."""
    return {name for name in SIGHTS if outcome.seen[name]}


@dataclass(slots=True)
class Tally:
    """What was played so far."""

    seeds: int = 0
    findings: int = 0
    operations: int = 0
    faults: int = 0
    simulated_ms: int = 0
    saw: Counter[str] = field(default_factory=Counter)
    """How many seeds had each sight."""

    def add(self, outcome: Outcome) -> None:
        """Count one history."""
        self.seeds += 1
        self.findings += bool(outcome.finding)
        self.operations += outcome.operations
        self.faults += outcome.faults
        self.simulated_ms += outcome.simulated_ms
        self.saw.update(sights_of(outcome))

    def lines(self, cpu_seconds: float) -> list[str]:
        """For people."""
        seeds = max(1, self.seeds)
        speed = self.simulated_ms / 1000 / max(cpu_seconds, 0.001)
        sights = ", ".join(f"{name} {self.saw[name]} ({100 * self.saw[name] / seeds:.1f} %)" for name in SIGHTS)
        return [
            f"{self.seeds} seeds, {self.findings} findings; a seed has {self.operations // seeds} operations, "
            f"{self.faults / seeds:.1f} faults and {self.simulated_ms / 1000 / seeds:.0f} simulated seconds",
            f"{cpu_seconds:.0f} s of one core, {speed:.0f} simulated seconds in each",
            f"seeds that saw: {sights}",
        ]

    def as_plain(self) -> dict[str, Any]:
        """For programs."""
        return {
            "seeds": self.seeds,
            "findings": self.findings,
            "operations": self.operations,
            "faults": self.faults,
            "simulated_ms": self.simulated_ms,
            "seeds_that_saw": {name: self.saw[name] for name in SIGHTS},
        }


def play(seeds: Iterable[int], processes: int = 1) -> Iterator[Outcome]:
    """The outcome of each seed, in their order; traces only of those with a finding."""
    if processes == 1:
        yield from map(_play, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(_play, seeds, chunksize=1)


def _play(seed: int) -> Outcome:
    outcome = swarm.run(seed)
    if not outcome.finding:
        outcome.trace.clear()
    return outcome


def core_hash() -> str:
    """What tells the nodes of one run from those of another."""
    return _hash_of(CORE)


def code_hash() -> str:
    """What tells the histories of one run from those of another: the nodes, and the simulator around them."""
    return _hash_of(CORE | {"sim"})


def _hash_of(rooms: frozenset[str]) -> str:
    root = Path(swarm.__file__).resolve().parent.parent
    digest = sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0] in rooms:
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


CORE = frozenset(
    (
        *("config", "controller", "coordination", "groups", "log", "node", "quorum", "replica", "transactions", "wire"),
        *("effects.py", "errors.py", "events.py", "ledger.py", "outbox.py", "storage.py"),
    )
)
"""What a simulated node runs, which is what a real one decides with."""
