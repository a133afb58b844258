"""What the metadata speaks of: brokers, controllers, topics, partitions.

A value here never changes; applying a record puts a new one in its place. So an image is copied by copying its maps, a
delta can keep what was there before, and a broker may hold on to what it saw.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.controller.records import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from tidelog.wire.uuids import ZERO_UUID

NO_LEADER = -1
LEADER_UNCHANGED = -2
"""In a PartitionChangeRecord. Any other leader there, even the present one, raises the leader epoch."""

RECOVERED = 0
RECOVERING = 1
"""The leader was elected uncleanly and has not reported yet that it has dealt with it (KIP-704)."""
RECOVERY_UNCHANGED = -1

MIGRATING_DIRECTORY = ZERO_UUID
UNASSIGNED_DIRECTORY = bytes(15) + b"\x01"
_RESERVED_DIRECTORY_IDS = 100


def is_reserved_directory(directory: bytes) -> bool:
    """Whether a directory id is one of those that Kafka keeps for meanings of its own (KIP-858)."""
    return directory[:8] == bytes(8) and int.from_bytes(directory[8:], "big") < _RESERVED_DIRECTORY_IDS


class _Value:
    """Equality and a readable form over the slots."""

    __slots__: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__slots__)
        return f"{type(self).__name__}({shown})"


class Endpoint(_Value):
    """Where a node listens under a listener's name."""

    __slots__ = ("host", "name", "port", "security_protocol")

    def __init__(self, name: str, host: str, port: int, security_protocol: int) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol


class Broker(_Value):
    """A registered broker. `epoch` is the offset of its registration and names this life of it (KIP-631)."""

    __slots__ = (
        "broker_id",
        "cordoned_log_dirs",
        "endpoints",
        "epoch",
        "features",
        "fenced",
        "in_controlled_shutdown",
        "incarnation_id",
        "log_dirs",
        "rack",
    )

    def __init__(
        self,
        broker_id: int,
        epoch: int,
        incarnation_id: bytes,
        endpoints: tuple[Endpoint, ...],
        features: dict[str, tuple[int, int]],
        rack: str | None,
        fenced: bool,
        in_controlled_shutdown: bool,
        log_dirs: tuple[bytes, ...],
        cordoned_log_dirs: tuple[bytes, ...],
    ) -> None:
        self.broker_id = broker_id
        self.epoch = epoch
        self.incarnation_id = incarnation_id
        self.endpoints = endpoints
        self.features = features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> Broker:
        """The broker a registration describes."""
        return cls(
            record.broker_id,
            record.broker_epoch,
            record.incarnation_id,
            tuple(Endpoint(each.name, each.host, each.port, each.security_protocol) for each in record.end_points),
            {each.name: (each.min_supported_version, each.max_supported_version) for each in record.features},
            record.rack,
            record.fenced,
            record.in_controlled_shutdown,
            tuple(record.log_dirs),
            tuple(record.cordoned_log_dirs or ()),
        )

    def to_record(self) -> RegisterBrokerRecord:
        """The registration that describes this broker as it is now."""
        return RegisterBrokerRecord(
            broker_id=self.broker_id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
                for each in self.endpoints
            ],
            features=[
                BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in self.features.items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.log_dirs),
            cordoned_log_dirs=list(self.cordoned_log_dirs) if self.cordoned_log_dirs else None,
        )

    @property
    def active(self) -> bool:
        """Whether it may be given leaderships: alive, and not about to stop."""
        return not self.fenced and not self.in_controlled_shutdown

    def changed(
        self,
        *,
        fenced: bool | None = None,
        in_controlled_shutdown: bool | None = None,
        log_dirs: tuple[bytes, ...] | None = None,
        cordoned_log_dirs: tuple[bytes, ...] | None = None,
    ) -> Broker:
        """The same life of the broker in another state."""
        return Broker(
            self.broker_id,
            self.epoch,
            self.incarnation_id,
            self.endpoints,
            self.features,
            self.rack,
            self.fenced if fenced is None else fenced,
            self.in_controlled_shutdown if in_controlled_shutdown is None else in_controlled_shutdown,
            self.log_dirs if log_dirs is None else log_dirs,
            self.cordoned_log_dirs if cordoned_log_dirs is None else cordoned_log_dirs,
        )

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where it listens under that name."""
        for endpoint in self.endpoints:
            if endpoint.name == listener:
                return endpoint
        return None

    def has_online(self, directory: bytes) -> bool:
        """Whether a replica in that directory can be served: it is online, or nobody knows yet where the replica is."""
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY) or not self.log_dirs:
            return True
        return directory in self.log_dirs

    @property
    def default_directory(self) -> bytes:
        """Where a new replica is known to go: the only directory, else not known before the broker says so."""
        return self.log_dirs[0] if len(self.log_dirs) == 1 else UNASSIGNED_DIRECTORY


class RegisteredController(_Value):
    """A controller as it registered (KIP-919)."""

    __slots__ = ("controller_id", "endpoints", "features", "incarnation_id", "zk_migration_ready")

    def __init__(self, record: RegisterControllerRecord) -> None:
        self.controller_id = record.controller_id
        self.incarnation_id = record.incarnation_id
        self.zk_migration_ready = record.zk_migration_ready
        self.endpoints = tuple(
            Endpoint(each.name, each.host, each.port, each.security_protocol) for each in record.end_points
        )
        self.features = {
            each.name: (each.min_supported_version, each.max_supported_version) for each in record.features
        }

    def to_record(self) -> RegisterControllerRecord:
        """The registration that describes this controller."""
        return RegisterControllerRecord(
            controller_id=self.controller_id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.zk_migration_ready,
            end_points=[
                ControllerEndpoint(
                    name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
                )
                for each in self.endpoints
            ],
            features=[
                ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in self.features.items()
            ],
        )


class Partition(_Value):
    """One partition as the controller decided it.

    Held by construction of every decision: the ISR and the ELR are parts of `replicas` and have nobody in common; the
    leader is in the ISR, or there is none; `leader_epoch` and `partition_epoch` only grow.
    """

    __slots__ = (
        "adding_replicas",
        "directories",
        "eligible_leader_replicas",
        "isr",
        "last_known_elr",
        "leader",
        "leader_epoch",
        "leader_recovery_state",
        "partition_epoch",
        "removing_replicas",
        "replicas",
    )

    def __init__(
        self,
        replicas: tuple[int, ...],
        directories: tuple[bytes, ...],
        isr: tuple[int, ...],
        leader: int,
        leader_epoch: int,
        partition_epoch: int,
        leader_recovery_state: int = RECOVERED,
        removing_replicas: tuple[int, ...] = (),
        adding_replicas: tuple[int, ...] = (),
        eligible_leader_replicas: tuple[int, ...] = (),
        last_known_elr: tuple[int, ...] = (),
    ) -> None:
        self.replicas = replicas
        self.directories = directories
        self.isr = isr
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.leader_recovery_state = leader_recovery_state
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr

    @classmethod
    def from_record(cls, record: PartitionRecord) -> Partition:
        """The partition a record describes."""
        directories = tuple(record.directories) or (MIGRATING_DIRECTORY,) * len(record.replicas)
        return cls(
            tuple(record.replicas),
            directories,
            tuple(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            record.leader_recovery_state,
            tuple(record.removing_replicas),
            tuple(record.adding_replicas),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
        )

    def to_record(self, topic_id: bytes, partition_id: int) -> PartitionRecord:
        """The record that describes this partition as it is now."""
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.eligible_leader_replicas) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )

    def merged(self, change: PartitionChangeRecord) -> Partition:
        """This partition after a change. Every change raises the partition epoch, a named leader the leader epoch."""
        replicas = self.replicas if change.replicas is None else tuple(change.replicas)
        if change.directories is not None:
            directories = tuple(change.directories)
        elif change.replicas is None:
            directories = self.directories
        else:
            directories = tuple(self.directory_of(replica) for replica in replicas)
        elected = change.leader != LEADER_UNCHANGED
        elr, last_known = change.eligible_leader_replicas, change.last_known_elr
        return Partition(
            replicas,
            directories,
            self.isr if change.isr is None else tuple(change.isr),
            change.leader if elected else self.leader,
            self.leader_epoch + 1 if elected else self.leader_epoch,
            self.partition_epoch + 1,
            self.leader_recovery_state
            if change.leader_recovery_state == RECOVERY_UNCHANGED
            else change.leader_recovery_state,
            self.removing_replicas if change.removing_replicas is None else tuple(change.removing_replicas),
            self.adding_replicas if change.adding_replicas is None else tuple(change.adding_replicas),
            self.eligible_leader_replicas if elr is None else tuple(elr),
            self.last_known_elr if last_known is None else tuple(last_known),
        )

    def without_elr(self) -> Partition:
        """This partition with nothing known about eligible leaders; it is no new epoch (ClearElrRecord)."""
        return Partition(
            self.replicas,
            self.directories,
            self.isr,
            self.leader,
            self.leader_epoch,
            self.partition_epoch,
            self.leader_recovery_state,
            self.removing_replicas,
            self.adding_replicas,
        )

    def directory_of(self, broker_id: int) -> bytes:
        """Where the replica on that broker lies, as far as it is known."""
        try:
            return self.directories[self.replicas.index(broker_id)]
        except (ValueError, IndexError):
            return UNASSIGNED_DIRECTORY

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed."""
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def has_preferred_leader(self) -> bool:
        """Whether the first replica leads."""
        return self.leader == self.replicas[0]


class Topic:
    """A topic and its partitions by number. The map is the only thing in here that changes."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes, partitions: dict[int, Partition] | None = None) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, Partition] = {} if partitions is None else partitions

    def copy(self) -> Topic:
        """The same topic with a map of its own."""
        return Topic(self.name, self.topic_id, dict(self.partitions))

    def __eq__(self, other: object) -> bool:
        if type(other) is not Topic:
            return NotImplemented
        return self.name == other.name and self.topic_id == other.topic_id and self.partitions == other.partitions

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Topic({self.name}, {self.partitions!r})"
