"""The shape of a local cluster: which nodes, where they listen, what is in their properties files.

DIR/node-1/server.properties     what node 1 was started with, written anew by every start
DIR/node-1/node.log              what it printed
DIR/node-1/data                  its log directory
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidelog.config import parse_properties
from tidelog.errors import ConfigError, DirectoryError, TidelogError

HOST = "127.0.0.1"
FIRST_CONTROLLER_ID = 101
"""Ids of separate controller processes start here, clear of the brokers' 1, 2, …"""
UNFINISHED = "unfinished"
"""A file that is there while a first start writes the nodes' files: what there is of them then is no cluster yet."""
_CONTROLLER_PORT_DISTANCE = 10_000
_OWNED_SETTINGS = (
    "node.id",
    "process.roles",
    "listeners",
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "log.dir",
    "log.dirs",
    "metadata.log.dir",
    "peer.address.overrides",
)
"""What makes the cluster one cluster; decided here and not by --set."""


class NodePlan(NamedTuple):
    """One process to be: who it is and where it listens."""

    node_id: int
    roles: tuple[str, ...]
    directory: str
    port: int | None
    """The client listener; None for a separate controller."""
    controller_port: int | None
    """The controller listener; None for a separate broker."""

    @property
    def properties_path(self) -> str:
        """The file it is started with."""
        return os.path.join(self.directory, "server.properties")

    @property
    def log_path(self) -> str:
        """The file its output goes to."""
        return os.path.join(self.directory, "node.log")

    @property
    def data_directory(self) -> str:
        """Its one log directory."""
        return os.path.join(self.directory, "data")

    @property
    def ports(self) -> list[int]:
        """Every port it listens on."""
        return [port for port in (self.port, self.controller_port) if port is not None]


class ClusterPlan(NamedTuple):
    """Every process of a local cluster, brokers first."""

    directory: str
    nodes: tuple[NodePlan, ...]
    is_new: bool
    """Nothing was there before: the directories are to be formatted."""

    @property
    def bootstrap(self) -> str:
        """What clients are told."""
        return ",".join(f"{HOST}:{node.port}" for node in self.nodes if node.port is not None)

    @property
    def controllers(self) -> list[NodePlan]:
        """The nodes that vote: all of them, or the separate ones."""
        return [node for node in self.nodes if node.controller_port is not None]

    def properties(self, node: NodePlan, settings: Mapping[str, str]) -> dict[str, str]:
        """The settings of one node: what makes it part of this cluster, then defaults that fit, then the user's."""
        listeners = []
        if node.port is not None:
            listeners.append(f"PLAINTEXT://{HOST}:{node.port}")
        if node.controller_port is not None:
            listeners.append(f"CONTROLLER://{HOST}:{node.controller_port}")
        brokers = sum(1 for other in self.nodes if other.port is not None)
        copies = str(min(3, brokers))
        result = {
            "node.id": str(node.node_id),
            "process.roles": ",".join(node.roles),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(
                f"{HOST}:{other.controller_port}" for other in self.controllers
            ),
            "log.dirs": node.data_directory,
            # Kafka's defaults ask for three brokers, or for none at all; here they fit the cluster there is.
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": str(min(2, brokers)),
        }
        if node.port is not None:
            result["advertised.listeners"] = f"PLAINTEXT://{HOST}:{node.port}"
        return result | dict(settings)


