"""A clean stop is called one only where every log was closed and flushed."""

from __future__ import annotations

from tests.sim.test_directories import PARTITIONS, TOPIC, in_second_directory, isr, lost, two_directories_each
from tidelog.log import names
from tidelog.replica.directory import CLEAN_SHUTDOWN


def test_a_directory_in_which_a_log_could_not_be_closed_has_no_mark_of_a_clean_stop() -> None:
    """What it had not flushed would be taken for whole after a power loss, and vouched for."""
    stage = two_directories_each(1)
    host = stage.cluster.world.hosts[1]
    first, second = host.disks
    unlucky = names.directory_name(TOPIC, min(in_second_directory(stage, 1)))
    second.fail("append", path_prefix=f"{unlucky}/00000000000000000000.index")
    second.fail("append", path_prefix=f"{unlucky}/00000000000000000000.timeindex")
    second.fail("replace", path_prefix=unlucky)
    stage.stop_node(1)
    assert host.process is None or not host.process.alive
    second.heal()
    assert first.exists(CLEAN_SHUTDOWN)
    assert not second.exists(CLEAN_SHUTDOWN)

    stage.start_node(1)
    assert stage.wait_until(lambda: all(isr(stage, index) == {1, 2} for index in PARTITIONS), 20_000)
    assert lost(stage) == []
