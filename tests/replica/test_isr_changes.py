"""Proposals of ISRs: one at a time, and a late answer to one must not take the next with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.node.support import TOPIC, OneNode
from tidelog.errors import ErrorCode
from tidelog.outbox import Outbox
from tidelog.replica.fetch_sessions import FetchSession
from tidelog.replica.isr_changes import INELIGIBLE_MS, IsrChanges
from tidelog.replica.leadership import Leadership
from tidelog.wire.messages.alter_partition import (
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)

TOPIC_ID = bytes(15) + b"\x07"


class LedPartition:
    """As much of a partition as a proposal looks at."""

    def __init__(self) -> None:
        self.topic_id, self.index = TOPIC_ID, 0
        self.leadership = Leadership(1, 5, 0, lambda _id, _epoch: True)
        self.leadership.update((1, 2, 3), (1, 2), partition_epoch=4, now_ms=0)

    def advance_high_watermark(self) -> None:
        """Nothing waits here."""


class Controller:
    """Takes requests and answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Callable[[Any, str | None], None]]] = []

    def ask(self, _key: int, _version: int, body: Any, then: Callable[[Any, str | None], None]) -> None:
        self.asked.append((body, then))

    def accept(self, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> None:
        """Say to the oldest request that it is committed."""
        _, then = self.asked.pop(0)
        data = AlterPartitionResponsePartitionData(
            partition_index=0, leader_id=1, leader_epoch=leader_epoch, isr=list(isr), partition_epoch=partition_epoch
        )
        then(
            AlterPartitionResponse(topics=[AlterPartitionResponseTopicData(topic_id=TOPIC_ID, partitions=[data])]), None
        )

    def refuse(self, code: ErrorCode, topic_id: bytes = TOPIC_ID) -> None:
        """Answer the oldest request."""
        _, then = self.asked.pop(0)
        data = AlterPartitionResponsePartitionData(partition_index=0, error_code=code)
        topic = AlterPartitionResponseTopicData(topic_id=topic_id, partitions=[data])
        then(AlterPartitionResponse(topics=[topic]), None)


def test_an_answer_that_newer_metadata_has_overtaken_leaves_the_next_proposal_alone() -> None:
    """Otherwise a follower that has caught up waits for the next round of housekeeping: fifteen seconds."""
    outbox, controller, partition = Outbox(1), Controller(), LedPartition()
    settled: list[Any] = []
    changes = IsrChanges(1, outbox, controller.ask, lambda _id: 1, lambda: 1, settled.append)
    changes.propose(partition, (1, 2, 3), "first")  # type: ignore[arg-type]
    outbox.take_effects()
    assert len(controller.asked) == 1
    partition.leadership.update((1, 2, 3), (1, 2), partition_epoch=5, now_ms=0)
    changes.propose(partition, (1, 2, 3), "second")  # type: ignore[arg-type]
    outbox.take_effects()
    assert len(controller.asked) == 1, "one at a time"
    controller.refuse(ErrorCode.INVALID_UPDATE_VERSION)
    outbox.take_effects()
    ((request, _),) = controller.asked
    asked = request.topics[0].partitions[0]
    assert (asked.partition_epoch, asked.reason) == (5, "second")
    assert partition.leadership.proposed == (1, 2, 3), "the watermark waits for whoever may join"


def test_a_follower_that_was_not_wanted_is_looked_at_again_soon() -> None:
    outbox, controller, partition = Outbox(1), Controller(), LedPartition()
    settled: list[Any] = []
    changes = IsrChanges(1, outbox, controller.ask, lambda _id: 1, lambda: 1, settled.append)
    changes.propose(partition, (1, 2, 3), "first")  # type: ignore[arg-type]
    outbox.take_effects()
    controller.refuse(ErrorCode.INELIGIBLE_REPLICA)
    outbox.take_effects()
    assert (partition.leadership.proposed, settled) == (None, [])
    outbox.now_ms += 1_000
    outbox.run_due_timers()
    assert settled == [partition]


def test_a_proposal_that_was_committed_unheard_counts_until_the_metadata_says_so() -> None:
    """The answer was lost, and the second attempt is refused for it: were the proposal dropped, the watermark would
    pass a follower that is in the ISR by now and may lead next."""
    outbox, controller, partition = Outbox(1), Controller(), LedPartition()
    changes = IsrChanges(1, outbox, controller.ask, lambda _id: 1, lambda: 1, lambda _partition: None)
    changes.propose(partition, (1, 2, 3), "first")  # type: ignore[arg-type]
    outbox.take_effects()
    controller.asked.pop(0)[1](None, "connection lost")
    outbox.now_ms += 1_000
    outbox.run_due_timers()
    outbox.take_effects()
    controller.refuse(ErrorCode.INVALID_UPDATE_VERSION)
    outbox.take_effects()
    assert partition.leadership.maximal_isr == {1, 2, 3}
    partition.leadership.update((1, 2, 3), (1, 2, 3), partition_epoch=5, now_ms=0)
    assert partition.leadership.proposed is None


def test_a_shrink_counts_when_the_metadata_says_so_not_when_it_is_answered() -> None:
    """The answer may come before a raised min.insync.replicas by which it was decided: whoever left is eligible, and
    the leader, by the former setting, would commit alone what that one lacks."""
    outbox, controller, partition = Outbox(1), Controller(), LedPartition()
    changes = IsrChanges(1, outbox, controller.ask, lambda _id: 1, lambda: 1, lambda _partition: None)
    changes.propose(partition, (1,), "2 lags")  # type: ignore[arg-type]
    outbox.take_effects()
    controller.accept((1,), leader_epoch=5, partition_epoch=5)
    outbox.take_effects()
    assert partition.leadership.maximal_isr == {1, 2}
    assert controller.asked == []
    partition.leadership.update((1, 2, 3), (1,), partition_epoch=5, now_ms=0)
    assert partition.leadership.maximal_isr == {1}


def test_a_controller_that_knows_less_than_the_leader_is_asked_again() -> None:
    outbox, controller, partition = Outbox(1), Controller(), LedPartition()
    changes = IsrChanges(1, outbox, controller.ask, lambda _id: 1, lambda: 1, lambda _partition: None)
    changes.propose(partition, (1, 2, 3), "first")  # type: ignore[arg-type]
    outbox.take_effects()
    controller.refuse(ErrorCode.NOT_CONTROLLER)
    assert partition.leadership.proposed == (1, 2, 3)
    outbox.now_ms += 1_000
    outbox.run_due_timers()
    outbox.take_effects()
    assert len(controller.asked) == 1


def test_a_follower_that_was_started_again_does_not_join_by_what_it_had_before() -> None:
    """Found with more faults than usual: the proposal was answered by nobody, its follower came back with an empty log,
    and when the next controller was asked, the proposal named the epoch of that new life (KIP-903)."""
    outbox, controller, partition = Outbox(1), Controller(), LedPartition()
    own_epoch = 1
    changes = IsrChanges(1, outbox, controller.ask, lambda _id: 1, lambda: own_epoch, lambda _partition: None)
    partition.leadership.followers[3].fetched(9, 0, 9, broker_epoch=30, now_ms=0)
    changes.propose(partition, (1, 2, 3), "3 has caught up")  # type: ignore[arg-type]
    outbox.take_effects()
    controller.asked.pop(0)[1](None, "connection lost")
    partition.leadership.followers[3].fetched(0, 0, 9, broker_epoch=40, now_ms=0)
    own_epoch = 2
    outbox.now_ms += 1_000
    outbox.run_due_timers()
    outbox.take_effects()
    ((request, _),) = controller.asked
    members = request.topics[0].partitions[0].new_isr_with_epochs
    assert [(one.broker_id, one.broker_epoch) for one in members] == [(1, 2), (2, 1), (3, 30)]


def test_a_follower_that_is_never_wanted_keeps_no_other_out() -> None:
    """Its directory has failed, say. An idle follower comes in by this way alone, and the first was tried for ever."""
    node = OneNode(1, 1, replication_events_enable="false")
    replicas, outbox, controller = node.process(1).node.replicas, node.process(1).node.outbox, Controller()
    replicas.surroundings.is_eligible = lambda _id, _epoch: True
    partition = replicas.partitions[TOPIC, 0]
    changes = IsrChanges(1, outbox, controller.ask, lambda _id: 1, lambda: 1, replicas.grow_isr)
    replicas.propose_isr = changes.propose
    partition.become_leader(9, 9, [1, 2, 3], [1])
    session = FetchSession(1, is_follower=True, now_ms=outbox.now_ms)
    for broker_id in (2, 3):
        partition.follower_fetched(broker_id, 1, session, 0, 0)
    replicas.grow_isr(partition)
    outbox.take_effects()
    tried = []
    for _ in range(3):
        tried.append([one.broker_id for one in controller.asked[0][0].topics[0].partitions[0].new_isr_with_epochs])
        controller.refuse(ErrorCode.INELIGIBLE_REPLICA, partition.topic_id)
        outbox.now_ms += INELIGIBLE_MS
        outbox.run_due_timers()
        outbox.take_effects()
    assert tried == [[1, 2], [1, 3], [1, 2]]
