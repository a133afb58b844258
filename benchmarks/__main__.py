"""`python -m benchmarks`: see the package's own page."""

from __future__ import annotations

import argparse
import sys

from benchmarks import harness, machine, report
from benchmarks.catalogue import BENCHMARKS
from benchmarks.model import Scale

FULL_RUNS, QUICK_RUNS = 5, 2


def parse() -> argparse.Namespace:
    """The options."""
    names = [kind.name for kind in BENCHMARKS]
    parser = argparse.ArgumentParser(prog="benchmarks", description="Tidelog side by side with Apache Kafka.")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="small sizes and two runs; keep nothing")
    parser.add_argument("--runs", type=int, help=f"runs of each peer that count (default {FULL_RUNS})")
    parser.add_argument("--peer", action="append", choices=harness.PEERS, help="only this peer; keep nothing")
    parser.add_argument("--list", action="store_true", help="say what there is and measure nothing")
    parser.add_argument("--page", action="store_true", help="make docs/benchmarks.md from the kept results only")
    return parser.parse_args()


def main() -> int:
    """The command."""
    arguments = parse()
    if arguments.list:
        for kind in BENCHMARKS:
            print(f"{kind.name:18} {kind.title}")
        return 0
    if arguments.page:
        print(report.write(BENCHMARKS))
        return 0
    runs = arguments.runs or (QUICK_RUNS if arguments.quick else FULL_RUNS)
    peers = arguments.peer or list(harness.PEERS)
    keeps = not arguments.quick and not arguments.peer
    about = machine.describe()
    missed = 0
    for kind in BENCHMARKS:
        if arguments.only and kind.name not in arguments.only:
            continue
        busy = machine.is_busy()
        if busy:
            print("this machine is busy: what follows is no result, ratios flatter the lighter peer", file=sys.stderr)
        raw = harness.run_benchmark(kind, peers, runs, Scale(arguments.quick))
        rows = [report.row(raw, figure) for figure in kind.figures]
        missed += sum(each[-1] == "**no**" for each in rows)
        print(f"\n{kind.title}\n\n{report.table(rows)}", flush=True)
        if keeps:
            harness.save(kind, raw, about, f"make bench ARGS='--only {kind.name}'", busy=busy)
    if keeps:
        print(report.write(BENCHMARKS))
    if missed:
        print(f"{missed} targets are not met")
    return 0


if __name__ == "__main__":
    sys.exit(main())
