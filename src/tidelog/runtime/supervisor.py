"""A local cluster's processes: started, watched and stopped together.

DIR/tidelog.json says who runs now: pids with their start moments, and ports; it is gone after a clean stop. Whoever
starts the cluster holds a lock on DIR while it is about it; after that the state file says who lives. A node of the
file counts as alive only when the process with its pid started when the file says it did. `tidelog chaos` may have
started a node anew: the file, not the memory of whoever started the cluster, is what holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tidelog.errors import DirectoryError
from tidelog.runtime.cluster_plan import HOST, ClusterPlan
from tidelog.runtime.link_process import LinksRecord, OpenedLinks, open_links
from tidelog.runtime.process_table import ProcessName, group_memory_bytes, name_process, wait_until_gone

STATE_FILE = "tidelog.json"
_LOG_KEPT_BYTES = 10_000_000
"""A node's log file longer than this is put aside when the node starts."""
NODE_COMMAND = (sys.executable, "-m", "tidelog", "node")
_GONE = "ended; it was not started by this command"


class NodeRecord(NamedTuple):
    """A node process as the state file keeps it."""

    node_id: int
    roles: tuple[str, ...]
    port: int | None
    controller_port: int | None
    directory: str
    process: ProcessName
    started_at_ms: int

    @property
    def log_path(self) -> str:
        """The file its output goes to."""
        return os.path.join(self.directory, "node.log")

    @property
    def properties_path(self) -> str:
        """The file it is started with."""
        return os.path.join(self.directory, "server.properties")

    @property
    def last_line(self) -> str:
        """The last thing it printed."""
        try:
            with open(self.log_path, "rb") as file:
                file.seek(max(0, os.path.getsize(self.log_path) - 4096))
                lines = file.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class ClusterState(NamedTuple):
    """The state file: who was started."""

    directory: str
    supervisor: ProcessName
    nodes: list[NodeRecord]
    links: LinksRecord | None = None
    """The process between the nodes, when there is one."""

    @property
    def processes(self) -> list[ProcessName]:
        """Every node's process, alive or not."""
        return [node.process for node in self.nodes]

    @property
    def is_alive(self) -> bool:
        """Whether any node still runs."""
        return any(process.state != "gone" for process in self.processes)

    def stop_links(self) -> None:
        """End the process between the nodes; they have no more use for it."""
        if self.links is not None:
            self.links.process.kill_group()
            wait_until_gone([self.links.process], 5_000)

    def save(self) -> None:
        """Write the file whole or not at all."""
        document = {
            "version": 1,
            "supervisor": {"pid": self.supervisor.pid, "started": self.supervisor.started},
            "links": None if self.links is None else self.links.as_json(),
            "nodes": [
                {
                    "id": node.node_id,
                    "roles": list(node.roles),
                    "pid": node.process.pid,
                    "started": node.process.started,
                    "started_at_ms": node.started_at_ms,
                    "port": node.port,
                    "controller_port": node.controller_port,
                    "directory": node.directory,
                }
                for node in self.nodes
            ],
        }
        path = os.path.join(self.directory, STATE_FILE)
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        os.replace(path + ".tmp", path)

    def remove(self) -> None:
        """Nobody runs any more."""
        try:
            os.remove(os.path.join(self.directory, STATE_FILE))
        except FileNotFoundError:
            return


def read_state(directory: str) -> ClusterState | None:
    """The state file of a directory; None when there is none."""
    directory = os.path.abspath(directory)
    path = os.path.join(directory, STATE_FILE)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if not text.strip("\0"):  # it is written whole or not at all, but for a loss of power, which nobody outlives
            return None
        document = json.loads(text)
        nodes = [
            NodeRecord(
                node["id"],
                tuple(node["roles"]),
                node["port"],
                node["controller_port"],
                node["directory"],
                ProcessName(node["pid"], node["started"]),
                node["started_at_ms"],
            )
            for node in document["nodes"]
        ]
        supervisor = ProcessName(document["supervisor"]["pid"], document["supervisor"]["started"])
        links = LinksRecord.read(document.get("links"))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DirectoryError(f"{path} is not a state file of tidelog up: {error}") from None
    return ClusterState(directory, supervisor, nodes, links)


class NodeStatus(NamedTuple):
    """How one node is, for people and programs."""

    node_id: int
    roles: tuple[str, ...]
    pid: int
    port: int | None
    controller_port: int | None
    state: str
    """starting (its port is not open), running, paused or dead."""
    memory_bytes: int | None
    last_line: str
    """The last line of its log when it is dead, else nothing."""

    def as_json(self) -> dict[str, Any]:
        """What `tidelog status --json` prints of it."""
        return {
            "id": self.node_id,
            "roles": list(self.roles),
            "pid": self.pid,
            "port": self.port,
            "controller_port": self.controller_port,
            "state": self.state,
            "memory_bytes": self.memory_bytes,
            **({"last_log_line": self.last_line} if self.state == "dead" else {}),
        }


def node_statuses(state: ClusterState) -> list[NodeStatus]:
    """Look at every node of a cluster once."""
    memory = group_memory_bytes(node.process.pid for node in state.nodes)
    statuses = []
    for node in state.nodes:
        process_state = node.process.state
        is_dead = process_state == "gone"
        if process_state == "running" and not listens(node.port or node.controller_port or 0):
            process_state = "starting"
        statuses.append(
            NodeStatus(
                node.node_id,
                node.roles,
                node.process.pid,
                node.port,
                node.controller_port,
                "dead" if is_dead else process_state,
                None if is_dead else memory[node.process.pid],
                node.last_line if is_dead else "",
            )
        )
    return statuses


