"""`tidelog verify`: real clients, real faults, and a judge."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from tidelog.cli.frame import Exit, Parser, UsageError, add_json, nearest
from tidelog.cli.output import print_json, table
from tidelog.cli.values import name_and_value, port_number, positive_integer, whole_number

if TYPE_CHECKING:
    from tidelog.verify.run import Progress, Report

SUMMARY = "break a cluster under load and check that nothing is lost"
EXAMPLES = """\
  tidelog verify --minutes 1                                    kill -9 and pauses, three nodes of its own
  tidelog verify --minutes 60 --chaos kill,pause,partition --seed 7 --dir ./proof
  tidelog verify --bootstrap 127.0.0.1:9092 --minutes 1         a cluster that runs; it is not broken

Producers (confluent-kafka, acks=all, idempotent) write numbered records and keep a ledger, consumers keep what they
see, and every few seconds a leader, a follower or the controller is broken:
  kill      kill -9 and restart                 pause     SIGSTOP past the session timeout, then SIGCONT
  stop      a clean stop and restart            kill-all  kill -9 of every node at once, and restart
  partition one node cut off from the others    slow      everything between one node and the others takes longer
At the end all is mended and compared: nothing acknowledged is lost, nothing is there twice or out of order, no consumer
saw what later vanished or changed, and the replicas' files are equal byte by byte. DIR/ledger has the ledger as lines
of JSON. Exit code 0 when all of that held, 1 when not."""


def configure(parser: Parser) -> None:
    """The options."""
    parser.add_argument("--producers", type=positive_integer, default=4, metavar="N", help="default: 4")
    parser.add_argument("--consumers", type=positive_integer, default=4, metavar="N", help="default: 4")
    parser.add_argument("--minutes", type=_minutes, default=1.0, metavar="M", help="how long, fractions allowed (1)")
    parser.add_argument("--chaos", default="kill,pause", metavar="KIND,…", help="faults (kill,pause), or none")
    parser.add_argument("--every", type=float, default=10.0, metavar="SECONDS", help="between two faults (10)")
    parser.add_argument("--nodes", type=positive_integer, default=3, metavar="N", help="default: 3")
    parser.add_argument("--partitions", type=positive_integer, default=6, metavar="N", help="default: 6")
    parser.add_argument("--rate", type=positive_integer, default=100, metavar="N", help="records/s a producer (100)")
    parser.add_argument("--seed", type=whole_number, default=1, metavar="S", help="draws the faults and the load (1)")
    parser.add_argument("--session-timeout", type=float, default=3.0, metavar="SECONDS", help="of the nodes (3)")
    parser.add_argument("--port", type=port_number, metavar="P", help="client port of node 1 (default: a free one)")
    parser.add_argument("--dir", metavar="DIR", help="keep nodes, logs and ledger there (default: thrown away)")
    parser.add_argument("--bootstrap", metavar="HOST:PORT,…", help="a running cluster instead of one of its own")
    parser.add_argument(
        "--set", type=name_and_value, action="append", default=[], metavar="NAME=VALUE", help="a setting of the nodes"
    )
    add_json(parser)


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes above 0")
    return minutes


def run(arguments: argparse.Namespace) -> int:
    """Run, show how it goes, print the table."""
    from tidelog.verify import workload  # refuses where confluent-kafka is missing, before anything else is loaded
    from tidelog.verify.faults import KINDS
    from tidelog.verify.run import Plan
    from tidelog.verify.run import run as run_plan

    del workload
    chaos = tuple(kind for kind in arguments.chaos.split(",") if kind and kind != "none")
    for kind in chaos:
        if kind not in KINDS:
            raise UsageError(
                f"tidelog verify: unknown fault {kind!r}{nearest(kind, KINDS)} (known: {', '.join(KINDS)})"
            )
    if arguments.dir is not None and os.path.isdir(os.path.join(arguments.dir, "cluster")):
        raise UsageError(f"tidelog verify: {arguments.dir} holds an earlier run; name another --dir")
    directory = arguments.dir or tempfile.mkdtemp(prefix="tidelog-verify-")
    plan = Plan(
        directory=directory,
        producers=arguments.producers,
        consumers=arguments.consumers,
        seconds=arguments.minutes * 60,
        chaos=() if arguments.bootstrap else chaos,
        interval_s=arguments.every,
        nodes=arguments.nodes,
        partitions=arguments.partitions,
        rate=arguments.rate,
        seed=arguments.seed,
        session_timeout_s=arguments.session_timeout,
        settings=tuple(arguments.set),
        port=arguments.port,
        bootstrap=arguments.bootstrap,
    )
    live = _LiveLine(arguments.json)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # end the nodes, as Ctrl-C does
    try:
        report = run_plan(plan, live.tell)
    finally:
        signal.signal(signal.SIGTERM, before)
        live.end()
        if arguments.dir is None:
            shutil.rmtree(directory, ignore_errors=True)
    if arguments.json:
        print_json(as_json(report))
    else:
        for line in report_lines(report):
            print(line)
    return Exit.OK if report.passed else Exit.FAILED


class _LiveLine:
    """One line that is written over on a terminal; elsewhere one every ten seconds."""

    def __init__(self, quiet: bool) -> None:
        self._terminal = sys.stderr.isatty()
        self._quiet = quiet and not self._terminal
        self._next_s = 0.0

    def tell(self, progress: Progress) -> None:
        if self._quiet or (not self._terminal and progress.elapsed_s < self._next_s):
            return
        self._next_s = progress.elapsed_s + 10
        text = (
            f"{progress.elapsed_s:5.0f} s  {progress.acknowledged} acknowledged  {progress.seen} seen  "
            f"silent {progress.silent_ms} ms  faults {progress.faults}  {progress.last_fault}"
        )
        sys.stderr.write(f"\r\x1b[2K{text}" if self._terminal else text + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[2K")


_VERDICTS = {
    "lost": "acknowledged and gone",
    "duplicated": "in the log more than once",
    "reordered": "out of a producer's order",
    "moved": "not at the offset that was acknowledged",
    "vanished": "seen by a consumer and gone",
    "conflicting": "two values at one offset",
    "skipped": "left out for a consumer, or refused to it",
    "behind": "not reached in time",
    "differing": "replicas whose files differ",
    "foreign": "never sent",
    "failed": "given up by a producer",
    "died": "nodes that ended by themselves, or printed a fault",
}
_SHOWN = 20


def report_lines(report: Report) -> list[str]:
    """The report for people."""
    faults = [
        [outcome.fault.text, f"{outcome.fault.lasted_ms} ms", None if outcome.gap is None else outcome.gap.length_ms]
        for outcome in report.faults
    ]
    lines = [*table(["fault", "lasted", "longest gap in ms"], faults), ""] if faults else []
    counts = report.counts
    lines += table(["count", "of records or things"], [[counts[kind], text] for kind, text in _VERDICTS.items()])
    lines += [
        f"{violation.kind} in {violation.partition}: {violation.text}" for violation in report.violations[:_SHOWN]
    ]
    if len(report.violations) > _SHOWN:
        lines.append(f"… and {len(report.violations) - _SHOWN} more")
    summary = f"{report.acknowledged} acknowledged in {report.seconds:.0f} s, {len(report.faults)} faults, "
    return [*lines, "", summary + ("everything held" if report.passed else "NOT everything held")]


def as_json(report: Report) -> dict[str, Any]:
    """The report for programs."""
    return {
        "passed": report.passed,
        "seed": report.plan.seed,
        "topic": report.topic,
        "acknowledged": report.acknowledged,
        "seconds": report.seconds,
        "violations": {kind: report.counts[kind] for kind in _VERDICTS},
        "details": [violation._asdict() for violation in report.violations[:1000]],
        "faults": [
            {
                "kind": outcome.fault.kind,
                "target": outcome.fault.target,
                "node": outcome.fault.node_id,
                "lasted_ms": outcome.fault.lasted_ms,
                "longest_gap_ms": None if outcome.gap is None else outcome.gap.length_ms,
            }
            for outcome in report.faults
        ],
    }
