"""`tidelog status`: the nodes of a local cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tidelog.cli.frame import Exit, Parser, add_json
from tidelog.cli.output import bytes_text, print_json, table
from tidelog.errors import TidelogError

if TYPE_CHECKING:
    from tidelog.runtime.links import LinkStatus
    from tidelog.runtime.supervisor import ClusterState, NodeStatus

SUMMARY = "show the nodes of a local cluster"
EXAMPLES = """\
  tidelog status --dir ./data
  tidelog status --dir ./data --json

Each node: id, what it may do, pid, port, its process (starting, running, paused, dead), what it says of itself as a
broker and in the quorum, memory of all its processes; who is the controller; and the links that are not as they were,
when the cluster was started with tidelog up --chaos.
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
    told = _ask_nodes(statuses) if statuses else {}
    links = links_of(state)
    if arguments.json:
        print_json([_as_json(status, told.get(status.node_id), links) for status in statuses])
    elif not statuses:
        print(f"no cluster runs in {arguments.dir}")
    else:
        for line in [*status_lines(statuses, told), *_link_lines(links)]:
            print(line)
    return Exit.OK if statuses and all(status.state == "running" for status in statuses) else Exit.FAILED


def _ask_nodes(statuses: list[NodeStatus]) -> dict[int, dict[str, Any]]:
    from tidelog.cli.cluster_watch import NodeWatch

    watch = NodeWatch()
    try:
        return watch.ask(statuses, "node")
    finally:
        watch.close()


def status_lines(statuses: Iterable[NodeStatus], told: Mapping[int, dict[str, Any]]) -> list[str]:
    """The table with what each node told of itself, who decides, and the last words of the dead."""
    statuses = list(statuses)
    rows = [
        [
            one.node_id,
            "+".join(one.roles),
            one.pid,
            one.port or one.controller_port,
            one.state,
            told.get(one.node_id, {}).get("state") if "broker" in one.roles else None,
            quorum_role(told.get(one.node_id)),
            bytes_text(one.memory_bytes),
        ]
        for one in statuses
    ]
    lines = table(["node", "roles", "pid", "port", "state", "broker", "quorum", "memory"], rows)
    controller, epoch = controller_of(told)
    if told:
        lines.append("no controller" if controller is None else f"controller {controller}, epoch {epoch}")
    lines += [f"node {one.node_id} is dead; its last line: {one.last_line}" for one in statuses if one.state == "dead"]
    return lines


def quorum_role(told: Mapping[str, Any] | None) -> str | None:
    """A node's role in the quorum; whoever follows without a vote is an observer."""
    if told is None:
        return None
    role = str(told["quorum"]["role"])
    return role if told["quorum"]["is_voter"] or role != "follower" else "observer"


def controller_of(told: Mapping[int, dict[str, Any]]) -> tuple[int | None, int]:
    """The leader of the quorum by the newest epoch anybody knows, and that epoch; one that is cut off is no witness."""
    epoch = max((int(one["quorum"]["epoch"]) for one in told.values()), default=-1)
    leaders = [one["quorum"]["leader"] for one in told.values() if one["quorum"]["epoch"] == epoch]
    return next((int(leader) for leader in leaders if leader is not None and leader >= 0), None), epoch


def links_of(state: ClusterState | None) -> list[LinkStatus] | str | None:
    """The links of a cluster that was started for chaos, or why they cannot be told."""
    if state is None or state.links is None:
        return None
    from tidelog.runtime.links import change_links

    try:
        return change_links(state.links.control_port)
    except TidelogError as error:
        return str(error)


def _link_lines(links: list[LinkStatus] | str | None) -> list[str]:
    from tidelog.cli.chaos import links_text

    if links is None:
        return []
    return [f"links: {links}" if isinstance(links, str) else links_text(links)]


def _as_json(status: NodeStatus, told: dict[str, Any] | None, links: list[LinkStatus] | str | None) -> dict[str, Any]:
    quorum = (told or {}).get("quorum", {})
    fields = status.as_json() | {
        "broker_state": (told or {}).get("state"),
        "quorum_role": quorum_role(told),
        "quorum_epoch": quorum.get("epoch"),
        "controller": quorum.get("leader"),
    }
    if isinstance(links, list):
        fields["links"] = [
            {"to": link.to_node, "state": link.state, "delay_ms": link.delay_ms}
            for link in links
            if link.from_node == status.node_id
        ]
    return fields
