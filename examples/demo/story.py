"""The story of the demo, step by step: a cluster, producers, a lake, a leader that dies, and what is left.

With acks=all nothing that was acknowledged may be lost. With acks=1 the leader is first cut off from its followers, so
that it goes on acknowledging what nobody else has; then it dies. That is the loss which acks=1 allows.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from examples.demo.screen import Screen

from tidelog.errors import TidelogError
from tidelog.ledger import ACKNOWLEDGED, Entry
from tidelog.runtime.links import HELD, LinkChange
from tidelog.spark.pipelines import audit, land, timeline
from tidelog.spark.pipelines.declaration import Outcome
from tidelog.spark.pipelines.launch import open_session
from tidelog.spark.pipelines.progress import Silent, Step
from tidelog.spark.pipelines.streams import LAG_EVERY_S
from tidelog.verify.cluster import LocalCluster

TOPIC = "orders"
PARTITIONS = 3
NODES = 3
DOWN_S = 3.0
"""How long the leader stays dead."""
WRITTEN_IN_VAIN_S = 1.5
"""With acks=1: how long the leader acknowledges what its followers do not get."""
AFTERWARDS_S = 2.0
STILL_ON_ITS_WAY_MS = 300
PATIENCE_S = 120.0
"""For any one step; on a quiet machine each takes a few seconds."""


QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""The demo is over before Java has compiled its best code; the quick compiler alone is sooner done."""


class DemoFailed(Exception):
    """A step did not work; the text says which."""


class Landing(Silent):
    """`land` in a thread of its own, stopped when all that was written is in the lake."""

    def __init__(self, spark: Any, options: Any) -> None:
        self.step = Step(0)
        self.shown_s = 0.0
        """When it was, as the monotonic clock has it."""
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(spark, options), daemon=True)
        self._thread.start()

    def show(self, step: Step) -> None:
        self.step, self.shown_s = step, time.monotonic()

    def finish(self) -> None:
        """Stop it between two batches."""
        self._over.set()
        self._thread.join(PATIENCE_S)
        self.check()

    def check(self) -> None:
        """DemoFailed when it ended by itself."""
        if self.error is not None:
            raise DemoFailed(f"land: {self.error}")

    def _run(self, spark: Any, options: Any) -> None:
        try:
            self.outcome = land.stream(spark, options, self, self._over.is_set)
        except BaseException as error:
            self.error = error


