"""Three nodes in three network namespaces, each its own host: loss, delay and pulled cables, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soak.namespaces import Hosts, NotPossible
from tests.support.processes import wait_until
from tidelog.verify.files import stored_batches
from tidelog.verify.judge import judge_replicas

MINUTES = max(1.0, float(os.environ.get("TIDELOG_SOAK_MINUTES", "60")) / 12)
NODES = (1, 2, 3)
CLIENT = 4
CLIENT_PORT, CONTROLLER_PORT = 9092, 9093
SESSION_TIMEOUT_S = 2.0


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    made = Hosts(CLIENT)
    try:
        made.__enter__()
    except NotPossible as error:
        pytest.skip(f"network namespaces are not possible here: {error}")
    try:
        yield made
    finally:
        made.close()


class NamespaceCluster:
    """Nodes with addresses of their own, started where those addresses are."""

    def __init__(self, hosts: Hosts, directory: Path) -> None:
        self._hosts = hosts
        self._directory = directory
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self.bootstrap = ",".join(f"{hosts.address(node)}:{CLIENT_PORT}" for node in NODES)

    def data_directory(self, node: int) -> Path:
        return self._directory / f"node-{node}" / "data"

    def format(self) -> None:
        identifiers = [self._tidelog("format", "--random-uuid").strip() for _ in range(len(NODES) + 1)]
        voters = ",".join(
            f"{node}@{self._hosts.address(node)}:{CONTROLLER_PORT}:{identifier}"
            for node, identifier in zip(NODES, identifiers, strict=False)
        )
        for node in NODES:
            self.data_directory(node).mkdir(parents=True)
            address = self._hosts.address(node)
            listeners = f"PLAINTEXT://{address}:{CLIENT_PORT},CONTROLLER://{address}:{CONTROLLER_PORT}"
            properties = {
                "node.id": node,
                "process.roles": "broker,controller",
                "listeners": listeners,
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": ",".join(
                    f"{self._hosts.address(one)}:{CONTROLLER_PORT}" for one in NODES
                ),
                "log.dirs": self.data_directory(node),
                "default.replication.factor": 3,
                "broker.session.timeout.ms": int(SESSION_TIMEOUT_S * 1000),
                "broker.heartbeat.interval.ms": 400,
            }
            text = "".join(f"{name}={value}\n" for name, value in properties.items())
            self._config(node).write_text(text)
            chosen = ("--cluster-id", identifiers[-1], "--initial-controllers", voters)
            self._tidelog("format", "--config", str(self._config(node)), *chosen)

    def _config(self, node: int) -> Path:
        return self._directory / f"node-{node}" / "server.properties"

    def _tidelog(self, *words: str) -> str:
        command = [sys.executable, "-m", "tidelog", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    def start(self, node: int) -> None:
        command = self._hosts.command(
            node, sys.executable, "-m", "tidelog", "node", "--config", str(self._config(node))
        )
        with (self._directory / f"node-{node}" / "node.log").open("ab") as log:
            self._children[node] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def is_in_service(self) -> bool:
        self.require_alive()
        logs = [self._directory / f"node-{node}" / "node.log" for node in NODES]
        return all(" broker-running " in log.read_text(errors="replace") for log in logs)

    def stop(self) -> list[int | None]:
        for child in self._children.values():
            child.send_signal(signal.SIGTERM)
        codes: list[int | None] = []
        for child in self._children.values():
            try:
                codes.append(child.wait(30))
            except subprocess.TimeoutExpired:
                codes.append(None)
        return codes

    def kill(self, *nodes: int) -> None:
        for node in nodes:
            child = self._children[node]
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait(30)

    def require_alive(self) -> None:
        for node, child in self._children.items():
            log = (self._directory / f"node-{node}" / "node.log").read_text(errors="replace")
            assert child.poll() is None, f"node {node} ended with {child.returncode}:\n{log[-2000:]}"


def test_three_hosts_with_loss_delay_and_pulled_cables(hosts: Hosts, tmp_path: Path) -> None:
    cluster = NamespaceCluster(hosts, tmp_path)
    cluster.format()
    words = ("--bootstrap", cluster.bootstrap, "--minutes", str(MINUTES), "--json", "--dir", str(tmp_path / "verify"))
    verify = hosts.command(CLIENT, sys.executable, "-m", "tidelog", "verify", *words, "--rate", "60")
    try:
        for node in NODES:
            cluster.start(node)
        wait_until(cluster.is_in_service, 60, "all brokers are in service")
        running = subprocess.Popen(verify, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            means = break_and_mend(hosts, cluster, running)
            output, said = running.communicate(timeout=300)
        finally:
            if running.poll() is None:
                running.terminate()
                running.wait(30)
        assert output, said
        report = json.loads(output)
        assert report["details"] == [], said
        assert report["passed"]
        assert report["acknowledged"] > 1_000
        assert means <= {"netem", "tbf", ""}
        cluster.require_alive()
        assert cluster.stop() == [0, 0, 0]
        compare_files(cluster, report["topic"])
    finally:
        cluster.kill(*NODES)


def break_and_mend(hosts: Hosts, cluster: NamespaceCluster, running: subprocess.Popen[str]) -> set[str]:
    """Roll through the hosts until the clients are nearly done; everything is whole again in the end."""
    means: set[str] = set()
    deadline = time.monotonic() + MINUTES * 60
    time.sleep(5)
    turn = 0
    while time.monotonic() < deadline - 10 and running.poll() is None:
        node = NODES[turn % len(NODES)]
        fault = ("disturb", "pull", "kill", "flap")[turn // len(NODES) % 4]
        if fault == "disturb":
            means.add(hosts.disturb(node))
            time.sleep(4)
            hosts.leave_alone(node)
        elif fault == "pull":
            hosts.plug(node, connected=False)
            time.sleep(SESSION_TIMEOUT_S + 2)
            hosts.plug(node, connected=True)
        elif fault == "kill":
            cluster.kill(node)
            time.sleep(0.5)
            cluster.start(node)
        else:  # a loose contact
            for _ in range(6):
                hosts.plug(node, connected=False)
                time.sleep(0.15)
                hosts.plug(node, connected=True)
                time.sleep(0.35)
        time.sleep(3)
        cluster.require_alive()
        turn += 1
    assert turn >= 3
    return means


def compare_files(cluster: NamespaceCluster, topic: str) -> None:
    for partition in range(6):
        stored = {node: stored_batches(str(cluster.data_directory(node)), topic, partition) for node in NODES}
        ends = {batches[-1].last_offset + 1 for batches in stored.values()}
        assert len(ends) == 1, f"partition {partition} ends at {ends}"
        assert judge_replicas(partition, stored, ends.pop()) == []
