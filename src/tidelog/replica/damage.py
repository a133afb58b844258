"""Replicas that were found damaged: taken out of service, out of the ISR, and copied again from whoever leads.

    found while it leads, nobody else in sync   KEPT       it goes on with what is whole, until another is in sync
    KEPT -> GIVEN UP                            another is in sync, or leads; or an eligible one is there, and somebody
                                                cannot be in sync because what is damaged is what he lacks
    found otherwise                             GIVEN UP   offline here; the controller is told that it is lost
    found when it was opened                    GIVEN UP   as it never was online
    GIVEN UP -> copied                          it is known to be lost, another leads, and neither ISR nor ELR has it
    GIVEN UP -> KEPT                            nobody leads: all others are gone, and what is here is the best there is

The controller is told as Kafka's brokers tell it of a failed disk: the replica lies in the directory that stands for
lost ones (KIP-858). That takes it out of the ISR and moves its leadership, both decided and committed, before a byte is
thrown away. The new, empty log stays in the lost directory until the leader has answered its first fetch: until then
the leader remembers how far the old one was, and would let it in.

Who is eligible has all that is committed (KIP-966). As long as it can catch up it is waited for: led by it at once, the
partition would lose what was acknowledged with acks=1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum

from tidelog.errors import StorageError
from tidelog.replica.directory import TopicPartition
from tidelog.replica.partition import Partition, Role
from tidelog.replica.replicas import Replicas
from tidelog.wire.uuids import LOST_DIRECTORY


class Standing(Enum):
    """What becomes of a damaged replica."""

    KEPT = "kept"
    GIVEN_UP = "given up"


class DamagedReplicas:
    """Those of one broker. It decides nothing alone: what it throws away the metadata has given up before."""

    def __init__(
        self,
        replicas: Replicas,
        assign: Callable[[bytes, int, bytes], None],
        withdraw: Callable[[Partition], None],
        has_successor: Callable[[str, int], bool],
    ) -> None:
        self._replicas = replicas
        self._outbox = replicas.outbox
        self._assign = assign
        """Tells the controller the directory of a replica: topic id, partition, directory id."""
        self._withdraw = withdraw
        """Ends what else is done with a replica here: copying it, and coordinating by it."""
        self._has_successor = has_successor
        """Whether another broker that is alive is in sync or eligible, by topic and partition."""
        self._standing: dict[TopicPartition, Standing] = {}
        self._discarded: set[TopicPartition] = set()
        """Thrown away, and not opened anew yet."""
        replicas.on_damage = self.found
        replicas.on_refusal = self._refused
        replicas.on_copied = self._copied

    def found(self, partition: Partition, reason: str) -> None:
        """Rot in the log of a replica that is open; acted on when whatever found it is through with its step."""
        key = (partition.topic, partition.index)
        if partition.role is Role.OFFLINE or key in self._standing:
            return
        self._standing[key] = Standing.KEPT
        leadership = partition.leadership
        is_alone = leadership is not None and len(leadership.isr) < 2
        then = "no other replica is in sync: it goes on" if is_alone else "it is to be copied again"
        self._tell("log-damaged", key, reason, then)
        if not is_alone:
            self._outbox.at_end_of_step(lambda: self._give_up(partition))

    def _refused(self, partition: Partition) -> None:
        """A follower cannot get on with what it is sent of a replica that leads here."""
        key = (partition.topic, partition.index)
        is_kept = self._standing.get(key) is Standing.KEPT and partition.role is Role.LEADER
        if is_kept and self._has_successor(*key):
            self._outbox.at_end_of_step(lambda: self._give_up(partition))

    def _give_up(self, partition: Partition) -> None:
        key = (partition.topic, partition.index)
        if self._replicas.partitions.get(key) is not partition or partition.role is Role.OFFLINE:
            return
        self._standing[key] = Standing.GIVEN_UP
        self._withdraw(partition)
        partition.go_offline()
        self._assign(partition.topic_id, partition.index, LOST_DIRECTORY)

    def may_open(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        directory_id: bytes,
        leader: int,
        replicas: Collection[int],
        isr: Collection[int],
        elr: Collection[int],
    ) -> bool:
        """Whether a replica may be what the metadata, which is committed, says that it is now."""
        key = (topic, index)
        standing = self._standing.get(key)
        if key in self._replicas.damaged:
            standing = Standing.GIVEN_UP
        if standing is None:
            return True
        node_id = self._replicas.node_id
        partition = self._replicas.partitions.get(key)
        if standing is Standing.KEPT:
            if partition is not None and (len(isr) > 1 if leader == node_id else leader >= 0):
                self._give_up(partition)
            return self._standing[key] is Standing.KEPT
        if leader not in (-1, node_id):
            if directory_id != LOST_DIRECTORY:
                # Being out of the ISR is not enough: the leader may still propose what it remembers of this replica,
                # and the controller must know better by then.
                self._assign(topic_id, index, LOST_DIRECTORY)
            elif node_id not in isr and node_id not in elr:
                self._discard(key, partition)
                return True
            return False
        if partition is None:
            if len(replicas) > 1:  # others may lead then: those in sync or eligible, or whom an operator lets
                self._assign(topic_id, index, LOST_DIRECTORY)
            return False
        if leader < 0:
            self._tell("damaged-replica-kept", key, "nobody else is left that could lead", "it may lead again")
            self._standing[key] = Standing.KEPT
            partition.leader_id = partition.leader_epoch = -1  # so that whatever comes next is a change
            return True
        return False

    def is_copied_anew(self, partition: Partition) -> bool:
        """Whether a replica that is open now begins anew, so that the controller must not hear yet where it is."""
        key = (partition.topic, partition.index)
        if key in self._discarded:
            self._discarded.discard(key)
            self._replicas.copied_anew.add(partition)
        return partition in self._replicas.copied_anew

    def forget(self, topic: str, index: int) -> None:
        """The replica is none of this broker any more."""
        self._standing.pop((topic, index), None)
        self._discarded.discard((topic, index))
        self._replicas.damaged.pop((topic, index), None)

    def drop(self, topic: str, index: int) -> None:
        """The same for one that could not be opened, if it is damaged: whatever comes under its name is another."""
        if (topic, index) in self._replicas.damaged:
            try:
                self._replicas.remove_unopened((topic, index))
            except StorageError as error:
                self._tell("damaged-replica-kept", (topic, index), str(error), "it cannot be thrown away")
            self.forget(topic, index)

    def _discard(self, key: TopicPartition, partition: Partition | None) -> None:
        try:
            if partition is not None:
                self._replicas.remove(partition)
            else:
                self._replicas.remove_unopened(key)
        except StorageError as error:
            self._tell("damaged-replica-kept", key, str(error), "it cannot be thrown away")
            return
        self.forget(*key)
        self._discarded.add(key)
        self._tell("damaged-replica-discarded", key, "another replica leads and has what was committed", "copied again")

    def _copied(self, partition: Partition) -> None:
        """The leader has answered: it knows now that this log begins anew."""
        self._replicas.copied_anew.discard(partition)
        self._assign(partition.topic_id, partition.index, partition.directory_id)

    def _tell(self, kind: str, key: TopicPartition, reason: str, then: str) -> None:
        level = "error" if kind == "log-damaged" else "warning"
        self._outbox.tell(kind, level, topic=key[0], partition=key[1], reason=reason, then=then)
