"""One node as a real process, Tidelog's or Apache Kafka's, behind the same few methods.

    with TidelogNode(directory) as node:
        Producer({"bootstrap.servers": node.bootstrap})

A node keeps its ports and its directory over `stop`, `kill` and `start`; leaving the block ends the process.
"""

from __future__ import annotations

import abc
import os
import shutil
import sys
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from tests.support import java, probe, processes
from tests.support.ports import free_ports
from tests.support.processes import ManagedProcess

PROJECT_ROOT = Path(__file__).resolve().parents[2]


class Node(abc.ABC):
    """A broker and controller in one process on 127.0.0.1, with one data directory."""

    peer: ClassVar[str]
    start_timeout_s: ClassVar[float] = 120.0

    def __init__(
        self,
        directory: Path,
        *,
        properties: Mapping[str, str] | None = None,
        client_port: int | None = None,
        controller_port: int | None = None,
        data_directory: Path | None = None,
    ) -> None:
        ports = free_ports(2)
        self.directory = directory
        self.client_port = client_port or ports[0]
        self.controller_port = controller_port or ports[1]
        self.data_directory = data_directory or directory / "data"
        self.config_file = directory / "node.properties"
        self.log_file = directory / "node.log"
        self.properties = self.base_properties() | dict(properties or {})
        self.process: ManagedProcess | None = None

    @property
    def bootstrap(self) -> str:
        """What a client is configured with."""
        return f"127.0.0.1:{self.client_port}"

    @property
    def running(self) -> ManagedProcess:
        """Its process; AssertionError when it is not started."""
        assert self.process is not None, f"the {self.peer} node is not started"
        return self.process

    def base_properties(self) -> dict[str, str]:
        """Settings every single node needs, in Kafka's names."""
        return {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.client_port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "log.dirs": str(self.data_directory),
        }

    @abc.abstractmethod
    def format(self) -> None:
        """Prepare the data directory of a new cluster."""

    @abc.abstractmethod
    def command(self) -> list[str]:
        """What runs the node in the foreground."""

    def environment(self) -> dict[str, str]:
        """The environment of the node's process."""
        return dict(os.environ)

    def prepare(self) -> None:
        """Write the configuration, and format the data directory unless it was before."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.config_file.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        if not (self.data_directory / "meta.properties").exists():
            self.format()

    def launch(self) -> ManagedProcess:
        """Start the process and do not wait for it."""
        self.prepare()
        self.process = ManagedProcess(self.command(), self.log_file, environment=self.environment())
        return self.process

    def start(self) -> Self:
        """Start the process and wait until it answers and a topic can be made."""
        process = self.launch()
        try:
            probe.wait_ready(self.client_port, self.start_timeout_s, process.require_running)
        except TimeoutError as error:
            failure = process.fail(f"the {self.peer} node is not ready: {error}")
            process.kill()
            raise failure from None
        return self

    def stop(self, timeout_s: float = 60.0) -> int:
        """A clean stop; its exit code."""
        code = self.running.stop(timeout_s)
        self.process = None
        return code

    def kill(self) -> None:
        """SIGKILL, as a crash of the process would be."""
        self.running.kill()
        self.process = None

    def resident_bytes(self) -> int:
        """Memory in RAM of all its processes."""
        return processes.resident_bytes(self.running.pid)

    def cpu_seconds(self) -> float:
        """CPU time of all its processes."""
        return processes.cpu_seconds(self.running.pid)

    def open_files(self) -> int:
        """File descriptors it holds."""
        return processes.open_files(self.running.pid)

    def copy_data(self, target: Path) -> Path:
        """A copy of the data directory, for another node to be started on; the node must be stopped."""
        assert self.process is None, "copying the directory of a running node would tear it"
        shutil.copytree(self.data_directory, target, ignore=shutil.ignore_patterns(".lock"))
        return target

    def __enter__(self) -> Self:
        return self if self.process is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is None:
            return
        if error is not None:
            print(f"--- end of {self.log_file}\n{self.process.tail()}", file=sys.stderr)
            self.process.kill()
        else:
            self.stop()


def new_cluster_id() -> str:
    """A random id in Kafka's text form; one that starts with a dash would look like an option on a command line."""
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


