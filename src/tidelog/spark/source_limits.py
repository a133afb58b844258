"""How much of what is there goes into one batch: at most so many offsets, or about so many bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from tidelog.client.client import Client
from tidelog.errors import KafkaError
from tidelog.wire.batch import HEADER_SIZE, read_header
from tidelog.wire.message import Message
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

Partition = tuple[str, int]
Offsets = Mapping[Partition, int]

_SAMPLE_BYTES = 64 * 1024


def limit_offsets(starts: Offsets, ends: Offsets, most: int) -> dict[Partition, int]:
    """Ends that are `most` offsets from the starts together, shared out by how much each partition has."""
    sizes = {where: ends[where] - starts[where] for where in ends}
    total = sum(sizes.values())
    if total <= most:
        return dict(ends)
    shares = {where: most * size // total for where, size in sizes.items()}
    left = most - sum(shares.values())
    for where in sorted(sizes, key=lambda each: most * sizes[each] % total, reverse=True)[:left]:
        shares[where] += 1
    return {where: starts[where] + shares[where] for where in ends}


def limit_bytes(starts: Offsets, ends: Offsets, sizes: Mapping[Partition, float], most: int) -> dict[Partition, int]:
    """Ends that are about `most` bytes from the starts together, and one offset at least: a stream must go on."""
    total = sum((ends[where] - starts[where]) * sizes[where] for where in ends)
    if total <= most:
        return dict(ends)
    offsets = sum(ends[where] - starts[where] for where in ends)
    return limit_offsets(starts, ends, max(1, int(offsets * most / total)))


def bytes_an_offset(client: Client, starts: Offsets, ends: Offsets) -> dict[Partition, float]:
    """How large a record is, on disk and on the wire, where each range begins: by the headers of its first batches."""
    wanted = [where for where in ends if ends[where] > starts[where]]

    def build(partitions: list[Partition]) -> Message:
        topics = []
        for topic, group in groupby(sorted(partitions), key=lambda pair: pair[0]):
            view = client.metadata.topics[topic]
            asked = [
                FetchPartition(
                    partition=partition,
                    fetch_offset=starts[topic, partition],
                    current_leader_epoch=view.partitions[partition].leader_epoch,
                    partition_max_bytes=_SAMPLE_BYTES,
                )
                for _, partition in group
            ]
            topics.append(FetchTopic(topic=topic, topic_id=view.topic_id, partitions=asked))
        return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_SAMPLE_BYTES * len(partitions), topics=topics)

    def read(answer: Any) -> Iterable[tuple[Partition, int, float]]:
        for topic in answer.responses:
            name = topic.topic or client.metadata.topic_named_by(topic.topic_id) or ""
            for data in topic.partitions:
                # A sample that cannot be had is no reason to stop: the read itself will say what is wrong.
                yield (name, data.partition_index), 0, _density(memoryview(data.records or b""))

    found = client.ask_leaders(wanted, build, read) if wanted else {}
    known = [size for size in found.values() if size > 0]
    usual = sum(known) / len(known) if known else 0.0
    return {where: found.get(where) or usual for where in ends}


def _density(records: memoryview) -> float:
    """Bytes an offset of the batches whose headers are in the sample, also where their records are cut off."""
    size = offsets = position = 0
    while len(records) - position >= HEADER_SIZE:
        try:
            header = read_header(records, position)
        except KafkaError:
            break
        size += header.size
        offsets += header.last_offset_delta + 1
        position += header.size
    return size / offsets if offsets else 0.0
