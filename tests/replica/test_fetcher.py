"""One stream of fetches: what is said of a log counts only for the leader, and the log, that it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.node.support import TOPIC, OneNode
from tests.node.test_directories import TwoDirectories
from tidelog.effects import Effect, Tell
from tidelog.errors import ErrorCode, StorageError
from tidelog.replica.fetcher import FIRST_DELAY_MS, Fetcher
from tidelog.replica.partition import Partition, Role
from tidelog.wire.api_table import ApiKey
from tidelog.wire.batch import Record, build_batch
from tidelog.wire.messages.fetch import EpochEndOffset, FetchableTopicResponse, FetchResponse, PartitionData
from tidelog.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LEADER, EPOCH = 2, 9
LAST_OFFSET_DELTA_AT = 23
"""In a batch, and under its checksum."""


class Stream:
    """A follower with three records, and a leader that answers when the test says so."""

    def __init__(self, node: OneNode | None = None, index: int = 0) -> None:
        self.node = OneNode(1, 1, replication_events_enable="false") if node is None else node
        for number in range(3):
            assert self.node.produce({index: self.node.batch(b"%d" % number)})[index].error_code == 0
        core = self.node.process(1).node
        self.outbox = core.outbox
        self.partition: Partition = core.replicas.partitions[TOPIC, index]
        self.asked: list[tuple[int, Any, Callable[[Any, str | None], None]]] = []
        self.outbox.send = self._send  # type: ignore[method-assign, assignment]
        self.effects: list[Effect] = []
        self.broker_epoch = 7
        self.partition.become_follower(LEADER, EPOCH)
        self.fetcher = Fetcher(
            1, LEADER, self.outbox, core.replicas, lambda: self.broker_epoch, lambda leader: (leader, "there", 1)
        )
        self.fetcher.add(self.partition)
        self.end_step()

    def _send(
        self, _peer: Any, _channel: str, api_key: int, _version: int, body: Any, _timeout_ms: int, then: Any
    ) -> None:
        self.asked.append((api_key, body, then))

    def answer(self, **data: Any) -> None:
        """To the newest fetch."""
        _, _, then = self.asked.pop()
        part = PartitionData(partition_index=self.partition.index, **data)
        topic = FetchableTopicResponse(topic_id=self.partition.topic_id, partitions=[part])
        then(FetchResponse(session_id=5, responses=[topic]), None)
        self.end_step()

    def end_step(self) -> None:
        """Let what waits for the end of a step run."""
        self.effects += self.outbox.take_effects()

    def pass_time(self, delay_ms: int) -> None:
        """Timers run; flushes do not end."""
        self.outbox.now_ms += delay_ms
        self.outbox.run_due_timers()
        self.end_step()

    def take_questions(self) -> list[Callable[[Any, str | None], None]]:
        """What was asked beside the fetches; where the leader's log starts comes first."""
        questions = [then for api_key, _, then in self.asked if api_key == ApiKey.LIST_OFFSETS]
        self.asked = [one for one in self.asked if one[0] != ApiKey.LIST_OFFSETS]
        return questions


def offset(value: int, code: int = 0) -> ListOffsetsResponse:
    part = ListOffsetsPartitionResponse(partition_index=0, offset=value, error_code=code)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[part])])


