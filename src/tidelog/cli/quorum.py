"""`tidelog quorum`: who decides, and who is to."""

from __future__ import annotations

import argparse
from typing import Any

from tidelog.cli.frame import Exit, Parser, UsageError, add_cluster, add_json, connect, load_config
from tidelog.cli.output import print_json, table
from tidelog.cli.values import identifier
from tidelog.errors import ConfigError, DecodeError, DirectoryError
from tidelog.wire.uuids import from_text, to_text

SUMMARY = "describe the quorum of the controllers, add and remove voters"
EXAMPLES = """\
  tidelog quorum describe
  tidelog quorum describe --json
  tidelog quorum add --config controller.properties    a controller that runs and follows becomes a voter
  tidelog quorum remove 3

A voter whose disk was lost is removed first and then added with its new directory."""


def configure(parser: Parser) -> None:
    """The options of each subcommand."""
    commands = parser.add_commands()
    commands.add(
        "describe",
        "show the leader, its epoch, the high watermark, and how far each voter and observer is",
        "  tidelog quorum describe\n  tidelog quorum describe --json\n\n"
        "A voter is an id with a directory id: a node whose disk was wiped is no voter until it is added again.",
        _describe,
    )
    added = commands.add(
        "add",
        "make a controller that follows the quorum one of its voters",
        "  tidelog quorum add --config controller.properties\n\n"
        "To be run where the controller's directories are: its directory id is read from there.",
        _add,
    )
    added.add_argument("--config", metavar="FILE", required=True, help="the controller's properties file")
    removed = commands.add(
        "remove",
        "take a voter out of the quorum",
        "  tidelog quorum remove 3\n  tidelog quorum remove 3 --directory-id 4ZUYCIJbQGeXVSH-Kgm6Ow",
        _remove,
    )
    removed.add_argument("node", metavar="NODE", type=identifier, help="its id")
    removed.add_argument("--directory-id", metavar="ID", type=_directory_id, help="default: that of the voter now")
    commands.share(add_cluster, add_json)


def _describe(arguments: argparse.Namespace) -> int:
    from tidelog.client.cluster_admin import describe_quorum
    from tidelog.client.connection import address_text

    with connect(arguments) as client:
        answer = describe_quorum(client)
    partition = answer.topics[0].partitions[0]
    states = [*partition.current_voters, *partition.observers]
    leading = next((one for one in states if one.replica_id == partition.leader_id), None)
    addresses = {
        node.node_id: ",".join(address_text(one.host, one.port) for one in node.listeners) for node in answer.nodes
    }

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


def _add(arguments: argparse.Namespace) -> int:
    from tidelog.client.cluster_admin import add_voter
    from tidelog.runtime.formatting import read_meta_properties
    from tidelog.runtime.resolver import told_host

    config = load_config(arguments.config)
    if not config.is_controller:
        raise ConfigError(f"{arguments.config}: process.roles: a node that is no controller cannot vote")
    meta = read_meta_properties(config.metadata_directory)
    if meta is None:
        raise DirectoryError(f"{config.metadata_directory} is not formatted")
    listeners = [(entry.name, told_host(entry.host), entry.port) for entry in config.controller_addresses]
    with connect(arguments) as client:
        add_voter(client, meta.cluster_id, config.node_id, meta.directory_id, listeners)
    return _say("added", config.node_id, meta.directory_id, arguments)


def _remove(arguments: argparse.Namespace) -> int:
    from tidelog.client.cluster_admin import describe_quorum, remove_voter

    with connect(arguments) as client:
        directory_id = arguments.directory_id
        if directory_id is None:
            voters = {one.replica_id: one for one in describe_quorum(client).topics[0].partitions[0].current_voters}
            if arguments.node not in voters:
                known = ", ".join(map(str, sorted(voters)))
                raise UsageError(f"tidelog quorum remove: node {arguments.node} is no voter; these are: {known}")
            directory_id = voters[arguments.node].replica_directory_id
        remove_voter(client, arguments.node, directory_id)
    return _say("removed", arguments.node, directory_id, arguments)


def _say(did: str, node_id: int, directory_id: bytes, arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json({"did": did, "node": node_id, "directory_id": to_text(directory_id)})
    else:
        print(f"{did} voter {node_id} with directory {to_text(directory_id)}")
    return Exit.OK


def _directory_id(text: str) -> bytes:
    try:
        return from_text(text)
    except DecodeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a directory id") from None


def _ago(leading: Any, moment_ms: int) -> int | None:
    """Milliseconds before the leader's own moment, so that clocks of other machines do not matter."""
    if leading is None or moment_ms < 0:
        return None
    return max(0, int(leading.last_fetch_timestamp) - moment_ms)
