"""Hours of ordinary work at a steady pace: memory and file descriptors stay where they are."""

from __future__ import annotations

import time

from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from tests.clients import confluent
from tests.support.nodes import Node

NODE_PROPERTIES = {"log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "1000"}
SHARE = 0.25
MEGABYTE = 1_000_000
GROWTH_LIMIT_BYTES = {"tidelog": 15 * MEGABYTE, "kafka": 400 * MEGABYTE}
GROWTH_LIMIT_FILES = {"tidelog": 20, "kafka": 200}


def test_topics_clients_and_segments_come_and_go(node: Node, minutes: float) -> None:
    """Each round: a new topic, a new producer and consumer, several segments written, read, trimmed and deleted."""
    client = confluent.admin(node)
    confluent.create_topic(node, "steady", 2, {"segment.bytes": "1048576", "retention.bytes": "4194304"})
    deadline_s = time.monotonic() + minutes * 60 * SHARE
    resident: list[int] = []
    files: list[int] = []
    while time.monotonic() < deadline_s or len(resident) < 40:
        topic = f"passing-{len(resident)}"
        client.create_topics([NewTopic(topic, 3, 1)])[topic].result(20)
        writer = confluent.producer(node, enable_idempotence=len(resident) % 2 == 0, compression_type="lz4")
        with confluent.reading(node, []) as consumer:
            ends = [consumer.get_watermark_offsets(TopicPartition("steady", each), 20)[1] for each in range(2)]
            consumer.assign([TopicPartition("steady", each, end) for each, end in enumerate(ends)])
            for number in range(1_000):
                writer.produce("steady", value=bytes(1_000), partition=number % 2)
                writer.produce(topic, value=b"%d" % number, partition=number % 3)
                writer.poll(0)
            assert writer.flush(30) == 0
            confluent.take(consumer, 1_000)
        client.delete_topics([topic])[topic].result(20)
        node.running.require_running()
        resident.append(node.resident_bytes())
        files.append(node.open_files())
    settled = len(resident) // 4
    growth = max(resident[-5:]) - max(resident[settled : settled + 5])
    assert growth <= GROWTH_LIMIT_BYTES[node.peer], (
        f"memory grew by {growth / MEGABYTE:.1f} MB in {len(resident)} rounds"
    )
    assert max(files[-5:]) - max(files[settled : settled + 5]) <= GROWTH_LIMIT_FILES[node.peer], files[settled::10]
    print(f"{len(resident)} rounds, memory {resident[0] / MEGABYTE:.0f} to {resident[-1] / MEGABYTE:.0f} MB")
