"""Where partitions begin and end, and where a time is in them (ListOffsets)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from tidelog.client.client import Client, TopicPartition
from tidelog.wire.message import Message
from tidelog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

CONSUMER = -1
DEBUGGING_REPLICA = -2
"""Sees the log up to its end, and is nobody's replica."""
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
"""The offset of the record with the highest timestamp (KIP-734)."""


class FoundOffset(NamedTuple):
    """An offset and what stands there; -1 for each part that does not exist."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


def list_offsets(
    client: Client,
    wanted: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
    to_log_end: bool = False,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, FoundOffset]:
    """The first offset at or after a timestamp (or EARLIEST, LATEST, MAX_TIMESTAMP) of each partition.

    `to_log_end` looks at what is not committed yet too, as a follower would.
    """

    def build(partitions: list[TopicPartition]) -> Message:
        topics = [
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=partition,
                        timestamp=wanted[topic, partition],
                        current_leader_epoch=client.metadata.leader_of(topic, partition).leader_epoch,
                    )
                    for _, partition in group
                ],
            )
            for topic, group in groupby(sorted(partitions), key=lambda pair: pair[0])
        ]
        return ListOffsetsRequest(
            replica_id=DEBUGGING_REPLICA if to_log_end else CONSUMER,
            isolation_level=int(read_committed),
            topics=topics,
            timeout_ms=client.timeout_ms,
        )

    def read(answer: ListOffsetsResponse) -> Iterable[tuple[TopicPartition, int, FoundOffset]]:
        for topic in answer.topics:
            for one in topic.partitions:
                found = FoundOffset(one.offset, one.timestamp, one.leader_epoch)
                yield (topic.name, one.partition_index), one.error_code, found

    return client.ask_leaders(list(wanted), build, read, timeout_ms=timeout_ms)
