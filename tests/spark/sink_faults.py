"""Kill somebody at a step of the sink's protocol, let it go on, and count what readers of committed records find.

step     what it is
begin    InitProducerId: the driver takes the id, what was open is aborted
write    Produce: an executor's rows
ledger   TxnOffsetCommit: the number of the batch becomes part of the transaction
end      EndTxn: the driver commits
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clients import confluent
from tests.spark import sink_judge
from tests.spark.sink_job import ROWS
from tests.spark.sink_proxy import (
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    ProxiedClient,
    Proxy,
    descendants,
)
from tests.support.nodes import Node
from tests.support.ports import free_ports

STEPS = {"begin": INIT_PRODUCER_ID, "write": PRODUCE, "ledger": TXN_OFFSET_COMMIT, "end": END_TXN}
PARTITIONS = 3
TOPIC = "counted"
TRANSACTIONAL_ID = "counting"
PROJECT_ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def proxied(peer: type[Node], directory: Path) -> Iterator[tuple[Node, Proxy]]:
    """A node that is reached through a proxy only."""
    port, client_port = free_ports(2)
    properties = {
        "listeners": "",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }
    node = peer(directory, client_port=client_port, properties=properties)
    node.properties["listeners"] = node.base_properties()["listeners"]
    with node, Proxy(port, client_port) as proxy:
        confluent.create_topic(node, TOPIC, PARTITIONS)
        yield node, proxy


class Job:
    """The query of sink_job.py as a process tree."""

    def __init__(self, bootstrap: str, checkpoint: Path, last_batch: int, log: Path, master: str = "local[2]") -> None:
        self.log = log
        self._out = log.open("ab")
        environment = dict(os.environ) | {
            "PYTHONPATH": os.pathsep.join([str(PROJECT_ROOT), str(PROJECT_ROOT / "src")]),
            "SPARK_LOCAL_DIRS": str(log.parent / "local"),
        }
        words = [bootstrap, TOPIC, str(checkpoint), TRANSACTIONAL_ID, str(last_batch), master]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.sink_job", *words],
            cwd=PROJECT_ROOT,
            env=environment,
            stdout=self._out,
            stderr=subprocess.STDOUT,
        )

    def kill(self) -> None:
        """The driver and all it started, at once, as when a machine is gone."""
        for pid in descendants(self.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

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


def run_with_fault(
    node: Node,
    proxy: Proxy,
    directory: Path,
    victim: str,
    step: str,
    when: str,
    *,
    master: str = "local[2]",
    batches: int = 3,
    skip: int = 1,
) -> str:
    """Run the query to its last batch, with one kill on the way; restart what does not restart itself. Its output."""
    bootstrap = f"127.0.0.1:{proxy.port}"
    log = directory / "job.log"
    job = Job(bootstrap, directory / "checkpoint", batches - 1, log, master)
    restarted: list[threading.Thread] = []

    def kill(client: ProxiedClient) -> None:
        if victim == "driver":
            job.kill()
        elif victim == "executor":
            kill_executor(client, job.process.pid)
        else:
            node.kill()
            restarted.append(_start_again(node))

    trap = proxy.trap(STEPS[step], when, kill, skip=skip)
    try:
        code = job.wait()
        assert trap.sprung.wait(5), f"no {step} came:\n{job.text()[-4000:]}"
        for thread in restarted:
            thread.join(120)
        if code != 0:
            assert victim == "driver" or "failed:" in job.text(), job.text()[-4000:]
            job = Job(bootstrap, directory / "checkpoint", batches - 1, log, master)
            assert job.wait() == 0, job.text()[-4000:]
    finally:
        job.kill()
    found = sink_judge.read_committed(node.bootstrap, TOPIC, PARTITIONS)
    count = len(found)
    assert count >= batches * ROWS
    assert count % ROWS == 0, f"part of a batch: {count}"
    sink_judge.require_counted_once(found, PARTITIONS, count)
    return job.text()


def kill_executor(client: ProxiedClient, driver: int) -> None:
    """The worker that sent the request; where the driver sent it, every Python worker there is."""
    pid = client.pid
    workers = [pid] if pid != driver else [each for each in descendants(driver) if _is_worker(each)]
    for each in workers:
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _is_worker(pid: int) -> bool:
    try:
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _start_again(node: Node) -> threading.Thread:
    """Bring a killed node back while the proxy waits for nobody."""

    def start() -> None:
        time.sleep(0.5)  # long enough for a client to notice; nothing depends on it
        node.start()

    thread = threading.Thread(target=start)
    thread.start()
    return thread
