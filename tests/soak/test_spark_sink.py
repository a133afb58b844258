"""Every kill at every step of the sink's protocol: on one machine, on three nodes, and on a real Spark cluster."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.clients import confluent
from tests.clients.samples import Record
from tests.spark.sink_faults import (
    MOMENTS,
    PROJECT_ROOT,
    Job,
    one_node,
    require_exactly_once,
    run_through_faults,
    three_nodes,
)
from tests.spark.sink_kafka import three_kafka_nodes
from tests.spark.sink_proxy import PRODUCE, ProxiedClient, descendants
from tests.support.nodes import KafkaNode, Node, TidelogNode
from tests.support.ports import free_ports
from tests.support.processes import ManagedProcess, wait_until

WAIT_S = 120.0
PROGRAMS = ("tests.spark.sink_job", "tests.spark.sink_protocol_job")
SPARK_HOME = Path(pyspark.__file__).parent


@pytest.mark.parametrize("victim", ["driver", "executor"])
def test_kills_on_one_machine(tmp_path: Path, victim: str) -> None:
    with one_node(TidelogNode, tmp_path / "node") as stage:
        run_through_faults(stage, tmp_path, victim)


@pytest.mark.parametrize("victim", ["driver", "executor", "broker"])
def test_kills_of_the_format_itself(tmp_path: Path, victim: str) -> None:
    """`writeStream.format("tidelog")`: its driver's half is several processes, and a lost task ends the query."""
    with one_node(TidelogNode, tmp_path / "node") as stage:
        run_through_faults(stage, tmp_path, victim, program="tests.spark.sink_format_job", may_fail=True)


