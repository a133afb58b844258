"""Three nodes, producers with a ledger, a lake; the leader is killed half way; was anything lost?

    make demo             acks=all: nothing that was acknowledged is lost
    make demo ACKS=1      acks=1: the loss that it allows, caused on purpose

Everything runs on this machine. The reports stay in build/demo; the cluster's own files are thrown away.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from examples.demo.screen import Screen
from examples.demo.story import DemoFailed, play

MARKER = ".tidelog-demo"


def main() -> int:
    """Tell the story and say how it ended: 0 when the promise held, or when acks=1 lost what it may lose."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--acks", choices=("all", "1"), default="all", help="what the producers wait for (all)")
    parser.add_argument("--rate", type=int, default=1_000, metavar="N", help="records a second of each producer (1000)")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), metavar="DIR", help="reports (build/demo)")
    words = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    screen = Screen()
    out = words.out.absolute()
    if out.exists() and any(out.iterdir()) and not (out / MARKER).exists():
        print(f"make demo: {out} is not empty and not of an earlier demo; name another with --out", file=sys.stderr)
        return 2
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARKER).touch()
    data = Path(tempfile.mkdtemp(prefix="tidelog-demo-"))
    try:
        outcome = play(screen, out, data, words.acks, words.rate)
    except DemoFailed as failure:
        # Not to standard error: while Spark starts, that is the file of its log.
        screen.put(f"make demo: {failure} (Spark's log: {out / 'spark.log'})", "bad")
        return 1
    except Exception as error:
        screen.put(f"make demo: {type(error).__name__}: {error} (Spark's log: {out / 'spark.log'})", "bad")
        return 1
    except KeyboardInterrupt:
        screen.put("stopped; no process is left behind")
        return 130
    finally:
        shutil.rmtree(data, ignore_errors=True)
    return verdict(screen, out, words.acks, outcome.details, ok=outcome.ok)


def verdict(screen: Screen, out: Path, acks: str, details: Mapping[str, Any], *, ok: bool) -> int:
    """The last lines; the exit code."""
    found = details["findings"]
    lost, doubled = found["lost"], found["duplicated"]
    others = {kind: count for kind, count in found.items() if count and kind not in ("lost", "duplicated", "unasked")}
    screen.put()
    numbers = (
        f"acknowledged {details['acknowledged']:,} · in the log {details['in_log']:,} · landed {details['landed']:,} · "
        f"lost {lost:,} · duplicated {doubled:,} · unavailable for {details['unavailable_ms']:,} ms"
    )
    screen.put(numbers, "strong")
    if acks == "all":
        said = "Every record that was acknowledged is in the log and in the lake, exactly once."
        wrong = ", ".join(f"{kind} {count:,}" for kind, count in others.items())
        screen.put(said if ok else f"The promise did NOT hold. {wrong}".strip(), "good" if ok else "bad")
        code = 0 if ok else 1
    else:
        said = (
            f"{lost:,} acknowledged records are gone: with acks={acks} the leader answers before a follower has the "
            "record. make demo shows the same kill with acks=all."
        )
        screen.put(said if lost else "Nothing was lost this time: the leader died with nothing of its own.", "bad")
        code = 0 if lost else 1
    screen.put(f"audit     {out / 'audit.html'}")
    screen.put(f"timeline  {out / 'timeline.html'}")
    screen.put(f"lake      {out / 'lake'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
