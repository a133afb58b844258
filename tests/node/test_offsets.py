"""ListOffsets, DeleteRecords and OffsetForLeaderEpoch: the places in a log that clients ask for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.node.support import TOPIC, OneNode, partitions_of, values_of
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, build_batch
from tidelog.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tidelog.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


@pytest.fixture
def node() -> OneNode:
    node = OneNode()
    start_ms = node.world.now_ms
    for number, after_ms in enumerate((0, 1_000, 500, 3_000)):
        node.produce({0: build_batch([Record(0, start_ms + after_ms, None, b"%d" % number)])})
    return node


def delete(node: OneNode, offset: int) -> Any:
    wanted = DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
    request = DeleteRecordsRequest(topics=[wanted], timeout_ms=1_000)
    return node.ask(1, ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0]


def test_first_and_last(node: OneNode) -> None:
    assert node.list_offset(EARLIEST).offset == 0
    assert node.list_offset(LATEST).offset == 4
    assert node.list_offset(LATEST).leader_epoch == 0


def test_by_time(node: OneNode) -> None:
    start_ms = node.list_offset(0).timestamp
    assert node.list_offset(start_ms + 1).offset == 1, "the first record that is not older"
    assert node.list_offset(start_ms + 1_001).offset == 3
    assert node.list_offset(start_ms + 3_001).offset == -1, "there is none"
    newest = node.list_offset(MAX_TIMESTAMP)
    assert (newest.offset, newest.timestamp) == (3, start_ms + 3_000)


def test_named_places_need_their_version(node: OneNode) -> None:
    assert node.list_offset(MAX_TIMESTAMP, version=6).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_epochs_are_compared(node: OneNode) -> None:
    assert node.list_offset(LATEST, current_leader_epoch=0).error_code == 0
    assert node.list_offset(LATEST, current_leader_epoch=5).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_deleted_records_are_gone_for_readers(node: OneNode) -> None:
    assert delete(node, 2).low_watermark == 2
    assert node.list_offset(EARLIEST).offset == 2
    assert partitions_of(node.fetch({0: 1}))[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values_of(partitions_of(node.fetch({0: 2}))[0]) == [b"2", b"3"]
    assert delete(node, 9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert delete(node, 1).low_watermark == 2, "what is gone stays gone"
    assert delete(node, -1).low_watermark == 4, "-1 is everything committed"


def test_deleted_records_stay_deleted_after_a_clean_stop(node: OneNode) -> None:
    from tidelog.events import StopRequested

    delete(node, 3)
    node.world.step(node.process(1), StopRequested())
    assert node.world.run_until(lambda: not node.process(1).alive)
    assert node.process(1).exit_code == 0
    node.start_all()
    assert node.list_offset(EARLIEST).offset == 3


def test_where_an_epoch_ends(node: OneNode) -> None:
    def end_of(epoch: int) -> tuple[int, int]:
        wanted = OffsetForLeaderTopic(
            topic=TOPIC, partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=epoch)]
        )
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[wanted])
        answer = node.ask(1, ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request).topics[0].partitions[0]
        return answer.leader_epoch, answer.end_offset

    assert end_of(0) == (0, 4)
    assert end_of(7) == (-1, -1), "an epoch this leader has not seen"