@pytest.mark.parametrize("program", PROGRAMS)
def test_leaders_and_coordinators_of_three_nodes(tmp_path: Path, program: str) -> None:
    with three_nodes(tmp_path / "cluster") as stage:
        run_through_faults(stage, tmp_path, "broker", program=program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_leaders_and_coordinators_of_apache_kafka(tmp_path: Path, program: str) -> None:
    with three_kafka_nodes(tmp_path / "cluster") as stage:
        run_through_faults(stage, tmp_path, "broker", program=program)


def test_the_only_node_of_apache_kafka(tmp_path: Path) -> None:
    """Not when its coordinator has decided and not told the partitions yet: sink_kafka.py says what one node does."""
    moments = [each for each in MOMENTS if each != ("end", "after")]
    with one_node(KafkaNode, tmp_path / "node") as stage:
        run_through_faults(stage, tmp_path, "broker", moments=moments, program="tests.spark.sink_protocol_job")


# --- a real cluster of Spark ---


def python_path() -> dict[str, str]:
    """Where processes find this source tree."""
    return {"PYTHONPATH": os.pathsep.join([str(PROJECT_ROOT), str(PROJECT_ROOT / "src")])}


class StandaloneSpark:
    """A master and two workers, by Spark's own classes, as its scripts start them."""

    def __init__(self, directory: Path, hosts: tuple[str, str] = ("127.0.0.1", "127.0.0.1")) -> None:
        self._directory = directory
        self._hosts = hosts
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port, self._web_port = free_ports(2)

    @property
    def master(self) -> str:
        """What a query is submitted to."""
        return f"spark://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start all three and wait until the master listens and both workers have registered."""
        address = ("--host", "127.0.0.1", "--port", str(self._port), "--webui-port", str(self._web_port))
        self._launch("master", "org.apache.spark.deploy.master.Master", *address)
        wait_until(self._listens, WAIT_S, "the master listens")
        for number, host in enumerate(self._hosts, 1):
            work = self._directory / f"work-{number}"
            words = ("--cores", "1", "--memory", "1g", "--host", host, "--webui-port", "0")
            self._launch(
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                *(*words, "--work-dir", str(work), self.master),
            )
        wait_until(lambda: self._said("master").count("Registering worker") >= 2, WAIT_S, "two workers register")

    @property
    def applications(self) -> set[str]:
        """Those of which an executor was started, by the folders that the workers keep."""
        return {folder.name for folder in self._directory.glob("work-*/app-*")}

    def executors(self) -> list[int]:
        """The JVMs in which tasks run, with their Python workers."""
        found = []
        for worker in self._processes[1:]:
            children = descendants(worker.pid)[1:]
            found += children
        return found

    def stop(self) -> None:
        """End everything that was started."""
        for process in self._processes:
            for pid in reversed(descendants(process.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait(30)

    def _launch(self, name: str, *words: str) -> None:
        environment = dict(os.environ) | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
            "PYSPARK_PYTHON": sys.executable,
            **python_path(),
        }
        with (self._directory / f"{name}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(SPARK_HOME / "bin" / "spark-class"), *words],
                    env=environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )

    def _said(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(errors="replace")

    def _listens(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self._port)) == 0


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneSpark]:
    cluster = StandaloneSpark(tmp_path_factory.mktemp("standalone"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.parametrize("victim", ["driver", "executor", "broker"])
def test_kills_on_a_cluster_of_spark(standalone: StandaloneSpark, tmp_path: Path, victim: str) -> None:
    with one_node(TidelogNode, tmp_path / "node") as stage:
        run_through_faults(stage, tmp_path, victim, master=standalone.master, executors_of=standalone.executors)


@pytest.fixture
def two_hosts(tmp_path: Path) -> Iterator[StandaloneSpark]:
    """Spark copies a task to another host only, and knows hosts by their names."""
    directory = tmp_path / "standalone"
    directory.mkdir()
    cluster = StandaloneSpark(directory, ("127.0.0.1", "localhost"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def test_a_copy_of_a_slow_task_writes_nothing(two_hosts: StandaloneSpark, tmp_path: Path) -> None:
    """spark.speculation starts a second run of a task that is slow: the rows of one are taken, and once."""
    (page,) = free_ports(1)
    copied = threading.Event()
    conf = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
        "spark.ui.enabled": "true",
        "spark.ui.port": page,
    }
    with one_node(TidelogNode, tmp_path / "node") as stage:
        words = (stage.bootstrap, tmp_path / "checkpoint", 2, tmp_path / "job.log", "tests.spark.sink_job")
        job = Job(*words, two_hosts.master, *(f"{name}={value}" for name, value in conf.items()))

        def hold(_client: ProxiedClient) -> None:
            with contextlib.suppress(AssertionError):  # the test's own thread says so
                wait_until(lambda: runs_a_copy(page), WAIT_S, "Spark copies the slow task")
                copied.set()

        stage.traps.set(PRODUCE, "while", hold, skip=8)
        try:
            assert job.wait() == 0, job.text()[-4000:]
        finally:
            job.kill()
        assert copied.is_set(), f"no copy was made:\n{job.text()[-4000:]}"
        require_exactly_once(stage, 3)


def runs_a_copy(port: int) -> bool:
    """Whether a copy of a task runs now, as the page of the running application tells."""
    place = f"http://127.0.0.1:{port}/api/v1/applications"
    with contextlib.suppress(OSError):
        (application,) = json.loads(urllib.request.urlopen(place, timeout=10).read())
        stages = urllib.request.urlopen(f"{place}/{application['id']}/stages?status=active&details=true", timeout=10)
        found = [task for stage in json.loads(stages.read()) for task in stage.get("tasks", {}).values()]
        return any(task["speculative"] and task["status"] == "RUNNING" for task in found)
    return False


def test_sources_on_a_cluster_of_spark(standalone: StandaloneSpark, node: Node, tmp_path: Path) -> None:
    """Executors are other processes than the driver, and read what the driver planned."""
    confluent.create_topic(node, "read", 3)
    now_ms = time.time_ns() // 1_000_000
    for partition in range(3):
        records = [Record(b"%d" % each, b"value-%d" % each, now_ms) for each in range(4_000)]
        confluent.produce_all(node, "read", records, partition=partition)
    command = [sys.executable, "-m", "tests.spark.source_job", node.bootstrap, "read", str(tmp_path), standalone.master]
    command.append(str(node.data_directory))
    job = ManagedProcess(command, tmp_path / "job.log", environment=dict(os.environ) | python_path())
    assert job.wait(600) == 0, job.tail()
    said = job.tail(200)
    assert "batch 12000 distinct 12000 executors 2" in said
    assert "stream 12000 distinct 12000" in said
    assert "files 12000" in said
