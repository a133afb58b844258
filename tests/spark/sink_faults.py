"""Kill somebody at a step of the sink's protocol, let it go on, and count what readers of committed records find.

step     what it is
begin    InitProducerId: the driver takes the id, what was open is aborted
write    Produce: an executor's rows
ledger   TxnOffsetCommit: the number of the batch becomes part of the transaction
end      EndTxn: the driver commits

victim   who is killed
driver   the driver with all it started
executor the process that wrote; at the driver's steps, all that write
broker   the one that was asked: the leader that is written to, or the coordinator
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.spark import sink_judge
from tests.spark.sink_job import ROWS
from tests.spark.sink_proxy import (
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    ProxiedClient,
    Proxy,
    Traps,
    descendants,
)
from tests.support.nodes import Node
from tests.support.ports import free_ports
from tests.support.processes import wait_until
from tidelog.verify.cluster import LocalCluster

STEPS = {"begin": INIT_PRODUCER_ID, "write": PRODUCE, "ledger": TXN_OFFSET_COMMIT, "end": END_TXN}
MOMENTS = [(step, when) for step in STEPS for when in ("before", "after")]
STEP_S = 600.0
"""For one kill and what it costs, on a machine that has much else to do."""
PARTITIONS = 3
TOPIC = "counted"
TRANSACTIONAL_ID = "counting"
PROJECT_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Stage:
    """A cluster behind proxies, and how to kill one of its brokers and bring it back."""

    proxies: list[Proxy]
    traps: Traps
    judge_bootstrap: str
    kill: Callable[[int], None]
    """By the port that a broker listens on."""
    revive: Callable[[], None]
    revivals: list[tuple[threading.Thread, threading.Event]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def bootstrap(self) -> str:
        """What the query is told."""
        return ",".join(f"127.0.0.1:{proxy.port}" for proxy in self.proxies)

    def kill_and_revive(self, broker_port: int) -> None:
        """Kill a broker now and start it again in a while, for which nobody waits."""
        self.kill(broker_port)
        revived = threading.Event()

        def start() -> None:
            time.sleep(1.0)  # long enough for clients to notice and, where there are others, for an election
            self.revive()
            revived.set()
            self.over.wait()  # a process that a thread has started dies with the thread

        self.revivals.append((threading.Thread(target=start, daemon=True), revived))
        self.revivals[-1][0].start()

    def settle(self) -> None:
        """All brokers are back."""
        for _, revived in self.revivals:
            assert revived.wait(120), "a killed broker did not come back"

    def end(self) -> None:
        """Nobody needs the brokers any more."""
        self.over.set()
        for thread, _ in self.revivals:
            thread.join(60)


@contextmanager
def one_node(peer: type[Node], directory: Path) -> Iterator[Stage]:
    """A node that is reached through a proxy only; it leads and coordinates everything."""
    port, client_port = free_ports(2)
    node = peer(directory, client_port=client_port)
    node.properties |= {
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }
    traps = Traps()
    with node, Proxy(port, client_port, traps) as proxy:
        create_topic(proxy.port, 1)
        stage = Stage([proxy], traps, node.bootstrap, lambda _port: node.kill(), lambda: _started(node))
        try:
            yield stage
            stage.settle()
        finally:
            if node.process is not None:
                node.kill()
            stage.end()


def _started(node: Node) -> None:
    node.start()


@contextmanager
def three_nodes(directory: Path) -> Iterator[Stage]:
    """Three nodes of Tidelog, each behind its own proxy; leaders and coordinators are different ones."""
    cluster = LocalCluster(str(directory), 3, settings={"offsets.topic.num.partitions": "3"})
    traps = Traps()
    with contextlib.ExitStack() as opened:
        proxies = []
        for node_id, port in zip(cluster.node_ids, free_ports(3), strict=True):
            plan = cluster.plan_of(node_id)
            assert plan.port is not None
            properties = Path(plan.properties_path)
            properties.write_text(
                properties.read_text().replace(
                    f"advertised.listeners=PLAINTEXT://127.0.0.1:{plan.port}",
                    f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
                )
            )
            assert f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}" in properties.read_text()
            proxies.append(opened.enter_context(Proxy(port, plan.port, traps)))
        opened.enter_context(cluster)
        cluster.start()
        create_topic(proxies[0].port, 3)
        by_port = {cluster.plan_of(node_id).port: node_id for node_id in cluster.node_ids}

        def kill(broker_port: int) -> None:
            cluster.kill(by_port[broker_port])

        stage = Stage(proxies, traps, cluster.bootstrap, kill, lambda: cluster.start(*cluster.down))
        try:
            yield stage
            stage.settle()
        finally:
            stage.end()


def create_topic(port: int, replicas: int) -> None:
    """Make the topic, once the cluster lets us."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})

    def is_made() -> bool:
        with contextlib.suppress(Exception):
            request = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=replicas)
            admin.create_topics([request], request_timeout=5)[TOPIC].result(60)
        with contextlib.suppress(Exception):
            return TOPIC in admin.list_topics(timeout=10).topics
        return False

    wait_until(is_made, 120, f"{TOPIC} is made")


