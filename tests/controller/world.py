"""A controller with a log in memory and brokers that do what a test says: the world these tests live in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidelog.config import NodeConfig
from tidelog.controller import Controller, MetadataImage, Partition, records_for_snapshot
from tidelog.controller.decide import Context
from tidelog.controller.entities import Topic
from tidelog.controller.levels import SUPPORTED_FEATURES
from tidelog.controller.records import FeatureLevelRecord, VersionedRecord
from tidelog.effects import Tell
from tidelog.errors import ErrorCode, KafkaError
from tidelog.outbox import Outbox
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages import alter_partition as ap
from tidelog.wire.messages import assign_replicas_to_dirs as dirs
from tidelog.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from tidelog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tidelog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.wire.stored import decode_metadata_record, encode_metadata_record

CLUSTER_ID = "tide-pool-cluster-0001"
NODE_ID = 100


def directory(broker_id: int, number: int = 1) -> bytes:
    """The id of a broker's n-th directory."""
    return bytes([0xD0, number]) + bytes(12) + broker_id.to_bytes(2, "big")


def incarnation(broker_id: int, life: int) -> bytes:
    return bytes([0x1A]) + life.to_bytes(7, "big") + broker_id.to_bytes(8, "big")


def features() -> list[Feature]:
    return [
        Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
    ]