class Writers:
    """The producers, in a process of their own so that nothing here slows them."""

    def __init__(self, bootstrap: str, ledger: Path, acks: str, rate: int) -> None:
        command = [sys.executable, "-m", "examples.demo.writers", "--bootstrap", bootstrap, "--topic", TOPIC]
        command += ["--partitions", str(PARTITIONS), "--acks", acks, "--rate", str(rate), "--ledger", str(ledger)]
        self.told: dict[str, Any] = {"acknowledged": 0, "failed": 0, "silent_ms": [0] * PARTITIONS}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.told = json.loads(line)

    def finish(self) -> None:
        """Hand over no more, wait for every outcome."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait(PATIENCE_S + 30)
        self._reader.join(PATIENCE_S)  # the last line has the final count

    def kill(self) -> None:
        """Whatever happens, it does not outlive the demo."""
        self._process.kill()
        self._process.wait(30)


class Demo:
    """One telling of the story."""

    def __init__(self, screen: Screen, out: Path, acks: str, rate: int) -> None:
        self.screen = screen
        self.out = out
        self.acks = acks
        self.rate = rate
        self.writers: Writers | None = None
        self.landing: Landing | None = None
        self._killed_ms = self._killed_partition = 0
        self._spark: Any = None
        self._spark_error: BaseException | None = None

    def tell(self, cluster: LocalCluster) -> Outcome:
        """The whole story; what the audit found."""
        starting = threading.Thread(target=self._start_spark, daemon=True)
        starting.start()
        self._start_cluster(cluster)
        with self._writing(cluster) as writers:
            self._wait(lambda: not starting.is_alive(), "Spark starts")
            if self._spark_error is not None:
                raise DemoFailed(f"Spark did not start: {self._spark_error}")
            try:
                self._land(cluster)
                self._break_leader(cluster, writers)
                self._pause(AFTERWARDS_S)
                writers.finish()
                told = writers.told
                self.screen.say(
                    f"producers are done: {told['acknowledged']:,} acknowledged, {told['failed']:,} refused"
                )
                self._finish_landing()
                return self._judge(cluster)
            finally:
                self._spark.stop()

    # --- the steps ---

    def _start_cluster(self, cluster: LocalCluster) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        cluster.start()
        cluster.wait_ready(PATIENCE_S)
        self.screen.say(f"{NODES} nodes run: {cluster.bootstrap}")
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        topic = NewTopic(TOPIC, PARTITIONS, NODES, config={"min.insync.replicas": "2"})
        admin.create_topics([topic])[TOPIC].result(PATIENCE_S)
        self.screen.say(f"topic {TOPIC}: {PARTITIONS} partitions, {NODES} replicas each, min.insync.replicas 2")

    def _start_spark(self) -> None:
        options = self._options(land.PIPELINE, path=str(self.out / "lake"), topics=TOPIC)
        try:
            self._spark = open_session("tidelog demo", land.settings(options) | QUICK, str(self.out / "spark.log"))
        except BaseException as error:
            self._spark_error = error

    @contextmanager
    def _writing(self, cluster: LocalCluster) -> Iterator[Writers]:
        self.writers = Writers(cluster.bootstrap, self.out / "ledger", self.acks, self.rate)
        how = "acks=all, idempotent" if self.acks == "all" else f"acks={self.acks}"
        self.screen.say(f"2 producers write orders and keep a ledger ({how}); Spark starts beside them")
        try:
            yield self.writers
        finally:
            self.writers.kill()

    def _land(self, cluster: LocalCluster) -> None:
        given = {"bootstrap": cluster.bootstrap, "topics": TOPIC, "path": str(self.out / "lake"), "group": "demo-land"}
        self.landing = Landing(self._spark, self._options(land.PIPELINE, **given))
        self.screen.say("land streams the topic into a Delta table")
        landing = self.landing
        self._wait(lambda: landing.step.done > 0, "the first records are in the lake", 2 * PATIENCE_S)
        self.screen.say(f"the first {landing.step.done:,} records are in the lake")

    def _break_leader(self, cluster: LocalCluster, writers: Writers) -> None:
        controller = cluster.controller()
        leaders = {partition: cluster.leader(TOPIC, partition) for partition in range(PARTITIONS)}
        # A plain failover is to be seen, not the election of a controller on top of it.
        partition = next(one for one, leader in leaders.items() if leader not in (controller, None))
        leader = leaders[partition]
        assert leader is not None
        others = [node for node in cluster.node_ids if node != leader]
        if self.acks != "all":
            cluster.change_links(
                LinkChange(one, other, HELD, 0) for node in others for one, other in ((leader, node), (node, leader))
            )
            self.screen.say(f"node {leader}, which leads {TOPIC}-{partition}, no longer reaches the others", "bad")
            self.screen.say("and goes on acknowledging what nobody else has")
            self._pause(WRITTEN_IN_VAIN_S)
        cluster.kill(leader)
        killed_s, self._killed_ms, self._killed_partition = time.monotonic(), int(time.time() * 1000), partition
        self.screen.say(f"kill -9 of node {leader}, which leads {TOPIC}-{partition}", "bad")
        self._wait(lambda: cluster.leader(TOPIC, partition) in others, f"{TOPIC}-{partition} has a new leader")
        new = cluster.leader(TOPIC, partition)

        def acknowledges() -> bool:
            """An answer came that was not on its way when the leader died."""
            since_ms = (time.monotonic() - killed_s) * 1000
            return bool(writers.told["silent_ms"][partition] < since_ms - STILL_ON_ITS_WAY_MS)

        self._wait(acknowledges, f"{TOPIC}-{partition} acknowledges again")
        self.screen.say(f"{TOPIC}-{partition} is led by node {new} and acknowledges again", "good")
        if self.acks != "all":
            cluster.mend_links()
        self._pause(DOWN_S)
        cluster.start(leader)
        self.screen.say(f"node {leader} comes back")
        self._wait(lambda: _all_in_sync(cluster), f"node {leader} has caught up")
        self.screen.say("all replicas are in sync again", "good")

    def _finish_landing(self) -> None:
        landing = self.landing
        assert landing is not None
        # A lag is told of an end that may be that old, and then be before the last that was written.
        certain_s = time.monotonic() + 2 * LAG_EVERY_S

        def is_landed() -> bool:
            return landing.shown_s >= certain_s and landing.step.lag == 0

        self._wait(is_landed, "everything is in the lake", 2 * PATIENCE_S)
        landing.finish()
        self.screen.say(f"land is done: {landing.step.done:,} records, {landing.step.batches} batches")

    def _judge(self, cluster: LocalCluster) -> Outcome:
        bootstrap = cluster.bootstrap
        given = {"bootstrap": bootstrap, "ledger": str(self.out / "ledger"), "lake": str(self.out / "lake")}
        options = self._options(audit.PIPELINE, **given, topics=TOPIC, report=str(self.out / "audit.html"))
        verdict = audit.run(self._spark, options, self._quietly("audit compares ledger, log and lake"))
        told = self._options(
            timeline.PIPELINE, bootstrap=bootstrap, topics=TOPIC, report=str(self.out / "timeline.html")
        )
        story = timeline.run(self._spark, told, self._quietly("timeline draws what happened to the replicas"))
        details = {**verdict.details, "timeline": story.details["report"], "unavailable_ms": self._unavailable_ms()}
        return Outcome(verdict.ok, verdict.lines, details)

    def _unavailable_ms(self) -> int:
        """How long the dead leader's partition acknowledged nothing, as the ledger has it."""
        entries = [
            Entry.from_line(line)
            for file in (self.out / "ledger").glob("*.jsonl")
            for line in file.read_text().splitlines()
        ]
        times = sorted(
            entry.time_ms
            for entry in entries
            if entry.partition == self._killed_partition and entry.outcome == ACKNOWLEDGED
        )
        # The silence begins with the last answer that the leader sent, which may arrive after its death.
        around = [
            after - before
            for before, after in pairwise(times)
            if after >= self._killed_ms and before <= self._killed_ms + STILL_ON_ITS_WAY_MS
        ]
        return max(around, default=0)

    # --- helpers ---

    @staticmethod
    def _options(pipeline: Any, **given: Any) -> Any:
        return pipeline.options_of(**given)

    def _quietly(self, what: str) -> Silent:
        self.screen.say(what)
        return Silent()

    def _pause(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self._show()

    def _wait(self, done: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not done():
            if self.landing is not None:
                self.landing.check()
            if time.monotonic() > deadline_s:
                raise DemoFailed(f"not within {timeout_s:g} s: {what}")
            self._show()

    def _show(self) -> None:
        parts = []
        if self.writers is not None:
            told = self.writers.told
            parts.append(f"acknowledged {told['acknowledged']:,}")
            if max(told["silent_ms"]) > 300:
                parts.append(
                    f"{TOPIC}-{told['silent_ms'].index(max(told['silent_ms']))} silent for {max(told['silent_ms'])} ms"
                )
        if self.landing is not None:
            step = self.landing.step
            parts.append(f"in the lake {step.done:,}")
            parts += [f"lag {step.lag:,}"] if step.lag is not None else []
        if parts:
            self.screen.live("   ".join(parts))
        time.sleep(0.05)


def _all_in_sync(cluster: LocalCluster) -> bool:
    leaders = [one for held in cluster.replicas(TOPIC).values() for one in held.values() if one["role"] == "leader"]
    return len(leaders) == PARTITIONS and all(len(one["isr"]) == NODES for one in leaders)


def play(screen: Screen, out: Path, data: Path, acks: str, rate: int) -> Outcome:
    """Make the cluster, tell the story, end the cluster."""
    # Held connections do not break: only its silence tells the controller that the leader is gone.
    settings = {} if acks == "all" else {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    try:
        with LocalCluster(str(data), NODES, settings=settings, with_links=acks != "all") as cluster:
            return Demo(screen, out, acks, rate).tell(cluster)
    except TidelogError as error:
        raise DemoFailed(str(error)) from error
