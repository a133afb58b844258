"""From a history with a finding to a smaller one with the same: fewer faults, fewer operations, less time.

A smaller history is the seed's own plan with parts left out, so a few words repeat it exactly:

    tidelog sim replay 42 --without faults:0-3,7 producers:1 --operations 120 --ends-at 9000 --earlier 12000

Every part that is left out changes what is drawn after it, so less is tried, played, and kept when the same checker
complains again. How many histories are played is bounded and no clock is looked at: the same seed shrinks to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from tidelog.sim import swarm
from tidelog.sim.shape import Shape, TopicShape
from tidelog.sim.swarm import Outcome

MOST_PLAYS = 150
"""So many histories at most are played to shrink one."""
ALL_RIGHT: Mapping[str, Any] = {"absent": -1, "asks_every_ms": 0, "work": None}
"""What a shape's plain fields are when they ask for nothing."""
SHORTER = (4, 2)
"""A history is tried at a quarter and at half of its length."""
FINE = 16
"""Records are searched to this part of what is left: the last few do not make a history easier to read."""

SETTLED_MS = 500
"""A cluster is left alone for so long before the first fault."""

Part = tuple[str, int]
"""A field of a shape and the place in it; place 0 of a plain field is the whole of it."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """What is left out of a seed's plan."""

    without: frozenset[Part] = frozenset()
    operations: int | None = None
    """Only so many records are handed over by producers."""
    ends_at_ms: int | None = None
    """Faults and load end here."""
    earlier_ms: int = 0
    """Everything that has its time comes so much earlier."""

    def applied_to(self, shape: Shape) -> Shape:
        """The plan with that left out."""
        left: dict[str, Any] = {}
        for name in sorted({name for name, _ in self.without}):
            value = getattr(shape, name)
            left[name] = (
                ALL_RIGHT[name]
                if name in ALL_RIGHT
                else tuple(one for place, one in enumerate(value) if (name, place) not in self.without)
            )
        if self.earlier_ms:
            for name in {name for name, _ in parts_of(shape)} - set(ALL_RIGHT):
                left[name] = tuple(self._earlier(one) for one in left.get(name, getattr(shape, name)))
        if self.operations is not None:
            left["most_records"] = self.operations
        if self.ends_at_ms is not None:
            left["safety_ms"] = self.ends_at_ms
        return replace(shape, **left)

    def _earlier(self, one: Any) -> Any:
        return replace(one, at_ms=max(0, one.at_ms - self.earlier_ms)) if hasattr(one, "at_ms") else one

    @property
    def words(self) -> list[str]:
        """As options of `tidelog sim replay`."""
        found: list[str] = []
        if self.without:
            found.append("--without")
        for name in sorted({name for name, _ in self.without}):
            places = [place for one, place in self.without if one == name]
            found.append(name if name in ALL_RIGHT else f"{name}:{_ranges(sorted(places))}")
        if self.operations is not None:
            found += ["--operations", str(self.operations)]
        if self.ends_at_ms is not None:
            found += ["--ends-at", str(self.ends_at_ms)]
        if self.earlier_ms:
            found += ["--earlier", str(self.earlier_ms)]
        return found


def parts_of(shape: Shape) -> list[Part]:
    """Everything a plan can be without: faults, what admins and clients do. Topics and nodes stay as they are."""
    found: list[Part] = [(name, 0) for name, nothing in ALL_RIGHT.items() if getattr(shape, name) != nothing]
    for one in fields(shape):
        value = getattr(shape, one.name)
        if isinstance(value, tuple) and value and is_dataclass(value[0]) and not isinstance(value[0], TopicShape):
            found += [(one.name, place) for place in range(len(value))]
    return found


def parse_without(words: Iterable[str], shape: Shape) -> frozenset[Part]:
    """`faults:0-3,7` and the like; ValueError says what is wrong with it."""
    known = frozenset(parts_of(shape))
    found: set[Part] = set()
    for word in words:
        name, colon, places = word.partition(":")
        if not any(one == name for one, _ in known) and name not in ALL_RIGHT:
            have = ", ".join(sorted({one for one, _ in known}))
            raise ValueError(f"this history has no {name!r}; it has {have}")
        if name in ALL_RIGHT:
            if colon:
                raise ValueError(f"{name} is one thing: it has no numbers")
            found.add((name, 0))
            continue
        for place in _places(places, word):
            if (name, place) not in known:
                raise ValueError(f"{word!r}: this history has no {name}:{place}")
            found.add((name, place))
    return frozenset(found)


def _places(text: str, word: str) -> Iterator[int]:
    for each in text.split(","):
        first, dash, last = each.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"{word!r} is not like faults:0-3,7")
        yield from range(int(first), int(last if dash else first) + 1)


def _ranges(places: Sequence[int]) -> str:
    """`0-3,7` for 0, 1, 2, 3 and 7."""
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


@dataclass(slots=True)
class Shrunk:
    """What shrinking a seed came to."""

    seed: int
    whole: Outcome
    """The history as the seed has it."""
    least: Outcome
    """The smallest one that was found with the same finding."""
    cuts: Cuts = field(default_factory=Cuts)
    plays: int = 1
    is_cut_short: bool = False
    """More might be left out, but enough was played."""

    def command(self, mutant: str | None = None) -> str:
        """What plays the smallest history again."""
        return replay_command(self.seed, self.cuts, mutant)


