"""Whether a log still is the one that was read, by leader epochs, as Kafka's consumers tell it (KIP-320).

A log that was cut, by an unclean election or a loss of power, grows again past what was read. Its new records lie below
the reader, who would pass over them without a word; but the epoch that was read up to an offset now ends before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from tidelog.client.client import Client, TopicPartition
from tidelog.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


def cut_offsets(
    client: Client, reached: Mapping[TopicPartition, int], epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The partitions that were cut below what was reached, and where; `epochs` are those of what was reached.

    Only partitions with an epoch are asked for. A leader that does not know the epoch says nothing, and is believed.
    """
    wanted = [where for where in reached if epochs.get(where, -1) >= 0]

    def build(partitions: list[TopicPartition]) -> OffsetForLeaderEpochRequest:
        topics = []
        for topic, group in groupby(sorted(partitions), key=lambda pair: pair[0]):
            asked = [
                OffsetForLeaderPartition(
                    partition=partition,
                    current_leader_epoch=client.metadata.leader_of(topic, partition).leader_epoch,
                    leader_epoch=epochs[topic, partition],
                )
                for _, partition in group
            ]
            topics.append(OffsetForLeaderTopic(topic=topic, partitions=asked))
        return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)

    def read(answer: OffsetForLeaderEpochResponse) -> Iterable[tuple[TopicPartition, int, int]]:
        for topic in answer.topics:
            for one in topic.partitions:
                yield (topic.topic, one.partition), one.error_code, one.end_offset

    ends = client.ask_leaders(wanted, build, read) if wanted else {}
    return {where: end for where, end in ends.items() if 0 <= end < reached[where]}
