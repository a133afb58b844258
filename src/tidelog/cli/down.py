"""`tidelog down`: stop a local cluster."""

from __future__ import annotations

import argparse
import sys

from tidelog.cli.frame import Exit, Parser, add_json
from tidelog.cli.output import print_json
from tidelog.cli.values import seconds_as_ms

SUMMARY = "stop a local cluster"
EXAMPLES = """\
  tidelog down --dir ./data

Brokers stop first, then separate controllers, each in order; one that takes longer than --timeout is killed, and the
exit code is 1. Data stays. Nothing running is no error."""


def configure(parser: Parser) -> None:
    """The options."""
    parser.add_argument("--dir", default="tidelog-data", metavar="DIR", help="default: tidelog-data")
    parser.add_argument(
        "--timeout", dest="timeout_ms", type=seconds_as_ms, default=30_000, metavar="SECONDS", help="then kill (30)"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Stop what runs."""
    from tidelog.runtime.supervisor import read_state, stop_cluster

    state = read_state(arguments.dir)
    alive = [node.node_id for node in state.nodes if node.process.state != "gone"] if state else []
    killed = stop_cluster(state, arguments.timeout_ms) if state else []
    if arguments.json:
        print_json({"stopped": [node for node in alive if node not in killed], "killed": killed})
    elif not alive:
        print(f"no cluster runs in {arguments.dir}")
    else:
        print(f"stopped {len(alive) - len(killed)} of {len(alive)} nodes")
    if killed:
        print(f"tidelog down: killed, because they did not stop: nodes {', '.join(map(str, killed))}", file=sys.stderr)
        return Exit.FAILED
    return Exit.OK
