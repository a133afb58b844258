"""A batch that was sent behind a refused one is refused alike, and never taken for a gap or for a beginning.

librdkafka answers OUT_OF_ORDER_SEQUENCE_NUMBER behind a failed batch by raising its epoch, and sends all that was not
answered again under the new one: records that a dead leader had replicated then stand in the log twice.
"""

from __future__ import annotations

import pytest

from tests.node.support import TOPIC as ONE_NODES_TOPIC
from tests.node.support import OneNode
from tests.sim.test_three_nodes import TOPIC, Cluster, started
from tidelog.errors import ErrorCode
from tidelog.replica.partition import Role
from tidelog.replica.refused_batches import REMEMBERED_MS
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, build_batch
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCER_ID = 1000


def send(cluster: Cluster, node_id: int, sequence: int, epoch: int = 0) -> int:
    """One record of an idempotent producer; the code it is answered with."""
    records = build_batch(
        [Record(0, cluster.world.now_ms, None, b"%d" % sequence)],
        producer_id=PRODUCER_ID,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=records)])
    request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[data])
    return int(cluster.ask(node_id, ApiKey.PRODUCE, 9, request).responses[0].partition_responses[0].error_code)


def led_by_a_follower_that_refused(seed: int, sequence: int) -> tuple[Cluster, int]:
    """A cluster whose leader died after sequence 0; its successor had refused this sequence a moment before it led."""
    cluster = started(seed)
    old = cluster.leader()
    assert send(cluster, old, 0) == ErrorCode.NONE
    assert cluster.world.run_until(lambda: cluster.isr() == {1, 2, 3})
    cluster.world.run_for(1_000)
    cluster.world.kill(old)
    for one in cluster.living():
        assert send(cluster, one, sequence) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.world.run_until(lambda: cluster.leader() not in (old, -1))
    new = cluster.leader()
    assert cluster.world.run_until(
        lambda: cluster.process(new).node.replicas.partitions[(TOPIC, 0)].role is Role.LEADER
    )
    return cluster, new


@pytest.mark.parametrize("seed", range(5))
def test_behind_a_batch_that_came_before_the_election(seed: int) -> None:
    cluster, leader = led_by_a_follower_that_refused(seed, 1)
    assert send(cluster, leader, 2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert send(cluster, leader, 3) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [send(cluster, leader, sequence) for sequence in (1, 2, 3)] == [ErrorCode.NONE] * 3
    assert cluster.consume() == [b"0", b"1", b"2", b"3"]


def test_a_repetition_that_the_new_leader_has_is_answered_as_one() -> None:
    cluster, leader = led_by_a_follower_that_refused(1, 0)
    assert send(cluster, leader, 0) == ErrorCode.NONE
    assert send(cluster, leader, 1) == ErrorCode.NONE, "what was refused had been replicated before, so this is next"
    assert cluster.consume() == [b"0", b"1"]


def test_a_gap_that_no_refusal_explains_is_told_as_one() -> None:
    cluster, leader = led_by_a_follower_that_refused(1, 5)
    assert send(cluster, leader, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "the refused one was behind it"
    assert send(cluster, leader, 6, epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "of another epoch"
    assert send(cluster, leader, 6) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.world.run_for(REMEMBERED_MS)
    assert send(cluster, leader, 6) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "the refused one never came again"


def test_a_log_does_not_begin_behind_a_refused_batch() -> None:
    """The first batch came before the topic was known, the second after: taken first, it would shut the other out."""
    node = OneNode()

    def batch(sequence: int) -> bytes:
        return node.batch(b"%d" % sequence, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=sequence)

    def code(sequence: int) -> int:
        return int(node.produce({0: batch(sequence)}, topic="late")[0].error_code)

    assert code(0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.create("late")
    assert code(1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert int(node.produce({0: batch(7)}, topic=ONE_NODES_TOPIC)[0].error_code) == ErrorCode.NONE, "another partition"
    assert [code(sequence) for sequence in (0, 1)] == [ErrorCode.NONE] * 2
