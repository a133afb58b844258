"""A client that asks for a partition's latest offset again and again, and remembers what it was told (KIP-207)."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.errors import ErrorCode
from tidelog.sim.consumer import LATEST, Consumer
from tidelog.sim.world import World

VERSION = 7


class OffsetAsker(Consumer):
    """Asks whoever leads, as soon as it leads: that is when a watermark may lie before what was told already."""

    def __init__(self, world: World, name: str, brokers: Sequence[int], topic: str, index: int) -> None:
        super().__init__(world, name, brokers)
        self.topic = topic
        self.index = index
        self.told: list[tuple[int, int]] = []
        """Who answered, and what."""

    def ask_on(self, every_ms: int) -> None:
        """Ask, and again after a pause, for as long as this client lives."""
        key = (self.topic, self.index)
        leader, leader_epoch = self.leaders.get(key, (-1, -1))
        if leader < 0:
            self.find_leader(self.topic, lambda: self.after(every_ms, lambda: self.ask_on(every_ms)))
            return

        def answered(code: ErrorCode, offset: int) -> None:
            if code is ErrorCode.NONE:
                self.told.append((leader, offset))
            elif code is not ErrorCode.OFFSET_NOT_AVAILABLE:
                self.leaders[key] = (-1, leader_epoch)  # somebody of this epoch or a later one
            self.after(every_ms, lambda: self.ask_on(every_ms))

        self.list_offset(leader, self.topic, self.index, LATEST, VERSION, answered, leader_epoch)
