"""What leaders and coordinators of transactions ask each other, and what waits for the answers."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.transactions.cluster import ID, TOPIC, Three
from tests.transactions.requests import V2
from tidelog.errors import ErrorCode, KafkaError
from tidelog.node.transaction_verification import Asker, Support
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, build_batch
from tidelog.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


def test_what_waited_behind_a_batch_that_is_refused_is_not_the_first_in_the_log() -> None:
    """Asked again a moment later, the coordinator agreed: the second batch was stored, and the first never could be."""
    cluster = Three(seed=19)
    producer = cluster.init()
    leader = cluster.leader(TOPIC, 0)
    node = cluster.process(leader).node
    asking = node.transaction_links.ask
    asked: list[int] = []

    def ask(*question: Any) -> None:
        asked.append(1)
        if len(asked) > 1:
            asking(*question)
            return
        number = node.outbox.expect(question[-1])
        node.outbox.after(50, lambda: node.outbox.resume(number, None, "the connection broke"))

    node.transaction_links.ask = ask  # type: ignore[method-assign]
    connection = cluster.world.connect(leader)
    assert connection is not None
    codes: list[ErrorCode] = []
    for sequence in range(2):
        batch = build_batch(
            [Record(0, 1, b"k", b"%d" % sequence)],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
        request = ProduceRequest(transactional_id=ID, acks=-1, timeout_ms=10_000, topic_data=[data])
        cluster.world.request(
            connection,
            ApiKey.PRODUCE,
            V2.produce,
            request,
            lambda answer: codes.append(ErrorCode(answer.responses[0].partition_responses[0].error_code)),
        )
    assert cluster.world.run_until(lambda: len(codes) == 2, 5_000)
    assert codes == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
    for sequence in range(2):
        cluster.write(producer, V2, 0, b"%d" % sequence, sequence)
    cluster.end(producer, V2, commit=True)
    cluster.wait_for_state("CompleteCommit")
    assert cluster.committed_values(0) == [b"0", b"1"]


def test_a_node_that_asks_itself_is_not_left_without_an_answer() -> None:
    """Markers for a partition that cannot commit kept those for all others of the node from ever being sent."""
    cluster = Three(seed=20, replicas=[[1, 2], [2, 3], [3, 1]], min_insync_replicas="2")
    cluster.pass_ms(1_000)
    cluster.world.network.hold(2, 1, ("data",))
    node = cluster.process(1).node
    topics = [WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])]
    body = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=5, producer_epoch=0, topics=topics)])
    heard: list[str | None] = []
    node.transaction_links.ask_for_markers(1, body, lambda _answer, error: heard.append(error))
    cluster.pass_ms(node.config.request_timeout_ms + 1_000)
    assert node.replicas.partitions[TOPIC, 0].log.log_end_offset == 1
    assert heard == ["no answer in time"]


def test_a_topic_that_the_coordinator_does_not_know_yet_fails_no_other_partition() -> None:
    """Asked for together, none is added: the others are to be tried again, and their batches do not fail."""
    cluster = Three(seed=21)
    producer = cluster.init()
    first = cluster.coordinator()
    far = next(one for one in cluster.node_ids if one != first)
    fresh = CreatableTopic(name="fresh", num_partitions=-1, replication_factor=-1)
    fresh.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[far])]
    assert cluster.ask(first, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[fresh])).topics[0].error_code == 0
    cluster.pass_ms(500)
    known = cluster.process(first).node.group_topics
    known.partitions_of = lambda name: 0 if name == "fresh" else 3  # type: ignore[method-assign]
    node = cluster.process(far).node
    heard: dict[str, KafkaError | None] = {}
    asker = Asker(ID, producer.producer_id, producer.epoch, Support.ADDS)
    for topic, index in (("fresh", 0), (TOPIC, far - 1)):
        partition = node.replicas.partitions[topic, index]
        node.verification.ask(partition, asker, partial(heard.__setitem__, topic), lambda: None)
    assert cluster.world.run_until(lambda: len(heard) == 2, 5_000)
    codes = {topic: complaint and complaint.code for topic, complaint in heard.items()}
    assert codes == {"fresh": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TOPIC: ErrorCode.NOT_ENOUGH_REPLICAS}
