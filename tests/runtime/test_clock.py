"""Time never goes back, and never stands still for long, whatever happens to the wall clock."""

from __future__ import annotations

from tidelog.runtime.clock import Clock
from tidelog.runtime.loop import Loop

SECOND = 1_000_000_000


class Hands:
    """The two clocks of a machine, moved by the test."""

    def __init__(self) -> None:
        self.wall_ns = 1_000_000 * SECOND
        self.monotonic_ns = 5 * SECOND
        self.clock = Clock(lambda: self.wall_ns, lambda: self.monotonic_ns)

    def pass_time(self, ns: int) -> int:
        self.wall_ns += ns
        self.monotonic_ns += ns
        return self.clock.now_ms()


def test_it_follows_the_wall_clock() -> None:
    hands = Hands()
    before = hands.clock.now_ms()
    assert hands.pass_time(3 * SECOND) == before + 3000
    hands.wall_ns += 3600 * SECOND
    assert hands.pass_time(0) == before + 3_603_000


def test_it_goes_on_at_half_speed_while_the_wall_clock_is_behind() -> None:
    hands = Hands()
    before = hands.clock.now_ms()
    hands.wall_ns -= 10 * SECOND
    times = [hands.pass_time(SECOND) for _ in range(30)]
    assert times == sorted(times)
    assert times[3] == before + 2000
    assert times[-1] == hands.wall_ns // 1_000_000


def test_timers_run_in_order_and_can_be_cancelled() -> None:
    hands = Hands()
    loop = Loop(hands.clock)
    called: list[str] = []
    loop.after(20, lambda: called.append("second"))
    loop.after(10, lambda: called.append("first"))
    cancelled = loop.after(15, lambda: called.append("never"))
    loop.after(20, lambda: called.append("third"))
    cancelled.cancel()
    cancelled.cancel()
    loop.turn(0)
    assert called == []
    hands.pass_time(SECOND)
    loop.turn(0)
    assert called == ["first", "second", "third"]
    loop.close()


def test_what_goes_on_again_runs_in_the_next_turn() -> None:
    loop = Loop(Clock())
    called: list[int] = []

    def work() -> None:
        called.append(len(called))
        if len(called) < 3:
            loop.again(work)

    loop.again(work)
    for expected in (1, 2, 3, 3):
        loop.turn(0)
        assert len(called) == expected
    loop.close()
