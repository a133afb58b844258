"""`tidelog sim`: whole clusters in simulated time, one seed a history, checked at every step."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import TYPE_CHECKING

from tidelog.cli.frame import Exit, Parser, UsageError, add_json, add_subcommand, nearest, positive_integer
from tidelog.cli.frame import whole_number as seed_number
from tidelog.cli.output import print_json, table

if TYPE_CHECKING:
    from tidelog.sim.swarm import Outcome

SUMMARY = "search for bugs in simulated clusters, one seed a history"
EXAMPLES = """\
  tidelog sim run --seeds 0..100
  tidelog sim run --seeds 1000.. --minutes 10
  tidelog sim replay 42 --trace
  tidelog sim mutants

A seed decides everything: the cluster, its settings, what clients do, which faults come, every delay. The same seed
gives the same history on every machine. For half a minute of simulated time faults come and go; then they stop, and
everything must be well again within a minute. Checkers look on after every step of every node. Exit code 1 when one
of them complains; the line names the command that shows the history again."""
WORTH_COUNTING = {
    "leader-elected": "elections",
    "isr-changed": "ISR changes",
    "log-truncated": "truncation",
    "quorum-truncated": "quorum truncation",
    "quorum-snapshot-loaded": "snapshot install",
    "controller-active": "controllers",
}


def configure(parser: Parser) -> None:
    """The subcommands."""
    commands = parser.add_commands()
    running = add_subcommand(commands, "run", "play many seeds", "  tidelog sim run --seeds 0..100\n", _run)
    running.add_argument("--seeds", metavar="A..B", type=seed_range, default=range(100), help="default: 0..100")
    running.add_argument("--minutes", metavar="M", type=positive_integer, help="stop after so long")
    add_json(running)
    replaying = add_subcommand(commands, "replay", "play one seed again", "  tidelog sim replay 42 --trace\n", _replay)
    replaying.add_argument("seed", type=seed_number)
    replaying.add_argument("--trace", action="store_true", help="print what happened, line by line")
    replaying.add_argument("--mutant", metavar="NAME", help="with this bug put in")
    add_json(replaying)
    breaking = add_subcommand(
        commands,
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
    add_json(breaking)


def run(_arguments: argparse.Namespace) -> int:
    """Never called: a subcommand is required."""
    raise UsageError("tidelog sim: run, replay or mutants")


def seed_range(text: str) -> range:
    """`A..B`, without B; `A..` goes on until the time is up."""
    first, dots, last = text.partition("..")
    if not dots or not first.isdigit() or (last and not last.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range like 0..100")
    return range(int(first), int(last) if last else 2**62)


def _run(arguments: argparse.Namespace) -> int:
    from tidelog.sim import swarm

    begun = time.monotonic()
    used = time.process_time()
    totals: Counter[str] = Counter()
    saw: Counter[str] = Counter()
    for seed in arguments.seeds:
        if arguments.minutes is not None and time.monotonic() - begun > arguments.minutes * 60:
            break
        outcome = swarm.run(seed)
        totals.update(
            seeds=1,
            findings=bool(outcome.finding),
            operations=outcome.operations,
            faults=outcome.faults,
            simulated_ms=outcome.simulated_ms,
        )
        saw.update(kind for kind, count in outcome.seen.items() if count)
        if outcome.finding:
            _tell(outcome, arguments.json)
    seconds = time.process_time() - used
    if arguments.json:
        print_json({**totals, "cpu_seconds": round(seconds, 2), "seeds_that_saw": dict(sorted(saw.items()))})
    elif totals["seeds"]:
        speed = totals["simulated_ms"] / 1000 / max(seconds, 0.001)
        print(
            f"{totals['seeds']} seeds, {totals['findings']} findings; {totals['operations'] // totals['seeds']} "
            f"operations and {totals['faults'] / totals['seeds']:.1f} faults a seed; {seconds:.0f} s of one core, "
            f"{speed:.0f} simulated seconds in each"
        )
        counted = [f"{name} {saw[kind]}" for kind, name in WORTH_COUNTING.items()]
        print(f"seeds that saw: {', '.join(counted)}")
    return Exit.FAILED if totals["findings"] else Exit.OK


def _tell(outcome: Outcome, as_json: bool) -> None:
    if as_json:
        print_json({"seed": outcome.seed, "finding": outcome.finding, "replay": outcome.replay_command})
    else:
        print(f"seed {outcome.seed}: {outcome.finding}\n  replay: {outcome.replay_command}", flush=True)


def _replay(arguments: argparse.Namespace) -> int:
    from contextlib import nullcontext

    from tidelog.sim import mutants, swarm

    if arguments.mutant is not None and arguments.mutant not in mutants.ALL:
        raise UsageError(
            f"tidelog sim replay: there is no mutant {arguments.mutant!r}{nearest(arguments.mutant, mutants.ALL)}"
        )
    with nullcontext() if arguments.mutant is None else mutants.ALL[arguments.mutant].put_in():
        outcome = swarm.run(arguments.seed)
    if arguments.json:
        print_json(
            {"seed": outcome.seed, "finding": outcome.finding, "hash": outcome.trace_hash, "trace": outcome.trace}
        )
    else:
        if arguments.trace:
            print("\n".join(outcome.trace))
        print(f"seed {outcome.seed}: {outcome.finding or 'all is well'} (trace {outcome.trace_hash})")
    return Exit.FAILED if outcome.finding else Exit.OK


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
