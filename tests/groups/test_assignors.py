"""Assignors: everything is read, once, evenly, and little moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidelog.groups.consumer.assignors import ASSIGNORS, Reader, range_, uniform

TOPICS = [bytes([number]) * 16 for number in range(1, 4)]
members = st.dictionaries(st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from(TOPICS)), max_size=8)
topics = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))


def readers(wanted: dict[str, frozenset[bytes]], current: dict[str, dict[bytes, frozenset[int]]]) -> list[Reader]:
    return [Reader(name, None, read, current.get(name, {})) for name, read in wanted.items()]


@given(members, members, topics, topics, st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_has_one_reader_who_subscribes_to_it(
    before: dict[str, frozenset[bytes]],
    wanted: dict[str, frozenset[bytes]],
    old: dict[bytes, int],
    new: dict[bytes, int],
    name: str,
) -> None:
    assign = ASSIGNORS[name]
    assigned = assign(readers(wanted, assign(readers(before, {}), old)), new)
    assert set(assigned) == set(wanted)
    read = [
        (topic, partition)
        for member, parts in assigned.items()
        for topic, numbers in parts.items()
        for partition in numbers
        if topic in wanted[member]
    ]
    subscribed = {topic for topics_read in wanted.values() for topic in topics_read}
    assert sorted(read) == sorted(
        (topic, one) for topic, count in new.items() if topic in subscribed for one in range(count)
    )


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 30))
def test_uniform_is_even_and_moves_little(before: int, after: int, partitions: int) -> None:
    topic = TOPICS[0]
    everything = frozenset({topic})
    old = uniform(readers({f"m{number}": everything for number in range(before)}, {}), {topic: partitions})
    new = uniform(readers({f"m{number}": everything for number in range(after)}, old), {topic: partitions})
    counts = [len(parts.get(topic, ())) for parts in new.values()]
    assert max(counts) - min(counts) <= 1
    kept = sum(
        len(new[name].get(topic, frozenset()) & old[name].get(topic, frozenset())) for name in new if name in old
    )
    assert kept >= min(before, after) * (partitions // max(before, after))


@given(members, topics)
def test_uniform_is_even_where_members_read_different_topics(
    wanted: dict[str, frozenset[bytes]], counts: dict[bytes, int]
) -> None:
    assigned = uniform(readers(wanted, {}), counts)
    sizes = {name: sum(map(len, parts.values())) for name, parts in assigned.items()}
    for name, parts in assigned.items():
        for topic in parts:
            for other, read in wanted.items():
                assert topic not in read or sizes[name] - sizes[other] <= 1, "one partition could move and even it out"


def test_range_keeps_the_place_of_static_members() -> None:
    topic = TOPICS[0]
    read = frozenset({topic})
    before = range_([Reader("x", "one", read, {}), Reader("y", "two", read, {})], {topic: 4})
    after = range_([Reader("z", "one", read, {}), Reader("a", "two", read, {})], {topic: 4})
    assert (before["x"], before["y"]) == (after["z"], after["a"])
