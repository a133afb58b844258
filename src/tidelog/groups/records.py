"""The records of `__consumer_offsets`, as Apache Kafka writes them.

OffsetCommit is written in version 3, which every Kafka since 2.1 reads, and in version 1 where an old client named a
retention of its own; GroupMetadata in version 3. The records of KIP-848 have version 0.
"""

from __future__ import annotations

from tidelog.coordination.shard import KeyAndValue
from tidelog.groups.offsets import CommittedOffset
from tidelog.wire.message import Message
from tidelog.wire.records.group_metadata import GroupMetadataKey, GroupMetadataValue
from tidelog.wire.records.offset_commit import OffsetCommitKey, OffsetCommitValue
from tidelog.wire.stored import encode_coordinator_key, encode_versioned

OFFSET_COMMIT_VERSION = 3
OFFSET_COMMIT_WITH_EXPIRY_VERSION = 1
GROUP_METADATA_VERSION = 3


def offset_commit(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> KeyAndValue:
    """A committed offset."""
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
    )
    version = OFFSET_COMMIT_VERSION if committed.expire_timestamp_ms < 0 else OFFSET_COMMIT_WITH_EXPIRY_VERSION
    return _offset_key(group_id, topic, partition), encode_versioned(value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> KeyAndValue:
    """A committed offset is no more."""
    return _offset_key(group_id, topic, partition), None


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return encode_coordinator_key(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def group_metadata(group_id: str, value: GroupMetadataValue) -> KeyAndValue:
    """A classic group's generation with its members and their assignments."""
    return (
        encode_coordinator_key(GroupMetadataKey(group=group_id)),
        encode_versioned(value, GROUP_METADATA_VERSION),
    )


def group_tombstone(group_id: str) -> KeyAndValue:
    """A classic group is no more."""
    return encode_coordinator_key(GroupMetadataKey(group=group_id)), None


def record(key: Message, value: Message | None, version: int = 0) -> KeyAndValue:
    """Any other record; None is a tombstone."""
    return encode_coordinator_key(key), None if value is None else encode_versioned(value, version)
