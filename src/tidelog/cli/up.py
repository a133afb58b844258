"""`tidelog up`: a local cluster in one command."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from tidelog.cli.frame import Exit, Parser, add_json
from tidelog.cli.output import print_json
from tidelog.cli.values import name_and_value, port_number, positive_integer, seconds_as_ms
from tidelog.errors import TidelogError

SUMMARY = "start a local cluster and watch it"
EXAMPLES = """\
  tidelog up                                           one node on port 9092, data in ./tidelog-data
  tidelog up --nodes 3 --port 9092 --dir ./data        three nodes on ports 9092, 9093 and 9094
  tidelog up --nodes 3 --controllers 3 --dir ./data    three brokers, and three controllers of their own
  tidelog up --dir ./data --detach                     return when ready; tidelog down --dir ./data stops it
  tidelog up --set log.retention.hours=1 --set num.partitions=3
  tidelog up --nodes 3 --chaos                         nodes whose links tidelog chaos can cut, hold and slow

When a topic can be created and written it prints one line:  ready bootstrap=127.0.0.1:9092,…
Ctrl-C stops the nodes in order. What --set gives holds for this start. Each node's log is DIR/node-N/node.log."""

_POLL_SECONDS = 0.01
_REDRAW_SECONDS = 1.0
_STOP_TIMEOUT_MS = 30_000


def configure(parser: Parser) -> None:
    """The options."""
    parser.add_argument("--nodes", type=positive_integer, metavar="N", help="brokers (default: as in DIR, or 1)")
    parser.add_argument(
        "--controllers",
        type=positive_integer,
        metavar="M",
        help="separate controller processes (default: as in DIR, or none: every node is broker and controller)",
    )
    parser.add_argument("--port", type=port_number, metavar="P", help="client port of node 1; the others follow (9092)")
    parser.add_argument("--dir", default="tidelog-data", metavar="DIR", help="default: tidelog-data")
    parser.add_argument("--detach", action="store_true", help="return when ready and leave the nodes running")
    parser.add_argument(
        "--chaos", action="store_true", help="let nodes talk through links that tidelog chaos can cut, hold and slow"
    )
    parser.add_argument(
        "--set",
        type=name_and_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting for every node, by Kafka's name; tidelog configs list --of node shows them",
    )
    parser.add_argument(
        "--timeout", dest="timeout_ms", type=seconds_as_ms, default=60_000, metavar="SECONDS", help="give up (60)"
    )
    add_json(parser)


class _StopAsked(Exception):
    """SIGTERM, SIGHUP or Ctrl-C."""


def run(arguments: argparse.Namespace) -> int:
    """Start, tell when ready, watch until told to stop."""
    from tidelog.runtime.cautions import cautions
    from tidelog.runtime.cluster_plan import check_ports, check_settings, plan_cluster
    from tidelog.runtime.formatting import check_cluster, prepare_cluster
    from tidelog.runtime.supervisor import Supervisor

    settings = dict(arguments.set)
    check_settings(settings)
    plan = plan_cluster(arguments.dir, arguments.nodes, arguments.controllers, arguments.port)
    configs = check_cluster(plan, settings)
    for caution in cautions(configs[0]):
        print(f"tidelog up: warning: {caution.setting}: {caution.reason}", file=sys.stderr)
    supervisor = Supervisor(plan)
    with _signals_ask_to_stop():
        try:
            check_ports(plan)
            prepare_cluster(plan, configs, supervisor.start_links() if arguments.chaos else None)
            supervisor.start()
            _wait_until_ready(supervisor, arguments.timeout_ms)
            _say_ready(plan.bootstrap, arguments.json)
            if arguments.detach:
                supervisor.leave()
                return Exit.OK
            _watch(supervisor)
        except _StopAsked:
            return _stop(supervisor)
        except BaseException:
            _stop(supervisor)
            raise
        _stop(supervisor)
    return Exit.FAILED  # all nodes have ended by themselves


@contextmanager
def _signals_ask_to_stop() -> Iterator[None]:
    def stop(number: int, frame: Any) -> NoReturn:
        raise _StopAsked

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup, and shells for what they put into the background
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(supervisor: Any) -> int:
    """Stop in order; a second Ctrl-C does not wait."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        complaints = supervisor.stop(_STOP_TIMEOUT_MS)
    except _StopAsked:
        complaints = supervisor.stop(0)
    for complaint in complaints:
        print(f"tidelog up: {complaint}", file=sys.stderr)
    return Exit.FAILED if complaints else Exit.OK


def _say_ready(bootstrap: str, as_json: bool) -> None:
    if as_json:
        print_json({"ready": True, "bootstrap": bootstrap})
    else:
        print(f"ready bootstrap={bootstrap}")
    sys.stdout.flush()


def _wait_until_ready(supervisor: Any, timeout_ms: int) -> None:
    """Return at the moment a topic can be created and written; raise when a node ends or the time is up."""
    from tidelog.cli.readiness import Readiness

    deadline = time.monotonic() + timeout_ms / 1000
    readiness = Readiness(supervisor.plan)
    try:
        while not readiness.check():
            ended = supervisor.ended()
            if ended:
                node, how = ended[0]
                raise TidelogError(f"node {node.node_id} ended ({how}): {node.last_line or 'see ' + node.log_path}")
            if time.monotonic() > deadline:
                raise TidelogError(f"not ready after {timeout_ms / 1000:g} s: {readiness.why}")
            time.sleep(_POLL_SECONDS)
    finally:
        readiness.close()


def _watch(supervisor: Any) -> None:
    """Show the nodes until a signal comes, or return when all of them are gone."""
    from tidelog.cli.live import LiveTable

    table = LiveTable(supervisor) if sys.stdout.isatty() and os.environ.get("TERM") != "dumb" else None
    told: set[int] = set()
    next_draw = 0.0
    while True:
        ended = supervisor.ended()
        for node, how in ended:
            if node.process.pid not in told:
                told.add(node.process.pid)
                if table is None:
                    print(f"node {node.node_id} is dead ({how}): {node.last_line}", file=sys.stderr, flush=True)
        if len(ended) == len(supervisor.state.nodes) and supervisor.state.links is None:
            return
        if table is not None and time.monotonic() >= next_draw:
            table.draw()
            next_draw = time.monotonic() + _REDRAW_SECONDS
        time.sleep(0.1)