class World:
    """One controller, its log and its brokers. Everything is committed at once unless `hold` is set."""

    def __init__(
        self,
        broker_ids: Iterable[int] = (),
        *,
        racks: Mapping[int, str] | None = None,
        feature_levels: Mapping[str, int] | None = None,
        seed: int = 7,
        **config: Any,
    ) -> None:
        self.config = NodeConfig(node_id=NODE_ID, **config)
        self.outbox = Outbox(seed)
        self.outbox.now_ms = 1_000_000
        self.log: list[VersionedRecord] = []
        self.hold = False
        self.leading = True
        self.lives: dict[int, int] = {}
        self.directories: dict[int, list[bytes]] = {}
        self.racks = dict(racks or {})
        self.told: list[Tell] = []
        self.controller = self.new_controller()
        bootstrap = None
        if feature_levels is not None:
            bootstrap = [FeatureLevelRecord(name=name, feature_level=level) for name, level in feature_levels.items()]
        self.controller.activate(MetadataImage(), 1, bootstrap)
        self.commit()
        for broker_id in broker_ids:
            self.start(broker_id)

    def new_controller(self) -> Controller:
        return Controller(
            NODE_ID,
            CLUSTER_ID,
            self.config,
            self.outbox,
            self.append,
            next_offset=lambda: len(self.log),
            kraft_version=lambda: 1,
        )

    def append(self, records: list[VersionedRecord]) -> int:
        if not self.leading:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "not the leader")
        # Through bytes: what a record's chosen version cannot say would be missing when the log is replayed.
        self.log += [decode_metadata_record(encode_metadata_record(record, version)) for record, version in records]
        return len(self.log) - 1

    def commit(self) -> None:
        self.controller.committed(len(self.log) - 1)
        self.told += [effect for effect in self.outbox.take_effects() if isinstance(effect, Tell)]

    # --- looking ---

    @property
    def image(self) -> MetadataImage:
        assert self.controller.image is not None
        return self.controller.image

    def replayed(self) -> MetadataImage:
        """The image that the whole log gives."""
        image = MetadataImage()
        image.apply_all(record for record, _ in self.log)
        return image

    def context(self, **more: Any) -> Context:
        return Context(
            self.config,
            self.outbox.chance,
            node_id=NODE_ID,
            cluster_id=CLUSTER_ID,
            next_offset=len(self.log),
            now_ms=self.outbox.now_ms,
            **more,
        )

    def topic(self, name: str = "t") -> Topic:
        topic = self.image.topic(name)
        assert topic is not None, name
        return topic

    def partition(self, name: str = "t", partition_id: int = 0) -> Partition:
        return self.topic(name).partitions[partition_id]

    def kinds(self) -> list[str]:
        return [tell.kind for tell in self.told]

    def last_told(self, kind: str) -> dict[str, Any]:
        return dict([tell for tell in self.told if tell.kind == kind][-1].fields)

    # --- acting ---

    def ask(self, api_key: int, body: Any, version: int = 0) -> Any:
        """Ask the controller; the answer, or None when it is held."""
        answers: list[Any] = []
        self.controller.ask(api_key, version, body, answers.append)
        if not self.hold:
            self.commit()
            assert len(answers) == 1
        return answers[0] if answers else None

    def pass_ms(self, milliseconds: int) -> None:
        """Let time pass, timer by timer."""
        end = self.outbox.now_ms + milliseconds
        while (wake := self.outbox.wake_at_ms) is not None and wake <= end:
            self.outbox.now_ms = max(self.outbox.now_ms, wake)
            self.outbox.run_due_timers()
            if not self.hold:
                self.commit()
        self.outbox.now_ms = end
        if not self.hold:
            self.commit()

    def registration(self, broker_id: int, **more: Any) -> BrokerRegistrationRequest:
        values: dict[str, Any] = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": incarnation(broker_id, self.lives.get(broker_id, 1)),
            "listeners": [Listener(name="PLAINTEXT", host="127.0.0.1", port=9000 + broker_id)],
            "features": features(),
            "rack": self.racks.get(broker_id),
            "log_dirs": list(self.directories.setdefault(broker_id, [directory(broker_id)])),
            "previous_broker_epoch": -1,
        }
        values.update(more)
        return BrokerRegistrationRequest(**values)

    def register(self, broker_id: int, *, clean: bool = False, **more: Any) -> Any:
        """Register a new life of a broker; `clean` proves a clean stop of the one before."""
        self.lives[broker_id] = self.lives.get(broker_id, 0) + 1
        if clean:
            more["previous_broker_epoch"] = self.image.brokers[broker_id].epoch
        return self.ask(ApiKey.BROKER_REGISTRATION, self.registration(broker_id, **more), 4)

    def beat(self, broker_id: int, **more: Any) -> Any:
        """A heartbeat of a broker that has read the whole log."""
        values: dict[str, Any] = {
            "broker_id": broker_id,
            "broker_epoch": self.image.brokers[broker_id].epoch,
            "current_metadata_offset": len(self.log) - 1,
        }
        values.update(more)
        return self.ask(ApiKey.BROKER_HEARTBEAT, BrokerHeartbeatRequest(**values), 1)

    def start(self, broker_id: int, *, clean: bool = False, **more: Any) -> None:
        """Register and unfence."""
        answer = self.register(broker_id, clean=clean, **more)
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        assert not self.beat(broker_id).is_fenced

    def beat_all(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self.beat(broker_id)

    def crash(self, broker_id: int) -> None:
        """The broker falls silent; the others go on until its session ends."""
        others = [each.broker_id for each in self.image.brokers.values() if not each.fenced]
        others.remove(broker_id)
        for _ in range(3):
            self.pass_ms(self.config.broker_session_timeout_ms // 2)
            self.beat_all(*others)
        assert self.image.brokers[broker_id].fenced

    def stop(self, broker_id: int) -> None:
        """A controlled shutdown, to its end."""
        for _ in range(5):
            answer = self.beat(broker_id, want_shut_down=True)
            if answer.should_shut_down:
                return
            self.beat_all(*(each.broker_id for each in self.image.brokers.values() if each.active))
        raise AssertionError("the broker may not stop")

    def create(
        self,
        name: str = "t",
        partitions: int = 1,
        factor: int = -1,
        *,
        replicas: list[list[int]] | None = None,
        version: int = 7,
        validate_only: bool = False,
        **configs: str | None,
    ) -> Any:
        """Create one topic; underscores in config names stand for dots."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
        topic.configs = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ]
        if replicas is not None:
            topic.num_partitions = topic.replication_factor = -1
            topic.assignments = [
                CreatableReplicaAssignment(partition_index=index, broker_ids=row) for index, row in enumerate(replicas)
            ]
        request = CreateTopicsRequest(topics=[topic], validate_only=validate_only)
        return self.ask(ApiKey.CREATE_TOPICS, request, version).topics[0]

    def alter_isr(self, isr: Iterable[int], *, name: str = "t", partition_id: int = 0, **more: Any) -> Any:
        """The leader proposes an ISR; the partition's answer."""
        partition = self.partition(name, partition_id)
        leader = more.pop("broker_id", partition.leader)
        epochs = more.pop("epochs", {})
        version = more.pop("version", 3)
        data = ap.AlterPartitionRequestPartitionData(
            partition_index=partition_id,
            leader_epoch=more.pop("leader_epoch", partition.leader_epoch),
            partition_epoch=more.pop("partition_epoch", partition.partition_epoch),
            leader_recovery_state=more.pop("leader_recovery_state", 0),
            new_isr=list(isr),
            new_isr_with_epochs=[
                ap.BrokerState(broker_id=each, broker_epoch=epochs.get(each, self._epoch(each))) for each in isr
            ],
        )
        assert not more
        topic = ap.AlterPartitionRequestTopicData(topic_id=self.topic(name).topic_id, partitions=[data])
        request = ap.AlterPartitionRequest(broker_id=leader, broker_epoch=self._epoch(leader), topics=[topic])
        answer = self.ask(ApiKey.ALTER_PARTITION, request, version)
        return answer.topics[0].partitions[0] if answer is not None and answer.topics else answer

    def _epoch(self, broker_id: int) -> int:
        broker = self.image.brokers.get(broker_id)
        return -1 if broker is None else broker.epoch

    def assign_directories(self, broker_id: int, places: Mapping[int, bytes], name: str = "t") -> None:
        """The broker tells where its replicas of a topic lie."""
        directories = [
            dirs.AssignReplicasToDirsRequestDirectoryData(
                id=place,
                topics=[
                    dirs.AssignReplicasToDirsRequestTopicData(
                        topic_id=self.topic(name).topic_id,
                        partitions=[dirs.AssignReplicasToDirsRequestPartitionData(partition_index=partition_id)],
                    )
                ],
            )
            for partition_id, place in places.items()
        ]
        request = dirs.AssignReplicasToDirsRequest(
            broker_id=broker_id, broker_epoch=self._epoch(broker_id), directories=directories
        )
        answer = self.ask(ApiKey.ASSIGN_REPLICAS_TO_DIRS, request)
        assert answer.error_code == 0
        for each in answer.directories:
            assert each.topics[0].partitions[0].error_code == 0

    def set_config(self, kind: int, resource: str, operation: int = 0, **configs: str | None) -> Any:
        """Change settings of one resource; the resource's answer."""
        changes = [
            AlterableConfig(name=key.replace("_", "."), config_operation=operation, value=value)
            for key, value in configs.items()
        ]
        request = IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(resource_type=kind, resource_name=resource, configs=changes)]
        )
        return self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1).responses[0]

    # --- checking ---

    def check(self) -> None:
        """What must hold after every step."""
        for topic, partition_id, partition in self.image.partitions():
            where = f"{topic.name}-{partition_id} {partition}"
            isr, elr = set(partition.isr), set(partition.eligible_leader_replicas)
            assert isr <= set(partition.replicas), where
            assert elr <= set(partition.replicas), where
            assert not isr & elr, where
            assert len(isr) == len(partition.isr), where
            assert len(set(partition.replicas)) == len(partition.replicas) == len(partition.directories), where
            if partition.leader != -1:
                assert partition.leader in isr, where
                assert self.image.brokers[partition.leader].active, where
            assert set(partition.adding_replicas) <= set(partition.replicas), where
            assert set(partition.removing_replicas) <= set(partition.replicas), where
        rebuilt = MetadataImage()
        rebuilt.apply_all(record for record, _ in records_for_snapshot(self.image))
        assert rebuilt == self.image
        assert self.replayed() == self.image
