"""Whatever brokers do and people ask for, in any order: the invariants hold, and the log says everything."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.controller.world import World, directory
from tidelog.controller import MetadataImage
from tidelog.controller.records import PartitionChangeRecord, RegisterBrokerRecord
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.wire.messages.delete_topics import DeleteTopicsRequest
from tidelog.wire.messages.elect_leaders import ElectLeadersRequest
from tidelog.wire.messages.unregister_broker import UnregisterBrokerRequest

BROKERS = (1, 2, 3, 4)
NAMES = ("a", "b")
broker_ids = st.sampled_from(BROKERS)
names = st.sampled_from(NAMES)


class Cluster(RuleBasedStateMachine):
    """Four brokers, two topic names, and everything that can happen to them."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World = World()
        self.epochs: dict[tuple[bytes, int], tuple[int, int]] = {}
        self.leaders: dict[tuple[bytes, int, int], int] = {}
        self.shadow = MetadataImage()
        self.read = 0

    @initialize(
        elr=st.booleans(), min_isr=st.integers(1, 3), level=st.sampled_from([30, 25, 17, 11]), seed=st.integers(0, 99)
    )
    def begin(self, elr: bool, min_isr: int, level: int, seed: int) -> None:
        features = {"metadata.version": level}
        if elr and level >= 23:
            features["eligible.leader.replicas.version"] = 1
        self.world = World(
            BROKERS,
            feature_levels=features,
            seed=seed,
            min_insync_replicas=min_isr,
            leader_imbalance_check_interval_seconds=5,
        )

    def up(self) -> list[int]:
        return [each.broker_id for each in self.world.image.brokers.values() if not each.fenced]

    @rule(name=names, partitions=st.integers(1, 3), factor=st.integers(1, 4), unclean=st.booleans())
    def create(self, name: str, partitions: int, factor: int, unclean: bool) -> None:
        self.world.create(name, partitions, factor, unclean_leader_election_enable=str(unclean).lower())

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.world.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topic_names=[name]), 5)

    @rule(broker_id=broker_ids)
    def crash(self, broker_id: int) -> None:
        if broker_id in self.up():
            self.world.crash(broker_id)

    @rule(broker_id=broker_ids)
    def cut(self, broker_id: int) -> None:
        self.world.controller.connection_lost(broker_id)
        self.world.pass_ms(300)

    @rule(broker_id=broker_ids)
    def stop(self, broker_id: int) -> None:
        if broker_id in self.up():
            self.world.stop(broker_id)

    @rule(broker_id=broker_ids)
    def ask_to_stop(self, broker_id: int) -> None:
        if broker_id in self.up():
            self.world.beat(broker_id, want_shut_down=True)

    @rule(broker_id=broker_ids, clean=st.booleans(), wiped=st.booleans(), serve=st.booleans())
    def restart(self, broker_id: int, clean: bool, wiped: bool, serve: bool) -> None:
        known = self.world.image.brokers.get(broker_id)
        if wiped:
            self.world.directories[broker_id] = [directory(broker_id, self.world.lives[broker_id] % 200 + 1)]
        answer = self.world.register(broker_id, clean=clean and known is not None)
        if answer.error_code == 0 and serve:
            self.world.beat(broker_id)

    @rule(broker_id=broker_ids)
    def unregister(self, broker_id: int) -> None:
        self.world.ask(ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=broker_id))

    @rule(name=names, members=st.sets(broker_ids))
    def alter(self, name: str, members: set[int]) -> None:
        topic = self.world.image.topic(name)
        if topic is None or topic.partitions[0].leader == -1:
            return
        partition = topic.partitions[0]
        isr = [each for each in partition.replicas if each in members or each == partition.leader]
        self.world.alter_isr(isr, name=name)

    @rule(name=names, replicas=st.none() | st.lists(broker_ids, min_size=1, unique=True))
    def move(self, name: str, replicas: list[int] | None) -> None:
        partition = ReassignablePartition(partition_index=0, replicas=replicas)
        topic = ReassignableTopic(name=name, partitions=[partition])
        self.world.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsRequest(topics=[topic]), 1)

    @rule(kind=st.integers(0, 1))
    def elect(self, kind: int) -> None:
        self.world.ask(ApiKey.ELECT_LEADERS, ElectLeadersRequest(election_type=kind, topic_partitions=None), 2)

    @rule(name=names, setting=st.sampled_from(["min_insync_replicas=2", "unclean_leader_election_enable=true"]))
    def configure(self, name: str, setting: str) -> None:
        key, _, value = setting.partition("=")
        self.world.set_config(2, name, 0, **{key: value})

    @rule(milliseconds=st.integers(1, 6_000))
    def wait(self, milliseconds: int) -> None:
        self.world.pass_ms(milliseconds)
        self.world.beat_all(*self.up())

    @precondition(lambda self: len(self.world.log) > 10)
    @rule()
    def change_controller(self) -> None:
        image = self.world.replayed()
        self.world.controller.deactivate()
        self.world.controller.activate(image, self.world.controller.epoch + 1)
        self.world.commit()

    @invariant()
    def everything_holds(self) -> None:
        self.world.check()
        for topic, partition_id, partition in self.world.image.partitions():
            place = (topic.topic_id, partition_id)
            before = self.epochs.get(place, (0, 0))
            now = (partition.leader_epoch, partition.partition_epoch)
            assert now[0] >= before[0]
            assert now[1] >= before[1]
            self.epochs[place] = now

    @invariant()
    def one_leader_an_epoch(self) -> None:
        for topic, partition_id, partition in self.world.image.partitions():
            key = (topic.topic_id, partition_id, partition.leader_epoch)
            assert self.leaders.setdefault(key, partition.leader) == partition.leader

    @invariant()
    def every_record_is_safe(self) -> None:
        """Who leads without being reported unclean had every committed record, and a returning life has nothing yet."""
        for offset in range(self.read, len(self.world.log)):
            record = self.world.log[offset][0]
            if isinstance(record, PartitionChangeRecord) and record.leader >= 0 and record.leader_recovery_state != 1:
                before = self.shadow.topics[record.topic_id].partitions[record.partition_id]
                trusted = (*before.isr, *before.eligible_leader_replicas)
                joined = record.isr is not None and len(record.isr) > 1 and record.leader in record.isr
                recovering = before.leader_recovery_state == 1 and record.isr == [record.leader]
                assert record.leader in trusted or joined or recovering, (before, record)
            self.shadow.apply(record)
            if isinstance(record, RegisterBrokerRecord) and record.broker_epoch == offset:
                self.check_returned(record.broker_id)
        self.read = len(self.world.log)

    def check_returned(self, broker_id: int) -> None:
        for _, _, partition in self.shadow.partitions():
            assert partition.leader != broker_id
            if self.shadow.elr_enabled or len(partition.isr) > 1:
                assert broker_id not in partition.isr


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
