"""`tidelog brokers`: who is registered, and how each one is."""

from __future__ import annotations

import argparse
from typing import Any

from tidelog.cli.frame import Exit, Parser, add_cluster, add_json, connect
from tidelog.cli.output import print_json, table
from tidelog.cli.status import quorum_role

SUMMARY = "list the brokers of a cluster"
EXAMPLES = """\
  tidelog brokers list
  tidelog brokers list --json"""

_NODE_TIMEOUT_MS = 2_000


def configure(parser: Parser) -> None:
    """The options of each subcommand."""
    commands = parser.add_commands()
    listed = commands.add(
        "list",
        "show every registered broker: address, rack, whether it is fenced, its state and epoch",
        "  tidelog brokers list\n  tidelog brokers list --json\n\n"
        "The state is what the broker says of itself; unreachable when it does not answer.",
        _list,
    )
    add_cluster(listed)
    add_json(listed)


def _list(arguments: argparse.Namespace) -> int:
    from tidelog.client.cluster_admin import list_brokers
    from tidelog.client.connection import address_text
    from tidelog.client.query import NodeQueries

    with connect(arguments) as client:
        found = list_brokers(client).brokers
    addresses = {broker.broker_id: (broker.host, broker.port) for broker in found}
    queries = NodeQueries(addresses, timeout_ms=min(_NODE_TIMEOUT_MS, arguments.timeout_ms))
    try:
        answers = queries.ask("node")
    finally:
        queries.close()
    brokers: list[dict[str, Any]] = []
    for broker in found:
        answer = answers[broker.broker_id]
        told = answer if isinstance(answer, dict) else {}
        brokers.append(
            {
                "broker": broker.broker_id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
                "fenced": broker.is_fenced,
                "state": told.get("state", "unreachable"),
                "epoch": told.get("broker_epoch"),
                "quorum_role": quorum_role(told or None),
                "why": None if isinstance(answer, dict) else answer.message or answer.code.name,
            }
        )
    if arguments.json:
        print_json(brokers)
    else:
        headings = ["broker", "address", "rack", "fenced", "state", "epoch", "quorum role", "why"]
        rows = [
            [one["broker"], address_text(one["host"], one["port"]), *(one[key] for key in list(one)[3:])]
            for one in brokers
        ]
        print("\n".join(table(headings, rows)))
    return Exit.OK
