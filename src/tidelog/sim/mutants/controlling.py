"""Bugs of the controller and the quorum."""

from __future__ import annotations

from typing import Any

from tidelog.controller.decide import alter_partition, elections
from tidelog.controller.decide.decision import Decision
from tidelog.controller.decide.partition_change import Election, PartitionChanger
from tidelog.controller.decide.partition_updates import add_change, changer
from tidelog.controller.entities import NO_LEADER
from tidelog.errors import ErrorCode, KafkaError
from tidelog.quorum.leadership import Leadership as QuorumLeadership
from tidelog.replica.partition import Surroundings
from tidelog.sim.mutants.base import Hit, Mutant, Original


def _always_unclean(original: Original, hit: Hit) -> Original:
    def elect(self: PartitionChanger) -> tuple[int, bool]:
        right: tuple[int, bool] = original(self)
        self.election = Election.UNCLEAN
        wrong: tuple[int, bool] = original(self)
        if wrong != right:
            hit()
        return wrong

    return elect


def _preferred_out_of_sync(original: Original, hit: Hit) -> Original:
    def elect(self: PartitionChanger) -> tuple[int, bool]:
        preferred = self.replicas[0]
        if self.election is Election.PREFERRED and preferred not in self.isr and self.acceptable(preferred):
            hit()
            self.isr = (*self.isr, preferred)
            return preferred, False
        right: tuple[int, bool] = original(self)
        return right

    return elect


def _balanced_anyway(original: Original, hit: Hit) -> Original:
    def decide_balance(image: Any, context: Any) -> Decision:
        decision: Decision = original(image, context)
        for topic, partition_id, partition in image.partitions():
            if partition.leader != NO_LEADER and partition.replicas[0] not in partition.isr:
                wanted = changer(image, context, topic, partition_id, partition, election=Election.PREFERRED)
                add_change(decision, wanted.build(), "leaders are balanced")
        return decision

    return decide_balance


def _without_partition_epoch(original: Original, hit: Hit) -> Original:
    def check_epochs(partition: Any, data: Any, broker_id: int) -> None:
        try:
            original(partition, data, broker_id)
        except KafkaError as error:
            if error.code is not ErrorCode.INVALID_UPDATE_VERSION:
                raise
            hit()

    return check_epochs


def _any_life_is_eligible(original: Original, hit: Hit) -> Original:
    def check_members(image: Any, partition: Any, members: list[tuple[int, int]]) -> None:
        try:
            original(image, partition, members)
        except KafkaError:
            hit()
            original(image, partition, [(broker_id, -1) for broker_id, _ in members])

    return check_members


def _unclean_stop_ignored(original: Original, hit: Hit) -> Original:
    def follow(self: PartitionChanger) -> None:
        if self.unclean_shutdown:
            hit()
            self.unclean_shutdown = ()
        original(self)

    return follow


def _majority_of_one(original: Original, hit: Hit) -> Original:
    def majority_end_offset(self: QuorumLeadership, leader: Any) -> int:
        right: int = original(self, leader)
        own = self._core.log.flushed_offset
        if own > right:
            hit()
        return max(own, right)

    return majority_end_offset


def _any_life_counts(original: Original, hit: Hit) -> Original:
    def init(self: Surroundings, outbox: Any, config: Any, is_eligible: Any) -> None:
        def in_any_life(broker_id: int, broker_epoch: int) -> bool:
            wrong = bool(is_eligible(broker_id, -1))
            if wrong and not is_eligible(broker_id, broker_epoch):
                hit()
            return wrong

        original(self, outbox, config, in_any_life)

    return init


MUTANTS = (
    Mutant(
        "unclean-election",
        "any live replica may lead although unclean.leader.election.enable is off",
        [(PartitionChanger, "_elect", _always_unclean)],
    ),
    Mutant(
        "preferred-out-of-sync",
        "a preferred election takes a replica that is not in sync",
        [(PartitionChanger, "_elect", _preferred_out_of_sync), (elections, "decide_balance", _balanced_anyway)],
    ),
    Mutant(
        "no-partition-epoch-check",
        "an AlterPartition for a state that is over is accepted",
        [(alter_partition, "_check_epochs", _without_partition_epoch)],
    ),
    Mutant(
        "stale-broker-epoch-in-isr",
        "a broker that restarted enters the ISR on what it had before (before KIP-903)",
        [(alter_partition, "_check_members", _any_life_is_eligible), (Surroundings, "__init__", _any_life_counts)],
    ),
    Mutant(
        "unclean-stop-eligible",
        "a replica that stopped uncleanly stays eligible to lead (against KIP-966)",
        [(PartitionChanger, "_follow_isr_with_elr", _unclean_stop_ignored)],
    ),
    Mutant(
        "quorum-of-one",
        "the quorum's leader counts what it has itself as committed",
        [(QuorumLeadership, "_majority_end_offset", _majority_of_one)],
    ),
)
