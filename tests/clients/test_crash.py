"""Kill -9 in the middle of writing: after a restart all that was acknowledged is there, once, and nothing torn."""

from __future__ import annotations

import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, TopicPartition

from tests.clients import confluent, samples
from tests.clients.samples import Record
from tests.support.nodes import Node, peer_under_test
from tests.support.processes import wait_until

KILLS = 3
PARTITIONS = 3


@contextmanager
def own_node(**properties: str) -> Iterator[Node]:
    """A node of the test's own, to be killed at will."""
    peer = peer_under_test()
    settings = {name.replace("_", "."): value for name, value in properties.items()}
    with tempfile.TemporaryDirectory(prefix=f"{peer.peer}-") as directory:
        node = peer(Path(directory), properties=settings)
        with node.start():
            yield node


class Writer:
    """Writes numbered records to every partition in a thread until told to stop, and notes what was acknowledged."""

    def __init__(self, node: Node, topic: str, *, idempotent: bool, pause_s: float = 0.002) -> None:
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        """By partition: the number in the record and the offset it was acknowledged with."""
        self.failures: list[KafkaError] = []
        self.sent = 0
        self._topic = topic
        self._pause_s = pause_s
        self._stopping = threading.Event()
        patience: dict[str, Any] = {"message_timeout_ms": 60_000 if idempotent else 5_000, "acks": "all"}
        if not idempotent:
            patience["retries"] = 0
        self._producer = confluent.producer(
            node,
            enable_idempotence=idempotent,
            batch_size=5_000,
            linger_ms=1,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            retry_backoff_ms=20,
            log_level=0,
            **patience,
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self.acknowledged[partition][int(message.value() or b"")] = offset

    def _run(self) -> None:
        while not self._stopping.is_set():
            for partition in range(PARTITIONS):
                self._produce(b"%08d" % self.sent, partition)
            self.sent += 1
            self._producer.poll(0)
            if self.sent % 50 == 0:
                time.sleep(self._pause_s)

    def _produce(self, value: bytes, partition: int) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value=value, partition=partition, on_delivery=self._delivered)
                return
            except BufferError:
                self._producer.poll(0.05)

    def count(self) -> int:
        """How many records are acknowledged so far."""
        return sum(len(each) for each in self.acknowledged)

    def stop(self) -> None:
        """Write no more and wait for what is on its way."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(60)


def wait_for_progress(writer: Writer) -> None:
    """Until a few hundred more records are acknowledged."""
    enough = writer.count() + 600
    wait_until(lambda: writer.count() >= enough, 60, "the writer goes on")


def kill_again_and_again(node: Node, writer: Writer) -> None:
    """While it writes, which it does until the end."""
    try:
        for _ in range(KILLS):
            wait_for_progress(writer)
            node.kill()
            node.start()
        wait_for_progress(writer)
    finally:
        writer.stop()


def read_all(node: Node, topic: str, partition: int) -> list[tuple[int, int]]:
    """(offset, number) of all records of a partition; the client checks every batch's CRC."""
    wanted = TopicPartition(topic, partition, OFFSET_BEGINNING)
    with confluent.reading(node, [wanted], check_crcs=True) as consumer:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), 60)
        read = confluent.take(consumer, end)
    return [(each.offset() or 0, int(each.value() or b"")) for each in read]


@pytest.mark.parametrize("flush_every", ["1", None], ids=["flushed", "page-cache"])
def test_an_idempotent_writer_goes_on_over_kills(flush_every: str | None) -> None:
    properties = {} if flush_every is None else {"log_flush_interval_messages": flush_every}
    with own_node(**properties) as node:
        confluent.create_topic(node, "kept", PARTITIONS, {"segment.bytes": "1048576"})
        writer = Writer(node, "kept", idempotent=True)
        kill_again_and_again(node, writer)
        assert not writer.failures
        for partition in range(PARTITIONS):
            found = read_all(node, "kept", partition)
            assert [offset for offset, _ in found] == list(range(len(found)))
            assert [number for _, number in found] == list(range(writer.sent)), "lost, repeated or reordered"
            assert {number: offset for offset, number in found} == writer.acknowledged[partition]


