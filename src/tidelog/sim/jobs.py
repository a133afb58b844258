"""Jobs of simulated nodes: a helper process beside the node that reads and writes the same disks, and dies with it.

A job begins a drawn time after it was asked for and is told to be done a drawn time after that, so the node may cut,
delete or replace what it reads at any moment in between. When the node dies, a job that has not begun is played up to a
drawn write: what a helper leaves behind that was killed in the middle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.effects import Work
from tidelog.events import WorkDone
from tidelog.sim.disk import PowerCut, SimulatedDisk
from tidelog.sim.machines import Process

if TYPE_CHECKING:
    from tidelog.sim.world import World

LONGEST_MS = 200
"""How long a job may take to begin, and again to be done."""
MOST_WRITES = 40
"""Writes after which a job that is killed in the middle is dead at the latest."""


class _Killed(BaseException):
    """The helper is gone. Not an Exception: no handler of a job may survive it."""


class Jobs:
    """The jobs under way in a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: dict[Process, list[Work]] = {}
        """Asked for and not begun."""

    def take(self, process: Process, effect: Work) -> None:
        """Let a job happen, and tell its node."""
        world = self._world
        self._waiting.setdefault(process, []).append(effect)

        def begin() -> None:
            waiting = self._waiting.get(process, [])
            if not process.alive or effect not in waiting:
                return
            waiting.remove(effect)
            with world.power(process):
                done = WorkDone(effect.token, *self._run(effect))
                world.at(world.now_ms + world.chance.below(LONGEST_MS), lambda: world.step(process, done))

        world.at(world.now_ms + world.chance.below(LONGEST_MS), begin)

    def cut_short(self, process: Process | None) -> None:
        """The node is about to die: its helper gets as far as chance has it."""
        for effect in [] if process is None else self._waiting.pop(process, []):
            disk = effect.storage
            assert isinstance(disk, SimulatedDisk)
            last = disk.writes + self._world.chance.below(MOST_WRITES)

            def stop_at(number: int, _what: str, last: int = last) -> None:
                if number >= last:
                    raise _Killed

            before, disk.on_write = disk.on_write, stop_at
            try:
                self._run(effect)
            except (_Killed, PowerCut):
                pass
            finally:
                disk.on_write = before

    @staticmethod
    def _run(effect: Work) -> tuple[Any, str | None]:
        """Result and error, as the helper process of the real runtime reports any failure of a job."""
        try:
            return effect.job(effect.storage, *effect.arguments), None
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"
