"""The committed metadata as checkers see it: what was decided with what, where one batch has several decisions."""

from __future__ import annotations

from tidelog.controller.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tidelog.quorum.batches import build_data_batch, frame
from tidelog.sim.checkers.replay import Replay
from tidelog.wire.batch import iterate_batches
from tidelog.wire.message import Message

TOPIC_ID = bytes(range(16))
FENCED, UNFENCED = 1, -1


def replay_of(*batches: list[Message]) -> Replay:
    """Three active brokers with a partition that all are in sync of, and then these batches."""
    brokers: list[Message] = [RegisterBrokerRecord(broker_id=one, broker_epoch=one, fenced=False) for one in (1, 2, 3)]
    topic = TopicRecord(name="t0", topic_id=TOPIC_ID)
    partition = PartitionRecord(
        partition_id=0, topic_id=TOPIC_ID, replicas=[1, 2, 3], isr=[1, 2, 3], leader=1, directories=[bytes(16)] * 3
    )
    replay = Replay()
    for records in ([*brokers, topic, partition], *batches):
        values = [frame(record, 1 if isinstance(record, RegisterBrokerRecord) else 0) for record in records]
        data = build_data_batch(values, base_offset=replay.end_offset, epoch=1, timestamp_ms=0)
        for batch in iterate_batches(data):
            replay.feed(batch)
    return replay


def isr(*brokers: int) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=list(brokers))


def fence(broker: int, how: int = FENCED) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=broker, broker_epoch=broker, fenced=how)


def test_a_broker_that_was_fenced_and_is_back_within_a_batch_was_away_when_it_left_the_isr() -> None:
    """A controller that stood still has the end of a session and the next heartbeat before it at once (seed 202447)."""
    replay = replay_of([isr(1, 3), fence(2), fence(2, UNFENCED), isr(1, 2, 3)])
    left, back = replay.changes[-2:]
    assert left.inactive == {2}
    assert back.inactive == set()


def test_a_broker_that_is_fenced_later_in_a_batch_was_there_before() -> None:
    replay = replay_of([isr(1, 3), fence(3, UNFENCED), isr(3), fence(2)])
    assert [change.inactive for change in replay.changes[-2:]] == [set(), {2}]


def test_who_registered_anew_did_so_in_its_own_decision() -> None:
    back = RegisterBrokerRecord(broker_id=2, broker_epoch=20, fenced=True)
    replay = replay_of([isr(1, 3), back, isr(3), fence(1), isr(1)])
    assert [(change.registered, change.inactive) for change in replay.changes[-3:]] == [
        ({2}, {2}),
        (set(), {1, 2}),
        (set(), {1, 2}),
    ]


def test_a_broker_that_is_unregistered_is_not_there() -> None:
    replay = replay_of([isr(1, 3), UnregisterBrokerRecord(broker_id=2, broker_epoch=2)])
    assert replay.changes[-1].inactive == {2}
