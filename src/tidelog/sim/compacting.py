"""A compacted topic under faults: three nodes clean it on their own while leaders die and followers fall behind.

One producer writes a few keys at a time, deletes some of them and never comes back to them. In the end, whatever was
killed, paused or without power meanwhile:

    the last value of each key is that of its last acknowledged write, or of one after it that nobody knows the end of
    every replica says so, and no offset says two things

Nothing but the seed decides.
"""

from __future__ import annotations

from tidelog.log import names
from tidelog.sim.checkers import compacted
from tidelog.sim.client import Admin
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.keyed import KeyedWriter
from tidelog.sim.producer import Producer, ProducerSettings

TOPIC = "state"
NODES = (1, 2, 3)
FAULTS_MS = 40_000
CALM_MS = 90_000
SEGMENT_BYTES = (170, 250, 900)
"""Of small segments several are closed before their records are committed."""
SETTINGS = {
    "replication.events.enable": "false",
    "log.cleaner.backoff.ms": "300",
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    "replica.lag.time.max.ms": "1200",
}
CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "min.insync.replicas": "2",
    "delete.retention.ms": "3600000",
    "file.delete.delay.ms": "500",
}


class Compacting:
    """One history."""

    def __init__(self, seed: int) -> None:
        self.cluster = SimulatedCluster(seed, settings=SETTINGS, brokers=NODES, controllers=NODES)
        self.world = self.cluster.world
        self.cleanings = 0
        self._lost: int | None = None
        """The node that lost power, until all replicas are in sync again: min.insync.replicas - 1 may."""

    def play(self) -> str:
        """The whole history; what is wrong in the end, "" when nothing is."""
        self.cluster.start_all()
        admin = Admin(self.world, "admin", NODES)
        made: list[object] = []
        segment_bytes = SEGMENT_BYTES[self.world.chance.below(len(SEGMENT_BYTES))]
        configs = {**CONFIGS, "internal.segment.bytes": str(segment_bytes)}
        admin.create_topic(TOPIC, [NODES], configs, made.append)
        if not self.world.run_until(lambda: bool(made)):
            return "the topic is not made"
        settings = ProducerSettings.from_words({"acks": "all", "delivery.timeout.ms": "120000"})
        self._writer = KeyedWriter(Producer(self.world, "writer", NODES, settings), TOPIC, 0)
        self._writer.send_on()
        end_ms = self.world.now_ms + FAULTS_MS
        while self.world.now_ms < end_ms:
            self.world.run_for(200 + self.world.chance.below(2_500))
            self._break_something()
        self._writer.is_sending = False
        if not self.world.run_until(self._is_well, CALM_MS):
            return f"not well {CALM_MS} ms after the last fault"
        self.world.run_for(3_000)
        self.cleanings = sum(one.kind == "log-cleaned" for _, _, one in self.world.told)
        return self._what_is_wrong()

    # --- faults ---

    def _break_something(self) -> None:
        world, chance = self.world, self.world.chance
        node_id = NODES[chance.below(len(NODES))]
        process = world.hosts[node_id].process
        if process is None or not process.alive:
            self._start(node_id)
            return
        if process.paused:
            return
        kind = chance.below(6)
        back_ms = world.now_ms + 300 + chance.below(7_000)
        if kind == 0 and (self._lost is None or self._all_in_sync()):
            self._lost = node_id
            world.power_loss(node_id)
            world.at(back_ms, lambda: self._start(node_id))
        elif kind in (1, 2):
            world.kill(node_id)
            world.at(back_ms, lambda: self._start(node_id))
        elif kind in (3, 4):
            world.pause(node_id)
            world.at(back_ms, lambda: world.resume(node_id))

    def _start(self, node_id: int) -> None:
        process = self.world.hosts[node_id].process
        if process is None or not process.alive:
            self.world.start(node_id)

    # --- the end ---

    def _all_in_sync(self) -> bool:
        topic = self.cluster.newest_image().topic(TOPIC)
        return topic is not None and len(topic.partitions[0].isr) == len(NODES)

    def _is_well(self) -> bool:
        for node_id in NODES:
            self.world.resume(node_id)
            self._start(node_id)
        return all(map(self.cluster.is_running, NODES)) and self._all_in_sync() and not self._writer.producer.unsettled

    def _log(self, node_id: int) -> bytes:
        disk, directory = self.world.hosts[node_id].disks[0], names.directory_name(TOPIC, 0)
        segments = [name for name in disk.list(directory) if name.endswith(names.LOG_SUFFIX)]
        return b"".join(disk.read_file(f"{directory}/{name}") for name in segments)

    def _what_is_wrong(self) -> str:
        logs = {node_id: self._log(node_id) for node_id in NODES}
        return compacted.wrong_value(logs[NODES[0]], self._writer.allowed()) or compacted.disagreement(logs)


def run(seed: int) -> Compacting | str:
    """Play a seed; what is wrong, or the history when nothing is."""
    history = Compacting(seed)
    return history.play() or history
