"""The table that `tidelog up` shows on a terminal, redrawn in place."""

from __future__ import annotations

import shutil
import sys
import time

from tidelog.cli.status import status_lines
from tidelog.runtime.supervisor import Supervisor, node_statuses


class LiveTable:
    """Draws over what it drew before."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._started = time.monotonic()
        self._drawn_lines = 0

    def draw(self) -> None:
        """Draw once."""
        seconds = int(time.monotonic() - self._started)
        running = f"up {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        lines = [*status_lines(node_statuses(self._supervisor.state)), f"{running}   Ctrl-C stops the nodes"]
        width = shutil.get_terminal_size().columns
        # Up to the first line of the last drawing, then each line with what is left of the old one erased.
        text = f"\x1b[{self._drawn_lines}A" if self._drawn_lines else ""
        text += "".join(f"{line[:width]}\x1b[K\n" for line in lines) + "\x1b[J"
        self._drawn_lines = len(lines)
        sys.stdout.write(text)
        sys.stdout.flush()
