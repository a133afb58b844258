"""A damaged replica that is kept, because nobody else could lead, is kept no longer than that."""

from __future__ import annotations

from tests.node.support import TOPIC, OneNode
from tidelog.replica.damage import DamagedReplicas
from tidelog.replica.partition import Partition, Role


def kept() -> tuple[DamagedReplicas, Partition]:
    """The only replica in sync, with rot."""
    core = OneNode(1, 1, replication_events_enable="false").process(1).node
    partition = core.replicas.partitions[TOPIC, 0]
    damage = core.broker._damage
    damage.found(partition, "rot")
    core.outbox.take_effects()
    assert partition.role is Role.LEADER
    return damage, partition


def test_it_is_copied_again_when_another_leads() -> None:
    """It was a follower from then on, and in the ISR in the end, with what it had."""
    damage, partition = kept()
    assert not damage.may_open(TOPIC, partition.topic_id, 0, partition.directory_id, 2, (1, 2), (2,), (1,))
    assert partition.role is Role.OFFLINE


def test_it_goes_on_while_nobody_leads() -> None:
    damage, partition = kept()
    assert damage.may_open(TOPIC, partition.topic_id, 0, partition.directory_id, -1, (1, 2), (), (1,))
    assert partition.role is Role.LEADER
