"""`partition.metadata` says whose records a directory has: what it does not say is never guessed."""

from __future__ import annotations

import pytest

from tests.node.support import TOPIC, OneNode
from tidelog.log import names, partition_metadata
from tidelog.log.checkpoints import LOG_STARTS
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tidelog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

DIRECTORY = names.directory_name(TOPIC, 0)
METADATA = f"{DIRECTORY}/{names.PARTITION_METADATA}"


def with_records(seed: int = 1) -> OneNode:
    """A node whose only partition has three records."""
    node = OneNode(seed, 1, replication_events_enable="false")
    assert node.produce({0: node.batch(b"0", b"1", b"2")})[0].error_code == 0
    return node


def start_again(node: OneNode) -> None:
    """Start it, and wait until it serves or says that it cannot."""
    node.world.start(1)
    replicas = node.process(1).node.replicas
    assert node.world.run_until(lambda: bool(replicas.partitions or replicas.damaged), 10_000)


def strays(node: OneNode) -> list[str]:
    """Directories that were set aside."""
    return [name for name in node.world.hosts[1].disks[0].list("") if name.endswith("-stray")]


def test_it_is_flushed_with_the_first_records() -> None:
    log = with_records().process(1).node.replicas.partitions[TOPIC, 0].log
    files, directories = log.files_to_flush()
    assert METADATA in {file.path for file in files}
    assert directories == [DIRECTORY, ""]


@pytest.mark.parametrize("seed", range(8))
def test_after_the_first_flush_no_power_loss_takes_it(seed: int) -> None:
    """Seed 100297: records survived a power loss and the file did not; they were served as another topic's."""
    node = with_records(seed)
    replicas = node.process(1).node.replicas
    partition = replicas.partitions[TOPIC, 0]
    replicas.flush(partition)
    assert node.world.run_until(lambda: partition.log.recovery_point == 3, 10_000)
    node.world.power_loss(1)
    disk = node.world.hosts[1].disks[0]
    assert partition_metadata.read(disk, DIRECTORY) == node.topic_id(TOPIC)
    start_again(node)
    assert node.process(1).node.replicas.partitions[TOPIC, 0].log.log_end_offset == 3


def test_records_of_nobody_that_were_never_durable_are_set_aside() -> None:
    node = with_records()
    disk = node.world.hosts[1].disks[0]
    node.world.kill(1)
    node.world.hosts[1].boots += 1  # the machine was down, which may take files that were not flushed
    disk.delete(METADATA)
    start_again(node)
    assert node.process(1).node.replicas.partitions[TOPIC, 0].log.log_end_offset == 0
    (stray,) = strays(node)
    assert disk.size(f"{stray}/{names.file_name(0, names.LOG_SUFFIX)}") > 0


@pytest.mark.parametrize("ends_by_kill", [True, False])
def test_records_of_nobody_are_damage_where_nothing_can_be_missing(ends_by_kill: bool) -> None:
    """An empty log in their place would be taken for one that has everything."""
    node = with_records()
    if ends_by_kill:
        node.world.kill(1)
    else:
        node.world.stop(1)
    assert node.world.run_until(lambda: not node.process(1).alive, 10_000)
    node.world.hosts[1].disks[0].delete(METADATA)
    start_again(node)
    assert list(node.process(1).node.replicas.damaged) == [(TOPIC, 0)]
    assert not strays(node)


def test_an_empty_directory_of_nobody_is_taken() -> None:
    node = OneNode(1, 1, replication_events_enable="false")
    node.world.kill(1)
    node.world.hosts[1].disks[0].delete(METADATA)
    start_again(node)
    assert node.world.run_until(lambda: node.is_running(1), 10_000)
    assert node.produce({0: node.batch(b"0")})[0].error_code == 0
    assert not strays(node)


def test_what_was_said_of_a_topic_is_not_said_of_the_next_of_its_name() -> None:
    """The checkpoints know logs by name only."""
    node = with_records()
    disk = node.world.hosts[1].disks[0]
    old_id = node.topic_id(TOPIC)
    node.ask(1, ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=5000))
    node.create(TOPIC)
    assert node.topic_id(TOPIC) != old_id
    assert node.world.run_until(lambda: disk.exists(METADATA), 10_000)
    node.world.kill(1)
    disk.replace(METADATA, partition_metadata.to_bytes(old_id))
    disk.replace(LOG_STARTS, f"0\n1\n{TOPIC} 0 2\n".encode())
    start_again(node)
    log = node.process(1).node.replicas.partitions[TOPIC, 0].log
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    assert len(strays(node)) == 1


def made_again_after_records_were_deleted() -> OneNode:
    """The checkpoints say of the topic before that its log begins at 2 and is committed up to 3."""
    node = with_records()
    topic = DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
    node.ask(1, ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[topic], timeout_ms=5000))
    disk = node.world.hosts[1].disks[0]
    written = f"{TOPIC} 0 2".encode()
    assert node.world.run_until(lambda: disk.exists(LOG_STARTS) and written in disk.read_file(LOG_STARTS), 200_000)
    node.ask(1, ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=5000))
    node.create(TOPIC)
    return node


def test_a_topic_made_again_loses_nothing_to_where_the_one_before_began() -> None:
    """The checkpoint was written now and then only: a kill before that, and what had been acknowledged was gone."""
    node = made_again_after_records_were_deleted()
    assert node.produce({0: node.batch(b"a")})[0].error_code == 0
    node.world.kill(1)
    start_again(node)
    log = node.process(1).node.replicas.partitions[TOPIC, 0].log
    assert (log.log_start_offset, log.log_end_offset) == (0, 1)


def test_a_log_without_records_begins_where_its_file_says() -> None:
    """Whatever a power loss has made of the checkpoints: begun later, it would lack what its leader has before."""
    node = made_again_after_records_were_deleted()
    disk = node.world.hosts[1].disks[0]
    node.world.kill(1)
    disk.replace(LOG_STARTS, f"0\n1\n{TOPIC} 0 2\n".encode())
    start_again(node)
    assert node.process(1).node.replicas.partitions[TOPIC, 0].log.log_end_offset == 0
    node.world.kill(1)
    disk.delete(DIRECTORY)
    disk.replace(LOG_STARTS, f"0\n1\n{TOPIC} 0 2\n".encode())
    start_again(node)
    assert node.process(1).node.replicas.partitions[TOPIC, 0].log.log_end_offset == 0


def test_a_topic_made_again_has_nothing_to_do_with_damage_of_the_one_before() -> None:
    """With one replica nobody else could lead, and it was never opened."""
    node = with_records()
    node.world.kill(1)
    node.world.hosts[1].disks[0].delete(METADATA)
    start_again(node)
    assert node.world.run_until(lambda: node.is_running(1), 10_000)
    node.ask(1, ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=5000))
    assert not node.process(1).node.replicas.damaged
    node.create(TOPIC)
    assert node.produce({0: node.batch(b"new")})[0].error_code == 0
    assert node.process(1).node.replicas.partitions[TOPIC, 0].log.log_end_offset == 1
