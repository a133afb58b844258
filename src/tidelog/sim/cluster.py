"""Whole clusters in a simulated world: formatted disks, real nodes, and a client that asks and waits.

Node n listens at ("node-n", 9092) for clients and at ("node-n", 9093) for the quorum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidelog.config import NodeConfig
from tidelog.controller.bootstrap import format_records
from tidelog.controller.image import MetadataImage
from tidelog.effects import Flush
from tidelog.log import names
from tidelog.node import Node
from tidelog.quorum import bootstrap, snapshot
from tidelog.quorum.voters import ReplicaKey, Voter, VoterSet
from tidelog.replica.directory import META_PROPERTIES, MetaProperties
from tidelog.sim.disk import SimulatedDisk
from tidelog.sim.machines import Host, Process
from tidelog.sim.network import Connection
from tidelog.sim.world import World
from tidelog.wire.uuids import to_text

CLIENT_PORT = 9092
CONTROLLER_PORT = 9093
ROOT = "/data"


class NoAnswer(Exception):
    """The connection ended, or the time was up, before an answer came."""


class SimulatedCluster:
    """The hosts of one cluster: `nodes` that are broker and controller in one, or `brokers` and `controllers`."""

    def __init__(
        self,
        seed: int,
        nodes: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        brokers: Sequence[int] = (),
        controllers: Sequence[int] = (),
        node_settings: Mapping[int, Mapping[str, str]] | None = None,
        directories: int = 1,
    ) -> None:
        self.world = World(seed)
        self.settings = dict(settings or {})
        self.node_settings = {node_id: dict(more) for node_id, more in (node_settings or {}).items()}
        """Settings of single nodes, over those of all."""
        self.brokers = list(brokers or range(1, nodes + 1))
        self.controllers = list(controllers or self.brokers)
        self.node_ids = sorted({*self.brokers, *self.controllers})
        self._directories = directories
        """Log directories of each broker."""
        self.cluster_id = to_text(self.world.chance.uuid())
        keys = {node_id: self.world.chance.uuid() for node_id in self.node_ids}
        voters = VoterSet(
            Voter(ReplicaKey(node_id, keys[node_id]), {"CONTROLLER": (host_name(node_id), CONTROLLER_PORT)})
            for node_id in sorted(self.controllers)
        )
        for node_id, directory_id in keys.items():
            self.world.add_host(
                Host(
                    node_id,
                    [self._formatted(node_id, directory_id, voters), *self._further_disks(node_id)],
                    {(host_name(node_id), port): name for name, port in self._listeners(node_id)},
                    lambda disks, seed, now_ms, boot_id, node_id=node_id: Node(  # type: ignore[misc]
                        self.config_of(node_id), disks, seed, now_ms, boot_id
                    ),
                )
            )
        self._connections: dict[int, Connection] = {}

    def _listeners(self, node_id: int) -> list[tuple[str, int]]:
        broker = [("PLAINTEXT", CLIENT_PORT)] if node_id in self.brokers else []
        return broker + ([("CONTROLLER", CONTROLLER_PORT)] if node_id in self.controllers else [])

    def config_of(self, node_id: int) -> NodeConfig:
        """The settings a node starts with, read when it does."""
        name = host_name(node_id)
        servers = ",".join(f"{host_name(one)}:{CONTROLLER_PORT}" for one in sorted(self.controllers))
        roles = (["broker"] if node_id in self.brokers else []) + (
            ["controller"] if node_id in self.controllers else []
        )
        return NodeConfig.from_properties(
            {
                "node.id": str(node_id),
                "process.roles": ",".join(roles),
                "listeners": ",".join(f"{listener}://{name}:{port}" for listener, port in self._listeners(node_id)),
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": servers,
                "log.dirs": ",".join(self._roots(node_id)),
                **({"metadata.log.dir": ROOT} if self._directories > 1 else {}),
                **self.settings,
                **self.node_settings.get(node_id, {}),
            }
        )

    def _formatted(self, node_id: int, directory_id: bytes, voters: VoterSet | None) -> SimulatedDisk:
        """A disk as `tidelog format` leaves it; without voters they are learnt from the others (KIP-853)."""
        disk = SimulatedDisk(ROOT)
        now_ms = self.world.now_ms
        directory = bootstrap.SNAPSHOT_PATH.rpartition("/")[0]
        disk.make_directory(directory)
        replacements = [
            ("bootstrap.checkpoint", snapshot.write(format_records(), now_ms=now_ms)),
            (META_PROPERTIES, MetaProperties(self.cluster_id, node_id, directory_id).to_bytes()),
        ]
        if voters is not None:
            replacements.insert(0, (bootstrap.SNAPSHOT_PATH, bootstrap.voters_snapshot(voters, now_ms)))
        error = disk.apply_flush(Flush(0, disk, replacements=replacements, directories=[directory, ""]))
        assert error is None, error
        return disk

    def _roots(self, node_id: int) -> list[str]:
        """The log directories of a node; the first is that of the metadata."""
        count = self._directories if node_id in self.brokers else 1
        return [ROOT, *(f"{ROOT}-{number + 1}" for number in range(1, count))]

    def _further_disks(self, node_id: int) -> list[SimulatedDisk]:
        """Those without metadata."""
        return [self._formatted_further(node_id, root) for root in self._roots(node_id)[1:]]

    def _formatted_further(self, node_id: int, root: str) -> SimulatedDisk:
        disk = SimulatedDisk(root)
        properties = MetaProperties(self.cluster_id, node_id, self.world.chance.uuid())
        replacements = [(META_PROPERTIES, properties.to_bytes())]
        error = disk.apply_flush(Flush(0, disk, replacements=replacements, directories=[""]))
        assert error is None, error
        return disk

    def wipe(self, node_id: int) -> None:
        """A dead node's disks are gone; it gets new ones, formatted under its old id and with other directory ids."""
        host = self.world.hosts[node_id]
        for number in range(len(host.disks)):
            self.wipe_directory(node_id, number)

    def wipe_directory(self, node_id: int, number: int) -> None:
        """One disk of a dead node is gone; an empty one, formatted with another directory id, takes its place."""
        host = self.world.hosts[node_id]
        assert host.process is None or not host.process.alive, f"node {node_id} is running"
        former = host.disks[number]
        if number == 0:
            disk = self._formatted(node_id, self.world.chance.uuid(), None)
        else:
            disk = self._formatted_further(node_id, former.root)
        disk.delay_ms = former.delay_ms
        host.disks[number] = disk

    # --- life ---

    def start_all(self) -> None:
        """Start every node and wait until each may serve."""
        for node_id in self.node_ids:
            self.world.start(node_id)
        assert self.world.run_until(lambda: all(self.is_running(one) for one in self.node_ids)), "the cluster is not up"

    def is_running(self, node_id: int) -> bool:
        """Whether a node is up, not about to stop, and its broker unfenced, as it knows it itself."""
        process = self.world.hosts[node_id].process
        if process is None or not process.alive or process.node.life.is_stopping:
            return False
        if node_id not in self.brokers:
            return process.node.cluster.quorum.leader_peer is not None
        broker = process.node.image.brokers.get(node_id)
        return broker is not None and not broker.fenced and broker.epoch == process.node.lifecycle.broker_epoch

    def living(self) -> list[int]:
        """Nodes with a process that runs, paused ones too."""
        return [
            one for one in self.node_ids if (process := self.world.hosts[one].process) is not None and process.alive
        ]

    def newest_image(self) -> MetadataImage:
        """The metadata of the living node that has most of it."""
        clusters = [self.process(one).node.cluster for one in self.living()]
        return max(clusters, key=lambda one: one.image_offset).image if clusters else MetadataImage()

    def log_bytes(self, node_id: int, topic: str, index: int) -> bytes:
        """A replica's segments, one after the other, as its disk has them."""
        disk = self._disk_of(node_id, topic, index)
        directory = names.directory_name(topic, index)
        if not disk.exists(directory):
            return b""
        files = [name for name in disk.list(directory) if name.endswith(names.LOG_SUFFIX)]
        return b"".join(disk.read_file(f"{directory}/{name}") for name in files)

    def _disk_of(self, node_id: int, topic: str, index: int) -> SimulatedDisk:
        """Where a replica lies, by its node's word; of a dead one, the first disk that has it."""
        host = self.world.hosts[node_id]
        if len(host.disks) > 1:
            process = host.process
            hosted = None if process is None else process.node.replicas.partitions.get((topic, index))
            if process is not None and process.alive and hosted is not None:
                root = process.node.replicas.directory_of(hosted).storage.root
                return next(disk for disk in host.disks if disk.root == root)
            name = names.directory_name(topic, index)
            return next((disk for disk in host.disks if disk.exists(name)), host.disks[0])
        return host.disks[0]

    def active_controller(self) -> tuple[int, int] | None:
        """Node and epoch of the active controller; of two, while one does not know yet, that of the later epoch."""
        found = []
        for node_id in self.living():
            controller = self.process(node_id).node.cluster.controller
            if controller is not None and controller.active:
                found.append((controller.epoch, node_id))
        return (max(found)[1], max(found)[0]) if found else None

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
