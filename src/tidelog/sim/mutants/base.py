"""How a bug is put in and taken out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tidelog.sim.shape import Shape, draw

Original = Callable[..., Any]
Hit = Callable[[], None]
Patch = tuple[Any, str, Callable[[Original, Hit], Original]]
"""Where: a class or module and the name in it; and what makes the wrong function from the right one."""


@dataclass(slots=True)
class Mutant:
    """A known bug. Each wrong function calls `hit` where it does other than the right one would."""

    name: str
    story: str
    patches: Sequence[Patch]
    workload: Callable[[int], Shape] = draw
    """What a seed asks for; the swarm's own drawing unless the bug needs a rare order of events."""
    executed: int = 0
    """How often the wrong line ran since it was put in."""

    @contextmanager
    def put_in(self) -> Iterator[None]:
        """The bug is in while this context lasts."""
        self.executed = 0
        originals = [(place, name, getattr(place, name)) for place, name, _ in self.patches]
        try:
            for (place, name, make), (_, _, original) in zip(self.patches, originals, strict=True):
                setattr(place, name, make(original, self._hit))
            yield
        finally:
            for place, name, original in originals:
                setattr(place, name, original)

    def _hit(self) -> None:
        self.executed += 1


@dataclass(slots=True)
class Hunt:
    """What a search for a mutant came to."""

    seeds: int = 0
    """Played until it was found, or in vain."""
    checker: str = ""
    finding: str = ""
    found_by_seed: int = -1
    executed: int = 0
    dirty: list[int] = field(default_factory=list)
    """Seeds with a finding although the mutant was out."""

    @property
    def is_misfit(self) -> bool:
        """The patch itself broke: the code under it has changed, and what was found is the patch, not the bug."""
        return self.finding.startswith(("TypeError", "AttributeError"))

    @property
    def is_proven(self) -> bool:
        """Found, by running the wrong line, and only with it."""
        return bool(self.finding) and self.executed > 0 and not self.dirty and not self.is_misfit

    @property
    def complaint(self) -> str:
        """Why it does not count."""
        if self.dirty:
            return f"seeds {self.dirty} have findings without it"
        if self.is_misfit:
            return f"it does not fit the code: {self.finding}"
        if not self.executed:
            return "its line was never executed"
        return "" if self.finding else "not found"
