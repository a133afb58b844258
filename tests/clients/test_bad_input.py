"""What no client library would send: each gets the code Apache Kafka gives, and what is right beside it is stored."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.support import probe
from tests.support.nodes import Node
from tests.support.processes import wait_until
from tidelog.errors import ErrorCode
from tidelog.storage import Slice
from tidelog.wire import frames
from tidelog.wire.api_table import ApiKey
from tidelog.wire.batch_records import Record, build_batch
from tidelog.wire.crc import crc32c
from tidelog.wire.messages.api_versions import ApiVersionsRequest
from tidelog.wire.messages.init_producer_id import InitProducerIdRequest
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT, COUNT_AT, MAGIC_AT = 17, 21, 23, 57, 16


class Raw:
    """One connection, one request at a time, through nothing but the codec."""

    def __init__(self, node: Node) -> None:
        self._connection = socket.create_connection(("127.0.0.1", node.client_port), timeout=60)

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self._connection.sendall(data)

    def ask(self, api_key: ApiKey, version: int, body: Any) -> Any:
        """A request and its answer."""
        parts = frames.encode_request(api_key, version, 5, "raw", body)
        self.send(b"".join(each.read() if isinstance(each, Slice) else bytes(each) for each in parts))
        correlation_id, answer = frames.decode_response(api_key, version, probe.read_frame(self._connection))
        assert correlation_id == 5
        return answer

    def is_closed(self) -> bool:
        """Whether the node closed the connection, now or within the time limit."""
        try:
            return self._connection.recv(1) == b""
        except ConnectionResetError:
            return True

    def produce(
        self, topic: str, *batches: bytes, acks: int = -1, version: int = 9, first: int = 0
    ) -> list[tuple[int, int]]:
        """Write one batch to each partition in turn from the first; (error code, base offset) of each."""
        partitions = [PartitionProduceData(index=first + index, records=each) for index, each in enumerate(batches)]
        body = ProduceRequest(
            acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=partitions)]
        )
        (answer,) = self.ask(ApiKey.PRODUCE, version, body).responses
        ordered = sorted(answer.partition_responses, key=lambda each: each.index)
        return [(each.error_code, each.base_offset) for each in ordered]

    def open_partitions(self, topic: str, count: int) -> None:
        """Write one record to each partition; Apache Kafka may not lead at once what it has just made."""

        def is_led(partition: int) -> bool:
            return self.produce(topic, batch(1), first=partition)[0][0] == ErrorCode.NONE

        for partition in range(count):
            wait_until(partial(is_led, partition), 60, f"{topic}-{partition} is led")

    def close(self) -> None:
        """Done."""
        self._connection.close()


@pytest.fixture
def raw(node: Node) -> Iterator[Raw]:
    """A connection of the test's own."""
    connection = Raw(node)
    yield connection
    connection.close()


def batch(count: int = 3, *, key: bytes | None = b"k", size: int = 20, **fields: Any) -> bytes:
    """A sound batch."""
    records = [Record(offset=number, timestamp=1_000 + number, key=key, value=bytes(size)) for number in range(count)]
    return build_batch(records, **fields)


def changed(sound: bytes, position: int, data: bytes, *, new_crc: bool = True) -> bytes:
    """The batch with other bytes at a place, and a CRC that fits them unless told otherwise."""
    content = bytearray(sound)
    content[position : position + len(data)] = data
    if new_crc:
        struct.pack_into(">I", content, CRC_AT, crc32c(bytes(content[ATTRIBUTES_AT:])))
    return bytes(content)


