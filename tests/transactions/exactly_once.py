"""Copiers under faults, and the judge: every record of `in` is in `out` exactly once, whatever was killed."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.cluster.support import create_topic
from tests.transactions.copier import ABORTED, GROUP, PARTITIONS, SOURCE, TARGET
from tidelog.coordination.coordinator import partition_for
from tidelog.verify.cluster import LocalCluster
from tidelog.verify.workload import RETRY_SETTINGS

COPIERS = 2
INTERNAL_PARTITIONS = 3
SETTINGS = {
    "offsets_topic_num_partitions": str(INTERNAL_PARTITIONS),
    "transaction_state_log_num_partitions": str(INTERNAL_PARTITIONS),
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": "1000",
    "group_initial_rebalance_delay_ms": "0",
    "min_insync_replicas": "2",
}
FAULTS = (
    "leader",
    "transaction coordinator",
    "group coordinator",
    "application",
    "controller",
    "application",
    "paused transaction coordinator",
    "stopped leader",
)
DOWN_S = (0.0, 0.3, 1.0)
"""How long a killed node stays away: one that is back at once meets a cluster that has not noticed yet."""
PAUSED_S = 3.0
"""Longer than a broker's session in these clusters: it comes back as a zombie that thinks it is still in charge."""
CATCH_UP_S = 180.0
PATIENT_RETRIES = {"retry.backoff.ms": 100, "retry.backoff.max.ms": 1_000}
"""librdkafka's defaults. It doubles the wait with each retry of a message and lets it overflow after some thirty: the
messages of a batch may then wait differently, and it ends with a fatal error since it cannot make the batch again."""


class Watched:
    """The copiers as processes: one that ends is started again."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.starts: Counter[int] = Counter()
        for number in range(COPIERS):
            self._start(number)

    def _start(self, number: int) -> None:
        self.starts[number] += 1
        with (self._directory / f"copier-{number}.log").open("ab") as log:
            words = [sys.executable, "-m", "tests.transactions.copier", self._bootstrap, str(number)]
            self._processes[number] = subprocess.Popen(words, stdout=log, stderr=log)

    def look_after(self) -> None:
        """Start those again that ended."""
        for number, process in list(self._processes.items()):
            if process.poll() is not None:
                self._start(number)

    def kill(self, number: int) -> None:
        """SIGKILL one; the next look starts it again."""
        self._processes[number].kill()
        self._processes[number].wait()

    def end(self) -> None:
        """SIGKILL all."""
        for number in self._processes:
            self.kill(number)

    def said(self) -> str:
        """What they printed."""
        return "\n".join(path.read_text() for path in sorted(self._directory.glob("copier-*.log")))


class Feeder:
    """Writes numbered records to `in` while it runs; a record counts when it was acknowledged."""

    def __init__(self, bootstrap: str, rate: float) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 120_000,
                **RETRY_SETTINGS,
                **PATIENT_RETRIES,
            }
        )
        self._rate = rate
        self._stopping = threading.Event()
        self._acknowledged: dict[int, tuple[int | None, int | None]] = {}
        """Partition and offset of each number, as far as the acknowledgement told: of a repeat it may not."""
        self.failures: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        due_s = time.monotonic()
        while not self._stopping.is_set():
            self._producer.produce(SOURCE, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._delivered)
            number += 1
            due_s = max(due_s + 1 / self._rate, time.monotonic() - 1)  # what was missed is not made up for
            while (wait_s := due_s - time.monotonic()) > 0 and not self._stopping.is_set():
                self._producer.poll(wait_s)
            self._producer.poll(0)

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self._acknowledged[int(message.value() or b"")] = (message.partition(), message.offset())

    def finish(self) -> dict[int, tuple[int | None, int | None]]:
        """Write no more; the numbers that are acknowledged, which are all, and where they are said to be."""
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(120) == 0
        assert not self.failures, self.failures[:3]
        return self._acknowledged


def read_source(
    bootstrap: str, acknowledged: dict[int, tuple[int | None, int | None]], timeout_s: float
) -> set[tuple[int, int]]:
    """Where every record of `in` is; each number that was acknowledged is there once, and where it was said to be."""
    places: dict[int, list[tuple[int, int]]] = {}
    for message in _read(bootstrap, SOURCE, len(acknowledged), timeout_s):
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        places.setdefault(int(message.value() or b""), []).append((partition, offset))
    again = {number: found for number, found in places.items() if len(found) > 1}
    assert not again, f"written more than once: {list(again.items())[:5]}"
    assert set(places) == set(acknowledged), f"lost: {sorted(set(acknowledged) - set(places))[:5]}"
    elsewhere = {
        number: (told, places[number][0])
        for number, told in acknowledged.items()
        if told[1] is not None and told != places[number][0]
    }
    assert not elsewhere, f"acknowledged at another place: {list(elsewhere.items())[:5]}"
    return {place for found in places.values() for place in found}


class Outcome:
    """What was read in the end."""

    def __init__(self) -> None:
        self.copies: Counter[tuple[int, int]] = Counter()
        self.aborted = 0
        self.ends: dict[int, int] = {}
        """The last offset read of each partition of `out`."""
        self.disorder: list[str] = []

    def place(self, message: Message) -> None:
        """Offsets of a partition only rise: nothing is read twice."""
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        if offset <= self.ends.get(partition, -1):
            self.disorder.append(f"offset {offset} of {TARGET}-{partition} was read after {self.ends[partition]}")
        self.ends[partition] = offset

    def problems(self, written: set[tuple[int, int]]) -> list[str]:
        """Nothing, when every record was copied exactly once and nothing aborted was read."""
        found = self.disorder[:3]
        found += [f"{where} was copied {count} times" for where, count in self.copies.items() if count > 1]
        found += [f"{where} was never copied" for where in sorted(written - set(self.copies))]
        found += [f"{where} was copied and never written" for where in sorted(set(self.copies) - written)]
        if self.aborted:
            found.append(f"{self.aborted} aborted records were read")
        return found


def read_copies(bootstrap: str, wanted: int, timeout_s: float) -> Outcome:
    """Read `out` from its start, committed records only, until as many as wanted are there and no more come."""
    outcome = Outcome()
    for message in _read(bootstrap, TARGET, wanted, timeout_s):
        outcome.place(message)
        partition, offset, fate = (message.value() or b"").decode().split()
        if fate == ABORTED:
            outcome.aborted += 1
        else:
            outcome.copies[int(partition), int(offset)] += 1
    return outcome


def _read(bootstrap: str, topic: str, wanted: int, timeout_s: float) -> Iterator[Message]:
    """Committed records from the start, until as many as wanted came and no more come."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "judge",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 50,
        **RETRY_SETTINGS,
    }
    consumer = Consumer(settings)
    deadline = time.monotonic() + timeout_s
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
        count = quiet = 0
        while quiet < 5 and time.monotonic() < deadline:
            messages = [one for one in consumer.consume(5_000, 0.2) if one.error() is None]
            yield from messages
            count += len(messages)
            quiet = 0 if messages or count < wanted else quiet + 1
    finally:
        consumer.close()


