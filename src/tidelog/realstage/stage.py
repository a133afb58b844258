"""The stage of real processes: the same scripts, on nodes that run, with confluent-kafka as the client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Self

from tidelog.client.admin import AlterOperation, ResourceType, alter_configs, create_topic
from tidelog.client.client import Client
from tidelog.client.cluster_admin import elect_leaders
from tidelog.client.groups import report_positions
from tidelog.errors import ErrorCode, KafkaError
from tidelog.ledger import Entry
from tidelog.realstage.clients import RealConsumer, RealProducer
from tidelog.realstage.frame_links import FrameLinks
from tidelog.realstage.nodes import RealNodes
from tidelog.realstage.probes import Probe
from tidelog.runtime.cluster_plan import HOST
from tidelog.sim.network import Message
from tidelog.sim.stage import Counts, Fetched, GroupPositions, PartitionView, Place, Plan, Told, Traffic
from tidelog.sim.wording import describe
from tidelog.wire.api_table import ApiKey

START_S = 60.0
PATIENCE_MS = 60_000
HEARD_MS = 2_000
LOOK_EVERY_S = 0.02
ADMIN_TIMEOUT_MS = 30_000


class RealStage:
    """See the module. A cluster lives in a directory of its own and is gone with the stage."""

    patience_ms = 5_000
    """What a script expects needs its time here: a message that was let through arrives when it arrives."""

    def __init__(self) -> None:
        self._everything = ExitStack()
        self._nodes: RealNodes
        self._links: FrameLinks
        self._topic = ("", 0)
        self._topic_names: dict[bytes, str] = {}
        self._producers: dict[str, RealProducer] = {}
        self._consumers: dict[str, RealConsumer] = {}
        self._reports: dict[str, bool] = {}
        self._probes: dict[str, Probe] = {}
        self._traffic: list[Traffic] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        """Clients first: they would complain about nodes that go."""
        closing: list[Callable[[], None]] = [one.close for one in self._producers.values()]
        closing += [one.close for one in self._consumers.values()]
        closing += [one.close for one in self._probes.values()]
        for close in closing:
            close()
        for clients in (self._producers, self._consumers, self._probes):
            clients.clear()
        self._everything.close()

    @property
    def now_ms(self) -> int:
        """The time of this machine."""
        return int(time.time() * 1000)

    @now_ms.setter
    def now_ms(self, _value: int) -> None:
        raise AttributeError("time passes by itself")

    def start(self, plan: Plan) -> None:
        self._end()
        self._everything = ExitStack()
        directory = self._everything.enter_context(tempfile.TemporaryDirectory(prefix="tidelog-scenario-"))
        self._links = FrameLinks(self._passed)
        self._everything.callback(self._links.close)
        self._nodes = self._everything.enter_context(RealNodes(directory, plan, self._links))
        self._topic, self._traffic = ("", 0), []
        self._nodes.cluster.start()
        self._nodes.cluster.wait_ready(START_S)

    def wait(self, duration_ms: int) -> None:
        deadline = time.monotonic() + duration_ms / 1000
        while (left := deadline - time.monotonic()) > 0:
            self._poll()
            time.sleep(min(left, LOOK_EVERY_S))
        self._poll()

    def wait_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        deadline = time.monotonic() + within_ms / 1000
        self._poll()
        while not condition():
            if time.monotonic() > deadline:
                return False
            self._poll()
            time.sleep(LOOK_EVERY_S)
        return True

    def _poll(self) -> None:
        for producer in self._producers.values():
            producer.poll()
        self._nodes.cluster.require_alive()

    # --- looking ---

    def partition(self, topic: str, index: int) -> PartitionView:
        return self._nodes.partition(topic, index)

    def leaders(self, topic: str) -> list[int]:
        return [int(one["leader"]) for one in self._nodes.newest_image(topic)["partitions"]]

    def controller(self) -> tuple[int, int] | None:
        return self._nodes.controller()

    def is_serving(self, node_id: int) -> bool:
        return self._nodes.is_running(node_id) and not self.is_fenced(node_id)

    def is_fenced(self, node_id: int) -> bool:
        brokers = {one["node"]: one["fenced"] for one in self._nodes.newest_image("")["brokers"]}
        return bool(brokers.get(node_id, True))

    def log_bytes(self, node_id: int, topic: str, index: int) -> bytes:
        return self._nodes.log_bytes(node_id, topic, index)

    def read_file(self, node_id: int, path: str) -> str:
        try:
            with open(os.path.join(self._nodes.data_directory(node_id), path), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def take_traffic(self) -> list[Traffic]:
        traffic, self._traffic = self._traffic, []
        return traffic

    def _passed(self, message: Message) -> None:
        """On the thread of the links: a message is delivered."""
        if isinstance(message.source, int) and isinstance(message.target, int):
            text = describe(message, lambda topic_id: self._topic_names.get(topic_id, ""), *self._topic)
            if text is not None:
                self._traffic.append(Traffic(message.source, message.target, text))
        elif message.api_key == ApiKey.PRODUCE and not message.is_request:
            producer = self._producers.get(str(message.target))
            codes = [one.error_code for topic in message.body.responses for one in topic.partition_responses]
            if producer is not None:
                producer.errors.update(ErrorCode(code).name for code in codes if code)

    def take_told(self) -> list[Told]:
        return self._nodes.take_told()

    def epochs_that_went_back(self) -> list[str]:
        return list(self._nodes.went_back)

    # --- clients ---

    def _client(self) -> Client:
        """To those brokers that can answer."""
        cluster = self._nodes.cluster
        answering = [one for one in self._nodes.brokers if one not in cluster.down and one not in cluster.paused]
        bootstrap = ",".join(f"{HOST}:{self._nodes.entrances[one]}" for one in answering)
        return Client(bootstrap, client_id="admin", timeout_ms=ADMIN_TIMEOUT_MS)

    def create_topic(self, topic: str, assignment: Sequence[Sequence[int]], configs: Mapping[str, str]) -> str:
        try:
            with self._client() as client:
                create_topic(client, topic, assignments=dict(enumerate(assignment)), configs=configs)
        except KafkaError as error:
            return error.code.name
        counts = {one: sum(one in replicas for replicas in assignment) for row in assignment for one in row}
        ready = [one for one in counts if self.is_serving(one)]
        if not self.wait_until(lambda: all(self._nodes.hosts(one, topic, counts[one]) for one in ready), PATIENCE_MS):
            raise TimeoutError(f"{topic} is on its nodes")
        self._topic_names[bytes.fromhex(self._nodes.newest_image(topic)["topic_id"])] = topic
        self._topic = (topic, 0)
        return ""

    def alter_topic(self, topic: str, configs: Mapping[str, str]) -> str:
        changes = [(name, AlterOperation.SET, value) for name, value in configs.items()]
        try:
            with self._client() as client:
                alter_configs(client, ResourceType.TOPIC, topic, changes)
        except KafkaError as error:
            return error.code.name
        # The controller has it; brokers hear of it a moment later, but for one that is cut off.
        known = max(self._metadata_offsets(), default=-1)
        self.wait_until(lambda: all(one >= known for one in self._metadata_offsets()), HEARD_MS)
        return ""

    def _metadata_offsets(self) -> list[int]:
        return [int(image["metadata_offset"]) for image in self._nodes.images("").values()]

    def elect(self, kind: str, topic: str, partitions: Sequence[int]) -> str:
        with self._client() as client:
            outcomes = elect_leaders(client, kind, [(topic, one) for one in partitions])
        errors = [one.code for one in outcomes.values() if one is not None]
        return next((one.name for one in errors if one is not ErrorCode.ELECTION_NOT_NEEDED), "")

    def add_producer(self, name: str, settings: Mapping[str, str]) -> None:
        self._producers[name] = RealProducer(name, self._nodes.bootstrap, settings)

    def send(self, name: str, topic: str, partition: int, value: str) -> None:
        self._producers[name].send(topic, partition, value)

    def ledger(self, name: str) -> Sequence[Entry]:
        return self._producers[name].entries

    def unsettled(self, name: str) -> int:
        return self._producers[name].unsettled

    def counts(self, name: str) -> Counts:
        return Counts(dict(self._producers[name].errors), self._producers[name].retries)

    def add_consumer(self, name: str, rack: str, group: str, reports: bool) -> None:
        self._consumers[name] = RealConsumer(name, self._nodes.bootstrap, rack, group)
        self._reports[name] = bool(group) and reports

    def consume(self, name: str, topic: str, partition: int) -> Fetched:
        begun_ms = self.now_ms
        consumer = self._consumers[name]
        records, high_watermark = consumer.read_on(topic, partition)
        if self._reports[name]:
            with self._client() as client:
                report_positions(client, consumer.group, {(topic, partition): consumer.position})
        return Fetched("", tuple(records), high_watermark, self.now_ms - begun_ms, -1)

    def commit(self, name: str, topic: str, partition: int) -> None:
        self._consumers[name].commit(topic, partition)

    def group_positions(self, group: str, topic: str, partition: int) -> GroupPositions:
        """What the command prints, word for word."""
        words = ["groups", "describe", group, "--json", "--bootstrap", self._nodes.bootstrap]
        answer = subprocess.run(
            [sys.executable, "-m", "tidelog", *words], capture_output=True, text=True, check=True, timeout=60
        )
        rows = json.loads(answer.stdout)[0]["partitions"]
        row = next(one for one in rows if (one["topic"], one["partition"]) == (topic, partition))
        current = None if row["position"] == "unknown" else row["position"]
        return GroupPositions(row["committed"], current, row["high_watermark"], row["log_end"])

    def _probe(self, name: str) -> Probe:
        return self._probes.setdefault(name, Probe(name, self._nodes.entrances))

    def begin_fetch(self, name: str, node_id: int, topic: str, partition: int, offset: int, epoch: int) -> None:
        self._probe(name).begin_fetch(node_id, topic, partition, offset, epoch)

    def end_fetch(self, name: str) -> Fetched:
        return self._probe(name).end_fetch()

    def list_offset(self, name: str, node_id: int, topic: str, partition: int, at: int, version: int) -> str:
        return self._probe(name).list_offset(node_id, topic, partition, at, version)

    # --- faults ---

    def hold(self, source: Place, target: Place, kind: str) -> None:
        self._links.hold(source, target, kind)

    def let(self, source: Place, target: Place, kind: str, count: int | None) -> None:
        """There must be something to let: it is waited for."""
        self.wait_until(lambda: self._links.waiting(source, target, kind) > 0, self.patience_ms)
        self._links.let(source, target, kind, count)

    def release(self, source: Place, target: Place, kind: str) -> None:
        self._links.release(source, target, kind)

    def cut(self, source: Place, target: Place, kind: str) -> None:
        self._links.cut(source, target, kind)

    def mend(self, source: Place, target: Place, kind: str) -> None:
        self._links.mend(source, target, kind)

    def slow(self, source: Place, target: Place, kind: str, extra_ms: int) -> None:
        self._links.slow(source, target, kind, extra_ms)

    def heal(self) -> None:
        self._links.heal()

    def kill(self, node_id: int) -> None:
        self._nodes.cluster.kill(node_id)

    def start_node(self, node_id: int) -> None:
        self._nodes.forget_epochs(node_id)
        self._nodes.cluster.start(node_id)

    def stop_node(self, node_id: int) -> None:
        self._nodes.cluster.stop(node_id)

    def pause(self, node_id: int) -> None:
        self._nodes.cluster.pause(node_id)

    def resume(self, node_id: int) -> None:
        self._nodes.cluster.resume(node_id)

    def power_off(self, node_id: int) -> None:
        raise ValueError("a machine cannot be cut off its power from here: simulated only")

    def wipe(self, node_id: int) -> None:
        raise ValueError("a disk is replaced on simulated clusters only")

    def set_clock(self, node_id: int, by_ms: int) -> None:
        raise ValueError("the clock of a real machine is not ours to set: simulated only")
