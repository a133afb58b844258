"""The server's assignors: who reads which partition. Pure functions of members, topics and what members have now."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tidelog.groups.consumer.member import Assignment

TopicPartition = tuple[bytes, int]


class Reader(NamedTuple):
    """A member as an assignor sees it."""

    member_id: str
    instance_id: str | None
    topics: frozenset[bytes]
    current: Assignment
    """Its target so far: what moves least is best."""


Assignor = Callable[[list[Reader], Mapping[bytes, int]], dict[str, dict[bytes, frozenset[int]]]]
"""(members, partitions by topic id) to each member's partitions."""


def range_(readers: list[Reader], topics: Mapping[bytes, int]) -> dict[str, dict[bytes, frozenset[int]]]:
    """Each topic in ranges: the same numbers of different topics meet at one member.

    Members stand in the order of their instance ids, then of their member ids, so that a static member keeps its range.
    """
    assigned: dict[str, dict[bytes, frozenset[int]]] = {reader.member_id: {} for reader in readers}
    ordered = sorted(readers, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id))
    for topic_id, partitions in sorted(topics.items()):
        subscribed = [reader for reader in ordered if topic_id in reader.topics]
        if not subscribed:
            continue
        share, extra = divmod(partitions, len(subscribed))
        start = 0
        for position, reader in enumerate(subscribed):
            end = start + share + (position < extra)
            if end > start:
                assigned[reader.member_id][topic_id] = frozenset(range(start, end))
            start = end
    return assigned


def uniform(readers: list[Reader], topics: Mapping[bytes, int]) -> dict[str, dict[bytes, frozenset[int]]]:
    """All partitions in equal numbers, moving as few as that allows."""
    readers = sorted(readers)
    held: dict[str, set[TopicPartition]] = {reader.member_id: set() for reader in readers}
    eligible: dict[bytes, list[str]] = {
        topic_id: [reader.member_id for reader in readers if topic_id in reader.topics] for topic_id in topics
    }
    _keep(readers, topics, held)
    owners = {partition: member_id for member_id, partitions in held.items() for partition in partitions}
    free = [
        (topic_id, partition)
        for topic_id, count in sorted(topics.items())
        for partition in range(count)
        if (topic_id, partition) not in owners and eligible[topic_id]
    ]
    if len({reader.topics for reader in readers}) <= 1:
        _fill(held, free)
    else:
        for partition in sorted(free, key=lambda one: (len(eligible[one[0]]), one)):
            least = min(eligible[partition[0]], key=lambda member_id: (len(held[member_id]), member_id))
            held[least].add(partition)
        _balance(held, eligible)
    assigned: dict[str, dict[bytes, frozenset[int]]] = {}
    for member_id, partitions in held.items():
        by_topic: dict[bytes, set[int]] = {}
        for topic_id, partition_index in partitions:
            by_topic.setdefault(topic_id, set()).add(partition_index)
        assigned[member_id] = {topic_id: frozenset(numbers) for topic_id, numbers in by_topic.items()}
    return assigned


def _keep(readers: list[Reader], topics: Mapping[bytes, int], held: dict[str, set[TopicPartition]]) -> None:
    """What members have stays theirs, as long as it is theirs to read and they have no more than their share."""
    total = sum(topics.values())
    share, extra = divmod(total, len(readers)) if readers else (0, 0)
    is_equal = len({reader.topics for reader in readers}) <= 1
    taken: set[TopicPartition] = set()
    # Whoever has most may have one more than the others: it then gives up one less.
    counts = {one.member_id: sum(map(len, one.current.values())) for one in readers}
    for reader in sorted(readers, key=lambda one: (-counts[one.member_id], one.member_id)):
        limit = total if not is_equal else share
        if is_equal and extra > 0 and counts[reader.member_id] > share:
            limit += 1
            extra -= 1
        for topic_id, partitions in sorted(reader.current.items()):
            if topic_id not in reader.topics:
                continue
            for partition in sorted(partitions):
                one = (topic_id, partition)
                if len(held[reader.member_id]) < limit and partition < topics.get(topic_id, 0) and one not in taken:
                    held[reader.member_id].add(one)
                    taken.add(one)


def _fill(held: dict[str, set[TopicPartition]], free: list[TopicPartition]) -> None:
    """Where all read the same, whoever has least gets the next."""
    counts = [(len(partitions), member_id) for member_id, partitions in held.items()]
    heapq.heapify(counts)
    for partition in free:
        count, member_id = counts[0]
        held[member_id].add(partition)
        heapq.heapreplace(counts, (count + 1, member_id))


def _balance(held: dict[str, set[TopicPartition]], eligible: Mapping[bytes, list[str]]) -> None:
    """While somebody has two more than another that could read one of them, move it. Each move evens the numbers
    out, so this ends.
    """
    moved = True
    while moved:
        moved = False
        for member_id in sorted(held, key=lambda one: (-len(held[one]), one)):
            for partition in sorted(held[member_id]):
                others = eligible[partition[0]]
                least = min(others, key=lambda one: (len(held[one]), one))
                if len(held[member_id]) - len(held[least]) >= 2:
                    held[member_id].discard(partition)
                    held[least].add(partition)
                    moved = True


ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform, "range": range_}
