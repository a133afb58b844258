"""What is quicker than the plain way says the same as the plain way."""

from __future__ import annotations

from tidelog.outbox import Chance
from tidelog.sim.clock import RIGHT_PPM, Clock


def test_a_number_below_a_bound_is_drawn_from_the_same_bits() -> None:
    one, other = Chance(7), Chance(7)
    for bound in range(1, 500):
        assert one.below(bound) == other.bits64() % bound
    assert one.bits64() == other.bits64()


def test_a_clock_shows_each_time_when_it_says_it_will() -> None:
    """Whatever is done to it: it never goes back, and `when` is the first moment at which a time is shown."""
    for seed in range(30):
        chance = Chance(seed)
        now_ms, clock = 1_000_000, Clock(1_000_000)
        shown_ms = clock.read(now_ms)
        for _ in range(60):
            now_ms += chance.below(3_000)
            action = chance.below(6)
            if action == 0:
                clock.jump(now_ms, chance.below(10_000) - 5_000)
            elif action == 1:
                clock.run_at(now_ms, RIGHT_PPM + chance.below(600_000) - 300_000)
            elif action == 2:
                clock.run_at(now_ms, RIGHT_PPM)
            assert clock.read(now_ms) >= shown_ms
            shown_ms = clock.read(now_ms)
            wanted_ms = shown_ms + 1 + chance.below(5_000)
            at_ms = clock.when(wanted_ms)
            assert clock.read(at_ms) >= wanted_ms > clock.read(at_ms - 1)


def test_a_clock_that_was_set_back_is_slow_until_it_is_right() -> None:
    clock = Clock(1_000)
    assert not clock.is_slowed(1_500)
    clock.jump(2_000, -300)
    assert clock.is_slowed(2_590)
    assert not clock.is_slowed(2_600)
    assert clock.read(2_600) == 2_300
    clock.jump(3_000, 500)
    assert not clock.is_slowed(3_000)
