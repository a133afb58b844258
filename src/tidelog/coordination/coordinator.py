"""All shards of one coordinator on this node: made, loaded and closed as leaders of its topic's partitions change."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Generic, TypeVar

from tidelog.coordination.shard import CoordinatorState, Shard
from tidelog.errors import ErrorCode, KafkaError
from tidelog.replica.partition import Partition, Role
from tidelog.replica.replicas import Replicas

State = TypeVar("State", bound=CoordinatorState)


def java_string_hash(text: str) -> int:
    """Java's String.hashCode: what Kafka chooses a key's partition by."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


@lru_cache(maxsize=4_096)
def partition_for(key: str, partitions: int) -> int:
    """The partition that looks after a key: the hash without its sign, as Kafka takes it."""
    value = java_string_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partitions


class Coordinator(Generic[State]):
    """The shards of one topic."""

    def __init__(self, topic: str, replicas: Replicas, make_state: Callable[[Callable[[], Shard]], State]) -> None:
        self.topic = topic
        self._replicas = replicas
        self._make_state = make_state
        """Makes the empty state of a shard, which it writes by: its own, whoever has the partition by then."""
        self.shards: dict[int, Shard] = {}

    def role_changed(self, partition: Partition) -> None:
        """The node leads one of the topic's partitions now, in another epoch, or no longer."""
        shard = self.shards.get(partition.index)
        leads = partition.role is Role.LEADER
        if shard is not None and (
            not leads or shard.partition is not partition or shard.epoch != partition.leader_epoch
        ):
            del self.shards[partition.index]
            shard.close()
            shard = None
        if leads and shard is None:
            shard = self.shards[partition.index] = self._make_shard(partition)
            shard.load()

    def _make_shard(self, partition: Partition) -> Shard:
        def own() -> Shard:
            return shard

        shard = Shard(partition, self._replicas, self._make_state(own))
        return shard

    def removed(self, partition: Partition) -> None:
        """The replica is gone from this node."""
        shard = self.shards.pop(partition.index, None)
        if shard is not None:
            shard.close()

    def shard_of(self, key: str, partitions: int) -> Shard:
        """The shard that looks after a key; raises what a client is told where it is not here or still being read."""
        if partitions <= 0:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic} does not exist yet")
        shard = self.shards.get(partition_for(key, partitions))
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        shard.check()
        return shard
