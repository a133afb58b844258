"""What a leader may count on: getting the watermark wrong loses acknowledged records or shows uncommitted ones."""

from __future__ import annotations

import pytest

from tidelog.replica.leadership import Leadership

MAX_LAG_MS = 10_000


def leader(
    isr: tuple[int, ...] = (1, 2, 3),
    replicas: tuple[int, ...] = (1, 2, 3),
    *,
    epoch_start_offset: int = 0,
    eligible: bool = True,
) -> Leadership:
    leadership = Leadership(1, 5, epoch_start_offset, lambda _id, _epoch: eligible)
    leadership.update(replicas, isr, partition_epoch=0, now_ms=0)
    return leadership


def watermark(leadership: Leadership, end_offset: int, *, min_isr: int = 1, now_ms: int = 0) -> int | None:
    return leadership.high_watermark(end_offset, end_offset, min_isr, now_ms, MAX_LAG_MS)


def fetch(leadership: Leadership, follower: int, offset: int, end_offset: int, now_ms: int = 0) -> None:
    leadership.followers[follower].fetched(offset, 0, end_offset, 1, now_ms)


def test_the_watermark_is_the_least_end_of_the_in_sync_replicas() -> None:
    leadership = leader(isr=(1, 2, 3), replicas=(1, 2, 3, 4))
    fetch(leadership, 2, 4, 6)
    fetch(leadership, 3, 3, 6)
    assert watermark(leadership, 6) == 3, "follower 4, silent and outside the ISR, does not hold it back"


def test_a_fetch_offset_is_the_acknowledgement() -> None:
    leadership = leader()
    fetch(leadership, 2, 3, 3)
    assert watermark(leadership, 3) == -1, "3 has not fetched from this leader yet"
    fetch(leadership, 3, 3, 3)
    assert watermark(leadership, 3) == 3


def test_a_leader_alone_commits_at_once() -> None:
    assert watermark(leader(isr=(1,), replicas=(1,)), 7) == 7


def test_the_watermark_stands_still_below_min_insync_replicas() -> None:
    assert watermark(leader(isr=(1,)), 7, min_isr=2) is None
    assert watermark(leader(isr=(1,), replicas=(1,)), 7, min_isr=2) == 7, "no more can be asked than there are replicas"


def test_growth_under_way_is_waited_for() -> None:
    leadership = leader(isr=(1, 2))
    fetch(leadership, 2, 10, 10)
    fetch(leadership, 3, 6, 10, now_ms=0)
    leadership.followers[3].last_caught_up_ms = -MAX_LAG_MS - 1
    assert watermark(leadership, 10) == 10
    leadership.proposed = (1, 2, 3)
    assert watermark(leadership, 10) == 6


def test_a_shrink_under_way_does_not_count_yet() -> None:
    leadership = leader(isr=(1, 2, 3))
    fetch(leadership, 2, 10, 10)
    fetch(leadership, 3, 6, 10)
    leadership.proposed = (1, 2)
    assert watermark(leadership, 10) == 6
    leadership.update((1, 2, 3), (1, 2), partition_epoch=1, now_ms=MAX_LAG_MS + 1)
    assert watermark(leadership, 10, now_ms=MAX_LAG_MS + 1) == 10


@pytest.mark.parametrize("eligible", [True, False])
def test_a_caught_up_replica_that_may_join_is_waited_for(eligible: bool) -> None:
    leadership = leader(isr=(1, 2), eligible=eligible)
    fetch(leadership, 2, 10, 10)
    fetch(leadership, 3, 9, 9)
    assert watermark(leadership, 10) == (9 if eligible else 10)


def test_a_follower_joins_only_from_the_start_of_the_epoch_on() -> None:
    leadership = leader(isr=(1, 2), epoch_start_offset=8)
    fetch(leadership, 3, 7, 10)
    assert leadership.grown_isr(3, high_watermark=5) is None, "below the epoch's start its log may still differ"
    fetch(leadership, 3, 8, 10)
    assert leadership.grown_isr(3, high_watermark=9) is None, "it lacks a committed record"
    assert leadership.grown_isr(3, high_watermark=8) == (1, 2, 3)


def test_an_earlier_life_of_a_broker_does_not_join() -> None:
    leadership = leader(isr=(1, 2), eligible=False)
    fetch(leadership, 3, 10, 10)
    assert leadership.grown_isr(3, high_watermark=10) is None


def test_one_proposal_at_a_time() -> None:
    leadership = leader(isr=(1, 2), replicas=(1, 2, 3, 4))
    fetch(leadership, 3, 10, 10)
    fetch(leadership, 4, 10, 10)
    leadership.proposed = leadership.grown_isr(3, 10)
    assert leadership.grown_isr(4, 10) is None
    assert leadership.lagging(100, 10 * MAX_LAG_MS, MAX_LAG_MS, -1) == []


def test_lag_is_measured_in_time() -> None:
    leadership = leader()
    fetch(leadership, 2, 10, 10, now_ms=1_000)
    fetch(leadership, 3, 10, 10, now_ms=1_000)
    fetch(leadership, 3, 12, 15, now_ms=5_000)
    fetch(leadership, 3, 15, 20, now_ms=9_000)
    assert leadership.lagging(20, 11_000, MAX_LAG_MS, -1) == []
    assert leadership.lagging(20, 11_001, MAX_LAG_MS, -1) == [2], "3 had at 9,000 what there was at 5,000"
    fetch(leadership, 2, 20, 20, now_ms=11_001)
    assert leadership.lagging(20, 60_000, MAX_LAG_MS, -1) == [3], "2 has everything, however long ago it spoke"


def test_lag_by_count_throws_out_a_healthy_follower() -> None:
    leadership = leader()
    fetch(leadership, 2, 14, 14, now_ms=0)
    fetch(leadership, 3, 20, 20, now_ms=0)
    assert leadership.lagging(20, 1, MAX_LAG_MS, -1) == []
    assert leadership.lagging(20, 1, MAX_LAG_MS, 5) == [2]


def test_newer_metadata_settles_a_proposal() -> None:
    leadership = leader(isr=(1, 2))
    leadership.proposed = (1, 2, 3)
    leadership.update((1, 2, 3), (1,), partition_epoch=1, now_ms=0)
    assert leadership.proposed is None
    assert leadership.isr == (1,)