BAD_BATCHES = {
    "wrong CRC": (changed(batch(), 70, b"\xff", new_crc=False), ErrorCode.CORRUPT_MESSAGE),
    "count above the offsets": (changed(batch(), COUNT_AT, struct.pack(">i", 4)), ErrorCode.INVALID_RECORD),
    "count below the offsets": (changed(batch(), COUNT_AT, struct.pack(">i", 2)), ErrorCode.INVALID_RECORD),
    "last offset that does not fit": (changed(batch(), LAST_DELTA_AT, struct.pack(">i", 9)), ErrorCode.INVALID_RECORD),
    "negative count": (changed(batch(), COUNT_AT, struct.pack(">i", -1)), ErrorCode.INVALID_RECORD),
    "control batch": (changed(batch(), ATTRIBUTES_AT, struct.pack(">h", 0x20)), ErrorCode.INVALID_RECORD),
    "too large": (batch(1, size=1_100_000), ErrorCode.MESSAGE_TOO_LARGE),
    "two batches": (batch() + batch(), ErrorCode.INVALID_RECORD),
    "a base sequence without a producer": (batch(producer_id=5, producer_epoch=0), ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize("what", BAD_BATCHES)
def test_a_bad_batch_is_refused_and_the_one_beside_it_stored(
    node: Node, raw: Raw, make_topic: TopicMaker, what: str
) -> None:
    bad, code = BAD_BATCHES[what]
    topic = make_topic(partitions=3)
    raw.open_partitions(topic, 3)
    answers = raw.produce(topic, batch(2), bad, batch(4))
    assert [answer[0] for answer in answers] == [ErrorCode.NONE, code, ErrorCode.NONE]
    assert [answer[1] for answer in answers] == [1, -1, 1]
    assert [len(confluent.consume_all(node, topic, count, part)) for part, count in ((0, 3), (2, 5))] == [3, 5]
    assert raw.produce(topic, batch(), batch())[1] == (ErrorCode.NONE, 1), "nothing of the bad batch was stored"


@pytest.mark.parametrize("magic", [0, 1])
def test_the_old_formats_are_refused(raw: Raw, make_topic: TopicMaker, magic: int) -> None:
    """Produce version 3 and newer carry record batches v2 only."""
    topic = make_topic(partitions=1)
    raw.open_partitions(topic, 1)
    old = changed(batch(), MAGIC_AT, bytes([magic]), new_crc=False)
    assert raw.produce(topic, old)[0][0] == ErrorCode.INVALID_RECORD


def test_an_unknown_partition_beside_a_known_one(raw: Raw, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=1)
    raw.open_partitions(topic, 1)
    assert raw.produce(topic, batch(), batch()) == [(0, 1), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert raw.produce("never-made", batch()) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_acks_that_do_not_exist(raw: Raw, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=1)
    assert raw.produce(topic, batch(), acks=2) == [(ErrorCode.INVALID_REQUIRED_ACKS, -1)]


def test_a_compacted_topic_needs_keys(raw: Raw, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2, cleanup_policy="compact")
    raw.open_partitions(topic, 2)
    answers = raw.produce(topic, batch(key=None), batch(key=b"k"))
    assert [answer[0] for answer in answers] == [ErrorCode.INVALID_RECORD, ErrorCode.NONE]


def test_the_sequence_of_an_idempotent_producer(raw: Raw, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=1)
    raw.open_partitions(topic, 1)
    body = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    producer = raw.ask(ApiKey.INIT_PRODUCER_ID, 4, body)
    while producer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        producer = raw.ask(ApiKey.INIT_PRODUCER_ID, 4, body)
    assert producer.error_code == ErrorCode.NONE

    def write(sequence: int, epoch: int = producer.producer_epoch) -> tuple[int, int]:
        data = batch(producer_id=producer.producer_id, producer_epoch=epoch, base_sequence=sequence)
        return raw.produce(topic, data)[0]

    assert write(0) == (ErrorCode.NONE, 1)
    assert write(3) == (ErrorCode.NONE, 4)
    assert write(0) == (ErrorCode.NONE, 1), "a repeat is acknowledged with the offset it had"
    assert write(3) == (ErrorCode.NONE, 4)
    assert write(9)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(6) == (ErrorCode.NONE, 7)
    assert write(0, epoch=producer.producer_epoch + 1) == (ErrorCode.NONE, 10), "a new epoch starts again at 0"
    assert write(9)[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    for turn in range(1, 6):
        assert write(turn * 3, epoch=producer.producer_epoch + 1) == (ErrorCode.NONE, 10 + turn * 3)
    assert write(0, epoch=producer.producer_epoch + 1)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, (
        "too long ago to be known"
    )


def test_an_unknown_version_of_api_versions_is_answered_in_the_oldest_form(node: Node, raw: Raw) -> None:
    raw.send(probe.request_frame(ApiKey.API_VERSIONS, 99, 5, b"\0\1\1\0"))
    answer = raw._connection.recv(65_536)
    (correlation_id, error_code) = struct.unpack_from(">ih", answer, 4)
    assert (correlation_id, error_code) == (5, ErrorCode.UNSUPPORTED_VERSION)
    assert raw.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest(client_software_name="raw", client_software_version="1"))


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 104_857_601),
        probe.request_frame(ApiKey.METADATA, 99, 1, b""),
        probe.request_frame(ApiKey.PRODUCE, 9, 1, b"\xff" * 30),
        probe.request_frame(999, 0, 1, b""),
        probe.request_frame(ApiKey.METADATA, 1, 1, struct.pack(">i", 1_000_000_000)),
        struct.pack(">i", 3) + b"\0\1\2",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=[
        *("negative length", "huge length", "over the limit", "unknown version", "garbage", "unknown API"),
        *("huge array", "no header", "a browser"),
    ],
)
def test_what_cannot_be_read_ends_its_connection_and_nobody_elses(node: Node, data: bytes) -> None:
    bystander, offender = Raw(node), Raw(node)
    offender.send(data)
    assert offender.is_closed()
    asked = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    assert bystander.ask(ApiKey.API_VERSIONS, 3, asked).error_code == ErrorCode.NONE
    bystander.close()
    offender.close()
