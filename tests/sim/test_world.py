"""The simulated outside does what a real one does: order is kept, silence is silence, time is each machine's own."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.sim.clock import Clock
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.disk import SimulatedDisk
from tidelog.sim.network import Connection
from tidelog.sim.timeline import SPAN_MS, Timeline
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.api_versions import ApiVersionsRequest


def one_node(seed: int = 1) -> SimulatedCluster:
    cluster = SimulatedCluster(seed)
    cluster.start_all()
    return cluster


def ask(cluster: SimulatedCluster, connection: Connection, answers: list[Any], timeout_ms: int | None = None) -> None:
    cluster.world.request(connection, ApiKey.API_VERSIONS, 3, ApiVersionsRequest(), answers.append, timeout_ms)


def connect(cluster: SimulatedCluster) -> Connection:
    connection = cluster.world.connect(1, source="c")
    assert connection is not None
    return connection


def test_what_is_held_waits_and_keeps_its_order() -> None:
    cluster = one_node()
    passed: list[tuple[Any, bool]] = []
    cluster.world.on_message = lambda message: passed.append((message.source, message.is_request))
    connection, answers = connect(cluster), []
    cluster.world.network.hold("c", 1)
    for _ in range(3):
        ask(cluster, connection, answers)
    cluster.world.run_for(1_000)
    assert answers == []
    assert cluster.world.network.let("c", 1, count=2) == 2
    cluster.world.run_for(100)
    assert len(answers) == 2
    cluster.world.network.release("c", 1)
    cluster.world.run_for(100)
    assert len(answers) == 3
    assert [is_request for source, is_request in passed if source == "c"] == [True] * 3


def test_a_cut_network_loses_nothing_that_is_sent_again_and_lets_nobody_in() -> None:
    cluster = one_node()
    connection, answers = connect(cluster), []
    cluster.world.network.cut(1, "c")
    assert cluster.world.is_cut("c", 1)
    ask(cluster, connection, answers)
    cluster.world.run_for(5_000)
    assert answers == []
    cluster.world.network.mend(1, "c")
    cluster.world.run_for(100)
    assert len(answers) == 1
    assert not cluster.world.is_cut("c", 1)


def test_who_waits_too_long_gives_the_connection_up() -> None:
    cluster = one_node()
    connection, answers = connect(cluster), []
    cluster.world.network.hold(1, "c")
    ask(cluster, connection, answers, timeout_ms=500)
    ask(cluster, connection, answers, timeout_ms=60_000)
    cluster.world.run_for(1_000)
    assert answers == [None, None]
    assert not connection.is_open


def test_a_slow_link_takes_longer() -> None:
    cluster = one_node()
    connection, answers = connect(cluster), []
    cluster.world.network.slow("c", 1, 300)
    ask(cluster, connection, answers)
    cluster.world.run_for(299)
    assert answers == []
    cluster.world.run_for(20)
    assert len(answers) == 1


def test_a_paused_process_keeps_its_connections_and_finds_its_requests_later() -> None:
    cluster = one_node()
    connection, answers = connect(cluster), []
    cluster.world.pause(1)
    ask(cluster, connection, answers)
    cluster.world.run_for(20_000)
    assert answers == []
    assert connection.is_open
    cluster.world.resume(1)
    cluster.world.run_for(100)
    assert len(answers) == 1


def test_a_kill_is_seen_at_once_and_a_loss_of_power_is_not() -> None:
    cluster = one_node()
    connection, answers = connect(cluster), []
    cluster.world.power_loss(1)
    ask(cluster, connection, answers)
    cluster.world.run_for(10_000)
    assert answers == []
    cluster.world.start(1)
    cluster.world.run_for(10)
    assert answers == [None], "a machine that is back resets what it knows nothing of"
    connection, answers = connect(cluster), []
    cluster.world.hosts[1].process.paused = True  # type: ignore[union-attr]
    ask(cluster, connection, answers)
    cluster.world.kill(1)
    cluster.world.run_for(10)
    assert answers == [None]


def seen_of_a_killed_peer(seed: int, may_send_on: bool) -> list[str]:
    """What a node hears on the connection of another, which asked it something and was killed while that was held."""
    cluster = SimulatedCluster(seed, nodes=2)
    cluster.start_all()
    world, node = cluster.world, cluster.process(2).node
    world.may_send_on = may_send_on
    world.network.hold(1, 2)
    connection = world.connect(2, source=1, owner=cluster.process(1))
    assert connection is not None
    cluster.process(1).peers[2, "test"] = connection
    ask(cluster, connection, [])
    world.run_for(50)
    world.kill(1)
    seen: list[str] = []
    step = node.step

    def noting(event: Any, now_ms: int) -> Any:
        if getattr(event, "connection_id", None) == connection.connection_id:
            seen.append(type(event).__name__)
        return step(event, now_ms)

    node.step = noting  # type: ignore[method-assign]
    world.network.release(1, 2)
    world.run_for(50)
    return seen


@pytest.mark.parametrize("may_send_on", [False, True])
def test_what_a_process_had_sent_may_arrive_after_its_end_and_before_the_news_of_it(may_send_on: bool) -> None:
    """As by TCP: a kernel sends on for a process that is gone."""
    arrived = [seen_of_a_killed_peer(seed, may_send_on) for seed in range(20)]
    without, with_it = ["ConnectionClosed"], ["Request", "ConnectionClosed"]
    assert without in arrived
    assert (with_it in arrived) is may_send_on
    assert all(one in (without, with_it) for one in arrived)


@pytest.mark.parametrize("rate_ppm", [1_000_000, 900_000, 1_100_000, 333_333])
def test_a_clock_wakes_when_it_reads_the_time_asked_for(rate_ppm: int) -> None:
    clock = Clock(1_000)
    clock.run_at(1_000, rate_ppm)
    for local_ms in range(1_000, 3_000, 37):
        true_ms = clock.when(local_ms)
        assert clock.read(true_ms) >= local_ms
        assert clock.read(true_ms - 1) < local_ms


def test_a_clock_that_is_set_back_goes_on_at_half_speed_until_the_time_has_caught_up() -> None:
    clock = Clock(0)
    clock.jump(10_000, -4_000)
    assert [clock.read(at_ms) for at_ms in (10_000, 12_000, 18_000, 19_000)] == [10_000, 11_000, 14_000, 15_000]
    assert clock.when(11_000) == 12_000
    clock.jump(20_000, 5_000)
    assert clock.read(20_000) == 21_000


@pytest.mark.parametrize("jump_ms", [-60_000, 60_000])
def test_a_cluster_survives_a_clock_that_jumps(jump_ms: int) -> None:
    cluster = SimulatedCluster(3, nodes=3)
    cluster.start_all()
    cluster.world.hosts[2].clock.jump(cluster.world.now_ms, jump_ms)
    cluster.world.run_for(30_000)
    assert all(cluster.is_running(one) for one in (1, 2, 3))


def test_brokers_and_controllers_may_be_apart() -> None:
    cluster = SimulatedCluster(4, brokers=(1, 2), controllers=(11, 12, 13))
    cluster.start_all()
    controller = cluster.active_controller()
    assert controller is not None
    assert controller[0] in (11, 12, 13)
    assert sorted(cluster.newest_image().brokers) == [1, 2]


def test_a_wiped_node_comes_back_empty_under_its_old_id() -> None:
    cluster = SimulatedCluster(5, brokers=(1, 2), controllers=(11,))
    cluster.start_all()
    before = cluster.newest_image().brokers[1].log_dirs
    cluster.world.kill(1)
    cluster.wipe(1)
    cluster.world.start(1)
    assert cluster.world.run_until(lambda: cluster.is_running(1))
    assert cluster.newest_image().brokers[1].log_dirs != before


def test_a_node_that_is_about_to_stop_is_not_running() -> None:
    """Seed 100381: its stop took a while, all was called well, and then there was nobody to look at."""
    cluster = SimulatedCluster(6, nodes=1)
    cluster.start_all()
    assert cluster.is_running(1)
    cluster.world.stop(1)
    assert cluster.process(1).alive
    assert not cluster.is_running(1)


def test_what_is_set_for_any_time_happens_in_order_of_time_and_then_of_asking() -> None:
    timeline = Timeline(7, start_ms=1_000_000)
    wanted: list[tuple[int, int]] = []
    happened: list[tuple[int, int]] = []

    def put(delay_ms: int) -> None:
        at_ms, number = timeline.now_ms + delay_ms, len(wanted)
        wanted.append((at_ms, number))

        def happen() -> None:
            assert timeline.now_ms == at_ms
            happened.append((at_ms, number))
            if number < 2_000:
                put(timeline.chance.below(3))
                put(timeline.chance.below(SPAN_MS * 8))

        timeline.at(at_ms, happen)

    for delay_ms in (SPAN_MS * 40, SPAN_MS, 0, SPAN_MS - 1, 5, 5):
        put(delay_ms)
    while len(happened) < len(wanted):
        timeline.run_for(timeline.chance.below(SPAN_MS * 3))  # ends within spans, at their ends and where nothing is
    assert len(happened) > 2_000
    assert happened == sorted(wanted)
    assert not timeline.run_until(lambda: False, within_ms=10)


def test_flushes_of_a_disk_are_done_and_told_in_their_order_and_some_are_told_late() -> None:
    """One thread of the runtime does them, one after the other; what it has done may be told a while after."""
    late = 0
    for seed in range(5):
        cluster = one_node(seed)
        disk = cluster.world.hosts[1].disks[0]
        outbox = cluster.process(1).node.outbox
        told: list[int] = []

        def flushed(number: int, told: list[int] = told, disk: SimulatedDisk = disk) -> None:
            nonlocal late
            there = int(disk.read_file("counter"))
            assert there >= number
            late += there > number
            told.append(number)

        for number in range(60):
            counter = [("counter", b"%d" % number)]
            outbox.flush(disk, lambda _error, number=number: flushed(number), replacements=counter)  # type: ignore[misc]
            cluster.world.run_for(number % 4)
        assert cluster.world.run_until(lambda told=told: len(told) == 60, 10_000)  # type: ignore[misc]
        assert told == sorted(told)
    assert late
