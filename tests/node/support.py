"""One simulated node and the requests a client would send it."""

from __future__ import annotations

from typing import Any

from tidelog.sim.cluster import SimulatedCluster
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, build_batch, iterate_batches, iterate_records
from tidelog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC = "events"


class OneNode(SimulatedCluster):
    """A started node with a topic."""

    def __init__(
        self, seed: int = 1, partitions: int = 2, configs: dict[str, str] | None = None, **settings: str
    ) -> None:
        super().__init__(seed, settings={name.replace("_", "."): text for name, text in settings.items()})
        self.start_all()
        self.create(TOPIC, partitions, configs)

    def create(self, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> Any:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        topic.configs = [CreatableTopicConfig(name=key, value=text) for key, text in (configs or {}).items()]
        return self.ask(1, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic])).topics[0]

    def batch(self, *values: bytes, **more: Any) -> bytes:
        records = [Record(offset, self.world.now_ms, None, value) for offset, value in enumerate(values)]
        return build_batch(records, **more)

    def produce(self, partitions: dict[int, bytes | None], acks: int = -1, topic: str = TOPIC, version: int = 9) -> Any:
        """The answers by partition."""
        data = [PartitionProduceData(index=index, records=records) for index, records in partitions.items()]
        request = ProduceRequest(
            acks=acks, timeout_ms=1_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
        )
        answer = self.ask(1, ApiKey.PRODUCE, version, request)
        return {one.index: one for one in answer.responses[0].partition_responses}

    def fetch(
        self, offsets: dict[int, int], *, version: int = 12, topic: str = TOPIC, max_bytes: int = 1 << 20, **more: Any
    ) -> Any:
        """A whole Fetch answer."""
        wanted = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
            for index, offset in offsets.items()
        ]
        topics = [FetchTopic(topic=topic, topic_id=self.topic_id(topic), partitions=wanted)] if wanted else []
        request = FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, **more}, topics=topics)
        return self.ask(1, ApiKey.FETCH, version, request)

    def topic_id(self, topic: str) -> bytes:
        return self.process(1).node.image.topic_ids.get(topic, bytes(16))

    def list_offset(self, timestamp: int, index: int = 0, version: int = 8, **more: Any) -> Any:
        wanted = ListOffsetsPartition(partition_index=index, timestamp=timestamp, **more)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[wanted])])
        return self.ask(1, ApiKey.LIST_OFFSETS, version, request).topics[0].partitions[0]


def partitions_of(answer: Any) -> dict[int, Any]:
    return {one.partition_index: one for topic in answer.responses for one in topic.partitions}


def values_of(data: Any) -> list[bytes | None]:
    if not data.records:
        return []
    return [record.value for batch in iterate_batches(data.records) for record in iterate_records(batch)]
