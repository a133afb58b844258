"""The table that `tidelog up` shows on a terminal, redrawn in place: nodes, who decides, partitions."""

from __future__ import annotations

import shutil
import sys
import time

from tidelog.cli.chaos import links_text
from tidelog.cli.cluster_watch import NodeWatch, partition_lines
from tidelog.cli.status import links_of, status_lines
from tidelog.runtime.supervisor import Supervisor, node_statuses

_MOST_PARTITIONS = 40
_LEAST_PARTITIONS = 3
_OTHER_LINES = 4
"""Room for headings, what is left out, the last line, and the prompt."""


class LiveTable:
    """Draws over what it drew before."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._watch = NodeWatch()
        self._started = time.monotonic()
        self._drawn_lines = 0

    def draw(self) -> None:
        """Draw once."""
        size = shutil.get_terminal_size()
        lines = self._lines(size.lines)
        # Up to the first line of the last drawing, then each line with what is left of the old one erased.
        text = f"\x1b[{self._drawn_lines}A" if self._drawn_lines else ""
        text += "".join(f"{line[: size.columns]}\x1b[K\n" for line in lines) + "\x1b[J"
        self._drawn_lines = len(lines)
        sys.stdout.write(text)
        sys.stdout.flush()

    def _lines(self, height: int) -> list[str]:
        statuses = node_statuses(self._supervisor.state)
        lines = status_lines(statuses, self._watch.ask(statuses, "node"))
        links = links_of(self._supervisor.state)
        if links is not None:
            lines.append(f"links: {links}" if isinstance(links, str) else links_text(links))
        room = max(_LEAST_PARTITIONS, min(_MOST_PARTITIONS, height - len(lines) - _OTHER_LINES))
        lines += partition_lines(*self._watch.pictures(statuses, room))
        seconds = int(time.monotonic() - self._started)
        running = f"up {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return [*lines, f"{running}   Ctrl-C stops the nodes"]