def listens(port: int) -> bool:
    """Whether somebody takes connections on a port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """Keep signals back while a process is started and not written down yet: nobody would ever stop it."""
    came: list[int] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        known = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        handlers = {number: handler for number, handler in known.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


class Supervisor:
    """Starts the processes of a plan and looks after them until `stop`, or until `leave` lets them go on alone."""

    def __init__(self, plan: ClusterPlan) -> None:
        self.plan = plan
        os.makedirs(plan.directory, exist_ok=True)
        self._lock = os.open(plan.directory, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            before = read_state(plan.directory)
            if before is not None and before.is_alive:
                raise BlockingIOError
            if before is not None:
                before.stop_links()
        except BlockingIOError:
            os.close(self._lock)
            raise DirectoryError(
                f"a cluster is running in {plan.directory}; stop it with tidelog down --dir {plan.directory}"
            ) from None
        except BaseException:
            os.close(self._lock)
            raise
        self.state = ClusterState(plan.directory, name_process(os.getpid()), [])
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._links: OpenedLinks | None = None

    def start_links(self) -> dict[int, str]:
        """Start the process between the nodes; what each node's peer.address.overrides must be comes back."""
        with _signals_wait():
            self._links = open_links(self.plan, os.path.join(self.plan.directory, STATE_FILE))
            self.state = self.state._replace(links=self._links.record)
            self.state.save()
        return self._links.overrides

    def start(self, command: Sequence[str] = NODE_COMMAND) -> None:
        """Start every node that the plan names; the properties files are there already."""
        self.state.save()
        for node in self.plan.nodes:
            with _signals_wait():
                child = start_node(node.properties_path, node.log_path, command)
                self._children[node.node_id] = child
                self.state.nodes.append(
                    NodeRecord(
                        node.node_id,
                        node.roles,
                        node.port,
                        node.controller_port,
                        node.directory,
                        name_process(child.pid),
                        int(time.time() * 1000),
                    )
                )
                self.state.save()

    def ended(self) -> list[tuple[NodeRecord, str]]:
        """Nodes that are no more, each with how it ended."""
        now = read_state(self.plan.directory)
        if now is not None and len(now.nodes) == len(self.state.nodes):
            self.state = now
        result = []
        for node in self.state.nodes:
            child = self._children[node.node_id]
            code = child.poll()
            if child.pid != node.process.pid:
                if node.process.state == "gone":
                    result.append((node, _GONE))
            elif code is not None:
                how = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
                result.append((node, how))
        return result

    def leave(self) -> None:
        """Let the nodes run on without us."""
        links = [] if self._links is None else [self._links.child]
        for child in (*self._children.values(), *links):
            child.returncode = 0  # so that the interpreter does not warn about children it has not waited for
        self._unlock()

    def stop(self, timeout_ms: int) -> list[str]:
        """Stop every node; what was not as it should be comes back in words."""
        were_dead = {node.node_id for node, _ in self.ended()}
        stop_nodes(self.state, timeout_ms)
        for child in self._children.values():
            child.wait()
        complaints = [
            f"node {node.node_id} did not stop cleanly ({how}): {node.last_line}"
            for node, how in self.ended()
            if how not in ("exit code 0", _GONE) and node.node_id not in were_dead
        ]
        self.state.stop_links()
        if self._links is not None:
            self._links.child.wait()
        self.state.remove()
        self._unlock()
        with contextlib.suppress(OSError):
            os.rmdir(self.plan.directory)  # when nothing came of it, a directory made for it goes too
        return complaints

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def start_node(properties_path: str, log_path: str, command: Sequence[str] = NODE_COMMAND) -> subprocess.Popen[bytes]:
    """Start one node's process; its output goes to its log file."""
    if os.path.exists(log_path) and os.path.getsize(log_path) > _LOG_KEPT_BYTES:
        os.replace(log_path, log_path + ".1")
    with open(log_path, "ab") as log:
        return subprocess.Popen(
            [*command, "--config", properties_path],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # Its own session: Ctrl-C of our terminal is for us alone, and its helpers die with its group.
            start_new_session=True,
        )


def stop_nodes(state: ClusterState, timeout_ms: int) -> list[int]:
    """SIGTERM to brokers, then to separate controllers, which brokers need to leave in order; SIGKILL when late."""
    killed = []
    deadline = time.monotonic() + timeout_ms / 1000
    for with_broker in (True, False):
        group = [node for node in state.nodes if ("broker" in node.roles) is with_broker]
        for node in group:
            # A paused process gets its SIGTERM only when it goes on.
            node.process.signal(signal.SIGTERM)
            node.process.signal(signal.SIGCONT)
        remaining_ms = max(1, int((deadline - time.monotonic()) * 1000))
        late = wait_until_gone([node.process for node in group], remaining_ms)
        for process in late:
            process.kill_group()
        wait_until_gone(late, 5_000)
        killed += [node.node_id for node in group if node.process in late]
    return killed


def stop_cluster(state: ClusterState, timeout_ms: int) -> list[int]:
    """Stop a cluster from outside: its supervisor does it when it lives, otherwise the nodes are stopped directly."""
    if state.supervisor.state != "gone" and state.supervisor.pid != os.getpid():
        state.supervisor.signal(signal.SIGTERM)
        wait_until_gone([state.supervisor], timeout_ms)
    killed = stop_nodes(state, timeout_ms) if state.is_alive else []
    state.stop_links()
    state.remove()
    return killed