def test_where_a_former_leaders_log_ends_cuts_nothing() -> None:
    """Its answers may come when another leads, in whose ISR this replica is: it would be in sync with less."""
    stream = Stream()
    stream.answer(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    where_it_starts, where_it_ends = stream.take_questions()
    stream.fetcher.remove(stream.partition)
    stream.partition.become_follower(3, EPOCH + 1)
    where_it_starts(offset(0), None)
    where_it_ends(offset(1), None)
    assert stream.partition.log.log_end_offset == 3


def test_where_the_leaders_log_ends_cuts_what_is_beyond() -> None:
    stream = Stream()
    stream.answer(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    where_it_starts, where_it_ends = stream.take_questions()
    where_it_starts(offset(0), None)
    where_it_ends(offset(1), None)
    assert stream.partition.log.log_end_offset == 1


def test_a_cut_is_waited_for_whatever_was_refused_before_it() -> None:
    """Both questions were refused, each set a timer, and the second one went on before the cut was on the medium."""
    stream = Stream()
    stream.answer(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    for question in stream.take_questions():
        question(offset(-1, ErrorCode.UNKNOWN_LEADER_EPOCH), None)
    stream.pass_time(FIRST_DELAY_MS)
    stream.answer(diverging_epoch=EpochEndOffset(epoch=0, end_offset=1), log_start_offset=0)
    assert stream.partition.log.log_end_offset == 1
    asked_before = len(stream.asked)
    stream.pass_time(10 * FIRST_DELAY_MS)
    assert not any(one.topics for _, one, _ in stream.asked[asked_before:])


@pytest.mark.parametrize("is_told_where", [True, False])
def test_a_follower_that_cannot_cut_its_own_log_for_rot_is_copied_again(is_told_where: bool) -> None:
    """It tried again for ever where the leader said where the logs part, and took the whole node down elsewhere."""
    stream = Stream()
    disk = stream.node.world.hosts[1].disks[0]
    disk.flip_bit(f"{TOPIC}-0/00000000000000000000.log", LAST_OFFSET_DELTA_AT, 7)
    if is_told_where:
        stream.answer(diverging_epoch=EpochEndOffset(epoch=0, end_offset=1), log_start_offset=0)
    else:
        stream.answer(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        for question, value in zip(stream.take_questions(), (0, 1), strict=True):
            question(offset(value), None)
        stream.end_step()
    assert stream.partition.role is Role.OFFLINE
    told = [one.fields["reason"] for one in stream.effects if isinstance(one, Tell) and one.kind == "log-damaged"]
    assert len(told) == 1


def test_nothing_is_fetched_for_a_directory_that_failed() -> None:
    """The leader's session had records for it, which it was sent, and did not take, as fast as it could ask."""
    stream = Stream()
    core = stream.node.process(1).node
    core.broker._fetchers[LEADER] = stream.fetcher
    storage = core.replicas.directories[0].storage
    core.replicas.storage_failed(storage, StorageError(storage.root, "", "input/output error"))
    assert stream.partition.role is Role.OFFLINE
    stream.answer(records=stream.node.batch(b"3"), high_watermark=3, log_start_offset=0)
    assert not stream.asked


def test_a_damaged_batch_at_the_leaders_start_leaves_an_empty_log_where_it_was() -> None:
    """An empty copy takes the batch whole that holds the leader's start; its watermark is not to be beyond its log."""
    stream = Stream()
    stream.partition.log.truncate_fully_and_start_at(2)
    stream.partition.high_watermark = 2
    stream.fetcher.remove(stream.partition)
    stream.fetcher.add(stream.partition)
    stream.end_step()
    damaged = bytearray(stream.node.batch(b"0", b"1", b"2", b"3"))
    damaged[-1] ^= 1
    stream.answer(records=memoryview(damaged), high_watermark=4, log_start_offset=2)
    log = stream.partition.log
    assert (log.log_start_offset, stream.partition.high_watermark, log.log_end_offset) == (2, 2, 2)


def test_a_broker_that_registered_again_says_so_of_every_partition() -> None:
    """A leader takes nobody into the ISR for what was fetched with another epoch (KIP-903), and an idle partition is
    not named again: unregistered and registered, its replicas stayed out of every ISR until something was written."""
    stream = Stream()
    stream.answer(high_watermark=3, log_start_offset=0)
    ((_, request, _),) = stream.asked
    assert not request.topics
    stream.broker_epoch = 8
    stream.asked.pop()[2](FetchResponse(session_id=5), None)
    stream.end_step()
    ((_, request, _),) = stream.asked
    assert (request.replica_state.replica_epoch, request.session_epoch) == (8, 0)
    assert [one.partitions[0].fetch_offset for one in request.topics] == [3]


def test_a_disk_that_fails_while_an_answer_is_taken_ends_the_copying_of_it() -> None:
    """The append went well and the flush that it made due could not begin: the rest of the answer must not ask on."""
    node = TwoDirectories({"flush.messages": "1"})
    failing, well = min(node.held_by(node.second)), min(node.held_by(node.world.hosts[1].disks[0]))
    stream = Stream(node, failing)
    core = node.process(1).node
    core.broker._fetchers[LEADER] = stream.fetcher
    other = core.replicas.partitions[TOPIC, well]
    other.become_follower(LEADER, EPOCH)
    stream.fetcher.add(other)
    node.second.fail("open")
    batch = build_batch([Record(3, node.world.now_ms, None, b"3")], partition_leader_epoch=EPOCH)
    stream.asked = stream.asked[:1]
    stream.answer(records=memoryview(batch), high_watermark=4, log_start_offset=0)
    assert stream.partition.role is Role.OFFLINE
    ((_, request, _),) = stream.asked
    assert [one.partition for topic in request.topics for one in topic.partitions] == [well]


def two_fetches(stream: Stream) -> list[tuple[int, Any, Callable[[Any, str | None], None]]]:
    """Of an open session, to which a partition was added while the first of them was under way."""
    stream.answer(high_watermark=3, log_start_offset=0)
    other = stream.node.process(1).node.replicas.partitions[TOPIC, 1]
    other.become_follower(LEADER, EPOCH)
    stream.fetcher.add(other)
    stream.end_step()
    assert len(stream.asked) == 2
    return stream.asked


@pytest.mark.parametrize("is_told_where", [True, False])
def test_what_is_said_of_where_a_log_was_cuts_nothing(is_told_where: bool) -> None:
    """Seed 229347: two fetches were under way. The first brought a record, and the next told the leader so, which
    counted it as committed; then the second was answered, for where the log had been, by a leader that had just deleted
    all before that record and could not say any more whether the logs agree there."""
    node = OneNode(1, 2, replication_events_enable="false")
    stream = Stream(node)
    partition = stream.partition
    first, second = two_fetches(stream)
    batch = build_batch([Record(3, node.world.now_ms, None, b"3")], partition_leader_epoch=EPOCH)
    stream.asked = [first]
    stream.answer(records=memoryview(batch), high_watermark=3, log_start_offset=0)
    (third,) = stream.asked
    assert third[1].topics[0].partitions[0].fetch_offset == partition.log.log_end_offset == 4

    parted: dict[str, Any] = {"error_code": ErrorCode.OFFSET_OUT_OF_RANGE}
    if is_told_where:
        parted = {"diverging_epoch": EpochEndOffset(epoch=0, end_offset=3), "log_start_offset": 3}
    stream.asked = [second]
    stream.answer(**parted)
    assert partition.log.log_end_offset == 4
    assert not stream.take_questions()
    assert [one.partitions for _, request, _ in stream.asked for one in request.topics] == []

    stream.asked = [third]
    stream.answer(**parted)
    if is_told_where:
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (3, 3)
    else:
        assert len(stream.take_questions()) == 2


def test_records_for_where_a_log_was_are_not_taken_by_one_that_is_empty_now() -> None:
    """An empty copy takes a batch whole that begins before it. This one had come further by the first of two answers,
    had told its leader so, and had then deleted all that was too old: the second answer left it with less than counted.
    """
    node = OneNode(1, 2, {"retention.ms": "1000"}, replication_events_enable="false")
    stream = Stream(node)
    first, second = two_fetches(stream)
    long_ago_ms = node.world.now_ms - 100_000
    three, four = (
        build_batch([Record(number, long_ago_ms, None, b"old")], partition_leader_epoch=EPOCH) for number in (3, 4)
    )
    stream.asked = [first]
    stream.answer(records=memoryview(three + four), high_watermark=5, log_start_offset=0)
    log = stream.partition.log
    log.raise_log_start(5)
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    stream.asked = [second]
    stream.answer(records=memoryview(three), high_watermark=5, log_start_offset=0)
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)


def test_a_stream_of_which_everything_is_set_aside_asks_for_nothing() -> None:
    """A fetch of nothing is answered at once: it asked as fast as it could while a throttle held its copy back."""
    stream = Stream()
    stream.answer(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH)
    assert stream.asked == []
    stream.pass_time(FIRST_DELAY_MS)
    ((_, request, _),) = stream.asked
    assert [one.partitions[0].fetch_offset for one in request.topics] == [3]


def test_nothing_is_added_to_a_session_that_is_not_open() -> None:
    """The second fetch named a session that nobody had given out yet, and was refused, and all began anew."""
    stream = Stream(OneNode(1, 2, replication_events_enable="false"))
    other = stream.node.process(1).node.replicas.partitions[TOPIC, 1]
    other.become_follower(LEADER, EPOCH)
    stream.fetcher.add(other)
    stream.end_step()
    assert len(stream.asked) == 1
    stream.answer(high_watermark=3, log_start_offset=0)
    ((_, request, _),) = stream.asked
    assert (request.session_id, request.session_epoch) == (5, 1)
    assert [one.partition for topic in request.topics for one in topic.partitions] == [1]


def test_a_leader_that_has_no_room_for_a_session_is_told_everything_each_time() -> None:
    """Every second fetch was refused: it counted on in a session that there was not."""
    stream = Stream()
    ((_, request, then),) = stream.asked
    assert request.max_wait_ms == 0, "so that others can be added soon"
    stream.asked.clear()
    then(FetchResponse(session_id=0), None)
    stream.end_step()
    ((_, request, _),) = stream.asked
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert request.max_wait_ms > 0
    assert [one.partitions[0].fetch_offset for one in request.topics] == [3]
