"""`tidelog quorum`: who decides."""

from __future__ import annotations

import argparse
from typing import Any

from tidelog.cli.frame import Exit, Parser, add_cluster, add_json, add_subcommand, connect
from tidelog.cli.output import print_json, table
from tidelog.wire.uuids import to_text

SUMMARY = "describe the quorum of the controllers"
EXAMPLES = """\
  tidelog quorum describe
  tidelog quorum describe --json"""


def configure(parser: Parser) -> None:
    """The options of each subcommand."""
    commands = parser.add_commands()
    described = add_subcommand(
        commands,
        "describe",
        "show the leader, its epoch, the high watermark, and how far each voter and observer is",
        "  tidelog quorum describe\n  tidelog quorum describe --json\n\n"
        "A voter is an id with a directory id: a node whose disk was wiped is no voter until it is added again.",
        _describe,
    )
    add_cluster(described)
    add_json(described)


def _describe(arguments: argparse.Namespace) -> int:
    from tidelog.client.cluster_admin import describe_quorum

    with connect(arguments) as client:
        answer = describe_quorum(client)
    partition = answer.topics[0].partitions[0]
    states = [*partition.current_voters, *partition.observers]
    leading = next((one for one in states if one.replica_id == partition.leader_id), None)
    addresses = {node.node_id: ",".join(f"{one.host}:{one.port}" for one in node.listeners) for node in answer.nodes}

    def fields(state: Any, kind: str) -> dict[str, Any]:
        known = leading is not None and state.log_end_offset >= 0
        return {
            "node": state.replica_id,
            "kind": kind,
            "directory_id": to_text(state.replica_directory_id),
            "address": addresses.get(state.replica_id) if kind == "voter" else None,
            "log_end_offset": state.log_end_offset if state.log_end_offset >= 0 else None,
            "lag": leading.log_end_offset - state.log_end_offset if leading is not None and known else None,
            "fetched_ms_ago": _ago(leading, state.last_fetch_timestamp),
            "caught_up_ms_ago": _ago(leading, state.last_caught_up_timestamp),
        }

    replicas = [fields(one, "voter") for one in partition.current_voters]
    replicas += [fields(one, "observer") for one in partition.observers]
    if arguments.json:
        described = {
            "leader": partition.leader_id,
            "epoch": partition.leader_epoch,
            "high_watermark": partition.high_watermark,
            "replicas": replicas,
        }
        print_json(described)
        return Exit.OK
    from tidelog.cli.partitions import watermark_text

    watermark = watermark_text(partition.high_watermark if partition.high_watermark >= 0 else None)
    print(f"leader {partition.leader_id}, epoch {partition.leader_epoch}, {watermark or 'no high watermark yet'}")
    headings = ["node", "kind", "directory id", "address", "leo", "lag", "fetched ms ago", "caught up ms ago"]
    for line in table(headings, [list(one.values()) for one in replicas]):
        print("  " + line)
    return Exit.OK


def _ago(leading: Any, moment_ms: int) -> int | None:
    """Milliseconds before the leader's own moment, so that clocks of other machines do not matter."""
    if leading is None or moment_ms < 0:
        return None
    return max(0, int(leading.last_fetch_timestamp) - moment_ms)