def plan_cluster(directory: str, nodes: int | None, controllers: int | None, port: int | None) -> ClusterPlan:
    """Decide ids, ports and directories. A directory that holds a cluster keeps its shape and its controllers' ports.

    None means: as it was, or one node, no separate controllers, port 9092.
    """
    directory = os.path.abspath(directory)
    found = [] if os.path.exists(os.path.join(directory, UNFINISHED)) else _read_plans(directory)
    brokers = [plan for plan in found if "broker" in plan.roles]
    separate = len(found) - len(brokers)
    if not found:
        return _plan_new(directory, nodes or 1, controllers or 0, port or 9092)
    if (nodes or len(brokers), separate if controllers is None else controllers) != (len(brokers), separate):
        shape = f"--nodes {len(brokers)}" + (f" --controllers {separate}" if separate else "")
        raise DirectoryError(f"{directory} holds a cluster of another shape: use {shape}, or another --dir")
    first = port or brokers[0].port or 9092
    kept = {plan.controller_port for plan in found}
    moved = tuple(
        plan
        if "broker" not in plan.roles
        else NodePlan(plan.node_id, plan.roles, plan.directory, first + plan.node_id - 1, plan.controller_port)
        for plan in found
    )
    clash = kept.intersection(plan.port for plan in moved) - {None}
    if clash:
        raise ConfigError(f"port {min(clash, key=str)} is a controller's in {directory}: choose another --port")
    return ClusterPlan(directory, moved, is_new=False)


def _plan_new(directory: str, nodes: int, controllers: int, port: int) -> ClusterPlan:
    last = port + nodes - 1
    if last > 65535:
        raise ConfigError(f"{nodes} nodes from port {port} would need port {last}; the last is 65535")
    free = _free_ports(controllers or nodes, avoid=range(port, last + 1), near=port + _CONTROLLER_PORT_DISTANCE)
    plans = [
        NodePlan(
            node_id,
            ("broker",) if controllers else ("broker", "controller"),
            os.path.join(directory, f"node-{node_id}"),
            port + node_id - 1,
            None if controllers else free[node_id - 1],
        )
        for node_id in range(1, nodes + 1)
    ]
    for number in range(controllers):
        node_id = FIRST_CONTROLLER_ID + number
        plans.append(NodePlan(node_id, ("controller",), os.path.join(directory, f"node-{node_id}"), None, free[number]))
    return ClusterPlan(directory, tuple(plans), is_new=True)


def _read_plans(directory: str) -> list[NodePlan]:
    """The plans of the nodes a directory holds, from their properties files."""
    plans = []
    for node_directory in node_directories(directory):
        name = os.path.basename(node_directory)
        path = os.path.join(node_directory, "server.properties")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            properties = parse_properties(file.read())
        ports: dict[str, int] = {}
        for listener in properties.get("listeners", "").split(","):
            match = re.fullmatch(r"(PLAINTEXT|CONTROLLER)://[^:]*:(\d+)", listener.strip())
            if match:
                ports[match[1]] = int(match[2])
        plans.append(
            NodePlan(
                int(name.removeprefix("node-")),
                tuple(properties.get("process.roles", "").split(",")),
                os.path.join(directory, name),
                ports.get("PLAINTEXT"),
                ports.get("CONTROLLER"),
            )
        )
    return sorted(plans, key=lambda plan: plan.node_id)


def node_directories(directory: str) -> list[str]:
    """Where the nodes of a cluster are, or may have been."""
    names = os.listdir(directory) if os.path.isdir(directory) else []
    return [os.path.join(directory, name) for name in names if re.fullmatch(r"node-\d+", name)]


def check_settings(settings: Mapping[str, str]) -> None:
    """Refuse what the supervisor decides itself."""
    for name in settings:
        if name in _OWNED_SETTINGS:
            raise ConfigError(f"{name} is decided by tidelog up and cannot be set; use tidelog node for a free hand")


def check_ports(plan: ClusterPlan) -> None:
    """Refuse a port that somebody else listens on, before anything is started."""
    for node in plan.nodes:
        for port in node.ports:
            if not _is_free(port):
                advice = "choose another --port" if port == node.port else "stop that program"
                raise TidelogError(f"port {port} (node {node.node_id}) is in use by another program: {advice}")


def _free_ports(count: int, avoid: Iterable[int], near: int) -> list[int]:
    avoided = set(avoid)
    found: list[int] = []
    for step in range(64_000):
        port = 1024 + (near + step - 1024) % (65_536 - 1024)
        if port not in avoided and _is_free(port):
            found.append(port)
            if len(found) == count:
                return found
    raise TidelogError(f"no {count} free ports for the controllers on {HOST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
