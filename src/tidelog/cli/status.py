"""`tidelog status`: the nodes of a local cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidelog.cli.frame import Exit, Parser, add_json
from tidelog.cli.output import bytes_text, print_json, table

if TYPE_CHECKING:
    from tidelog.runtime.supervisor import NodeStatus

SUMMARY = "show the nodes of a local cluster"
EXAMPLES = """\
  tidelog status --dir ./data
  tidelog status --dir ./data --json

Each node: id, what it does, pid, port, state (starting, running, paused, dead), memory of all its processes.
Exit code 0 when every node runs, 1 when one does not or none was started."""


def configure(parser: Parser) -> None:
    """The options."""
    parser.add_argument("--dir", default="tidelog-data", metavar="DIR", help="default: tidelog-data")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Look once and print."""
    from tidelog.runtime.supervisor import node_statuses, read_state

    state = read_state(arguments.dir)
    statuses = node_statuses(state) if state else []
    if arguments.json:
        print_json([status.as_json() for status in statuses])
    elif not statuses:
        print(f"no cluster runs in {arguments.dir}")
    else:
        for line in status_lines(statuses):
            print(line)
    return Exit.OK if statuses and all(status.state == "running" for status in statuses) else Exit.FAILED


def status_lines(statuses: Iterable[NodeStatus]) -> list[str]:
    """The table, and below it the last words of the dead."""
    statuses = list(statuses)
    rows = [
        [
            one.node_id,
            "+".join(one.roles),
            one.pid,
            one.port or one.controller_port,
            one.state,
            bytes_text(one.memory_bytes),
        ]
        for one in statuses
    ]
    lines = table(["node", "roles", "pid", "port", "state", "memory"], rows)
    lines += [f"node {one.node_id} is dead; its last line: {one.last_line}" for one in statuses if one.state == "dead"]
    return lines