def replay_command(seed: int, cuts: Cuts, mutant: str | None = None) -> str:
    """What plays a history with parts left out."""
    words = ["tidelog sim replay", str(seed), *cuts.words]
    return " ".join([*words, *(["--mutant", mutant] if mutant else []), "--trace"])


def shrink(seed: int, draw: Callable[[int], Shape], most_plays: int = MOST_PLAYS) -> Shrunk:
    """The smallest history that could be found with the finding of this seed."""
    return _Shrinking(seed, draw(seed), most_plays).run()


class _Enough(Exception):
    """So many histories were played as were allowed."""


class _Shrinking:
    """A search under way: `_cuts` is the most that could be left out so far."""

    def __init__(self, seed: int, shape: Shape, most_plays: int) -> None:
        self._seed = seed
        self._shape = shape
        self._most_plays = most_plays
        self._cuts = Cuts()
        self._played: dict[Cuts, bool] = {}
        self._whole = self._least = swarm.run(seed, shape=shape)
        self._plays = 1

    def run(self) -> Shrunk:
        """Leave out more and more, until nothing more can be or enough was played."""
        is_cut_short = False
        if self._whole.finding:
            try:
                self._leave_out_what_never_came()
                before = None
                while before != self._cuts:
                    before = self._cuts
                    self._leave_out_parts()
                    self._come_sooner()
                    self._end_earlier()
                    self._hand_over_fewer()
            except _Enough:
                is_cut_short = True
        return Shrunk(self._seed, self._whole, self._least, self._cuts, self._plays, is_cut_short)

    def _is_found_with(self, cuts: Cuts) -> bool:
        """Play with more left out; keep it when it has the same finding."""
        if cuts in self._played:
            return self._played[cuts]
        if self._plays >= self._most_plays:
            raise _Enough
        self._plays += 1
        outcome = swarm.run(self._seed, shape=cuts.applied_to(self._shape))
        is_found = _kind(outcome) == _kind(self._whole)
        self._played[cuts] = is_found
        if is_found:
            self._cuts, self._least = cuts, outcome
        return is_found

    def _leave_out_what_never_came(self) -> None:
        """A finding ends its history: what the plan has for later is of no use."""
        end_ms = self._whole.simulated_ms
        later = [part for part in parts_of(self._shape) if self._planned_ms(part) >= end_ms]
        self._is_found_with(replace(self._cuts, without=self._cuts.without | frozenset(later)))
        if end_ms < self._shape.safety_ms:
            self._is_found_with(replace(self._cuts, ends_at_ms=end_ms))

    def _planned_ms(self, part: Part) -> int:
        name, place = part
        value = getattr(self._shape, name)
        if name == "absent":
            return self._shape.safety_ms  # its turn comes when faults are over
        return int(getattr(value[place], "at_ms", 0)) if isinstance(value, tuple) else 0

    def _leave_out_parts(self) -> None:
        """All, then halves, quarters and so on, down to one by one."""
        size = len(self._left())
        while size:
            position = 0
            while position < len(left := self._left()):
                chunk = frozenset(left[position : position + size])
                if not self._is_found_with(replace(self._cuts, without=self._cuts.without | chunk)):
                    position += size
            size //= 2

    def _left(self) -> list[Part]:
        return [part for part in parts_of(self._shape) if part not in self._cuts.without]

    def _come_sooner(self) -> None:
        """Nothing happens before the first fault that is left, so it may come at once."""
        moments = [self._planned_ms(part) for part in self._left() if part[0] == "faults"]
        wait_ms = min(moments, default=0) - SETTLED_MS
        for earlier_ms in (wait_ms, wait_ms // 2):
            if earlier_ms > self._cuts.earlier_ms and self._is_found_with(replace(self._cuts, earlier_ms=earlier_ms)):
                return

    def _end_earlier(self) -> None:
        """Where it took the end of the history to find it, perhaps half of the time is enough."""
        end_ms = self._cuts.applied_to(self._shape).safety_ms
        if self._least.simulated_ms < end_ms:
            self._is_found_with(replace(self._cuts, ends_at_ms=self._least.simulated_ms))
            return
        for part in SHORTER:
            if self._is_found_with(replace(self._cuts, ends_at_ms=end_ms // part)):
                return

    def _hand_over_fewer(self) -> None:
        shape = self._cuts.applied_to(self._shape)
        planned = sum(shape.safety_ms // one.interval_ms + 1 for one in shape.producers)
        enough = planned if self._cuts.operations is None else self._cuts.operations
        too_few = -1
        while enough - too_few > max(1, enough // FINE):
            middle = (enough + too_few) // 2
            if self._is_found_with(replace(self._cuts, operations=middle)):
                enough = middle
            else:
                too_few = middle


def _kind(outcome: Outcome) -> tuple[str, str]:
    """What makes two findings the same: the checker, and for an error that was raised its type."""
    return outcome.checker, outcome.finding.partition(":")[0]
