"""`tidelog scenario`: the stories of replication, played step by step on a simulated cluster or on real processes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from tidelog.cli.frame import Exit, Parser, UsageError, add_json, nearest
from tidelog.cli.output import print_json, table
from tidelog.cli.values import whole_number

if TYPE_CHECKING:
    from tidelog.sim.player import Happened, Player
    from tidelog.sim.script import Script
    from tidelog.sim.stage import Stage

SUMMARY = "play the stories of replication on a simulated cluster, or on real processes"
EXAMPLES = """\
  tidelog scenario list
  tidelog scenario run divergence
  tidelog scenario run --all
  tidelog scenario run acks-one-loses --json
  tidelog scenario run acks-one-loses --real

A script produces, consumes, holds or cuts links, kills, restarts, changes settings and lets time pass; it cannot set a
log, a high watermark, an ISR or an epoch. Below each line stands what happened: messages that passed, events, and the
lanes of the replicas. A line that begins with expect is asserted; the first that does not hold ends the run with exit
code 1. --seed plays the same script with other delays. --real plays it on node processes of this machine, with
confluent-kafka as the client; scenarios that need more than that are simulated only."""


def configure(parser: Parser) -> None:
    """The subcommands."""
    commands = parser.add_commands()
    commands.add("list", "name every scenario", "  tidelog scenario list\n", _list)
    playing = commands.add(
        "run", "play scenarios and check what they expect", "  tidelog scenario run high-watermark\n", _run
    )
    playing.add_argument("names", metavar="NAME", nargs="*")
    playing.add_argument("--all", action="store_true", help="every scenario; only what failed is printed in full")
    playing.add_argument("--real", action="store_true", help="on real processes, with confluent-kafka as the client")
    playing.add_argument("--seed", type=whole_number, help="draw other delays (default: the script's own seed)")
    commands.share(add_json)


def folder() -> Path:
    """Where the scripts are: beside the code when it is installed, at the root of the project otherwise."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "scenarios"
    return installed if installed.is_dir() else package.parent.parent / "scenarios"


def load(name: str) -> Script:
    """Read a scenario; UsageError with the nearest name when there is none."""
    from tidelog.sim.script import parse

    path = folder() / f"{name}.txt"
    if not path.is_file():
        raise UsageError(f"tidelog scenario run: there is no scenario {name!r}{nearest(name, known())}")
    return parse(name, path.read_text(encoding="utf-8"))


def known() -> list[str]:
    """The names of all scenarios."""
    return sorted(path.stem for path in folder().glob("*.txt"))


def _list(arguments: argparse.Namespace) -> int:
    scripts = [load(name) for name in known()]
    if arguments.json:
        for script in scripts:
            print_json({"name": script.name, "title": script.title, "notes": list(script.notes)})
    else:
        print("\n".join(table(["name", "notes", "title"], [(one.name, one.notes, one.title) for one in scripts])))
    return Exit.OK


def _run(arguments: argparse.Namespace) -> int:
    if arguments.all == bool(arguments.names):
        raise UsageError("tidelog scenario run: name scenarios, or say --all")
    if arguments.real and arguments.seed is not None:
        raise UsageError("tidelog scenario run: a seed draws the delays of a simulated cluster; --real has its own")
    failed, played = [], 0
    for name in known() if arguments.all else arguments.names:
        script = load(name)
        if arguments.real and not script.is_real:
            _say_simulated_only(script, arguments)
            continue
        played += 1
        if not _play(script, arguments):
            failed.append(name)
    if arguments.all and not arguments.json:
        print(f"{played - len(failed)} of {played} scenarios are as they should be")
    if not played:  # all that were named are simulated only: what was asked for was not done
        return Exit.USAGE
    return Exit.FAILED if failed else Exit.OK


def _say_simulated_only(script: Script, arguments: argparse.Namespace) -> None:
    """A script that needs what no real machine lets us do, or a message held at an exact moment."""
    if arguments.json:
        print_json({"scenario": script.name, "skipped": "simulated only"})
    else:
        print(f"{'-':<7}{script.name}: simulated only")


@contextmanager
def _stage(script: Script, arguments: argparse.Namespace) -> Iterator[Stage]:
    if not arguments.real:
        from tidelog.sim.simulated_stage import SimulatedStage

        yield SimulatedStage(script.seed if arguments.seed is None else arguments.seed)
        return
    from tidelog.realstage.stage import RealStage

    with RealStage() as stage:
        yield stage


def _play(script: Script, arguments: argparse.Namespace) -> bool:
    from tidelog.sim.player import Player

    with _stage(script, arguments) as stage:
        return _play_on(Player(script, stage), script, arguments)


def _play_on(player: Player, script: Script, arguments: argparse.Namespace) -> bool:
    if not arguments.json and not arguments.all:
        print(f"{script.name}: {script.title}")
    kept = []
    last = None
    for happened in player.play():
        last = happened
        if arguments.json:
            _print_document(script, happened)
        elif arguments.all:
            kept += text(happened)
        else:
            print("\n".join(text(happened)))
            sys.stdout.flush()
    failed = last is not None and bool(last.failure)
    if arguments.all and not arguments.json:
        print(f"{'FAILED' if failed else 'ok':<7}{script.name}")
        if failed:
            print("\n".join(kept))
    if last is not None and last.failure:
        place = f"{script.name}, line {last.line}: {last.command}"
        print(f"tidelog scenario run: {place}: it is {last.failure}", file=sys.stderr)
    return not failed


def text(happened: Happened) -> list[str]:
    """One line of a script and what came of it, for people."""
    if happened.command.startswith("#"):
        return ["", *wrap(happened.command.removeprefix("#").strip(), 100)]
    if happened.command.startswith("expect "):
        mark = "no" if happened.failure else "ok"
        lines = [f"  {mark:<3} {happened.command.removeprefix('expect ')}"]
    else:
        lines = ["", f"> {happened.command}"]
    lines += [f"      {line}" for line in (*happened.lines, *happened.lanes)]
    if happened.failure:
        lines.append(f"      but it is: {happened.failure}")
    return lines


def _print_document(script: Script, happened: Happened) -> None:
    print_json(
        {
            "scenario": script.name,
            "line": happened.line,
            "command": happened.command,
            "happened": happened.lines,
            "lanes": happened.document,
            "ok": not happened.failure,
            "found": happened.failure,
        }
    )
