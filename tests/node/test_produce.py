"""Bad batches are refused one by one with Kafka's code; the good ones of the same request are stored."""

from __future__ import annotations

import pytest

from tests.node.support import OneNode, partitions_of, values_of
from tidelog.errors import ErrorCode
from tidelog.sim.cluster import NoAnswer
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def wrong_crc(node: OneNode) -> bytes:
    batch = bytearray(node.batch(b"damaged"))
    batch[-1] ^= 1
    return bytes(batch)


def wrong_count(node: OneNode) -> bytes:
    from tidelog.wire.batch import crc32c

    batch = bytearray(node.batch(b"one", b"two"))
    batch[57:61] = (7).to_bytes(4, "big")
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def old_magic(node: OneNode) -> bytes:
    batch = bytearray(node.batch(b"old"))
    batch[16] = 1
    return bytes(batch)


def too_large(node: OneNode) -> bytes:
    return node.batch(b"x" * 2_000_000)


def two_batches(node: OneNode) -> bytes:
    return node.batch(b"one") + node.batch(b"two")


def nothing(node: OneNode) -> bytes:
    return b""


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (wrong_crc, ErrorCode.CORRUPT_MESSAGE),
        (wrong_count, ErrorCode.INVALID_RECORD),
        (old_magic, ErrorCode.INVALID_RECORD),
        (too_large, ErrorCode.MESSAGE_TOO_LARGE),
        (two_batches, ErrorCode.INVALID_RECORD),
        (nothing, ErrorCode.INVALID_RECORD),
    ],
)
def test_a_bad_batch_is_refused_and_its_neighbour_stored(bad: object, code: ErrorCode) -> None:
    node = OneNode()
    answers = node.produce({0: bad(node), 1: node.batch(b"good")})  # type: ignore[operator]
    assert (answers[0].error_code, answers[0].base_offset) == (code, -1)
    assert (answers[1].error_code, answers[1].base_offset) == (0, 0)
    found = partitions_of(node.fetch({0: 0, 1: 0}))
    assert (values_of(found[0]), values_of(found[1])) == ([], [b"good"])


def test_unknown_topics_and_partitions_are_named() -> None:
    node = OneNode()
    assert node.produce({9: node.batch(b"x")})[9].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.produce({0: node.batch(b"x")}, topic="no")[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_by_id() -> None:
    node = OneNode()

    def produce(topic_id: bytes) -> object:
        data = [PartitionProduceData(index=0, records=node.batch(b"x"))]
        request = ProduceRequest(
            acks=-1, timeout_ms=100, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=data)]
        )
        return node.ask(1, ApiKey.PRODUCE, 13, request).responses[0].partition_responses[0].error_code

    assert produce(node.topic_id("events")) == 0
    assert produce(bytes(15) + b"\x09") == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_strange_acks_are_refused(acks: int) -> None:
    node = OneNode()
    assert node.produce({0: node.batch(b"x")}, acks=acks)[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert values_of(partitions_of(node.fetch({0: 0}))[0]) == []


def test_acks_0_has_no_answer_and_an_error_ends_the_connection() -> None:
    node = OneNode()
    with pytest.raises(NoAnswer):
        node.produce({0: wrong_crc(node)}, acks=0)
    connection = node._connections[1]
    assert not connection.to_node.open


def test_a_sequence_is_kept() -> None:
    node = OneNode()
    first = node.batch(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0)
    assert node.produce({0: first})[0].base_offset == 0
    again = node.produce({0: first})[0]
    assert (again.error_code, again.base_offset) == (0, 0), "a repeat is acknowledged with its first offset"
    gap = node.batch(b"d", producer_id=7, producer_epoch=0, base_sequence=5)
    assert node.produce({0: gap})[0].error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    following = node.batch(b"c", producer_id=7, producer_epoch=0, base_sequence=2)
    assert node.produce({0: following})[0].base_offset == 2
    node.world.kill(1)
    node.start_all()
    assert node.produce({0: following})[0].base_offset == 2, "a restart remembers producers"
    assert values_of(partitions_of(node.fetch({0: 0}))[0]) == [b"a", b"b", b"c"]


def test_a_compacted_topic_wants_keys() -> None:
    node = OneNode(configs={"cleanup.policy": "compact"})
    assert node.produce({0: node.batch(b"no key")})[0].error_code == ErrorCode.INVALID_RECORD


def test_log_append_time_is_the_brokers() -> None:
    node = OneNode(configs={"message.timestamp.type": "LogAppendTime"})
    answer = node.produce({0: node.batch(b"x")})[0]
    assert node.world.now_ms - 1_000 < answer.log_append_time_ms <= node.world.now_ms


def test_a_full_disk_takes_the_directory_offline_and_says_so() -> None:
    node = OneNode()
    disk = node.world.hosts[1].disks[0]
    assert node.produce({0: node.batch(b"kept")})[0].error_code == 0
    disk.fail("append", path_prefix="events-", reason="no space left on device")
    with pytest.raises(NoAnswer):  # the only directory: the node cannot go on, and says why
        node.produce({0: node.batch(b"lost")})
    assert node.process(1).exit_code == 1
    assert any(tell.kind == "log-directory-offline" for _, _, tell in node.world.told)
    disk.heal()
    node.start_all()
    assert values_of(partitions_of(node.fetch({0: 0}))[0]) == [b"kept"]
