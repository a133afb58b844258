"""What the demo shows: lines that stay, and under them one that is redrawn while something goes on."""

from __future__ import annotations

import sys
import threading
import time

_COLOURS = {"good": "\x1b[32m", "bad": "\x1b[31m", "soft": "\x1b[2m", "strong": "\x1b[1m"}
PLAIN_EVERY_S = 5.0


class Screen:
    """Standard output, for people or for a file; safe to use from several threads."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._started_s = time.monotonic()
        self._lock = threading.Lock()
        self._drawn = False
        self._next_s = 0.0

    @property
    def elapsed_s(self) -> float:
        """Since the demo began."""
        return time.monotonic() - self._started_s

    def say(self, text: str, tone: str = "") -> None:
        """A line that stays, with its time."""
        with self._lock:
            self._clear()
            print(f"{self._tinted(f'{self.elapsed_s:5.1f} s', 'soft')}  {self._tinted(text, tone)}", flush=True)

    def put(self, text: str = "", tone: str = "") -> None:
        """A line that stays, as it is."""
        with self._lock:
            self._clear()
            print(self._tinted(text, tone), flush=True)

    def live(self, text: str) -> None:
        """The line that is redrawn; into a file it goes every few seconds."""
        now_s = time.monotonic()
        with self._lock:
            if now_s < self._next_s:
                return
            self._next_s = now_s + (0.1 if self._terminal else PLAIN_EVERY_S)
            line = f"{self.elapsed_s:5.1f} s  {text}"
            if self._terminal:
                sys.stdout.write(f"\r\x1b[2K{line}")
                sys.stdout.flush()
                self._drawn = True
            else:
                print(line, flush=True)

    def _clear(self) -> None:
        if self._drawn:
            sys.stdout.write("\r\x1b[2K")
            self._drawn = False

    def _tinted(self, text: str, tone: str) -> str:
        return f"{_COLOURS[tone]}{text}\x1b[0m" if tone and self._terminal else text
