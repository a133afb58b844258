"""The broker in a node: makes the replicas it holds follow what the metadata says.

Nothing is opened before the metadata has caught up with this broker's own registration, so that a restart never acts on
an old picture. From then on every committed change is applied as it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.config import NodeConfig, TopicConfig
from tidelog.controller import levels
from tidelog.controller.delta import ImageDelta
from tidelog.controller.entities import MIGRATING_DIRECTORY, NO_LEADER, UNASSIGNED_DIRECTORY, Topic
from tidelog.controller.entities import Partition as PartitionImage
from tidelog.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from tidelog.coordination.coordinator import Coordinator
from tidelog.outbox import Outbox
from tidelog.replica import stopping
from tidelog.replica.damage import DamagedReplicas
from tidelog.replica.directory_assignments import DirectoryAssignments
from tidelog.replica.fetcher import Fetcher
from tidelog.replica.housekeeping import Housekeeping
from tidelog.replica.partition import Partition, Role
from tidelog.replica.replicas import Replicas
from tidelog.wire.uuids import LOST_DIRECTORY, ZERO_UUID

STILL_LISTED_MS = 3_000
"""How long clients are still told where a fenced broker was."""


class Broker:
    """Turns changes of the metadata into changes of the replicas and of the settings in force."""

    def __init__(
        self,
        node_id: int,
        config: NodeConfig,
        replicas: Replicas,
        outbox: Outbox,
        image: Callable[[], MetadataImage],
        broker_epoch: Callable[[], int],
        assignments: DirectoryAssignments,
    ) -> None:
        self.node_id = node_id
        self.static_config = config
        """What the properties file says."""
        self.config = config
        """What is in force now: the same with the cluster's and this broker's run-time settings over it."""
        self._inter_broker_listener = config.inter_broker_listener
        self.replicas = replicas
        self._outbox = outbox
        self._image = image
        self._broker_epoch = broker_epoch
        self._assignments = assignments
        self._topic_configs: dict[str, TopicConfig] = {}
        self.coordinators: dict[str, Coordinator[Any]] = {}
        """By the topic that holds their state."""
        self._fenced_at_ms: dict[int, int] = {}
        """When each broker was last seen to be fenced."""
        self._damage = DamagedReplicas(replicas, assignments.assign, self._withdraw, self._has_successor)
        self._fetchers: dict[int, Fetcher] = {}
        """The streams that copy partitions, by the leader's node id."""

    # --- settings ---

    @property
    def cluster_overrides(self) -> dict[str, str]:
        """Run-time settings of all brokers."""
        return self._image().config(BROKER_RESOURCE, "")

    @property
    def broker_overrides(self) -> dict[str, str]:
        """Run-time settings of this broker alone."""
        return self._image().config(BROKER_RESOURCE, str(self.node_id))

    def topic_overrides(self, topic: str) -> dict[str, str]:
        """What was set on a topic."""
        return self._image().config(TOPIC_RESOURCE, topic)

    def topic_config(self, topic: str) -> TopicConfig:
        """The settings in force for a topic."""
        config = self._topic_configs.get(topic)
        if config is None:
            config = TopicConfig.from_overrides(self.topic_overrides(topic), self.config)
            self._topic_configs[topic] = config
        return config

    def _reconfigure(self, delta: ImageDelta | None) -> None:
        """Put changed settings in force; a broker-wide change reaches every topic."""
        changed = {kind for kind, _ in delta.configs} if delta is not None else {BROKER_RESOURCE}
        if BROKER_RESOURCE in changed:
            self.config = self.static_config.with_dynamic({**self.cluster_overrides, **self.broker_overrides})
            self.replicas.surroundings.config = self.config
            self._topic_configs.clear()
        elif delta is not None:
            for kind, name in delta.configs:
                if kind == TOPIC_RESOURCE:
                    self._topic_configs.pop(name, None)
        if not changed:
            return
        topics = {topic for topic, _ in self.replicas.partitions}
        self.replicas.configure({topic: self.topic_config(topic) for topic in topics})

    # --- replicas ---

    def load(self) -> None:
        """Open every replica this broker holds, for the first time in this life."""
        image = self._image()
        self._reconfigure(None)

        def is_ours(topic: str, index: int, topic_id: bytes | None) -> bool:
            known = image.topic(topic)
            return (
                known is not None
                and topic_id in (known.topic_id, None)
                and index in known.partitions
                and self.node_id in known.partitions[index].replicas
            )

        for stray in self.replicas.set_aside_strays(is_ours):
            self._outbox.tell("replica-set-aside", "warning", directory=stray, reason="not in the cluster's metadata")
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                self._follow(topic, index, partition)
        Housekeeping(self.replicas).start()
        self.replicas.is_loaded = True

    def apply(self, delta: ImageDelta) -> None:
        """Act on a committed change."""
        image = self._image()
        for topic in delta.topics_deleted.values():
            self._topic_configs.pop(topic.name, None)
            for index in topic.partitions:
                held = self.replicas.partitions.get((topic.name, index))
                if held is None:
                    self._damage.drop(topic.name, index)
                elif held.topic_id == topic.topic_id:
                    self._remove(held)
        if delta.configs:
            self._reconfigure(delta)
        for topic_id, partitions in delta.partitions.items():
            changed = image.topics.get(topic_id)
            for index, known in partitions.items():
                partition = changed.partitions.get(index) if changed is not None else None
                if changed is not None and partition is not None:
                    is_new = known is None or self.node_id not in known.replicas
                    self._follow(changed, index, partition, is_new)
        for broker_id, before in delta.brokers.items():
            after = image.brokers.get(broker_id)
            if before is not None and not before.fenced and after is not None and after.fenced:
                self._fenced_at_ms[broker_id] = self._outbox.now_ms
        if delta.brokers:
            for replica in self.replicas.partitions.values():
                self.replicas.grow_isr(replica)
        if delta.configs:  # fewer replicas may be asked for; not before those are gone that another leads by now
            for replica in self.replicas.partitions.values():
                replica.advance_high_watermark()

    def _follow(self, topic: Topic, index: int, partition: PartitionImage, is_new: bool = False) -> None:
        """Make one replica what the metadata says it is; `is_new` when it has not been this broker's before."""
        held = self.replicas.partitions.get((topic.name, index))
        if self.node_id not in partition.replicas:
            if held is None:
                self._damage.drop(topic.name, index)
            elif held.topic_id == topic.topic_id:
                self._remove(held)
            return
        replica = self._open(topic, index, partition, is_new)
        if replica is None:
            self._tell_unreachable(topic, index, partition)
            return
        directory_id = partition.directory_of(self.node_id)
        is_copied_anew = self._damage.is_copied_anew(replica)
        if replica.directory_id != directory_id and not is_copied_anew:
            self._assignments.assign(topic.topic_id, index, replica.directory_id)
        before = (replica.leader_id, replica.leader_epoch)
        if partition.leader == self.node_id:
            self.stop_fetching(replica)
            replica.become_leader(partition.leader_epoch, partition.partition_epoch, partition.replicas, partition.isr)
            self.replicas.grow_isr(replica)  # what changed may be that a follower has its directory now
        elif (partition.leader, partition.leader_epoch) != before:
            self.stop_fetching(replica)
            replica.become_follower(partition.leader, partition.leader_epoch)
            if partition.leader >= 0:
                self._fetcher(partition.leader).add(replica)
        else:
            return
        self.role_changed(replica)

    def _tell_unreachable(self, topic: Topic, index: int, partition: PartitionImage) -> None:
        """Let the controller know that a replica is not served, where it does not know in which directory it is."""
        offline = [one.directory_id for one in self.replicas.directories if not one.online]
        offline = [LOST_DIRECTORY if one == ZERO_UUID else one for one in offline]  # not even its id can be read
        is_known = partition.directory_of(self.node_id) not in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)
        if offline and not is_known and (topic.name, index) not in self.replicas.damaged:
            held = self.replicas.partitions.get((topic.name, index))
            self._assignments.assign(topic.topic_id, index, offline[0] if held is None else held.directory_id)

    def _open(self, topic: Topic, index: int, partition: PartitionImage, is_new: bool) -> Partition | None:
        """The replica, opened where it is not yet; None while it may not be, or cannot."""
        directory_id = partition.directory_of(self.node_id)
        elr = partition.eligible_leader_replicas
        for _ in range(2):  # one that is found damaged now may be one that can be copied again at once
            if not self._damage.may_open(
                topic.name,
                topic.topic_id,
                index,
                directory_id,
                partition.leader,
                partition.replicas,
                partition.isr,
                elr,
            ):
                return None
            config = self.topic_config(topic.name)
            replica = self.replicas.host(topic.name, topic.topic_id, index, directory_id, config, is_new)
            if replica is not None or (topic.name, index) not in self.replicas.damaged:
                return replica
        return None

    def stop(self, broker_epoch: int, then: Callable[[], None]) -> None:
        """Lead, copy and coordinate nothing any more, close the logs, then continue.

        They are called whole: whoever wrote to them after that would be told so of records that nothing flushes.
        """
        for replica in self.replicas.partitions.values():
            self.stop_fetching(replica)
            if replica.role is not Role.OFFLINE:
                replica.become_follower(NO_LEADER, replica.leader_epoch)
            self.role_changed(replica)
        stopping.stop(self.replicas, broker_epoch, then)

    def _withdraw(self, replica: Partition) -> None:
        """A damaged replica is no longer copied, and nobody coordinates by it."""
        coordinator = self.coordinators.get(replica.topic)
        if coordinator is not None:
            coordinator.removed(replica)
        self.stop_fetching(replica)

    def _has_successor(self, topic: str, index: int) -> bool:
        """Whether another broker could lead a partition now without losing what is committed."""
        image = self._image()
        known = image.topic(topic)
        partition = None if known is None else known.partitions.get(index)
        if partition is None:
            return False
        trusted = {*partition.isr, *partition.eligible_leader_replicas} - {self.node_id}
        return any((broker := image.brokers.get(one)) is not None and broker.active for one in trusted)

    def role_changed(self, replica: Partition) -> None:
        """Tell the coordinator that lives in a topic's partitions, where the topic has one."""
        coordinator = self.coordinators.get(replica.topic)
        if coordinator is not None:
            coordinator.role_changed(replica)

    def _remove(self, replica: Partition) -> None:
        coordinator = self.coordinators.get(replica.topic)
        if coordinator is not None:
            coordinator.removed(replica)
        self._assignments.forget(replica.topic_id, replica.index)
        self._damage.forget(replica.topic, replica.index)
        self.stop_fetching(replica)
        self.replicas.remove(replica)

    # --- copying ---

    def _fetcher(self, leader_id: int) -> Fetcher:
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = Fetcher(self.node_id, leader_id, self._outbox, self.replicas, self._broker_epoch, self.address_of)
            self._fetchers[leader_id] = fetcher
        return fetcher

    def is_just_fenced(self, broker_id: int) -> bool:
        """Whether a broker has been out of service for so short a time that clients may still hold on to it."""
        fenced_at_ms = self._fenced_at_ms.get(broker_id)
        return fenced_at_ms is not None and self._outbox.now_ms - fenced_at_ms < STILL_LISTED_MS

    @property
    def has_doubts(self) -> bool:
        """Whether any leader is doubted."""
        return any(self.is_doubted(leader_id) for leader_id in self._fetchers)

    def is_doubted(self, leader_id: int) -> bool:
        """Whether the connection to a leader that we copy from broke just now, so that it is probably dead."""
        fetcher = self._fetchers.get(leader_id)
        return fetcher is not None and len(fetcher) > 0 and fetcher.doubted_until_ms > self._outbox.now_ms

    def stop_fetching(self, replica: Partition) -> None:
        """Copy it no longer: whatever comes next begins anew."""
        fetcher = self._fetchers.get(replica.leader_id)
        if fetcher is not None:
            fetcher.remove(replica)

    def is_half_known(self, broker_epoch: int) -> bool:
        """Whether this broker registered before metadata.version had log directories, and has it now (KIP-858)."""
        image = self._image()
        known = image.brokers.get(self.node_id)
        if known is None or known.epoch != broker_epoch or known.log_dirs:
            return False
        return levels.has_directories(image.metadata_version)

    def address_of(self, broker_id: int) -> tuple[int, str, int] | None:
        """Where another broker is reached by brokers; by a controller that is none, at the first address it told."""
        broker = self._image().brokers.get(broker_id)
        if broker is None:
            return None
        if self._inter_broker_listener:
            endpoint = broker.endpoint(self._inter_broker_listener)
        else:
            endpoint = next(iter(broker.endpoints), None)
        return None if endpoint is None else (broker_id, endpoint.host, endpoint.port)
