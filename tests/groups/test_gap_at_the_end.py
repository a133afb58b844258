"""A coordinator reads a log in which nothing is left at the end, as a compaction of Apache Kafka's may leave it."""

from __future__ import annotations

from tests.groups.support import GROUP, GroupNode
from tidelog.coordination.coordinator import partition_for
from tidelog.groups.service import TOPIC as OFFSETS


def test_a_log_that_ends_with_nothing_is_read_to_its_end() -> None:
    node = GroupNode(1)
    assert node.commit({0: 7}) == {0: 0}
    node.world.stop(1)
    assert node.world.run_until(lambda: not node.process(1).alive, 60_000)
    disk = node.world.hosts[1].disks[0]
    directory = f"{OFFSETS}-{partition_for(GROUP, 3)}"
    for base_offset in (10, 20):
        disk.open(f"{directory}/{base_offset:020d}.log", create=True)
    node.start_all()
    assert node.world.run_until(lambda: node.is_running(1))
    log = node.process(1).node.replicas.partitions[OFFSETS, partition_for(GROUP, 3)].log
    assert log.log_end_offset == 20
    assert node.committed() == {0: 7}
