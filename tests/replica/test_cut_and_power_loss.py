"""What a follower cut stays cut: a power loss must not bring it back once other records were appended there."""

from __future__ import annotations

import pytest

from tests.node.support import TOPIC, OneNode
from tidelog.log.checkpoints import LOG_STARTS, RECOVERY_POINTS
from tidelog.log.checkpoints import read as read_checkpoint
from tidelog.replica import checkpoints, copying
from tidelog.wire.batch import Record, build_batch, iterate_batches

OLD_EPOCH, NEW_EPOCH = 0, 9


def epoch_at(node: OneNode, offset: int, start: int = 0) -> int | None:
    """The epoch of the batch at an offset; None where the log ends before it."""
    log = node.process(1).node.replicas.partitions[TOPIC, 0].log
    found = log.read(start, 1 << 20, up_to_offset=log.log_end_offset)
    batches = [batch for part in found.parts for batch in iterate_batches(part.read())]
    return next((one.partition_leader_epoch for one in batches if one.base_offset == offset), None)


@pytest.mark.parametrize("is_led_by_another", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_what_was_cut_does_not_come_back_below_the_watermark(seed: int, is_led_by_another: bool) -> None:
    """The watermark on the disk is of the records that took its place: it would cover what was never committed.

    Whoever follows another leader, while the cut is on its way to the medium, goes on without waiting for it.
    """
    node = OneNode(seed, 1, replication_events_enable="false")
    for number in range(3):
        assert node.produce({0: node.batch(b"%d" % number)})[0].error_code == 0
    replicas = node.process(1).node.replicas
    partition = replicas.partitions[TOPIC, 0]
    assert epoch_at(node, 2) == OLD_EPOCH
    replicas.flush(partition)
    assert node.world.run_until(lambda: partition.log.recovery_point == 3, 10_000)
    partition.become_follower(2, NEW_EPOCH)
    is_cut: list[bool] = []
    if is_led_by_another:
        node.world.hosts[1].disks[0].delay_ms = 20_000
    copying.truncate_to_leader(replicas, partition, OLD_EPOCH, 2, 0, lambda: is_cut.append(True))
    if is_led_by_another:
        partition.become_follower(3, NEW_EPOCH)
    else:
        assert node.world.run_until(lambda: bool(is_cut), 10_000)
    batch = build_batch([Record(2, node.world.now_ms, None, b"new")], partition_leader_epoch=NEW_EPOCH)
    copying.append_from_leader(replicas, partition, memoryview(batch))
    partition.follow_watermark(3, 0)
    interval_ms = replicas.config.replica_high_watermark_checkpoint_interval_ms
    node.world.run_until(lambda: False, 2 * interval_ms)
    node.world.power_loss(1)
    node.world.hosts[1].disks[0].delay_ms = 0
    node.world.start(1)
    assert node.world.run_until(lambda: (TOPIC, 0) in node.process(1).node.replicas.partitions, 10_000)
    if node.process(1).node.replicas.partitions[TOPIC, 0].high_watermark > 2 or not is_led_by_another:
        assert epoch_at(node, 2) in (None, NEW_EPOCH)


@pytest.mark.parametrize("seed", [*range(10), 25, 37])
@pytest.mark.parametrize("cut_at", [4, 5])
@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("is_anew", [False, True])
def test_a_power_loss_in_the_middle_of_a_cut_leaves_no_hole(seed: int, cut_at: int, policy: str, is_anew: bool) -> None:
    """The checkpoint still called flushed what was being cut: a start did not look at the segment that had lost its
    end, and went on behind it with one that was to be gone, or took it all for damage.
    """
    configs = {"internal.segment.bytes": "250", "cleanup.policy": policy}
    node = OneNode(seed, 1, configs, replication_events_enable="false")
    for number in range(5):
        records = [Record(index, node.world.now_ms, b"%d" % (2 * number + index), b"value") for index in range(2)]
        assert node.produce({0: build_batch(records)})[0].error_code == 0
    replicas = node.process(1).node.replicas
    partition = replicas.partitions[TOPIC, 0]
    replicas.flush(partition)
    assert node.world.run_until(lambda: partition.log.recovery_point == 10, 10_000)
    checkpoints.write_all(replicas)
    partition.become_follower(2, NEW_EPOCH)
    copying.truncate_to_leader(replicas, partition, OLD_EPOCH, cut_at, cut_at if is_anew else 0, lambda: None)
    if seed % 2:
        assert node.world.run_until(lambda: partition.log.log_end_offset < 10, 10_000)
    else:
        node.world.run_for(seed % 5)
    node.world.power_loss(1)
    node.world.start(1)
    assert node.world.run_until(lambda: (TOPIC, 0) in node.process(1).node.replicas.partitions, 10_000)
    log = node.process(1).node.replicas.partitions[TOPIC, 0].log
    found = log.read(log.log_start_offset, 1 << 20, up_to_offset=log.log_end_offset)
    offsets = [one.base_offset for part in found.parts for one in iterate_batches(part.read())]
    assert offsets == list(range(log.log_start_offset, log.log_end_offset, 2))


@pytest.mark.parametrize("seed", range(12))
def test_what_a_start_has_cut_does_not_come_back_below_the_watermark(seed: int) -> None:
    """A torn segment with whole ones behind it: those are deleted, and a second power loss must not undo that when
    other records were appended there, and are committed.
    """
    node = OneNode(seed, 1, {"internal.segment.bytes": "250"}, replication_events_enable="false")
    for number in range(9):
        assert node.produce({0: node.batch(b"old-%d" % number)})[0].error_code == 0
    bases = [one.base_offset for one in node.process(1).node.replicas.partitions[TOPIC, 0].log.segments]
    node.world.run_for(1_000)
    disk = node.world.hosts[1].disks[0]
    node.world.kill(1)
    torn = disk.open(f"{TOPIC}-0/{bases[1]:020d}.log")
    torn.truncate(torn.size // 2)
    torn.flush(torn.size, torn.generation)  # type: ignore[attr-defined]
    node.world.hosts[1].boots += 1
    node.world.start(1)
    assert node.world.run_until(lambda: (TOPIC, 0) in node.process(1).node.replicas.partitions, 10_000)
    replicas = node.process(1).node.replicas
    partition = replicas.partitions[TOPIC, 0]
    assert partition.log.log_end_offset < bases[2]
    partition.become_follower(2, NEW_EPOCH)
    node.world.run_for(1_000)
    for offset in range(partition.log.log_end_offset, bases[2] + 1):
        batch = build_batch([Record(offset, node.world.now_ms, None, b"n")], partition_leader_epoch=OLD_EPOCH)
        copying.append_from_leader(replicas, partition, memoryview(batch))
    node.world.power_loss(1)
    node.world.start(1)
    assert node.world.run_until(lambda: (TOPIC, 0) in node.process(1).node.replicas.partitions, 10_000)
    log = node.process(1).node.replicas.partitions[TOPIC, 0].log
    found = log.read(0, 1 << 20, up_to_offset=log.log_end_offset)
    records = b"".join(part.read() for part in found.parts)
    assert b"old-%d" % bases[2] not in records


def test_a_log_that_is_cut_below_its_start_does_not_begin_there_again() -> None:
    """After an unclean election the leader's log may end before our start. A kill before the checkpoint of starts was
    written the next time, and the log was empty at the old start: what was acknowledged since was gone.
    """
    node = OneNode(1, 1, replication_events_enable="false")
    for number in range(9):
        assert node.produce({0: node.batch(b"%d" % number)})[0].error_code == 0
    replicas = node.process(1).node.replicas
    partition = replicas.partitions[TOPIC, 0]
    partition.raise_log_start(6)
    checkpoints.write_all(replicas)
    partition.become_follower(2, NEW_EPOCH)
    is_cut: list[bool] = []
    copying.start_within(replicas, partition, 0, 4, lambda: is_cut.append(True))
    assert node.world.run_until(lambda: bool(is_cut), 10_000)
    batch = build_batch([Record(4, node.world.now_ms, None, b"new")], partition_leader_epoch=NEW_EPOCH)
    copying.append_from_leader(replicas, partition, memoryview(batch))
    node.world.kill(1)
    node.world.start(1)
    assert node.world.run_until(lambda: (TOPIC, 0) in node.process(1).node.replicas.partitions, 10_000)
    assert epoch_at(node, 4, 4) == NEW_EPOCH


@pytest.mark.parametrize("checkpoint", [LOG_STARTS, RECOVERY_POINTS])
def test_a_checkpoint_on_its_way_to_the_medium_does_not_undo_a_later_one(checkpoint: str) -> None:
    """A log goes while another is cut: the checkpoint that came with the cut still named it, was in place last, and
    where the log had begun was believed of the next one of its name, whose records were gone at its next start.
    """
    node = OneNode(1, 2, replication_events_enable="false")
    for number in range(9):
        assert node.produce({index: node.batch(b"%d" % number) for index in (0, 1)})[0].error_code == 0
    replicas = node.process(1).node.replicas
    partition, other = (replicas.partitions[TOPIC, index] for index in (0, 1))
    for one in (partition, other):
        replicas.flush(one)
        assert node.world.run_until(lambda one=one: one.log.recovery_point == 9, 10_000)  # type: ignore[misc]
        one.raise_log_start(6)
    checkpoints.write_all(replicas)
    partition.become_follower(2, NEW_EPOCH)
    is_cut: list[bool] = []
    copying.start_within(replicas, partition, 0, 4, lambda: is_cut.append(True))
    assert node.world.run_until(lambda: partition.log.log_end_offset == 4, 10_000)
    replicas.remove(other)
    replicas._write_without_lost_logs()
    assert node.world.run_until(lambda: bool(is_cut), 10_000)
    node.world.run_for(1_000)
    written = read_checkpoint(node.world.hosts[1].disks[0], checkpoint)
    assert written == {(TOPIC, 0): 4}


def test_a_leader_that_deleted_what_would_tell_where_the_logs_part_leaves_nothing_to_keep() -> None:
    """Seed 100834: records of an epoch unknown to the leader stayed below its start, and so did their producer."""
    node = OneNode(1, 1, replication_events_enable="false")
    for number in range(3):
        batch = node.batch(b"%d" % number, producer_id=7, producer_epoch=0, base_sequence=number)
        assert node.produce({0: batch})[0].error_code == 0
    replicas = node.process(1).node.replicas
    partition = replicas.partitions[TOPIC, 0]
    partition.become_follower(2, NEW_EPOCH)
    is_cut: list[bool] = []
    copying.truncate_to_leader(replicas, partition, OLD_EPOCH, 2, 2, lambda: is_cut.append(True))
    assert node.world.run_until(lambda: bool(is_cut), 10_000)
    log = partition.log
    assert (log.log_start_offset, log.log_end_offset, partition.high_watermark) == (2, 2, 2)
    assert not list(log.producers.producers), "a retry of what is not in the log would be taken for a duplicate"


def test_a_follower_is_not_let_go_on_at_a_start_below_which_nobody_knows_where_the_logs_part() -> None:
    """Seed 920046 of a hunt: what a former leader alone had ended where its successor's log began. It went on there;
    when all were killed before any had noted where its log began, what was deleted was there again, and not the same.
    """
    node = OneNode(1, 1, replication_events_enable="false")
    partition = node.process(1).node.replicas.partitions[TOPIC, 0]
    for number in range(3):
        assert node.produce({0: node.batch(b"%d" % number)})[0].error_code == 0
    partition.become_leader(NEW_EPOCH, 9, [1], [1])
    assert node.produce({0: node.batch(b"new")})[0].error_code == 0
    assert partition.log.epochs == [(OLD_EPOCH, 0), (NEW_EPOCH, 3)]
    assert partition.diverging_epoch(OLD_EPOCH, 3, 0) is None
    partition.raise_log_start(3)
    assert partition.diverging_epoch(OLD_EPOCH, 3, 0) == (OLD_EPOCH, 3)
    assert partition.diverging_epoch(OLD_EPOCH, 4, 0) == (OLD_EPOCH, 3)
    assert partition.diverging_epoch(OLD_EPOCH, 3, 3) is None, "it has nothing that could be wrong"
    assert partition.diverging_epoch(OLD_EPOCH, 3) is None, "a consumer has passed by there"
    assert partition.diverging_epoch(NEW_EPOCH, 3, 0) is None
