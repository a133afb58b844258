"""What leaders and coordinators of transactions ask each other, and what waits for the answers."""

from __future__ import annotations

from typing import Any

from tests.transactions.cluster import ID, TOPIC, Three
from tests.transactions.requests import V2
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, build_batch
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