def test_what_was_acknowledged_to_a_plain_writer_is_there() -> None:
    with own_node() as node:
        confluent.create_topic(node, "kept", PARTITIONS)
        writer = Writer(node, "kept", idempotent=False)
        kill_again_and_again(node, writer)
        for partition in range(PARTITIONS):
            found = dict(read_all(node, "kept", partition))
            for number, offset in writer.acknowledged[partition].items():
                assert found.get(offset) == number, f"record {number} was acknowledged at offset {offset}"


def killed_with_batches(node: Node, topic: str, flushes: int) -> tuple[Path, list[bytes]]:
    """The segment of a topic to which a hundred records were written so many times, in one batch or more each, and
    their values; its node was killed."""
    confluent.create_topic(node, topic, 1)
    values = samples.numbered(flushes * 100, size=200)
    for start in range(0, len(values), 100):
        confluent.produce_all(node, topic, [Record(None, each, 1) for each in values[start : start + 100]])
    node.kill()
    return node.data_directory / f"{topic}-0" / "00000000000000000000.log", values


def last_base_offset(segment: bytes) -> int:
    """Where the last batch of a segment begins, which is where its log ends without it."""
    position = base_offset = 0
    while position < len(segment):
        base_offset, length = struct.unpack_from(">qi", segment, position)
        position += 12 + length
    return int(base_offset)


def machine_was_down(node: Node) -> None:
    """What the node noted of its machine's boot is over, so that nobody vouches for its disk."""
    (node.data_directory / ".tidelog-registered").unlink()


def test_what_no_stop_has_torn_is_not_cut_before_somebody_says_so() -> None:
    """A kill tears nothing but the last batch: records that are unreadable after one are damaged, and not dropped."""
    with own_node() as node:
        segment, _ = killed_with_batches(node, "rotten", 2)
        data = bytearray(segment.read_bytes())
        end_without_it = last_base_offset(data)
        data[-100] ^= 0x10
        segment.write_bytes(data)
        node.start()
        with confluent.reading(node, [TopicPartition("rotten", 0, 0)]) as consumer:
            with pytest.raises(KafkaException, match="KAFKA_STORAGE_ERROR"):
                consumer.get_watermark_offsets(TopicPartition("rotten", 0), 60)
        assert segment.read_bytes() == data
        node.kill()
        machine_was_down(node)
        node.start()
        with confluent.reading(node, [TopicPartition("rotten", 0, 0)]) as consumer:
            assert consumer.get_watermark_offsets(TopicPartition("rotten", 0), 60) == (0, end_without_it)


@pytest.mark.parametrize("damage", ["cut", "half a batch", "zeros", "flipped bits"])
def test_a_torn_tail_is_cut_and_never_served(damage: str) -> None:
    """What a power loss can do to the last bytes of a segment: whole batches before it stay, it goes."""
    with own_node() as node:
        segment, values = killed_with_batches(node, "torn", 3)
        data = bytearray(segment.read_bytes())
        if damage == "cut":
            del data[-30:]
        elif damage == "half a batch":
            data += data[:150]
        elif damage == "zeros":
            data += bytes(5_000)
        else:
            data[-100] ^= 0x10
        segment.write_bytes(data)
        machine_was_down(node)
        node.start()
        with confluent.reading(node, [TopicPartition("torn", 0, 0)]) as consumer:
            start_offset, end = consumer.get_watermark_offsets(TopicPartition("torn", 0), 60)
            assert start_offset == 0
            assert end == 300 if damage in ("half a batch", "zeros") else 100 <= end < 300
            assert [each.value() for each in confluent.take(consumer, end)] == values[:end]
        confluent.produce_all(node, "torn", [Record(None, b"goes on", 1)])
        (after,) = confluent.consume_all(node, "torn", 1, offset=end)
        assert after.value() == b"goes on"


def test_a_clean_stop_keeps_everything_and_says_so() -> None:
    with own_node() as node:
        confluent.create_topic(node, "kept", 2, {"segment.bytes": "1048576", "retention.ms": "-1"})
        for partition in range(2):
            confluent.produce_all(node, "kept", samples.every_shape(), partition=partition, enable_idempotence=True)
        code = node.stop()
        assert code == (0 if node.peer == "tidelog" else 143)
        assert (node.data_directory / ".kafka_cleanshutdown").exists()
        node.start()
        for partition in range(2):
            read = confluent.consume_all(node, "kept", len(samples.every_shape()), partition=partition)
            assert [confluent.as_record(each) for each in read] == samples.every_shape()
