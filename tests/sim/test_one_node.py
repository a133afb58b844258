"""The shipped node in a simulated world: what was acknowledged is there after any loss of power."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.sim.cluster import NoAnswer, SimulatedCluster
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, build_batch, check_crc, iterate_batches, iterate_records
from tidelog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC = "events"


def create(cluster: SimulatedCluster, **configs: str) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    topic.configs = [CreatableTopicConfig(name=name.replace("_", "."), value=text) for name, text in configs.items()]
    answer = cluster.ask(1, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic])).topics[0]
    assert answer.error_code in (0, 36), answer


def produce(cluster: SimulatedCluster, values: list[bytes], acks: int = -1) -> Any:
    records = [Record(offset, cluster.world.now_ms, None, value) for offset, value in enumerate(values)]
    data = PartitionProduceData(index=0, records=build_batch(records))
    request = ProduceRequest(
        acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
    )
    return cluster.ask(1, ApiKey.PRODUCE, 9, request).responses[0].partition_responses[0]


def consume(cluster: SimulatedCluster) -> list[bytes]:
    """Everything from the beginning, as a consumer reads it; every batch is checked as it comes."""
    values: list[bytes] = []
    offset = 0
    while True:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[partition])])
        data = cluster.ask(1, ApiKey.FETCH, 12, request).responses[0].partitions[0]
        assert data.error_code == 0, data
        batches = list(iterate_batches(data.records)) if data.records else []
        for batch in batches:
            check_crc(batch)
            assert batch.base_offset == offset, "offsets have no gap"
            values += [record.value for record in iterate_records(batch)]
            offset = batch.last_offset + 1
        if not batches:
            assert data.high_watermark == offset
            return values


def test_a_node_starts_alone_and_keeps_what_it_is_given() -> None:
    cluster = SimulatedCluster(seed=1)
    cluster.start_all()
    create(cluster)
    assert produce(cluster, [b"a", b"b"]).base_offset == 0
    assert produce(cluster, [b"c"]).base_offset == 2
    assert consume(cluster) == [b"a", b"b", b"c"]


def test_kill_loses_nothing() -> None:
    cluster = SimulatedCluster(seed=2)
    cluster.start_all()
    create(cluster)
    produce(cluster, [b"a", b"b"])
    cluster.world.kill(1)
    cluster.start_all()
    assert produce(cluster, [b"c"]).base_offset == 2
    assert consume(cluster) == [b"a", b"b", b"c"]


def workload(cluster: SimulatedCluster) -> list[bytes]:
    """A few acknowledged writes over several segments; stops where the node does. Returns what was acknowledged."""
    acknowledged: list[bytes] = []
    try:
        create(cluster, flush_messages="1", segment_bytes="1048576", internal_segment_bytes="300")
        for number in range(8):
            values = [b"%d-%d" % (number, part) for part in range(number % 3 + 1)]
            answer = produce(cluster, values)
            assert answer.error_code == 0, answer
            acknowledged += values
    except NoAnswer:
        pass
    return acknowledged


def writes_of_the_workload() -> tuple[int, int]:
    cluster = SimulatedCluster(seed=7)
    cluster.start_all()
    disk = cluster.world.hosts[1].disks[0]
    before = disk.writes
    assert len(workload(cluster)) == 15
    return before, disk.writes


@pytest.mark.parametrize("seed", range(3))
def test_power_loss_at_every_write_loses_nothing_that_was_acknowledged(seed: int) -> None:
    first, last = writes_of_the_workload()
    assert last - first > 20
    for write in range(1, last - first + 1):
        cluster = SimulatedCluster(seed=1000 * seed + write)
        cluster.start_all()
        disk = cluster.world.hosts[1].disks[0]
        disk.cut_power_at_write = disk.writes + write
        acknowledged = workload(cluster)
        if cluster.process(1).alive:
            cluster.world.power_loss(1)
        cluster.start_all()
        create(cluster)
        found = consume(cluster)
        assert found[: len(acknowledged)] == acknowledged, f"power lost at write {write}"
        assert produce(cluster, [b"next"]).base_offset == len(found)
        assert consume(cluster) == [*found, b"next"]
