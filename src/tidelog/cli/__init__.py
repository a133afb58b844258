"""The `tidelog` command: one file a command, loaded only when it is asked for.

A command is a module of this package with `SUMMARY`, `EXAMPLES`, `configure(parser)` and `run(arguments) -> exit code`;
where it has subcommands, each of them brings its own `run`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

COMMANDS = {
    "up": "start a local cluster and watch it",
    "down": "stop a local cluster",
    "status": "show the nodes of a local cluster",
    "node": "run one node from a properties file",
    "format": "prepare the directories of a node",
    "topics": "create, list, describe, alter and delete topics",
    "configs": "describe and alter settings of topics and brokers",
    "groups": "list, describe and delete consumer groups, and reset their offsets",
    "transactions": "list, describe and abort transactions, and find those that hang",
    "partitions": "show where every replica of a topic stands, and why",
    "brokers": "list the brokers of a cluster",
    "quorum": "describe the quorum of the controllers, add and remove voters",
    "elect": "elect preferred leaders, or unclean ones",
    "reassign": "move replicas to other brokers",
    "events": "show what happened to replicas, and why",
    "chaos": "break a running local cluster: kill, pause, cut, slow, heal",
    "produce": "write records from standard input",
    "consume": "write records to standard output",
    "scenario": "play the stories of replication on a simulated cluster",
    "sim": "search for bugs in simulated clusters, one seed a history",
    "verify": "break a cluster under load and check that nothing is lost",
    "pipeline": "run a job on Spark: land, audit, compare replicas, draw a timeline, mirror",
    "dump": "show a segment, index, snapshot or checkpoint file",
}
"""Every command and what it is for, in the order of the help."""

_OVERVIEW = """\
Tidelog: a replicated log that speaks Kafka's protocol and writes Kafka's files.

usage: tidelog COMMAND [options]
       tidelog COMMAND --help

commands:
{commands}

examples:
  tidelog up --nodes 1 --port 9092 --dir ./data
  tidelog topics create orders --partitions 3
  echo hello | tidelog produce orders
  tidelog consume orders

Commands that talk to a cluster find it by --bootstrap HOST:PORT,… or the variable TIDELOG_BOOTSTRAP
(127.0.0.1:9092 when neither is given). --json prints JSON instead of text.

exit codes:
  0    done
  1    refused or failed: the cluster's or the system's answer is on the line printed
  2    a mistake in the arguments, a setting or a properties file; nothing was done
  3    no broker could be reached, or no answer came in time
  4    a data directory cannot be used: not formatted, of another cluster or node, or in use
  5    a file is damaged (dump)
  70   a fault of Tidelog itself (TIDELOG_TRACEBACK=1 shows where)
  130  interrupted"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        if len(words) > 1 and words[1] in COMMANDS:
            return main([words[1], "--help"])
        return _overview() or (0 if words else 2)
    if words[0] in ("-V", "--version"):
        from tidelog import __version__

        print(f"tidelog {__version__}")
        return 0
    if words[0] not in COMMANDS:
        from tidelog.cli.frame import nearest

        kind = "option" if words[0].startswith("-") else "command"
        print(f"tidelog: unknown {kind} {words[0]!r}{nearest(words[0], COMMANDS)}", file=sys.stderr)
        return 2
    from tidelog.cli.frame import run_command

    return run_command(words[0], words[1:])


def _overview() -> int:
    width = max(map(len, COMMANDS)) + 2
    try:
        print(_OVERVIEW.format(commands="\n".join(f"  {name:{width}}{text}" for name, text in COMMANDS.items())))
        sys.stdout.flush()
    except BrokenPipeError:
        from tidelog.cli.frame import reader_has_gone

        return reader_has_gone()
    return 0
