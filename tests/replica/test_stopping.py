"""The mark of a clean stop says that all there is was flushed: nothing is appended between that flush and the end."""

from __future__ import annotations

from tests.node.support import TOPIC, OneNode
from tests.replica.test_fetcher import EPOCH, Stream
from tidelog.errors import ErrorCode
from tidelog.wire.batch import Record, build_batch


def test_a_leader_that_closes_its_logs_takes_no_more() -> None:
    """It still led in its own view, where it could not ask the controller: what it took then a power loss took, and
    it vouched for it."""
    node = OneNode(1, 1, replication_events_enable="false")
    replicas = node.process(1).node.replicas
    assert node.produce({0: node.batch(b"0")})[0].error_code == 0
    replicas.stop(7, lambda: None)
    for acks in (1, -1):
        assert node.produce({0: node.batch(b"1")}, acks)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replicas.partitions[TOPIC, 0].log.log_end_offset == 1


def test_a_follower_that_closes_its_logs_copies_no_more() -> None:
    stream = Stream()
    stream.node.process(1).node.replicas.stop(7, lambda: None)
    batch = build_batch([Record(3, stream.node.world.now_ms, None, b"3")], partition_leader_epoch=EPOCH)
    stream.answer(records=memoryview(batch), high_watermark=3, log_start_offset=0)
    assert stream.partition.log.log_end_offset == 3
    assert not stream.asked
