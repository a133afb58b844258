"""A disk that takes no more bytes: its directory goes offline, the rest is served, nothing acknowledged is lost."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

from tests.clients import confluent
from tests.clients.samples import Record
from tests.support.nodes import Node, peer_under_test

LARGEST_FILE_BYTES = 24_000_000
"""Above what Apache Kafka allocates for an index ahead of time."""
PARTITIONS = 4


@pytest.fixture
def two_directories() -> Iterator[Node]:
    """A node with two log directories, and its metadata in a third."""
    peer = peer_under_test()
    with tempfile.TemporaryDirectory(prefix=f"{peer.peer}-") as directory:
        first, second, metadata = (Path(directory) / each for each in ("first", "second", "metadata"))
        node = peer(
            Path(directory),
            data_directory=first,
            properties={"log.dirs": f"{first},{second}", "metadata.log.dir": str(metadata)},
        )
        with node:
            yield node


def home_of(node: Node, topic: str, partition: int) -> Path:
    """The log directory a partition lives in."""
    (found,) = node.directory.glob(f"*/{topic}-{partition}")
    return found.parent


def fill_up(node: Node) -> int:
    """Write to partition 0 until it is refused; how many records were acknowledged."""
    for count in range(100):
        try:
            confluent.produce_all(node, "spread", [Record(None, bytes(900_000), 1)], message_timeout_ms=8_000)
        except KafkaException:
            return count
    return 100


def test_a_full_disk_takes_one_directory_offline(two_directories: Node) -> None:
    node = two_directories
    confluent.create_topic(node, "spread", PARTITIONS, {"retention.ms": "-1"})
    for partition in range(PARTITIONS):
        confluent.produce_all(node, "spread", [Record(None, b"before", 1)] * 10, partition=partition)
    homes = {partition: home_of(node, "spread", partition) for partition in range(PARTITIONS)}
    assert len(set(homes.values())) == 2, "partitions are spread over both directories"
    # A limit on the size of a file stands for a full disk: the write fails half way, and only there.
    resource.prlimit(node.running.pid, resource.RLIMIT_FSIZE, (LARGEST_FILE_BYTES, resource.RLIM_INFINITY))
    stored = 10 + fill_up(node)
    assert 20 < stored < 100, "it took what fitted"
    node.running.require_running()
    alive = [each for each in range(PARTITIONS) if homes[each] != homes[0]]
    for partition in alive:
        confluent.produce_all(node, "spread", [Record(None, b"after", 1)] * 10, partition=partition)
        read = confluent.consume_all(node, "spread", 20, partition=partition)
        assert [each.value() for each in read] == [b"before"] * 10 + [b"after"] * 10

    resource.prlimit(node.running.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    node.stop()
    node.start()
    confluent.produce_all(node, "spread", [Record(None, b"again", 1)])
    with confluent.reading(node, [TopicPartition("spread", 0, OFFSET_BEGINNING)]) as consumer:
        low, end = consumer.get_watermark_offsets(TopicPartition("spread", 0), 60)
        assert low == 0
        assert end >= stored + 1, "everything acknowledged is there"
        read = confluent.take(consumer, end)
    assert [each.value() for each in read[:10]] == [b"before"] * 10
    assert {each.value() for each in read[10:-1]} == {bytes(900_000)}
    assert read[-1].value() == b"again"


@pytest.mark.parametrize("unreadable", ["meta.properties", ".lock"])
def test_a_node_starts_without_a_directory_that_cannot_be_read(two_directories: Node, unreadable: str) -> None:
    """And has what was in it when it is back (KIP-112). Apache Kafka gives up where it cannot make its lock."""
    node = two_directories
    confluent.create_topic(node, "spread", PARTITIONS, {"retention.ms": "-1"})
    for partition in range(PARTITIONS):
        confluent.produce_all(node, "spread", [Record(None, b"before", 1)] * 10, partition=partition)
    homes = {partition: home_of(node, "spread", partition) for partition in range(PARTITIONS)}
    node.stop()
    # A folder in the place of a file stands for a broken disk: it can be opened by nobody, not even by root.
    broken, aside = homes[0] / unreadable, homes[0] / "aside"
    broken.touch()  # Apache Kafka takes its lock file away
    broken.rename(aside)
    broken.mkdir()
    node.start()
    for partition in [each for each in range(PARTITIONS) if homes[each] != homes[0]]:
        confluent.produce_all(node, "spread", [Record(None, b"after", 1)] * 10, partition=partition)
        read = confluent.consume_all(node, "spread", 20, partition=partition)
        assert [each.value() for each in read] == [b"before"] * 10 + [b"after"] * 10
    with pytest.raises(KafkaException):
        confluent.produce_all(node, "spread", [Record(None, b"lost", 1)], message_timeout_ms=3_000)

    node.stop()
    broken.rmdir()
    aside.rename(broken)
    node.start()
    confluent.produce_all(node, "spread", [Record(None, b"again", 1)])
    read = confluent.consume_all(node, "spread", 11)
    assert [each.value() for each in read] == [b"before"] * 10 + [b"again"]
    assert {partition: home_of(node, "spread", partition) for partition in range(PARTITIONS)} == homes
