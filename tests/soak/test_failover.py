"""How long a producer with acks=all waits when a leader is killed, alone or with the controller in it: twenty times."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.cluster.support import ask, cluster_of, create_topic, wait_in_sync, wait_until
from tidelog.verify.cluster import LocalCluster
from tidelog.verify.workload import RETRY_SETTINGS
from tidelog.wire.messages.elect_leaders import ElectLeadersRequest

KILLS = 20
TOPIC = "failover"
ACK_SETTINGS = {"acks": "all", "enable.idempotence": True, "linger.ms": 0}


class SteadyWriter:
    """A record every five milliseconds, and the moment of every acknowledgement."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.moments: list[float] = []
        self.failures: list[str] = []
        self._stopping = threading.Event()
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, **RETRY_SETTINGS, **ACK_SETTINGS})
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is None:
            self.moments.append(time.monotonic())
        else:
            self.failures.append(error.str())

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._producer.produce(TOPIC, value=b"x", partition=0, on_delivery=self._delivered)
            self._producer.poll(0.005)

    def longest_gap_s(self, since: float) -> float:
        """The longest time without an acknowledgement from a moment until now."""
        return max(after - before for before, after in pairwise([since, *self._after(since), time.monotonic()]))

    def _after(self, since: float) -> list[float]:
        return [moment for moment in list(self.moments) if moment > since]

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(30)


@contextmanager
def writing(cluster: LocalCluster) -> Iterator[SteadyWriter]:
    writer = SteadyWriter(cluster)
    try:
        wait_until(lambda: len(writer.moments) > 50, "records are acknowledged")
        yield writer
    finally:
        writer.stop()


def bring_together(cluster: LocalCluster, together: bool) -> int:
    """Kill and restart until the leader is, or is not, the controller; the leader."""
    for _ in range(20):
        wait_in_sync(cluster, TOPIC, 1)
        leader, controller = cluster.leader(TOPIC, 0), cluster.controller()
        if leader is not None and controller is not None and (leader == controller) is together:
            return leader
        victim = controller if together else leader
        if victim is not None:
            cluster.kill(victim)
            wait_until(lambda gone=victim: cluster.leader(TOPIC, 0) != gone, "it is replaced")  # type: ignore[misc]
            cluster.start(victim)
            cluster.wait_ready()
            wait_in_sync(cluster, TOPIC, 1)
        ask(cluster, ElectLeadersRequest(topic_partitions=None, timeout_ms=5_000))
    raise AssertionError("leader and controller could not be brought where they should be")


@pytest.mark.parametrize(("together", "median_s", "worst_s"), [(False, 0.5, 1.0), (True, 2.0, 2.0)])
def test_a_killed_leader_is_replaced(together: bool, median_s: float, worst_s: float) -> None:
    with cluster_of(3, broker_session_timeout_ms="9000", broker_heartbeat_interval_ms="2000") as cluster:
        create_topic(cluster, TOPIC, 1)
        gaps = []
        with writing(cluster) as writer:
            for _ in range(KILLS):
                victim = bring_together(cluster, together)
                killed = time.monotonic()
                cluster.kill(victim)
                time.sleep(3)
                gaps.append(writer.longest_gap_s(killed))
                cluster.start(victim)
                cluster.wait_ready()
        print(f"leader{' and controller' if together else ''} killed:", *(f"{gap * 1000:.0f} ms" for gap in gaps))
        assert writer.failures == []
        assert statistics.median(gaps) <= median_s
        assert max(gaps) <= worst_s
