"""A log directory that fails fails alone, whatever the node was about when it found out.

Each of these went past every handler, and the whole node gave up though its other directory was well.
"""

from __future__ import annotations

from contextlib import suppress

from tests.node.support import TOPIC, OneNode, partitions_of
from tests.node.test_directories import SECOND, TwoDirectories
from tidelog.errors import ErrorCode
from tidelog.log import names
from tidelog.log.log import Log
from tidelog.log.txn_index import AbortedTransaction
from tidelog.node.replication_events import TOPIC as EVENTS_TOPIC
from tidelog.sim.cluster import NoAnswer
from tidelog.wire.batch import Record, build_batch

SMALL_SEGMENTS = {"segment.bytes": "1048576", "internal.segment.bytes": "300"}
READ_COMMITTED = 1


def first_in_second(node: TwoDirectories) -> tuple[int, Log]:
    """A partition in the second directory, and its log."""
    index = min(node.held_by(node.second))
    return index, node.process(1).node.replicas.partitions[TOPIC, index].log


def has_failed_alone(node: TwoDirectories) -> bool:
    """The second directory is given up, and the node serves from the first."""
    process = node.process(1)
    return process.alive and [one.online for one in process.node.replicas.directories] == [True, False]


def test_aborted_transactions_cannot_be_read() -> None:
    node = TwoDirectories()
    index, log = first_in_second(node)
    node.produce({index: node.batch(b"a")})
    log.segments[-1].txn_index.append(AbortedTransaction(7, 0, 0, 0))
    node.second.fail("read", path_prefix=log.segments[-1].txn_index.path)
    answer = partitions_of(node.fetch({index: 0}, isolation_level=READ_COMMITTED))[index]
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not answer.records
    assert has_failed_alone(node)


def test_how_much_is_new_cannot_be_told() -> None:
    """Whoever waits for it is woken, reads, and finds out."""
    node = TwoDirectories(SMALL_SEGMENTS)
    index, _ = first_in_second(node)
    for _ in range(4):
        node.produce({index: node.batch(b"x" * 200)})
    node.world.stop(1)
    assert node.world.run_until(lambda: not node.process(1).alive)
    node.start_all()
    log = first_in_second(node)[1]
    node.second.fail()
    assert log.bytes_between(0, log.log_end_offset - 1) > 0


def test_strays_cannot_be_looked_for() -> None:
    node = TwoDirectories()
    node.world.kill(1)
    node.second.fail("list")
    node.start_all()
    assert has_failed_alone(node)


class MetadataApart(TwoDirectories):
    """All replicas are in the second directory; the first has the metadata alone."""

    def __init__(self) -> None:
        OneNode.__init__(self, partitions=4, log_dirs=SECOND, metadata_log_dir="/data")


def test_a_node_ends_itself_where_no_directory_for_replicas_can_be_read() -> None:
    """It would wait for ever otherwise, with nothing to start from, and say nothing."""
    node = MetadataApart()
    node.world.kill(1)
    node.second.fail("read")
    node.world.start(1)
    assert node.world.run_until(lambda: not node.process(1).alive, 10_000)
    assert node.world.halts[-1] == (1, 1)


def test_a_log_cannot_be_measured_for_compaction() -> None:
    compacted = {**SMALL_SEGMENTS, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    node = TwoDirectories(compacted)
    index, log = first_in_second(node)
    for _ in range(4):
        record = Record(0, node.world.now_ms, b"key", b"x" * 200)
        assert node.produce({index: build_batch([record])})[index].error_code == 0
    log.segments[-1].txn_index.append(AbortedTransaction(7, 0, 0, 0))
    node.second.fail("read", path_prefix=log.segments[-1].txn_index.path)
    node.world.run_until(lambda: not node.process(1).alive or has_failed_alone(node), within_ms=60_000)
    assert has_failed_alone(node)


def test_an_event_cannot_be_written() -> None:
    """The disk of the topic of events is a disk like any other, though nobody waits for an answer."""
    node = TwoDirectories()
    replicas = node.process(1).node.replicas
    assert node.world.run_until(lambda: (EVENTS_TOPIC, 0) in replicas.partitions, 30_000)
    directory = replicas.directory_of(replicas.partitions[EVENTS_TOPIC, 0])
    disk = next(one for one in node.world.hosts[1].disks if one is directory.storage)
    disk.fail("append", path_prefix=names.directory_name(EVENTS_TOPIC, 0))
    with suppress(NoAnswer):  # where the metadata are on that disk, too, the node ends itself
        node.produce({index: node.batch(b"a") for index in node.held_by(node.second)})
    assert node.world.run_until(lambda: not directory.online, 30_000)


def test_a_replica_that_goes_while_its_flush_waits_for_the_disk_is_no_fault_of_the_disk() -> None:
    """Its folder has another name by then. A topic that was deleted right after a start took the directory with it."""
    node = TwoDirectories()
    index, _ = first_in_second(node)
    core = node.process(1).node
    partition = core.replicas.partitions[TOPIC, index]

    def flush_and_remove() -> None:
        core.replicas.flush(partition)
        core.broker._remove(partition)

    core.outbox.at(core.outbox.now_ms, flush_and_remove)
    node.world.run_for(3_000)
    assert all(directory.online for directory in core.replicas.directories)
