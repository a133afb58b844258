"""What a watermark waited for may be over although nothing is written and nobody fetches: it goes on then as well."""

from __future__ import annotations

from tests.node.support import TOPIC, OneNode
from tidelog.controller.delta import ImageDelta
from tidelog.controller.image import TOPIC_RESOURCE
from tidelog.controller.records import PartitionChangeRecord
from tidelog.errors import ErrorCode
from tidelog.replica.fetch_sessions import FetchSession
from tidelog.replica.housekeeping import Housekeeping
from tidelog.replica.partition import Partition

EPOCH, FOLLOWER = 9, 2


class Led:
    """A partition led here. Its other replica is not in the ISR, caught up a moment ago, and lacks the last record."""

    def __init__(self) -> None:
        self.node = OneNode(1, 1, replication_events_enable="false")
        self.core = self.node.process(1).node
        self.lives = True
        self.core.replicas.surroundings.is_eligible = lambda _id, _epoch: self.lives
        self.core.replicas.propose_isr = lambda _partition, _isr, _reason: None
        self.partition: Partition = self.core.replicas.partitions[TOPIC, 0]
        self.partition.become_leader(EPOCH, 9, [1, FOLLOWER], [1])

    def write(self) -> None:
        batch = memoryview(bytearray(self.node.batch(b"0")))
        self.partition.append(batch, self.core.outbox.now_ms)
        self.core.replicas.appended(self.partition, len(batch))

    def joins_soon(self) -> None:
        """The follower had all there was, and one record more is written."""
        end_offset = self.partition.log.log_end_offset
        session = FetchSession(1, is_follower=True, now_ms=self.core.outbox.now_ms)
        self.partition.follower_fetched(FOLLOWER, 7, session, end_offset, 0)
        self.write()
        assert (self.partition.high_watermark, self.partition.log.log_end_offset) == (0, 1)


def test_it_does_not_wait_for_a_follower_that_was_fenced_before_it_joined() -> None:
    """The ISR does not change by that, so that nothing else told the leader to look again: the last record waited."""
    led = Led()
    led.joins_soon()
    led.lives = False
    delta = ImageDelta()
    delta.note_broker(FOLLOWER, None)
    led.core.broker.apply(delta)
    assert led.partition.high_watermark == 1


def test_it_does_not_wait_for_a_follower_that_stands_still_before_it_joined() -> None:
    led = Led()
    led.joins_soon()
    led.core.outbox.now_ms += led.core.config.replica_lag_time_max_ms + 1
    Housekeeping(led.core.replicas).check_isrs()
    assert led.partition.high_watermark == 1


def test_it_goes_on_when_fewer_replicas_are_asked_for() -> None:
    led = Led()
    led.lives = False
    overrides = led.core.image.configs.setdefault((TOPIC_RESOURCE, TOPIC), {})
    delta = ImageDelta()
    delta.note_config((TOPIC_RESOURCE, TOPIC), "min.insync.replicas")
    overrides["min.insync.replicas"] = "2"
    led.core.broker.apply(delta)
    led.write()
    assert led.partition.high_watermark == 0
    overrides["min.insync.replicas"] = "1"
    led.core.broker.apply(delta)
    assert led.partition.high_watermark == 1


def test_what_a_flush_has_in_hand_is_no_more_than_there_is() -> None:
    """A log that was cut while a flush was under way, and led again before it ended, would commit what it lacks."""
    led = Led()
    led.lives = False
    for _ in range(3):
        led.write()
    led.partition.unflushed_from = 3
    led.write()
    led.partition.become_follower(FOLLOWER, EPOCH + 1)
    led.partition.log.truncate_to(1)
    led.partition.high_watermark = 1
    led.partition.become_leader(EPOCH + 2, 11, [1, FOLLOWER], [1])
    assert (led.partition.high_watermark, led.partition.log.log_end_offset) == (1, 1)


def test_what_is_written_after_a_cut_waits_for_a_flush_of_its_own() -> None:
    """With flush.messages: the flush under way was of what was cut, and the new record was acknowledged before it was
    on the medium."""
    node = OneNode(1, 1, {"flush.messages": "1"}, replication_events_enable="false")
    for number in range(3):
        assert node.produce({0: node.batch(b"%d" % number)})[0].error_code == 0
    core = node.process(1).node
    partition = core.replicas.partitions[TOPIC, 0]
    partition.become_leader(9, 9, [1, 2], [1])

    def write() -> None:
        batch = memoryview(bytearray(node.batch(b"x")))
        partition.append(batch, core.outbox.now_ms)
        core.replicas.appended(partition, len(batch))

    write()
    assert partition.unflushed_from == 3
    partition.become_follower(2, 10)
    partition.log.truncate_to(1)
    partition.high_watermark = 1
    partition.become_leader(11, 11, [1, 2], [1])
    write()
    assert (partition.log.log_end_offset, partition.high_watermark) == (2, 1)


def test_a_leader_that_hears_at_once_that_fewer_are_asked_for_and_that_another_leads_commits_nothing() -> None:
    """As from a snapshot, after it stood still: the other may lead without the record that waits."""
    led = Led()
    led.lives = False
    image = led.core.image
    overrides = image.configs.setdefault((TOPIC_RESOURCE, TOPIC), {})
    overrides["min.insync.replicas"] = "2"
    delta = ImageDelta()
    delta.note_config((TOPIC_RESOURCE, TOPIC), "min.insync.replicas")
    led.core.broker.apply(delta)
    led.write()
    answers: list[ErrorCode] = []
    led.partition.when_committed(1, answers.append)
    overrides["min.insync.replicas"] = "1"
    topic = image.topics[led.partition.topic_id]
    before = topic.partitions[0]
    change = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=0, leader=2, replicas=[1, 2], isr=[2])
    topic.partitions[0] = before.merged(change)
    topic.partitions[0].leader_epoch = EPOCH + 1
    delta.note_partition(topic.topic_id, 0, before)
    led.core.broker.apply(delta)
    assert answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert led.partition.high_watermark == 0


def test_nobody_is_proposed_by_a_leader_whose_disk_failed_under_what_the_watermark_released() -> None:
    """A coordinator writes on when it hears that something is committed; the whole node ended, for one directory."""
    led = Led()
    led.joins_soon()
    led.partition.when_committed(1, lambda _code: led.partition.go_offline())
    session = FetchSession(3, is_follower=True, now_ms=led.core.outbox.now_ms)
    assert led.partition.follower_fetched(FOLLOWER, 7, session, 1, 0) is None
