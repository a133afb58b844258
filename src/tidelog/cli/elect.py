"""`tidelog elect`: give leadership back to preferred replicas, or to whoever is there."""

from __future__ import annotations

import argparse

from tidelog.cli.frame import Exit, Parser, UsageError, add_cluster, add_json, connect
from tidelog.cli.output import print_json
from tidelog.cli.places import partitions_at, place, tell_refusals
from tidelog.errors import ErrorCode

SUMMARY = "elect preferred leaders, or unclean ones"
EXAMPLES = """\
  tidelog elect preferred                       wherever the first replica is in sync and does not lead
  tidelog elect preferred orders payments:2
  tidelog elect unclean orders:0                a partition without a leader: what only the ISR had is lost"""


def configure(parser: Parser) -> None:
    """The options of each subcommand."""
    commands = parser.add_commands()
    commands.add(
        "preferred",
        "make the first replica of each partition its leader, where it is in sync",
        "  tidelog elect preferred\n  tidelog elect preferred orders payments:2",
        _elect,
    )
    unclean = commands.add(
        "unclean",
        "make a replica outside the ISR the leader of partitions that have none; records can be lost",
        "  tidelog elect unclean orders:0\n  tidelog elect unclean --all",
        _elect,
    )
    unclean.add_argument("--all", action="store_true", help="every partition without a leader")
    commands.share(_add_places, add_cluster, add_json)


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("places", metavar="TOPIC[:PARTITION]", nargs="*", type=place)


def _elect(arguments: argparse.Namespace) -> int:
    from tidelog.client.cluster_admin import elect_leaders

    kind = arguments.subcommand
    command = f"tidelog elect {kind}"
    if kind == "unclean" and bool(arguments.places) == arguments.all:
        raise UsageError(f"{command}: records can be lost: name the partitions, or say --all")
    with connect(arguments) as client:
        wanted = partitions_at(client, arguments.places, command)
        outcomes = elect_leaders(client, kind, list(wanted) if arguments.places else None)
    not_needed = [
        where for where, error in outcomes.items() if error is not None and error.code == ErrorCode.ELECTION_NOT_NEEDED
    ]
    elected = sorted(where for where, error in outcomes.items() if error is None)
    refused = {where: error for where, error in outcomes.items() if error is not None and where not in not_needed}
    if arguments.json:
        print_json(
            [
                {
                    "topic": where[0],
                    "partition": where[1],
                    "elected": error is None,
                    "error": None if error is None else error.code.name,
                }
                for where, error in sorted(outcomes.items())
            ]
        )
    else:
        for topic, partition in elected:
            print(f"elected a leader of {topic}-{partition}")
        for topic, partition in sorted(not_needed):
            print(f"{topic}-{partition} needs no election")
        if not outcomes:
            print("no partition needs an election")
    return Exit(tell_refusals(command, refused))
