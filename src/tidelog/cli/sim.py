"""`tidelog sim`: whole clusters in simulated time, one seed a history, checked at every step."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.cli import sim_histories
from tidelog.cli.frame import Exit, Parser, UsageError, add_json, nearest
from tidelog.cli.output import print_json, table
from tidelog.cli.values import positive_integer
from tidelog.cli.values import whole_number as seed_number

if TYPE_CHECKING:
    from tidelog.sim.swarm import Outcome
    from tidelog.sim.tally import Tally

SUMMARY = "search for bugs in simulated clusters, one seed a history"
EXAMPLES = """\
  tidelog sim run --seeds 0..100
  tidelog sim run --seeds 1000.. --minutes 10
  tidelog sim replay 42 --trace
  tidelog sim shrink 42
  tidelog sim speed
  tidelog sim mutants

A seed decides everything: the cluster, its settings, what clients do, which faults come, every delay. The same seed
gives the same history on every machine. For half a minute of simulated time faults come and go; then they stop, and
everything must be well again within a minute. Checkers look on after every step of every node. Exit code 1 when one
of them complains; the line names the command that shows the history again."""


def configure(parser: Parser) -> None:
    """The subcommands."""
    commands = parser.add_commands()
    running = commands.add("run", "play many seeds", "  tidelog sim run --seeds 0..100\n", _run)
    running.add_argument("--seeds", metavar="A..B", type=seed_range, default=range(100), help="default: 0..100")
    running.add_argument("--minutes", metavar="M", type=positive_integer, help="stop after so long")
    running.add_argument("--processes", metavar="N", type=positive_integer, default=1, help="default: 1")
    running.add_argument("--log", metavar="FILE", type=Path, help="add a line with the code and the range played")
    racing = commands.add(
        "speed", "measure: three nodes, 100 records a second, faults on", "  tidelog sim speed\n", _race
    )
    racing.add_argument("--seeds", metavar="N", type=positive_integer, default=20, help="default: 20")
    sim_histories.configure(commands)
    breaking = commands.add(
        "mutants",
        "put bugs in and see that they are found",
        "  tidelog sim mutants acks-all-at-append\n",
        _break,
    )
    breaking.add_argument(
        "names", metavar="NAME", nargs="*", help="default: every mutant that the swarm is known to find"
    )
    breaking.add_argument("--first-seed", metavar="N", type=seed_number, help="default: drawn from the clock")
    breaking.add_argument("--most-seeds", metavar="N", type=positive_integer, default=100, help="default: 100")
    commands.share(add_json)


def seed_range(text: str) -> range:
    """`A..B`, without B; `A..` goes on until the time is up."""
    first, dots, last = text.partition("..")
    if not dots or not first.isdigit() or (last and not last.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range like 0..100")
    return range(int(first), int(last) if last else 2**62)


def _run(arguments: argparse.Namespace) -> int:
    from tidelog.sim.tally import Tally, play

    begun = time.monotonic()
    used = _cpu_seconds()
    tally = Tally()
    for outcome in play(_while_there_is_time(arguments.seeds, begun, arguments.minutes), arguments.processes):
        tally.add(outcome)
        if outcome.finding:
            _tell(outcome, arguments.json)
    seconds = _cpu_seconds() - used
    if arguments.log is not None and tally.seeds:
        _log(arguments.log, arguments.seeds, tally, seconds)
    if arguments.json:
        print_json({**tally.as_plain(), "cpu_seconds": round(seconds, 2)})
    elif tally.seeds:
        print("\n".join(tally.lines(seconds)))
    return Exit.FAILED if tally.findings else Exit.OK


def _while_there_is_time(seeds: range, begun: float, minutes: int | None) -> Iterator[int]:
    for seed in seeds:
        if minutes is not None and time.monotonic() - begun > minutes * 60:
            return
        yield seed


def _cpu_seconds() -> float:
    """Of this process and of those it started that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _log(path: Path, seeds: range, tally: Tally, cpu_seconds: float) -> None:
    """One line a run: clean ranges of the same core add up, whatever was made of the simulator meanwhile."""
    from tidelog.sim.tally import code_hash, core_hash

    last = seeds.start + tally.seeds
    line = {
        "commit": _commit(),
        "core": core_hash(),
        "code": code_hash(),
        "range": f"{seeds.start}..{last}",
        **tally.as_plain(),
        "cpu_seconds": round(cpu_seconds),
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    clean = alike = 0
    for text in path.read_text(encoding="utf-8").splitlines():
        earlier = json.loads(text)
        if earlier.get("core") == line["core"] and not earlier["findings"]:
            clean += earlier["seeds"]
            alike += earlier["seeds"] if earlier["code"] == line["code"] else 0
    print(f"{clean} clean seeds of this core in {path}, {alike} of them with this simulator")


def _commit() -> str:
    """The commit of the tree this runs from, where it is one; `code` says whether two trees are the same."""
    try:
        command = ["git", "-C", str(Path(__file__).resolve().parent), "rev-parse", "--short", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _tell(outcome: Outcome, as_json: bool) -> None:
    if as_json:
        print_json({"seed": outcome.seed, "finding": outcome.finding, "replay": outcome.replay_command})
    else:
        print(f"seed {outcome.seed}: {outcome.finding}\n  replay: {outcome.replay_command}", flush=True)


def _race(arguments: argparse.Namespace) -> int:
    from tidelog.sim import speed

    simulated_s, cpu_s, findings = speed.race(arguments.seeds)
    if arguments.json:
        print_json(
            {
                "seeds": arguments.seeds,
                "simulated_seconds": round(simulated_s, 1),
                "cpu_seconds": round(cpu_s, 2),
                "findings": findings,
            }
        )
    else:
        print(
            f"{arguments.seeds} seeds of three nodes and 100 records a second under faults: {simulated_s:.0f} "
            f"simulated seconds in {cpu_s:.1f} s of one core, {simulated_s / cpu_s:.1f} in each; {findings} findings"
        )
    return Exit.FAILED if findings else Exit.OK


def _break(arguments: argparse.Namespace) -> int:
    from tidelog.sim import mutants

    names = arguments.names or list(mutants.PROVEN)
    for name in names:
        if name not in mutants.ALL:
            raise UsageError(f"tidelog sim mutants: there is no mutant {name!r}{nearest(name, mutants.ALL)}")
    first = int(time.time()) % 10**6 * 1000 if arguments.first_seed is None else arguments.first_seed
    rows = []
    missed = 0
    for name in names:
        used = time.process_time()
        hunt = mutants.hunt(mutants.ALL[name], range(first, first + arguments.most_seeds))
        missed += not hunt.is_proven
        seconds = time.process_time() - used
        verdict = hunt.checker if hunt.is_proven else hunt.complaint
        rows.append((name, hunt.seeds, f"{seconds:.1f}", hunt.executed, verdict))
        if arguments.json:
            print_json(
                {
                    "mutant": name,
                    "found": hunt.is_proven,
                    "first_seed": first,
                    "seeds": hunt.seeds,
                    "cpu_seconds": round(seconds, 2),
                    "executed": hunt.executed,
                    "checker": hunt.checker,
                    "finding": hunt.finding,
                    "complaint": hunt.complaint,
                }
            )
    if not arguments.json:
        print("\n".join(table(["mutant", "seeds", "seconds", "executed", "found by"], rows)))
        print(f"{len(names) - missed} of {len(names)} mutants found, from seed {first} on")
    return Exit.FAILED if missed else Exit.OK
