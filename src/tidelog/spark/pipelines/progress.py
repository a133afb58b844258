"""How far a long job is: one line that is written over on a terminal, one every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Protocol, TextIO

REPEAT_S = 10.0
BAR_CELLS = 24


@dataclass
class Step:
    """One look at a job. What is not known is None and not shown."""

    done: int
    """Records so far."""
    per_second: float | None = None
    total: int | None = None
    """Records in all, where the end is known: a bar is drawn."""
    lag: int | None = None
    """Records that wait in the log."""
    batches: int | None = None
    note: str = ""


class Progress(Protocol):
    """Takes what a pipeline has to tell while it runs."""

    def show(self, step: Step) -> None:
        """How far it is; called as often as one likes."""

    def say(self, line: str) -> None:
        """Something that happened once and stays readable."""

    def end(self) -> None:
        """Nothing more is to come."""


class Silent:
    """Shows nothing: for programs."""

    def show(self, step: Step) -> None: ...

    def say(self, line: str) -> None: ...

    def end(self) -> None: ...


class LiveProgress:
    """For people, on standard error."""

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title = title
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._next_s = 0.0
        self._drawn = False

    def show(self, step: Step) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + (0.1 if self._terminal else REPEAT_S)
        text = f"{self._title}  {line_of(step)}"
        self._stream.write(f"\r\x1b[2K{text}" if self._terminal else text + "\n")
        self._stream.flush()
        self._drawn = self._terminal

    def say(self, line: str) -> None:
        self.end()
        self._stream.write(line + "\n")
        self._stream.flush()

    def end(self) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._drawn = False


def batches_text(count: int) -> str:
    """How many batches, in words."""
    return "1 batch" if count == 1 else f"{count:,} batches"


def line_of(step: Step) -> str:
    """`██████░░░░  62 %  310,000 of 500,000 records  41,200/s  lag 190,000  batch 4  note`."""
    parts = []
    if step.total is not None:
        share = 1.0 if step.total == 0 else min(1.0, step.done / step.total)
        full = int(share * BAR_CELLS)
        parts.append("█" * full + "░" * (BAR_CELLS - full) + f" {share:4.0%}")
        parts.append(f"{step.done:,} of {step.total:,} records")
    else:
        parts.append(f"{step.done:,} records")
    if step.per_second is not None:
        parts.append(f"{step.per_second:,.0f}/s")
    if step.lag is not None:
        parts.append(f"lag {step.lag:,}")
    if step.batches is not None:
        parts.append(batches_text(step.batches))
    if step.note:
        parts.append(step.note)
    return "  ".join(parts)
