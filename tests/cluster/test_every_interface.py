"""Voters that listen on every interface, as in the properties files that Apache Kafka comes with, find each other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support import probe
from tests.support.nodes import TidelogNode, new_cluster_id
from tests.support.ports import free_ports
from tidelog.client import Client
from tidelog.client.cluster_admin import describe_quorum

WAIT_S = 60.0


class Voter(TidelogNode):
    """One of several nodes of a cluster with its voters in the metadata log (KIP-853)."""

    def __init__(self, directory: Path, node_id: int, cluster_id: str, voters: str, *ports: int) -> None:
        super().__init__(directory, client_port=ports[0], controller_port=ports[1])
        self._words = ("--cluster-id", cluster_id, "--initial-controllers", voters)
        self.properties |= {
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://:{ports[0]},CONTROLLER://:{ports[1]}",
            "advertised.listeners": f"PLAINTEXT://localhost:{ports[0]},CONTROLLER://localhost:{ports[1]}",
            "controller.quorum.bootstrap.servers": ",".join(
                voter.partition("@")[2].rpartition(":")[0] for voter in voters.split(",")
            ),
        }

    def format(self) -> None:
        """With all voters, as every node of a new cluster is."""
        words = [sys.executable, "-m", "tidelog", "format", "--config", str(self.config_file), *self._words]
        subprocess.run(words, check=True, env=self.environment(), stdout=subprocess.DEVNULL)


def test_voters_that_listen_everywhere_find_each_other(tmp_path: Path) -> None:
    clients, controllers = free_ports(2), free_ports(2)
    voters = ",".join(f"{number}@localhost:{port}:{new_cluster_id()}" for number, port in enumerate(controllers, 1))
    cluster_id = new_cluster_id()
    first, second = (
        Voter(tmp_path / f"node-{number}", number, cluster_id, voters, *ports)
        for number, ports in enumerate(zip(clients, controllers, strict=True), 1)
    )
    first.launch()
    second.launch()
    with first, second:
        for node in (first, second):
            probe.wait_ready(node.client_port, WAIT_S, node.running.require_running)
        with Client(first.bootstrap) as client:
            told = {(one.host, one.port) for node in describe_quorum(client).nodes for one in node.listeners}
    assert told == {("localhost", port) for port in controllers}
