"""`tidelog sim replay` and `tidelog sim shrink`: one history again, as it was or with parts of it left out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.cli.frame import Commands, Exit, UsageError, nearest
from tidelog.cli.output import print_json
from tidelog.cli.values import positive_integer
from tidelog.cli.values import whole_number as seed_number

if TYPE_CHECKING:
    from tidelog.sim.shape import Shape
    from tidelog.sim.shrink import Shrunk

REPLAY_EXAMPLES = """\
  tidelog sim replay 42 --trace
  tidelog sim replay 42 --html history.html
  tidelog sim replay 42 --without faults:0-3,7 producers:1 --operations 120

--without leaves out parts of the plan by their place in it, from 0 on: faults, admin, producers and others, and absent
(the broker that stays away in the end), asks_every_ms (who asks for the latest offset) and work (groups and
transactions). `tidelog sim shrink` finds out what can be left out.
"""
SHRINK_EXAMPLES = """\
  tidelog sim shrink 42
  tidelog sim shrink 100002 --mutant truncate-to-watermark

Less and less of the history is played, and what can go without the finding going too is left out: faults, operations,
time. The same seed always shrinks to the same. Exit code 1 when there is a finding, as for a replay.
"""


def configure(commands: Commands) -> None:
    """The two subcommands."""
    replaying = commands.add("replay", "play one seed again", REPLAY_EXAMPLES, _replay)
    replaying.add_argument("seed", type=seed_number)
    replaying.add_argument("--trace", action="store_true", help="print what happened, line by line")
    replaying.add_argument("--until", metavar="MS", type=seed_number, help="only what happened before that moment")
    replaying.add_argument("--html", metavar="FILE", type=Path, help="write the history as a page")
    replaying.add_argument("--mutant", metavar="NAME", help="with this bug put in")
    replaying.add_argument("--without", metavar="PART", nargs="+", default=[], help="leave out, as faults:0-3,7")
    replaying.add_argument(
        "--operations", metavar="N", type=seed_number, help="producers hand over only so many records"
    )
    replaying.add_argument("--ends-at", metavar="MS", type=seed_number, help="faults and load end at that moment")
    replaying.add_argument(
        "--earlier", metavar="MS", type=seed_number, default=0, help="what has its time comes so much earlier"
    )
    shrinking = commands.add("shrink", "find a smaller history with the same finding", SHRINK_EXAMPLES, _shrink)
    shrinking.add_argument("seed", type=seed_number)
    shrinking.add_argument("--mutant", metavar="NAME", help="with this bug put in")
    shrinking.add_argument(
        "--most-plays", metavar="N", type=positive_integer, default=150, help="histories to play at most (default: 150)"
    )


def _mutated(name: str | None, command: str) -> tuple[Callable[[int], Shape], AbstractContextManager[None]]:
    """Who draws the shape of a seed, and the context in which it is played."""
    from tidelog.sim import mutants
    from tidelog.sim.shape import draw

    if name is None:
        return draw, nullcontext()
    if name not in mutants.ALL:
        raise UsageError(f"tidelog sim {command}: there is no mutant {name!r}{nearest(name, mutants.ALL)}")
    mutant = mutants.ALL[name]
    return mutant.workload, mutant.put_in()


def _replay(arguments: argparse.Namespace) -> int:
    from tidelog.sim.recording import record
    from tidelog.sim.shrink import Cuts, parse_without, replay_command
    from tidelog.sim.swarm import run

    draw, context = _mutated(arguments.mutant, "replay")
    shape = draw(arguments.seed)
    try:
        without = parse_without(arguments.without, shape)
    except ValueError as error:
        raise UsageError(f"tidelog sim replay --without: {error}") from None
    cuts = Cuts(without, arguments.operations, arguments.ends_at, arguments.earlier)
    shape = cuts.applied_to(shape)
    with context:
        if arguments.html is None:
            outcome = run(arguments.seed, shape=shape)
        else:
            outcome, recording = record(arguments.seed, shape)
    if arguments.html is not None:
        from tidelog.sim.page import page

        command = replay_command(arguments.seed, cuts, arguments.mutant)
        arguments.html.write_text(page(outcome, recording, shape, command), encoding="utf-8")
    if arguments.json:
        print_json(
            {"seed": outcome.seed, "finding": outcome.finding, "hash": outcome.trace_hash, "trace": outcome.trace}
        )
    else:
        if arguments.trace:
            print("\n".join(line for line in outcome.trace if _is_before(line, arguments.until)))
        print(f"seed {outcome.seed}: {outcome.finding or 'all is well'} (trace {outcome.trace_hash})")
        if arguments.html is not None:
            print(f"the history as a page: {arguments.html}")
        elif outcome.finding:
            print("  --html FILE draws this history as a page; `tidelog sim shrink` looks for a smaller one")
    return Exit.FAILED if outcome.finding else Exit.OK


def _is_before(line: str, until_ms: int | None) -> bool:
    """Whether a line of a trace is of a moment before; lines without one belong to a finding and are always shown."""
    moment = line.split(maxsplit=1)[0] if line.strip() else ""
    return until_ms is None or not moment.isdigit() or int(moment) < until_ms


def _shrink(arguments: argparse.Namespace) -> int:
    from tidelog.sim.shrink import shrink

    draw, context = _mutated(arguments.mutant, "shrink")
    with context:
        found = shrink(arguments.seed, draw, arguments.most_plays)
    if arguments.json:
        print_json(
            {
                "seed": found.seed,
                "finding": found.least.finding,
                "plays": found.plays,
                "cut_short": found.is_cut_short,
                "before": _size(found, is_whole=True),
                "after": _size(found, is_whole=False),
                "replay": found.command(arguments.mutant),
            }
        )
    elif not found.whole.finding:
        print(f"seed {found.seed}: all is well, there is nothing to shrink")
    else:
        print(f"seed {found.seed}: {found.least.finding}")
        print(f"  before: {_text(_size(found, is_whole=True))}")
        print(f"  after:  {_text(_size(found, is_whole=False))}; {found.plays} histories played")
        if found.is_cut_short:
            print("  perhaps more can be left out: --most-plays allows to play more")
        print(f"  replay: {found.command(arguments.mutant)}")
    return Exit.FAILED if found.whole.finding else Exit.OK


def _size(found: Shrunk, *, is_whole: bool) -> dict[str, int]:
    outcome = found.whole if is_whole else found.least
    return {"faults": outcome.faults, "operations": outcome.operations, "simulated_ms": outcome.simulated_ms}


def _text(size: dict[str, int]) -> str:
    return f"{size['faults']} faults, {size['operations']} operations, {size['simulated_ms'] / 1000:.1f} s"
