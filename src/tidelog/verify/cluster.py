"""The nodes of a run as processes of our own: started, killed, paused, and asked how they are."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any, Self

from tidelog.client.connection import Connection
from tidelog.errors import KafkaError, TidelogError
from tidelog.runtime.cluster_plan import HOST, ClusterPlan, NodePlan, check_ports, plan_cluster
from tidelog.runtime.formatting import check_cluster, prepare_cluster
from tidelog.runtime.link_process import OpenedLinks, open_links
from tidelog.runtime.links import PASSING, LinkChange, change_links
from tidelog.wire.private_query import TidelogQueryRequest

_ASK_TIMEOUT_MS = 5_000
_POLL_SECONDS = 0.02
_LINK_TRIES = 4
_LOWEST_PORT, _HIGHEST_PORT = 20_000, 22_700
"""With their controllers' ports, which are ten thousand higher, below the range that systems draw the ports of outgoing
connections from: while a node is down, a connection could take its port, and the node would not come back."""
_PORTS_OF_A_PROCESS = 300
_drawn: deque[int] = deque(maxlen=30)
"""By this process, last: who is to listen there may not do so yet."""


class LocalCluster:
    """Nodes on this machine that this process has started; leaving the block ends them all."""

    def __init__(
        self,
        directory: str,
        nodes: int,
        *,
        controllers: int | None = None,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        with_links: bool = False,
    ) -> None:
        """Prepare the directories. `with_links`: nodes talk through links that can be cut, held and slowed."""
        plan = plan_cluster(directory, nodes, controllers, port or free_base_port(nodes))
        configs = check_cluster(plan, settings or {})
        check_ports(plan)
        os.makedirs(plan.directory, exist_ok=True)
        links = open_links(plan) if with_links else None
        prepare_cluster(plan, configs, None if links is None else links.overrides)
        self._adopt(plan, links)

    @classmethod
    def prepared(cls, plan: ClusterPlan, node_options: Sequence[str] = ()) -> Self:
        """The nodes of a plan whose directories are ready, to be started with more options of `tidelog node`."""
        cluster = cls.__new__(cls)
        cluster._adopt(plan, None, node_options)
        return cluster

    def _adopt(self, plan: ClusterPlan, links: OpenedLinks | None, node_options: Sequence[str] = ()) -> None:
        self.plan = plan
        self._links = links
        self._node_options = tuple(node_options)
        self._plans: dict[int, NodePlan] = {node.node_id: node for node in self.plan.nodes}
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._log_begins: dict[int, int] = {}
        """How long each node's log was when it was last started."""
        self._connections: dict[int, Connection] = {}
        self.down: set[int] = set()
        """Nodes that were killed or stopped and are not to run now."""
        self.paused: set[int] = set()

    @property
    def node_ids(self) -> list[int]:
        """Every node, running or not."""
        return list(self._plans)

    @property
    def bootstrap(self) -> str:
        """What clients are told."""
        return self.plan.bootstrap

    def plan_of(self, node_id: int) -> NodePlan:
        """Where a node is and what it was started with."""
        return self._plans[node_id]

    # --- doing ---

    def start(self, *node_ids: int) -> None:
        """Start nodes (all when none is named) and do not wait for them."""
        for node_id in node_ids or self.node_ids:
            plan = self._plans[node_id]
            with open(plan.log_path, "ab") as log:
                self._log_begins[node_id] = log.tell()
                self._children[node_id] = subprocess.Popen(
                    [sys.executable, "-m", "tidelog", "node", "--config", plan.properties_path, *self._node_options],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self.down.discard(node_id)

    def kill(self, *node_ids: int) -> None:
        """SIGKILL nodes and their helpers, all before any of them is waited for."""
        self.down.update(node_ids)
        self.paused.difference_update(node_ids)
        for node_id in node_ids:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._children[node_id].pid, signal.SIGKILL)
        for node_id in node_ids:
            self._children[node_id].wait(30)

    def stop(self, node_id: int, timeout_s: float = 30) -> int:
        """A clean stop; the exit code. One that takes too long is killed and reported as TidelogError.

        A process that had not begun to be a node when it was asked has nothing to stop: its end is clean, too.
        """
        self.down.add(node_id)
        child = self._children[node_id]
        child.send_signal(signal.SIGTERM)
        try:
            code = child.wait(timeout_s)
            return 0 if code == -signal.SIGTERM and not self._has_said_anything(node_id) else code
        except subprocess.TimeoutExpired:
            self.kill(node_id)
            raise TidelogError(f"node {node_id} did not stop within {timeout_s:g} s") from None

    def _has_said_anything(self, node_id: int) -> bool:
        """Whether the process that a node was last started as has printed a line."""
        return os.path.getsize(self._plans[node_id].log_path) > self._log_begins[node_id]

    def pause(self, node_id: int) -> None:
        """SIGSTOP: its connections stay open and nobody answers on them."""
        self.paused.add(node_id)
        self._children[node_id].send_signal(signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        """SIGCONT."""
        self._children[node_id].send_signal(signal.SIGCONT)
        self.paused.discard(node_id)

    def change_links(self, changes: Iterable[LinkChange]) -> None:
        """Cut, hold, slow or mend ways between nodes."""
        assert self._links is not None, "this cluster was started without links"
        wanted = list(changes)
        for _ in range(_LINK_TRIES - 1):
            with contextlib.suppress(TidelogError):  # on a busy machine its answer may be late; asking twice is fine
                change_links(self._links.record.control_port, wanted)
                return
        change_links(self._links.record.control_port, wanted)

    def mend_links(self) -> None:
        """Let every way between nodes pass again, at full speed."""
        if self._links is not None:
            ways = permutations(self.node_ids, 2)
            self.change_links(LinkChange(one, other, PASSING, 0) for one, other in ways)

    def heal(self) -> None:
        """Let every node run and every link pass."""
        self.mend_links()
        for node_id in list(self.paused):
            self.resume(node_id)
        for node_id in list(self.down):
            self.start(node_id)

    # --- looking ---

    def ended(self) -> list[tuple[int, int]]:
        """Nodes that ended by themselves, with their exit codes."""
        return [
            (node_id, code)
            for node_id, child in self._children.items()
            if node_id not in self.down and (code := child.poll()) is not None
        ]

    def ask(self, node_id: int, question: str, timeout_ms: int = _ASK_TIMEOUT_MS, **arguments: Any) -> Any:
        """Put one of the private questions to a node; None when it does not answer."""
        if node_id in self.down or node_id in self.paused:
            return None
        plan = self._plans[node_id]
        if plan.port is None:
            return None  # a separate controller answers brokers only
        try:
            connection = self._connections.get(node_id)
            if connection is None or not connection.is_open:
                connection = Connection(HOST, plan.port, client_id="tidelog-verify", timeout_ms=timeout_ms)
                self._connections[node_id] = connection
            connection.send(TidelogQueryRequest(question=question, arguments=json.dumps(arguments)), 0, timeout_ms)
            answer = connection.receive(timeout_ms)
        except KafkaError:
            self._connections.pop(node_id, None)
            return None
        return None if answer.error_code else json.loads(answer.answer)

    def controller(self) -> int | None:
        """The active controller, as the node with the newest quorum epoch knows it."""
        answers = [answer for node_id in self.node_ids if (answer := self.ask(node_id, "node"))]
        newest = max((answer["quorum"] for answer in answers), key=lambda quorum: quorum["epoch"], default=None)
        return None if newest is None else newest["leader"]

    def replicas(self, topic: str) -> dict[int, dict[int, dict[str, Any]]]:
        """What each answering node says of its replicas of a topic: by partition, then by node."""
        found: dict[int, dict[int, dict[str, Any]]] = {}
        for node_id in self.node_ids:
            answer = self.ask(node_id, "replicas", topic=topic)
            for replica in answer["replicas"] if answer else ():
                found.setdefault(replica["partition"], {})[node_id] = replica
        return found

    def leader(self, topic: str, partition: int) -> int | None:
        """Who leads a partition, as the node with its newest epoch knows it."""
        replicas = self.replicas(topic).get(partition, {})
        newest = max(replicas.values(), key=lambda replica: int(replica["leader_epoch"]), default=None)
        return None if newest is None or newest["leader"] < 0 else newest["leader"]

    def why_not_in_step(self, topic: str, partitions: int) -> str | None:
        """None when all replicas of a topic are in sync, equally long and wholly committed; else what is missing."""
        replicas = self.replicas(topic)
        for partition in range(partitions):
            held = replicas.get(partition, {})
            leaders = [replica for replica in held.values() if replica["role"] == "leader"]
            if len(leaders) != 1:
                return f"{topic}-{partition}: {len(leaders)} nodes lead it"
            assigned = 1 + len(leaders[0]["followers"])
            if len(held) != assigned:
                return f"{topic}-{partition}: nodes {sorted(held)} answer for its {assigned} replicas"
            if len(leaders[0]["isr"]) < assigned:
                return f"{topic}-{partition}: in sync are {leaders[0]['isr']}"
            ends = {replica["log_end_offset"] for replica in held.values()}
            if len(ends) > 1 or {replica["high_watermark"] for replica in held.values()} != ends:
                return f"{topic}-{partition}: logs end at {sorted(ends)}, or are not committed to their end"
        return None

    def wait_until(self, done: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Ask again and again; TidelogError when it does not come true, or when a node ends by itself."""
        deadline = time.monotonic() + timeout_s
        while not done():
            self.require_alive()
            if time.monotonic() > deadline:
                raise TidelogError(f"not within {timeout_s:g} s: {what}")
            time.sleep(_POLL_SECONDS)

    def require_alive(self) -> None:
        """TidelogError with its last words when a node has ended by itself."""
        for node_id, code in self.ended():
            raise TidelogError(f"node {node_id} ended by itself with code {code}: {self.last_line(node_id)}")

    def wait_ready(self, timeout_s: float = 60) -> None:
        """Until every broker that is to run is in service and knows a controller."""

        def is_ready() -> bool:
            brokers = [node_id for node_id, plan in self._plans.items() if plan.port is not None]
            answers = [self.ask(node_id, "node") for node_id in brokers if node_id not in self.down]
            return all(answer and answer["state"] == "running" and answer["quorum"]["leader"] for answer in answers)

        self.wait_until(is_ready, timeout_s, "every broker is in service")

    def last_line(self, node_id: int) -> str:
        """The last thing a node printed."""
        lines = self.log_lines(node_id)
        return lines[-1] if lines else ""

    def log_lines(self, node_id: int) -> list[str]:
        """Everything a node printed."""
        try:
            with open(self._plans[node_id].log_path, encoding="utf-8", errors="replace") as file:
                return [line.rstrip() for line in file if line.strip()]
        except OSError:
            return []

    # --- the end ---

    def stop_all(self, timeout_s: float = 30) -> list[int]:
        """Stop every running node in order; those that had to be killed."""
        for node_id in list(self.paused):
            self.resume(node_id)
        running = [node_id for node_id in self._children if self._children[node_id].poll() is None]
        for node_id in running:
            self.down.add(node_id)
            self._children[node_id].send_signal(signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        late = []
        for node_id in running:
            try:
                self._children[node_id].wait(max(0.01, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                late.append(node_id)
        self.kill(*late)
        return late

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()
        self.kill(*(node_id for node_id, child in self._children.items() if child.poll() is None))
        if self._links is not None:
            self._links.child.kill()
            self._links.child.wait(30)


def free_base_port(count: int) -> int:
    """A port that is free and followed by free ones.

    Where nodes were killed and are to come back, nobody listens: processes beside each other draw from different parts.
    """
    chance = random.SystemRandom()
    part = os.getpid() * _PORTS_OF_A_PROCESS
    for _ in range(1_000):
        base = _LOWEST_PORT + (part + chance.randrange(_PORTS_OF_A_PROCESS)) % (_HIGHEST_PORT - _LOWEST_PORT)
        ports = range(base, base + count)
        if all(port not in _drawn and _is_free(port) for port in ports):
            _drawn.extend(ports)
            return base
    raise TidelogError(f"no {count} free ports in a row on {HOST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
