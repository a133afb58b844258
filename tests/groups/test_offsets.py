"""Committed offsets: kept over a kill, answered in every version, expired only when nobody needs them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.groups.support import GROUP, GroupNode
from tests.node.support import TOPIC
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)


@pytest.fixture
def node() -> GroupNode:
    return GroupNode()


def test_what_was_committed_is_there_after_a_kill(node: GroupNode) -> None:
    assert node.commit({0: 5, 1: 7}, metadata="note", epoch=0) == {0: 0, 1: 0}
    node.restart()
    (topic,) = node.fetch_offsets([0, 1, 2]).topics
    assert [(one.committed_offset, one.committed_leader_epoch, one.metadata) for one in topic.partitions] == [
        (5, 0, "note"),
        (7, 0, "note"),
        (-1, -1, ""),
    ]


@pytest.mark.parametrize("version", range(2, 11))
def test_every_version_commits(node: GroupNode, version: int) -> None:
    assert node.commit({0: 5}, version=version, metadata=None) == {0: 0}
    assert node.committed() == {0: 5}


@pytest.mark.parametrize("version", range(1, 11))
def test_every_version_fetches(node: GroupNode, version: int) -> None:
    node.commit({3: 5})
    (topic,) = node.fetch_offsets([3, 0], version=version).topics
    assert [(one.partition_index, one.committed_offset) for one in topic.partitions] == [(3, 5), (0, -1)]
    if version >= 2:
        (everything,) = node.fetch_offsets(None, version=version).topics
        assert [(one.partition_index, one.committed_offset) for one in everything.partitions] == [(3, 5)]


def test_wrong_commits_change_nothing(node: GroupNode) -> None:
    node.commit({0: 5})
    assert node.commit({0: 9}, metadata="x" * 5_000) == {0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert node.commit({0: 9}, topic="missing") == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert node.commit({0: 9}, topic="missing", version=10) == {0: ErrorCode.UNKNOWN_TOPIC_ID}
    no_group: dict[str, Any] = {"group": "nobody", "generation_id_or_member_epoch": 3, "member_id": "m"}
    assert node.commit({0: 9}, version=8, **no_group) == {0: ErrorCode.ILLEGAL_GENERATION}
    assert node.commit({0: 9}, version=9, **no_group) == {0: ErrorCode.GROUP_ID_NOT_FOUND}
    member: dict[str, Any] = {"generation_id_or_member_epoch": 0, "member_id": "m"}
    assert node.commit({0: 9}, **member) == {0: ErrorCode.UNKNOWN_MEMBER_ID}
    assert node.committed() == {0: 5}
    assert "nobody" not in node.state("nobody").groups


def test_one_bad_partition_does_not_hold_up_the_others(node: GroupNode) -> None:
    partitions = [
        OffsetCommitRequestPartition(partition_index=0, committed_offset=2, committed_metadata="x" * 5_000),
        OffsetCommitRequestPartition(partition_index=1, committed_offset=3),
    ]
    topics = [
        OffsetCommitRequestTopic(name="missing", partitions=partitions),
        OffsetCommitRequestTopic(name=TOPIC, partitions=partitions),
    ]
    answer = node.ask(1, ApiKey.OFFSET_COMMIT, 9, OffsetCommitRequest(group_id=GROUP, topics=topics))
    codes = [[one.error_code for one in topic.partitions] for topic in answer.topics]
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [[missing, missing], [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]]
    assert node.committed() == {1: 3}


def test_an_unknown_topic_id_is_named_so(node: GroupNode) -> None:
    (topic,) = node.fetch_offsets([0], version=10, topic="missing").topics
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_offsets_of_a_group_that_left_expire_and_the_group_with_them() -> None:
    node = GroupNode(offsets_retention_minutes="2", offsets_retention_check_interval_ms="1000")
    node.commit({0: 5})
    node.pass_ms(90_000)
    node.commit({1: 6})
    node.pass_ms(60_000)
    assert node.committed() == {1: 6}, "each offset's retention runs from its own commit"
    node.pass_ms(120_000)
    assert node.committed() == {}
    assert GROUP not in node.state().groups
    node.restart()
    assert node.committed() == {}


def test_a_retention_named_by_an_old_client_counts() -> None:
    node = GroupNode(offsets_retention_check_interval_ms="1000")
    node.commit({0: 5}, version=4, retention_time_ms=10_000)
    node.commit({1: 6}, version=4)
    node.restart()
    node.pass_ms(15_000)
    assert node.committed() == {1: 6}


def test_offsets_of_a_deleted_topic_are_gone(node: GroupNode) -> None:
    from tidelog.wire.apis import ApiKey
    from tidelog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    node.create("other", 1)
    node.commit({0: 3}, topic="other")
    node.commit({0: 4})
    node.ask(1, ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name="other")], timeout_ms=1000))
    node.pass_ms(1_000)
    assert node.committed(topic="other") == {}
    assert node.committed() == {0: 4}


def test_it_is_told_why_there_is_no_coordinator() -> None:
    """Clients ask on for ever: without a word nobody would find the setting that is to blame."""
    node = GroupNode(offsets_topic_segment_bytes="20000")
    assert node.find(GROUP).coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (told,) = [tell for _, _, tell in node.world.told if tell.kind == "internal-topic-not-made"]
    assert told.fields["topic"] == "__consumer_offsets"
    assert "segment.bytes" in told.fields["reason"]


def test_the_coordinator_is_found_in_every_version(node: GroupNode) -> None:
    for version in range(7):
        answer = node.find(GROUP, version)
        one = answer.coordinators[0] if version >= 4 else answer
        assert (one.error_code, one.node_id, one.host, one.port) == (0, 1, "node-1", 9092)
    assert node.find(GROUP, key_type=2).coordinators[0].error_code == ErrorCode.INVALID_REQUEST