class KafkaNode(Node):
    """Apache Kafka, as its release starts it except for the heap, which a test may make smaller."""

    peer: ClassVar[str] = "kafka"

    def __init__(self, *arguments: object, heap: str = "512m", quick_start: bool = True, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        if "log.retention.check.interval.ms" in self.properties:
            # Kafka's first check comes after 30 s, whatever the interval between the later ones.
            self.properties.setdefault("log.initial.task.delay.ms", "500")
        elif quick_start:
            # That check would find most records of tests too old, in the middle of whatever test then runs.
            self.properties.setdefault("log.retention.ms", "-1")
        self.heap = heap
        self.quick_start = quick_start
        """A test wants the JVM up soon and its records kept; a benchmark wants it as shipped and as fast as it gets."""

    def base_properties(self) -> dict[str, str]:
        """One node needs its internal topics with one replica."""
        return super().base_properties() | {
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }

    def format(self) -> None:
        """By Kafka's own StorageTool, as a dynamic quorum of one (KIP-853)."""
        java.run_tool(
            "kafka.tools.StorageTool",
            *("format", "-t", new_cluster_id(), "-c", str(self.config_file), "--standalone"),
        )

    def command(self) -> list[str]:
        """The flags of kafka-server-start.sh and kafka-run-class.sh."""
        speed = java.QUICK_START if self.quick_start else java.RELEASE_FLAGS
        return [
            java.java_executable(),
            f"-Xmx{self.heap}",
            *(() if self.quick_start else (f"-Xms{self.heap}",)),
            *speed,
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={java.BROKER_LOGGING}",
            "-cp",
            java.kafka_class_path(),
            "kafka.Kafka",
            str(self.config_file),
        ]


class TidelogNode(Node):
    """Tidelog from this source tree."""

    peer: ClassVar[str] = "tidelog"

    def base_properties(self) -> dict[str, str]:
        """Records of tests are of any time: how long a test takes must not decide whether they are kept."""
        return super().base_properties() | {"log.retention.check.interval.ms": str(24 * 3_600_000)}

    def environment(self) -> dict[str, str]:
        """This source tree first, so an installed release is never what is tested by mistake.

        Bytecode is kept beside the tree as `make` does it, whatever this machine says: an installed release has it too.
        """
        inherited = dict(os.environ)
        inherited.pop("PYTHONDONTWRITEBYTECODE", None)
        inherited.setdefault("PYTHONPYCACHEPREFIX", str(PROJECT_ROOT / ".cache" / "bytecode"))
        path = [str(PROJECT_ROOT / "src"), inherited.get("PYTHONPATH", "")]
        return inherited | {"PYTHONPATH": os.pathsep.join(each for each in path if each), "PYTHONUNBUFFERED": "1"}

    def format(self) -> None:
        """By `tidelog format`."""
        process = ManagedProcess(
            [sys.executable, "-m", "tidelog", "format", "--config", str(self.config_file)],
            self.log_file,
            environment=self.environment(),
        )
        if process.wait(60) != 0:
            raise process.fail("tidelog format failed")

    def command(self) -> list[str]:
        """`tidelog node` in the foreground."""
        return [sys.executable, "-m", "tidelog", "node", "--config", str(self.config_file)]


PEERS: dict[str, type[Node]] = {"tidelog": TidelogNode, "kafka": KafkaNode}
AnyNode = TypeVar("AnyNode", bound=Node)


def peer_under_test() -> type[Node]:
    """Tidelog, unless BROKER_UNDER_TEST asks for Apache Kafka."""
    return PEERS[os.environ.get("BROKER_UNDER_TEST", "tidelog")]


@contextmanager
def passing_node(peer: type[AnyNode], properties: Mapping[str, str] | None = None) -> Iterator[AnyNode]:
    """A node in a directory that goes with it; it has not ended before."""
    with (
        tempfile.TemporaryDirectory(prefix=f"{peer.peer}-") as directory,
        peer(Path(directory), properties=properties) as started,
    ):
        yield started
        started.running.require_running()
