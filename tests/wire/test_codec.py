"""The codec: what goes in comes out, versions are respected, slices stay slices."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.values import classes_and_versions, draw_message
from tidelog.errors import DecodeError
from tidelog.storage import Slice
from tidelog.wire.codec import decode, decode_exact, encode, encode_parts
from tidelog.wire.message import Message
from tidelog.wire.messages.create_topics import CreateTopicsRequest
from tidelog.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
)
from tidelog.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from tidelog.wire.messages.header import RequestHeader
from tidelog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.wire.records.consumer_group_member_metadata import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue
from tidelog.wire.records.partition_change_record import PartitionChangeRecord
from tidelog.wire.uuids import ZERO_UUID

PAIRS = classes_and_versions()


class MemoryFile:
    """Enough of a file for a slice."""

    path = "segment.log"
    generation = 0

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def append(self, data: bytes | bytearray | memoryview) -> None: ...

    def read(self, position: int, length: int) -> bytes:
        return self.data[position : position + length]

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


def normal(message: Any) -> Any:
    """A message with views as bytes and tagged structures of defaults as None, which is how they are decoded."""
    for name, _, _, nullable, tag, _, _, _ in message.FIELDS:
        value = getattr(message, name)
        if isinstance(value, memoryview):
            setattr(message, name, bytes(value))
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Message):
                    normal(item)
        elif isinstance(value, Message) and normal(value) == type(value)() and tag >= 0 and not nullable:
            setattr(message, name, None)
    return message


def test_every_message_at_every_version_survives_the_wire() -> None:
    random = Random(7)
    for cls, version in PAIRS:
        message = draw_message(cls, version, random)
        data = encode(message, version)
        decoded, end = decode(cls, version, memoryview(data))
        assert end == len(data)
        assert normal(decoded) == normal(message), (cls, version)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PAIRS), st.integers(0, 2**32), st.binary(max_size=20))
def test_a_message_ends_where_it_says(pair: tuple[type[Message], int], seed: int, rest: bytes) -> None:
    cls, version = pair
    message = draw_message(cls, version, Random(seed))
    data = encode(message, version)
    decoded, end = decode(cls, version, b"head" + data + rest, 4)
    assert end == 4 + len(data)
    assert normal(decoded) == normal(message)
    if rest:
        with pytest.raises(DecodeError, match="too many"):
            decode_exact(cls, version, data + rest)


def test_fields_of_other_versions_are_ignored_and_come_back_as_defaults() -> None:
    request = FetchRequest(replica_id=3, rack_id="r1", session_id=9, max_wait_ms=5)
    old = decode_exact(FetchRequest, 4, encode(request, 4))
    assert (old.replica_id, old.rack_id, old.session_id, old.session_epoch) == (3, "", 0, -1)
    new = decode_exact(FetchRequest, 17, encode(request, 17))
    assert (new.replica_id, new.rack_id, new.session_id) == (-1, "r1", 9)


def test_defaults_are_kafkas_and_lists_are_not_shared() -> None:
    request = FetchRequest()
    assert (request.max_bytes, request.session_epoch, request.cluster_id, request.topics) == (2**31 - 1, -1, None, [])
    request.topics.append(object())  # type: ignore[arg-type]
    assert FetchRequest().topics == []
    assert PartitionChangeRecord().isr is None
    assert PartitionChangeRecord().topic_id == ZERO_UUID
    assert MetadataRequest().allow_auto_topic_creation is True


def test_null_and_empty_are_different_things() -> None:
    everything = decode_exact(MetadataRequest, 12, encode(MetadataRequest(topics=None), 12))
    nothing = decode_exact(MetadataRequest, 12, encode(MetadataRequest(topics=[]), 12))
    assert everything.topics is None
    assert nothing.topics == []


def test_null_where_there_is_none_is_refused_both_ways() -> None:
    with pytest.raises(TypeError):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(DecodeError, match="null for topics"):
        decode(MetadataRequest, 0, b"\xff\xff\xff\xff")
    with pytest.raises(DecodeError, match="negative length"):
        decode(MetadataRequest, 0, b"\xff\xff\xff\xfe")


def test_an_empty_tagged_section_is_one_byte_and_defaults_are_not_sent() -> None:
    plain = encode(FetchRequest(), 17)
    assert encode(FetchRequest(replica_state=ReplicaState()), 17) == plain
    assert decode_exact(FetchRequest, 17, plain).replica_state is None
    tagged = FetchRequest(replica_state=ReplicaState(replica_id=4, replica_epoch=8), cluster_id="c")
    assert decode_exact(FetchRequest, 17, encode(tagged, 17)) == tagged


def test_tagged_fields_of_a_newer_version_are_skipped() -> None:
    data = encode(FetchRequest(cluster_id="c", rack_id="r"), 17)
    assert data.endswith(b"\x01\x00\x02\x02c")
    newer = data[: -len(b"\x01\x00\x02\x02c")] + b"\x03\x00\x02\x02c\x63\x03abc\xff\x01\x00"
    assert decode_exact(FetchRequest, 17, newer) == FetchRequest(cluster_id="c", rack_id="r")


def test_a_tagged_field_that_is_not_as_long_as_it_says_is_refused() -> None:
    data = encode(FetchRequest(cluster_id="c"), 17)
    with pytest.raises(DecodeError, match="wrong size of the tagged field cluster_id"):
        decode(FetchRequest, 17, data[:-4] + b"\x00\x03\x02cc")


def test_single_structures_that_may_be_null() -> None:
    for cursor in (None, DescribeTopicPartitionsRequestCursor(topic_name="t", partition_index=3)):
        request = DescribeTopicPartitionsRequest(cursor=cursor)
        assert decode_exact(DescribeTopicPartitionsRequest, 0, encode(request, 0)) == request
    # Tagged, nullable and by default not null: Kafka's own bytes for the three cases.
    cases = {
        "010101010101ffffffff0100": ConsumerGroupMemberMetadataValue(),
        "010101010101ffffffff0101000100": ConsumerGroupMemberMetadataValue(classic_member_metadata=None),
        "010101010101ffffffff010100070100000005" + "0100": ConsumerGroupMemberMetadataValue(
            classic_member_metadata=ClassicMemberMetadata(session_timeout_ms=5)
        ),
    }
    for text, value in cases.items():
        assert encode(value, 0).hex() == text
        assert decode_exact(ConsumerGroupMemberMetadataValue, 0, bytes.fromhex(text)) == value


def test_the_flexible_request_header_keeps_the_old_client_id() -> None:
    header = RequestHeader(request_api_key=3, request_api_version=9, correlation_id=7, client_id="me")
    assert encode(header, 2).hex() == "0003" + "0009" + "00000007" + "00026d65" + "00"
    header.client_id = None
    assert encode(header, 2).hex() == "0003" + "0009" + "00000007" + "ffff" + "00"


def test_records_are_views_of_the_frame_not_copies() -> None:
    frame = bytearray(encode(produce(b"0123456789"), 11))
    decoded = decode_exact(ProduceRequest, 11, memoryview(frame))
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[0:1] = b"X"
    assert b"X123456789" in frame


@pytest.mark.parametrize("version", [11, 12])
def test_slices_stay_slices_and_the_bytes_between_are_joined(version: int) -> None:
    file = MemoryFile(b"abcdefghij" * 30)
    first, second, third = Slice(file, 0, 200), Slice(file, 200, 100), Slice(file, 5, 7)
    response = fetched([first, second], b"plain", [b"mixed", third, memoryview(b"end")], third)
    parts = encode_parts(response, version)
    kinds = [type(part).__name__ for part in parts]
    assert kinds[:7] == ["bytes", "Slice", "Slice", "bytes", "Slice", "bytes", "Slice"]
    whole = b"".join(part.read() if isinstance(part, Slice) else part for part in parts)
    assert whole == encode(response, version)
    assert whole == encode(fetched(file.data, b"plain", b"mixed" + file.data[5:12] + b"end", file.data[5:12]), version)
    assert sum(map(len, parts)) == len(whole)


def test_a_diverging_epoch_travels_in_its_tag() -> None:
    response = fetched(None)
    response.responses[0].partitions[0].diverging_epoch = EpochEndOffset(epoch=3, end_offset=70)
    decoded = decode_exact(FetchResponse, 13, encode(response, 13))
    partition = decoded.responses[0].partitions[0]
    assert partition.diverging_epoch == EpochEndOffset(epoch=3, end_offset=70)
    assert partition.current_leader is None


def test_strings_have_kafkas_limit() -> None:
    longest = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32767)])
    for version in (8, 12):
        assert decode_exact(MetadataRequest, version, encode(longest, version)) == longest
        with pytest.raises(Exception, match=r"longer than Kafka's|'h' format"):
            encode(MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32768)]), version)


def test_a_version_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="FetchRequest has no version 3, only 4 to 18"):
        encode(FetchRequest(), 3)
    with pytest.raises(DecodeError, match="FetchRequest has no version 99"):
        decode(FetchRequest, 99, b"")


def test_messages_say_what_differs_from_the_defaults() -> None:
    assert repr(FetchRequest(max_wait_ms=5, rack_id="r")) == "FetchRequest(max_wait_ms=5, rack_id='r')"
    assert "records=<400 bytes>" in repr(produce(bytes(400)))
    assert FetchRequest() == FetchRequest()
    assert FetchRequest() != FetchRequest(max_wait_ms=1)
    assert FetchRequest() != CreateTopicsRequest()


def test_messages_as_json() -> None:
    partition = PartitionProduceData(index=1, records=memoryview(b"\x01\xff"))
    request = ProduceRequest(topic_data=[TopicProduceData(topic_id=bytes(range(16)), partition_data=[partition])])
    plain = json.loads(json.dumps(request.as_plain()))
    assert plain["transactional_id"] is None
    assert plain["topic_data"][0]["topic_id"] == "AAECAwQFBgcICQoLDA0ODw"
    assert plain["topic_data"][0]["partition_data"] == [{"index": 1, "records": "01ff"}]
    assert PartitionChangeRecord(directories=[ZERO_UUID]).as_plain()["directories"] == ["A" * 22]


def test_a_message_can_go_to_another_process() -> None:
    record = PartitionChangeRecord(isr=[1, 2], leader=3)
    assert pickle.loads(pickle.dumps(record)) == record


def test_importing_one_api_imports_no_other() -> None:
    code = (
        "import sys, tidelog.wire.frames, tidelog.wire.messages.produce\n"
        "names = [name for name in sys.modules if name.startswith('tidelog.wire.messages.')]\n"
        "assert names == ['tidelog.wire.messages.produce'], names\n"
        "heavy = {'dataclasses', 'inspect', 'asyncio', 'cramjam', 'crc32c', 'email'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": "src"})


def produce(records: bytes) -> ProduceRequest:
    partition = PartitionProduceData(index=1, records=records)
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[partition])])


def fetched(*records: Any) -> FetchResponse:
    partitions = [PartitionData(partition_index=index, records=part) for index, part in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