def break_something(cluster: LocalCluster, copiers: Watched, kind: str, chance: random.Random) -> str:
    """Kill, pause or stop what `kind` names; a node comes back after a moment."""
    if kind == "application":
        number = chance.randrange(COPIERS)
        copiers.kill(number)
        return f"copier {number}"
    copier = f"copier-{chance.randrange(COPIERS)}"
    node = {
        "leader": lambda: cluster.leader(TARGET, chance.randrange(PARTITIONS)),
        "transaction coordinator": lambda: cluster.leader(
            "__transaction_state", partition_for(copier, INTERNAL_PARTITIONS)
        ),
        "group coordinator": lambda: cluster.leader("__consumer_offsets", partition_for(GROUP, INTERNAL_PARTITIONS)),
        "controller": cluster.controller,
    }[kind.removeprefix("paused ").removeprefix("stopped ")]()
    if node is None or node in cluster.down:
        return f"no {kind} to be found"
    if kind.startswith("paused"):
        cluster.pause(node)
        time.sleep(PAUSED_S)
        cluster.resume(node)
        return f"{kind}, node {node}"
    if kind.startswith("stopped"):
        cluster.stop(node)
    else:
        cluster.kill(node)
    time.sleep(chance.choice(DOWN_S))
    cluster.start(node)
    return f"{kind}, node {node}"


def run(cluster: LocalCluster, directory: Path, duration_s: float, *, seed: int, every_s: float, rate: float) -> str:
    """Copy under faults for a time, then judge; what was done, for the report of the test."""
    chance = random.Random(seed)
    for topic in (SOURCE, TARGET):
        create_topic(cluster, topic, PARTITIONS)
    feeder = Feeder(cluster.bootstrap, rate)
    copiers = Watched(cluster.bootstrap, directory)
    faults: list[str] = []
    try:
        end = time.monotonic() + duration_s
        kinds = list(FAULTS)
        next_fault = time.monotonic() + every_s
        while time.monotonic() < end:
            if time.monotonic() >= next_fault:
                if not kinds:
                    kinds = list(FAULTS)
                kind = kinds.pop(chance.randrange(len(kinds)))
                faults.append(break_something(cluster, copiers, kind, chance))
                next_fault = time.monotonic() + every_s
            copiers.look_after()
            time.sleep(0.05)
        written = read_source(cluster.bootstrap, feeder.finish(), CATCH_UP_S)
        wait_until_read(cluster, copiers, written)
    finally:
        copiers.end()
        feeder.finish()
    outcome = read_copies(cluster.bootstrap, len(written), CATCH_UP_S)
    problems = outcome.problems(written)
    summary = f"{len(written)} records, {sum(copiers.starts.values())} starts, faults: {'; '.join(faults)}"
    assert not problems, f"{len(problems)} problems: {problems[:5]}\n{summary}\n{copiers.said()[-2000:]}"
    assert faults
    return summary


def wait_until_read(cluster: LocalCluster, copiers: Watched, written: set[tuple[int, int]]) -> None:
    """Until the group has committed past the last record of every partition."""
    ends = {
        index: 1 + max(offset for partition, offset in written if partition == index) for index in range(PARTITIONS)
    }
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": GROUP, **RETRY_SETTINGS}
    consumer = Consumer(settings)
    deadline = time.monotonic() + CATCH_UP_S
    committed: dict[int, int] = {}
    try:
        while committed != ends:
            assert time.monotonic() < deadline, f"committed {committed} of {ends}\n{copiers.said()[-2000:]}"
            copiers.look_after()
            time.sleep(0.2)
            try:
                found = consumer.committed([TopicPartition(SOURCE, index) for index in range(PARTITIONS)], 10)
                committed = {one.partition: one.offset for one in found}
            except KafkaException:
                continue
    finally:
        consumer.close()