class Job:
    """A query as a process tree: that of sink_job.py, or another program."""

    def __init__(
        self, bootstrap: str, checkpoint: Path, until: int | Path, log: Path, program: str, *more: str
    ) -> None:
        self.log = log
        self._out = log.open("ab")
        environment = dict(os.environ) | {
            "PYTHONPATH": os.pathsep.join([str(PROJECT_ROOT), str(PROJECT_ROOT / "src")]),
            "SPARK_LOCAL_DIRS": str(log.parent / "local"),
        }
        words = [bootstrap, TOPIC, str(checkpoint), TRANSACTIONAL_ID, str(until), *more]
        self.process = subprocess.Popen(
            [sys.executable, "-m", program, *words],
            cwd=PROJECT_ROOT,
            env=environment,
            stdout=self._out,
            stderr=subprocess.STDOUT,
        )

    def kill(self) -> None:
        """The driver and all it started, at once, as when a machine is gone."""
        for pid in descendants(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait(self, timeout_s: float = 900.0) -> int:
        """Its exit code; its output when it does not end."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the query did not end:\n{self.text()[-4000:]}") from None
        finally:
            self._out.close()

    def text(self) -> str:
        """All it said."""
        return self.log.read_text(errors="replace")

    def batches(self) -> int:
        """How many it told of, with those of the runs before."""
        return len(re.findall(r"^batch \d", self.text(), re.MULTILINE))


def run_with_fault(
    stage: Stage,
    directory: Path,
    victim: str,
    step: str,
    when: str,
    *,
    master: str | None = None,
    program: str = "tests.spark.sink_job",
    batches: int = 3,
    skip: int = 1,
    executors_of: Callable[[], list[int]] | None = None,
) -> str:
    """Run the query to its last batch, with one kill on the way; restart what does not restart itself. Its output."""
    log = directory / "job.log"
    words = (stage.bootstrap, directory / "checkpoint", batches - 1, log, program)
    more = () if master is None else (master,)
    job = Job(*words, *more)

    def kill(client: ProxiedClient) -> None:
        kill_victim(victim, stage, job, client, executors_of)

    trap = stage.traps.set(STEPS[step], when, kill, skip=skip)
    try:
        code = job.wait()
        assert trap.sprung.wait(60), f"no {step} came:\n{job.text()[-4000:]}"
        stage.settle()
        if code != 0:
            assert victim == "driver" or "failed:" in job.text(), job.text()[-4000:]
            job = Job(*words, *more)
            assert job.wait() == 0, job.text()[-4000:]
    finally:
        job.kill()
    require_exactly_once(stage, batches)
    return job.text()


def run_through_faults(
    stage: Stage,
    directory: Path,
    victim: str,
    *,
    moments: Sequence[tuple[str, str]] = MOMENTS,
    master: str | None = None,
    program: str = "tests.spark.sink_job",
    executors_of: Callable[[], list[int]] | None = None,
    may_fail: bool = False,
) -> str:
    """One query that is hit at one moment after the other, each time when it is over the one before. Its output.

    `may_fail`: it may end with an error, and goes on when it is started again; else only its own death ends it.
    """
    enough = directory / "enough"
    words = (stage.bootstrap, directory / "checkpoint", enough, directory / "job.log", program)
    more = () if master is None else (master,)
    job = Job(*words, *more)
    before = 0

    def kill(client: ProxiedClient) -> None:
        nonlocal before
        before = job.batches()
        kill_victim(victim, stage, job, client, executors_of)

    def is_over_it() -> bool:
        return job.batches() > before

    def has_ended() -> bool:
        return job.process.poll() is not None

    def go_on_until(is_so: Callable[[], bool], what: str) -> None:
        """Wait for something; a query that says that it failed is started again where it may, as its user would."""
        nonlocal job
        for _ in range(3):
            wait_until(lambda: is_so() or has_ended(), STEP_S, what)
            with contextlib.suppress(AssertionError):
                wait_until(is_so, 5, what)
                return
            assert job.wait() != 0, f"{what}: it ended before:\n{job.text()[-4000:]}"
            assert may_fail, f"{what}: it failed:\n{job.text()[-8000:]}"
            assert "failed:" in job.text(), job.text()[-4000:]
            job = Job(*words, *more)
        raise AssertionError(f"{what}: it fails again and again:\n{job.text()[-4000:]}")

    try:
        for step, when in moments:
            begun_s = time.monotonic()
            moment = f"{victim} {when} {step}"
            trap = stage.traps.set(STEPS[step], when, kill, skip=1)
            go_on_until(trap.sprung.is_set, moment)
            stage.settle()
            if victim == "driver":
                job.wait()
                job = Job(*words, *more)
            go_on_until(is_over_it, f"a batch after {moment}")
            print(f"{moment}: over it after {time.monotonic() - begun_s:.0f} s, {job.batches()} batches", flush=True)
        enough.touch()
        assert job.wait() == 0, job.text()[-4000:]
    finally:
        job.kill()
    require_exactly_once(stage, len(moments))
    return job.text()


def kill_victim(
    victim: str, stage: Stage, job: Job, client: ProxiedClient, executors_of: Callable[[], list[int]] | None
) -> None:
    """Whoever is meant, given who sent a request."""
    if victim == "driver":
        job.kill()
    elif victim == "broker":
        stage.kill_and_revive(client.broker_port)
    elif executors_of is not None:
        kill_all(executors_of())
    else:
        kill_executor(client, job.process.pid)


def require_exactly_once(stage: Stage, batches: int) -> None:
    """Whole batches, every number once, each where the Java client would put it."""
    found = sink_judge.read_committed(stage.judge_bootstrap, TOPIC, PARTITIONS)
    assert len(found) >= batches * ROWS, f"lost: {batches * ROWS - len(found)} of {batches * ROWS}"
    assert len(found) % ROWS == 0, f"part of a batch: {len(found)}"
    sink_judge.require_counted_once(found, PARTITIONS, len(found))


def kill_executor(client: ProxiedClient, driver: int) -> None:
    """The worker that sent the request; where the driver sent it, every Python worker there is."""
    pid = client.pid
    kill_all([pid] if pid != driver else [each for each in descendants(driver) if _is_worker(each)])


def kill_all(pids: list[int]) -> None:
    """SIGKILL, whoever is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _is_worker(pid: int) -> bool:
    try:
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
