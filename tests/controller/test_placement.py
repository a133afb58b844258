"""New replicas are spread evenly, over racks where there are some."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controller.world import World
from tidelog.controller import MetadataImage
from tidelog.controller.decide.placement import Placer
from tidelog.controller.records import RegisterBrokerRecord
from tidelog.errors import ErrorCode, KafkaError
from tidelog.outbox import Chance


def image_with(brokers: int, racks: list[str] | None = None, fenced: tuple[int, ...] = ()) -> MetadataImage:
    image = MetadataImage()
    for each in range(brokers):
        rack = racks[each % len(racks)] if racks else None
        record = RegisterBrokerRecord(broker_id=each, broker_epoch=each, rack=rack, fenced=each in fenced)
        record.log_dirs = [bytes(15) + bytes([200 + each])]
        image.apply(record)
    return image


def spread(rows: list[list[int]], brokers: int, *, leaders: bool) -> int:
    counts = Counter(dict.fromkeys(range(brokers), 0))
    counts.update(row[0] for row in rows) if leaders else counts.update(each for row in rows for each in row)
    return max(counts.values()) - min(counts.values())


@settings(max_examples=150, deadline=None)
@given(brokers=st.integers(1, 9), partitions=st.integers(1, 40), factor=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_leaders_and_replicas_differ_by_at_most_one(brokers: int, partitions: int, factor: int, seed: int) -> None:
    factor = min(factor, brokers)
    rows = Placer(image_with(brokers), Chance(seed)).place(partitions, factor)
    assert all(len(set(row)) == factor for row in rows)
    assert spread(rows, brokers, leaders=True) <= 1
    assert spread(rows, brokers, leaders=False) <= 1


@settings(max_examples=60, deadline=None)
@given(
    racks=st.integers(1, 4),
    each=st.integers(1, 3),
    partitions=st.integers(1, 30),
    factor=st.integers(1, 6),
    seed=st.integers(0, 2**32),
)
def test_replicas_use_as_many_racks_as_there_are(
    racks: int, each: int, partitions: int, factor: int, seed: int
) -> None:
    names = [f"rack{number}" for number in range(racks)]
    brokers = racks * each
    factor = min(factor, brokers)
    image = image_with(brokers, names)
    rows = Placer(image, Chance(seed)).place(partitions, factor)
    for row in rows:
        used = Counter(image.brokers[broker].rack for broker in row)
        assert len(used) == min(factor, racks)
        assert max(used.values()) - min(used[name] for name in names) <= 1
    assert spread(rows, brokers, leaders=True) <= 1
    assert spread(rows, brokers, leaders=False) <= 1


def test_followers_of_one_leader_differ_from_round_to_round() -> None:
    rows = Placer(image_with(6), Chance(1)).place(60, 3)
    followers = Counter(each for row in rows if row[0] == 0 for each in row[1:])
    assert len(followers) >= 4


def test_many_small_topics_are_led_evenly_too() -> None:
    world = World((1, 2, 3, 4))
    for number in range(16):
        world.create(f"topic{number}", 1, 2)
    leaders = Counter(partition.leader for _, _, partition in world.image.partitions())
    assert set(leaders.values()) == {4}


def test_the_same_chance_gives_the_same_layout() -> None:
    first, second = (Placer(image_with(7), Chance(5)).place(20, 3) for _ in range(2))
    assert first == second


def test_fenced_brokers_are_used_only_where_live_ones_do_not_suffice() -> None:
    image = image_with(4, fenced=(0,))
    assert all(0 not in row for row in Placer(image, Chance(1)).place(12, 3))
    rows = Placer(image, Chance(1)).place(12, 4)
    assert all(0 in row and row[0] != 0 for row in rows)


@pytest.mark.parametrize(
    ("brokers", "fenced", "factor", "said"),
    [(2, (), 3, "only 2"), (2, (0, 1), 1, "fenced"), (0, (), 1, "fenced")],
)
def test_what_cannot_be_reached_is_refused(brokers: int, fenced: tuple[int, ...], factor: int, said: str) -> None:
    with pytest.raises(KafkaError, match=said) as raised:
        Placer(image_with(brokers, fenced=fenced), Chance(1)).place(1, factor)
    assert raised.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
