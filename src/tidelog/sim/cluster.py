"""Whole clusters in a simulated world: formatted disks, real nodes, and a client that asks and waits.

Node n listens at ("node-n", 9092) for clients and at ("node-n", 9093) for the quorum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidelog.config import NodeConfig
from tidelog.controller.bootstrap import format_records
from tidelog.effects import Flush
from tidelog.node import Node
from tidelog.quorum import bootstrap, snapshot
from tidelog.quorum.voters import ReplicaKey, Voter, VoterSet
from tidelog.replica.directory import META_PROPERTIES, MetaProperties
from tidelog.sim.disk import SimulatedDisk
from tidelog.sim.world import Connection, Host, Process, World
from tidelog.wire.uuids import to_text

CLIENT_PORT = 9092
CONTROLLER_PORT = 9093
ROOT = "/data"


class NoAnswer(Exception):
    """The connection ended, or the time was up, before an answer came."""


class SimulatedCluster:
    """Hosts 1 to N of one cluster, each broker and controller in one."""

    def __init__(self, seed: int, nodes: int = 1, settings: Mapping[str, str] | None = None) -> None:
        self.world = World(seed)
        self.settings = dict(settings or {})
        self.cluster_id = to_text(self.world.chance.uuid())
        self.node_ids = list(range(1, nodes + 1))
        keys = {node_id: self.world.chance.uuid() for node_id in self.node_ids}
        voters = VoterSet(
            Voter(ReplicaKey(node_id, directory_id), {"CONTROLLER": (host_name(node_id), CONTROLLER_PORT)})
            for node_id, directory_id in keys.items()
        )
        for node_id, directory_id in keys.items():
            disk = SimulatedDisk(ROOT)
            self._format(disk, node_id, directory_id, voters)
            name = host_name(node_id)
            addresses = {(name, CLIENT_PORT): "PLAINTEXT", (name, CONTROLLER_PORT): "CONTROLLER"}
            config = self.config_of(node_id)
            self.world.add_host(
                Host(
                    node_id,
                    [disk],
                    addresses,
                    lambda disks, seed, now_ms, config=config: Node(config, disks, seed, now_ms),  # type: ignore[misc]
                )
            )
        self._connections: dict[int, Connection] = {}

    def config_of(self, node_id: int) -> NodeConfig:
        """The settings a node starts with."""
        name = host_name(node_id)
        servers = ",".join(f"{host_name(one)}:{CONTROLLER_PORT}" for one in self.node_ids)
        return NodeConfig.from_properties(
            {
                "node.id": str(node_id),
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://{name}:{CLIENT_PORT},CONTROLLER://{name}:{CONTROLLER_PORT}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": servers,
                "log.dirs": ROOT,
                **self.settings,
            }
        )

    def _format(self, disk: SimulatedDisk, node_id: int, directory_id: bytes, voters: VoterSet) -> None:
        now_ms = self.world.now_ms
        directory = bootstrap.SNAPSHOT_PATH.rpartition("/")[0]
        disk.make_directory(directory)
        replacements = [
            (bootstrap.SNAPSHOT_PATH, bootstrap.voters_snapshot(voters, now_ms)),
            ("bootstrap.checkpoint", snapshot.write(format_records(), now_ms=now_ms)),
            (META_PROPERTIES, MetaProperties(self.cluster_id, node_id, directory_id).to_bytes()),
        ]
        error = disk.apply_flush(Flush(0, disk, replacements=replacements, directories=[directory, ""]))
        assert error is None, error

    # --- life ---

    def start_all(self) -> None:
        """Start every node and wait until each may serve."""
        for node_id in self.node_ids:
            self.world.start(node_id)
        assert self.world.run_until(lambda: all(self.is_running(one) for one in self.node_ids)), "the cluster is not up"

    def is_running(self, node_id: int) -> bool:
        """Whether a node is up and its broker unfenced, as it knows it itself."""
        process = self.world.hosts[node_id].process
        if process is None or not process.alive:
            return False
        broker = process.node.image.brokers.get(node_id)
        return broker is not None and not broker.fenced and broker.epoch == process.node.lifecycle.broker_epoch

    def process(self, node_id: int) -> Process:
        """The living process of a node."""
        process = self.world.hosts[node_id].process
        assert process is not None
        return process

    # --- asking ---

    def ask(self, node_id: int, api_key: int, api_version: int, body: Any, within_ms: int = 30_000) -> Any:
        """Send a request and let the world run until its answer is here."""
        connection = self._connections.get(node_id)
        if connection is None or not connection.to_node.open:
            connection = self.world.connect(node_id)
            if connection is None:
                raise NoAnswer(f"node {node_id} is down")
            self._connections[node_id] = connection
        answers: list[Any] = []
        self.world.request(connection, api_key, api_version, body, answers.append)
        self.world.run_until(lambda: bool(answers), within_ms)
        if not answers or answers[0] is None:
            raise NoAnswer(f"node {node_id} did not answer")
        return answers[0]


def host_name(node_id: int) -> str:
    """The simulated machine of a node."""
    return f"node-{node_id}"


__all__: Sequence[str] = ("CLIENT_PORT", "CONTROLLER_PORT", "NoAnswer", "SimulatedCluster", "host_name")
