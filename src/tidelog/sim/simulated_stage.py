"""The stage of simulated clusters: the shipped nodes in a world of one seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.controller.image import MetadataImage
from tidelog.errors import ErrorCode
from tidelog.ledger import Entry
from tidelog.sim.client import Admin
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.consumer import Consumer, FetchAnswer
from tidelog.sim.group_client import GroupClient
from tidelog.sim.network import KINDS, Message
from tidelog.sim.producer import Producer, ProducerSettings
from tidelog.sim.stage import (
    Counts,
    Fetched,
    GroupPositions,
    PartitionView,
    Place,
    Plan,
    ReplicaView,
    StoredRecord,
    Told,
    Traffic,
)
from tidelog.sim.stored import StoredRecords
from tidelog.sim.wording import describe

PATIENCE_MS = 120_000
"""How long a client of a script may take for one thing before the script is given up."""
LOOK_CLOSELY_MS = 300
"""For so long a condition is looked at every millisecond, then every ten."""
ELECTIONS = {"preferred": 0, "unclean": 1}


class SimulatedStage:
    """See the module."""

    patience_ms = 0

    def __init__(self, seed: int = 1, *, directories: int = 1) -> None:
        self.seed = seed
        self._directories = directories
        self.topic = ("", 0)
        """The partition whose traffic is told."""
        self.cluster: SimulatedCluster
        self._admin: Admin
        self._group_client: GroupClient
        self._producers: dict[str, Producer] = {}
        self._consumers: dict[str, Consumer] = {}
        self._groups: dict[str, tuple[str, bool]] = {}
        """The group of a consumer that has one, and whether it reports its position there."""
        self._fetches: dict[str, list[Fetched]] = {}
        self._traffic: list[Traffic] = []
        self._stored = StoredRecords()
        self._told = 0
        self._highest: dict[tuple[int, str], int] = {}
        self._went_back: list[str] = []

    @property
    def now_ms(self) -> int:
        """The simulated time."""
        return self.cluster.world.now_ms

    @now_ms.setter
    def now_ms(self, _value: int) -> None:
        raise AttributeError("time passes by itself")

    def start(self, plan: Plan) -> None:
        self.cluster = SimulatedCluster(
            self.seed,
            settings={"replication.events.enable": "false", **plan.settings},
            brokers=plan.brokers,
            controllers=plan.controllers,
            node_settings={node_id: {"broker.rack": rack} for node_id, rack in plan.racks.items()},
            directories=self._directories,
        )
        self.topic, self._told = ("", 0), 0
        self._producers.clear()
        self._consumers.clear()
        self._highest.clear()
        self.cluster.world.on_message = self._passed
        self.cluster.start_all()
        self._groups.clear()
        self._admin = Admin(self.cluster.world, "admin", self.cluster.brokers)
        self._group_client = GroupClient(self.cluster.world, "groups", self.cluster.brokers)

    def wait(self, duration_ms: int) -> None:
        until_ms = self.now_ms + duration_ms
        while self.now_ms < until_ms:
            self.cluster.world.run_for(min(10, until_ms - self.now_ms))
            self._look_at_epochs()

    def wait_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        begun_ms = self.now_ms
        deadline_ms = begun_ms + within_ms
        while not condition():
            if self.now_ms >= deadline_ms:
                return False
            waited_ms = self.now_ms - begun_ms
            self.cluster.world.run_for(1 if waited_ms < LOOK_CLOSELY_MS else 10)
            self._look_at_epochs()
        return True

    def _run_until(self, condition: Callable[[], bool], what: str) -> None:
        if not self.cluster.world.run_until(condition, PATIENCE_MS):
            raise TimeoutError(f"{what} within {PATIENCE_MS} ms")

    # --- looking ---

    @property
    def image(self) -> MetadataImage:
        """The newest metadata of any living node."""
        return self.cluster.newest_image()

    def partition(self, topic: str, index: int) -> PartitionView:
        known = self.image.topic(topic)
        assert known is not None, f"there is no topic {topic}"
        state = known.partitions[index]
        lanes = tuple(
            self._replica(node_id, topic, index, state.leader, state.isr, state.eligible_leader_replicas)
            for node_id in state.replicas
        )
        return PartitionView(
            topic,
            index,
            tuple(state.replicas),
            state.leader,
            state.leader_epoch,
            tuple(state.isr),
            tuple(state.eligible_leader_replicas),
            lanes,
            self._is_known_to_leader(topic, index, state.leader, state.partition_epoch),
        )

    def _is_known_to_leader(self, topic: str, index: int, leader: int, partition_epoch: int) -> bool:
        process = None if leader < 0 else self.cluster.world.hosts[leader].process
        if process is None:
            return True
        hosted = process.node.replicas.partitions.get((topic, index)) if process.alive else None
        leadership = None if hosted is None else hosted.leadership
        return leadership is not None and leadership.partition_epoch == partition_epoch

    def _replica(
        self, node_id: int, topic: str, index: int, leader: int, isr: Sequence[int], elr: Sequence[int]
    ) -> ReplicaView:
        process = self.cluster.world.hosts[node_id].process
        if node_id == leader:
            state = "leader"
        elif node_id in isr:
            state = "in sync"
        else:
            state = "eligible" if node_id in elr else "out of sync"
        high_watermark = None
        if process is None or not process.alive:
            state = "down"
        else:
            hosted = process.node.replicas.partitions.get((topic, index))
            high_watermark = None if hosted is None else hosted.high_watermark
            if process.paused:
                state = "paused"
            elif hosted is None:
                state = "starting"
        records = self._records(node_id, topic, index)
        end_offset = records[-1].offset + 1 if records else 0
        return ReplicaView(node_id, state, records, end_offset, high_watermark)

    def _records(self, node_id: int, topic: str, index: int) -> tuple[StoredRecord, ...]:
        return self._stored.parse(node_id, topic, index, self.log_bytes(node_id, topic, index))

    def log_bytes(self, node_id: int, topic: str, index: int) -> bytes:
        return self.cluster.log_bytes(node_id, topic, index)

    def leaders(self, topic: str) -> list[int]:
        known = self.image.topic(topic)
        return [] if known is None else [partition.leader for _, partition in sorted(known.partitions.items())]

    def controller(self) -> tuple[int, int] | None:
        return self.cluster.active_controller()

    def is_serving(self, node_id: int) -> bool:
        process = self.cluster.world.hosts[node_id].process
        if process is None or not process.alive:
            return False
        return not self.is_fenced(node_id)

    def is_fenced(self, node_id: int) -> bool:
        broker = self.image.brokers.get(node_id)
        return broker is None or broker.fenced

    def read_file(self, node_id: int, path: str) -> str:
        disk = self.cluster.world.hosts[node_id].disks[0]
        return disk.read_file(path).decode() if disk.exists(path) else ""

    def take_traffic(self) -> list[Traffic]:
        traffic, self._traffic = self._traffic, []
        return traffic

    def _passed(self, message: Message) -> None:
        if not isinstance(message.source, int) or not isinstance(message.target, int):
            return
        text = describe(message, self._topic_name, *self.topic)
        if text is not None:
            self._traffic.append(Traffic(message.source, message.target, text))

    def _topic_name(self, topic_id: bytes) -> str:
        topic = self.image.topics.get(topic_id)
        return "" if topic is None else topic.name

    def take_told(self) -> list[Told]:
        told = self.cluster.world.told[self._told :]
        self._told = len(self.cluster.world.told)
        return [Told(node_id, one.kind, one.fields) for _, node_id, one in told]

    def _look_at_epochs(self) -> None:
        """Every node's own picture: what it once saw of an epoch it must never see less of."""
        for node_id in self.cluster.living():
            cluster = self.cluster.process(node_id).node.cluster
            if not self.cluster.is_running(node_id):
                continue  # it is still reading what it had
            self._note(node_id, "controller epoch", cluster.leader_epoch)
            for topic, index, partition in cluster.image.partitions():
                self._note(node_id, f"leader epoch of {topic.name}-{index}", partition.leader_epoch)
                self._note(node_id, f"partition epoch of {topic.name}-{index}", partition.partition_epoch)

    def _note(self, node_id: int, what: str, epoch: int) -> None:
        highest = self._highest.get((node_id, what), -1)
        if epoch < highest:
            self._went_back.append(f"node {node_id}: the {what} went from {highest} to {epoch}")
        self._highest[node_id, what] = max(highest, epoch)

    def epochs_that_went_back(self) -> list[str]:
        return list(self._went_back)

    # --- clients ---

    def create_topic(self, topic: str, assignment: Sequence[Sequence[int]], configs: Mapping[str, str]) -> str:
        error = self._decide(
            lambda then: self._admin.create_topic(topic, assignment, configs, then), lambda one: one.topics[0]
        )
        if not error:
            replicas = sorted({node_id for one in assignment for node_id in one})
            ready = [one for one in replicas if self.is_serving(one)]
            self._run_until(lambda: all(self._hosts(one, topic) for one in ready), "the topic is on its nodes")
            self.topic = (topic, 0)
        return error

    def _hosts(self, node_id: int, topic: str) -> bool:
        node = self.cluster.process(node_id).node
        known = node.image.topic(topic)
        return known is not None and all(
            (topic, index) in node.replicas.partitions
            for index, partition in known.partitions.items()
            if node_id in partition.replicas
        )

    def alter_topic(self, topic: str, configs: Mapping[str, str]) -> str:
        return self._decide(
            lambda then: self._admin.alter_topic(topic, configs, then), lambda response: response.responses[0]
        )

    def elect(self, kind: str, topic: str, partitions: Sequence[int]) -> str:
        def worst(response: Any) -> Any:
            results = [one for topic in response.replica_election_results for one in topic.partition_result]
            return max(results, key=lambda one: one.error_code != ErrorCode.ELECTION_NOT_NEEDED and one.error_code)

        return self._decide(lambda then: self._admin.elect(ELECTIONS[kind], topic, partitions, then), worst)

    def _decide(self, ask: Callable[[Callable[[Any], None]], None], part: Callable[[Any], Any]) -> str:
        answers: list[Any] = []
        ask(answers.append)
        self._run_until(lambda: bool(answers), "the controller answers")
        code = ErrorCode(part(answers[0]).error_code)
        return "" if code is ErrorCode.NONE else code.name

    def add_producer(self, name: str, settings: Mapping[str, str]) -> None:
        world, brokers = self.cluster.world, self.cluster.brokers
        self._producers[name] = Producer(world, name, brokers, ProducerSettings.from_words(settings))

    def send(self, name: str, topic: str, partition: int, value: str) -> None:
        self._producers[name].send(topic, partition, value)

    def ledger(self, name: str) -> Sequence[Entry]:
        return self._producers[name].ledger

    def unsettled(self, name: str) -> int:
        return len(self._producers[name].unsettled)

    def counts(self, name: str) -> Counts:
        producer = self._producers[name]
        return Counts(dict(producer.errors), producer.retries)

    def add_consumer(self, name: str, rack: str, group: str, reports: bool) -> None:
        if group:
            self._groups[name] = (group, reports)
        self._consumers[name] = Consumer(self.cluster.world, name, self.cluster.brokers, rack)

    def consume(self, name: str, topic: str, partition: int) -> Fetched:
        consumer = self._consumers[name]
        already = len(consumer.seen)
        answers: list[FetchAnswer] = []
        consumer.read_on(topic, partition, answers.append)
        self._run_until(lambda: bool(answers), f"{name} reads")
        answer = answers[0]
        answer.reads = consumer.seen[already:]
        group, reports = self._groups.get(name, ("", False))
        if reports:
            self._ask_group("report", group, topic, partition, consumer.position)
        return _fetched(answer, answer.reads[-1].node_id if answer.reads else consumer.preferred_replica)

    def commit(self, name: str, topic: str, partition: int) -> None:
        self._ask_group("commit", self._groups[name][0], topic, partition, self._consumers[name].position)

    def group_positions(self, group: str, topic: str, partition: int) -> GroupPositions:
        view = self.partition(topic, partition)
        return GroupPositions(
            self._ask_group("committed", group, topic, partition),
            self._ask_group("reported", group, topic, partition),
            None if view.leader < 0 else view.lane(view.leader).high_watermark,
            None if view.leader < 0 else view.lane(view.leader).end_offset,
        )

    def _ask_group(self, what: str, *arguments: Any) -> int | None:
        answers: list[int | None] = []
        getattr(self._group_client, what)(*arguments, answers.append)
        self._run_until(lambda: bool(answers), "the coordinator answers")
        return answers[0]

    def begin_fetch(self, name: str, node_id: int, topic: str, partition: int, offset: int, epoch: int) -> None:
        answers = self._fetches[name] = []
        consumer = self._consumers[name]
        consumer.fetch(
            node_id, topic, partition, offset, epoch, lambda answer: answers.append(_fetched(answer, node_id))
        )

    def end_fetch(self, name: str) -> Fetched:
        self._run_until(lambda: bool(self._fetches[name]), f"{name}'s fetch is answered")
        return self._fetches[name][0]

    def list_offset(self, name: str, node_id: int, topic: str, partition: int, at: int, version: int) -> str:
        answers: list[str] = []

        def answered(code: ErrorCode, offset: int) -> None:
            answers.append(str(offset) if code is ErrorCode.NONE else code.name)

        self._consumers[name].list_offset(node_id, topic, partition, at, version, answered)
        self._run_until(lambda: bool(answers), f"{name} is told an offset")
        return answers[0]

    # --- faults ---

    def hold(self, source: Place, target: Place, kind: str) -> None:
        self.cluster.world.network.hold(source, target, _kinds(kind))

    def let(self, source: Place, target: Place, kind: str, count: int | None) -> None:
        self.cluster.world.network.let(source, target, _kinds(kind), count)

    def release(self, source: Place, target: Place, kind: str) -> None:
        self.cluster.world.network.release(source, target, _kinds(kind))

    def cut(self, source: Place, target: Place, kind: str) -> None:
        self.cluster.world.network.cut(source, target, _kinds(kind))

    def mend(self, source: Place, target: Place, kind: str) -> None:
        self.cluster.world.network.mend(source, target, _kinds(kind))

    def slow(self, source: Place, target: Place, kind: str, extra_ms: int) -> None:
        self.cluster.world.network.slow(source, target, extra_ms, _kinds(kind))

    def heal(self) -> None:
        self.cluster.world.network.heal()

    def kill(self, node_id: int) -> None:
        self.cluster.world.kill(node_id)

    def power_off(self, node_id: int) -> None:
        self.cluster.world.power_loss(node_id)

    def wipe(self, node_id: int) -> None:
        self.cluster.wipe(node_id)

    def start_node(self, node_id: int) -> None:
        self.cluster.world.start(node_id)

    def stop_node(self, node_id: int) -> None:
        process = self.cluster.process(node_id)
        self.cluster.world.stop(node_id)
        self._run_until(lambda: not process.alive, f"node {node_id} stops")

    def pause(self, node_id: int) -> None:
        self.cluster.world.pause(node_id)

    def resume(self, node_id: int) -> None:
        self.cluster.world.resume(node_id)

    def set_clock(self, node_id: int, by_ms: int) -> None:
        self.cluster.world.hosts[node_id].clock.jump(self.now_ms, by_ms)


def _kinds(kind: str) -> Sequence[str]:
    return KINDS if kind == "both" else (kind,)


def _fetched(answer: FetchAnswer, node_id: int) -> Fetched:
    return Fetched(
        "" if answer.code is ErrorCode.NONE else answer.code.name,
        tuple(StoredRecord(one.offset, one.epoch, one.value) for one in answer.reads),
        answer.high_watermark,
        answer.waited_ms,
        node_id,
    )
