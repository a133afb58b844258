"""How long what went is held against a throttle: Kafka's windows (replication.quota.window.num and .size.seconds)."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.config import NodeConfig
from tidelog.outbox import Outbox
from tidelog.replica.throttle import ReplicationThrottles, Throttle

RATE = 1_000


def throttle(**settings: Any) -> tuple[Outbox, Throttle]:
    """The leader's side of a node with these settings, at 1,000 bytes a second."""
    outbox = Outbox(seed=1)
    outbox.now_ms = 1_000_000
    config = NodeConfig(leader_replication_throttled_rate=RATE, **settings)
    return outbox, ReplicationThrottles(1, outbox, lambda: config).leader


def held_for_ms(outbox: Outbox, side: Throttle) -> int:
    begun_ms = outbox.now_ms
    while side.is_exceeded:
        outbox.now_ms += 100
    return outbox.now_ms - begun_ms


@pytest.mark.parametrize(("count", "seconds"), [(11, 1), (3, 1), (3, 2), (1, 5)])
def test_a_burst_is_held_against_it_until_its_window_is_forgotten(count: int, seconds: int) -> None:
    outbox, side = throttle(replication_quota_window_num=count, replication_quota_window_size_seconds=seconds)
    side.record(RATE * 100_000)
    assert held_for_ms(outbox, side) == count * seconds * 1000


def test_by_default_there_are_eleven_windows_of_a_second() -> None:
    outbox, side = throttle()
    side.record(RATE * 100_000)
    assert held_for_ms(outbox, side) == 11_000


def test_what_a_whole_window_allows_may_go_at_its_start() -> None:
    outbox, side = throttle(replication_quota_window_size_seconds=4)
    side.record(4 * RATE)
    assert held_for_ms(outbox, side) == 0
    side.record(1)
    assert held_for_ms(outbox, side) == 4_100, "from the end of the first window on the time that passed divides"
