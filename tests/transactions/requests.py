"""The requests of a transactional producer, one at a time, whoever answers them: a simulated node or a real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, build_batch
from tidelog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tidelog.wire.messages.end_txn import EndTxnRequest
from tidelog.wire.messages.find_coordinator import FindCoordinatorRequest
from tidelog.wire.messages.init_producer_id import InitProducerIdRequest
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

Ask = Callable[[ApiKey, int, Any], Any]
BUSY = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )
)
"""What a client comes again on."""


class Versions(NamedTuple):
    """The versions that make one of the two transaction protocols."""

    produce: int
    end: int
    offsets: int


V1 = Versions(produce=11, end=4, offsets=4)
V2 = Versions(produce=12, end=5, offsets=5)


class Outcome(NamedTuple):
    """A code, and the producer id and epoch that came with it."""

    code: ErrorCode
    producer_id: int = -1
    epoch: int = -1


class Requests:
    """One method a request; each returns what the answer says."""

    def __init__(self, ask: Ask, topic: str, patience: Callable[[], None]) -> None:
        self.ask = ask
        self.topic = topic
        self._patience = patience
        """Lets a little time pass."""

    def until_settled(self, action: Callable[[], Any]) -> Any:
        """Come again while the answer is that it is too early."""
        for _ in range(2_000):
            found = action()
            codes = found if isinstance(found, list) else [found.code if isinstance(found, Outcome) else found]
            if not BUSY.intersection(codes):
                return found
            self._patience()
        raise AssertionError(f"still {found}")

    def find(self, key: str, key_type: int = 1) -> int:
        """The coordinator's node id, -1 while there is none."""
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
        return int(self.ask(ApiKey.FIND_COORDINATOR, 6, request).coordinators[0].node_id)

    def init(
        self,
        transactional_id: str | None,
        producer_id: int = -1,
        epoch: int = -1,
        *,
        timeout_ms: int = 60_000,
        version: int = 5,
    ) -> Outcome:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer = self.ask(ApiKey.INIT_PRODUCER_ID, version, request)
        return Outcome(ErrorCode(answer.error_code), answer.producer_id, answer.producer_epoch)

    def add(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        *indexes: int,
        topic: str | None = None,
        version: int = 3,
    ) -> list[ErrorCode]:
        topics = [AddPartitionsToTxnTopic(name=topic or self.topic, partitions=list(indexes or (0,)))]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )
        answer = self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
        found = answer.results_by_topic_v3_and_below[0].results_by_partition
        return [ErrorCode(one.partition_error_code) for one in found]

    def verify(self, transactional_id: str, producer_id: int, epoch: int, *indexes: int) -> list[ErrorCode]:
        """As a leader asks."""
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=transactional_id,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    verify_only=True,
                    topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=list(indexes or (0,)))],
                )
            ]
        )
        answer = self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 4, request)
        found = answer.results_by_transaction[0].topic_results[0].results_by_partition
        return [ErrorCode(one.partition_error_code) for one in found]

    def produce(
        self,
        transactional_id: str | None,
        producer_id: int,
        epoch: int,
        sequence: int = 0,
        *,
        index: int = 0,
        version: int = V1.produce,
        value: bytes = b"x",
        is_transactional: bool = True,
    ) -> ErrorCode:
        batch = build_batch(
            [Record(0, 1, b"k", value)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        data = TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=index, records=batch)])
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=[data])
        return ErrorCode(self.ask(ApiKey.PRODUCE, version, request).responses[0].partition_responses[0].error_code)

    def end(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool, *, version: int = V1.end
    ) -> Outcome:
        request = EndTxnRequest(
            transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=commit
        )
        answer = self.ask(ApiKey.END_TXN, version, request)
        return Outcome(ErrorCode(answer.error_code), answer.producer_id, answer.producer_epoch)

    def add_offsets(
        self, transactional_id: str, producer_id: int, epoch: int, group: str, *, version: int = 4
    ) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, group_id=group
        )
        return ErrorCode(self.ask(ApiKey.ADD_OFFSETS_TO_TXN, version, request).error_code)

    def commit_offset(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        group: str,
        offset: int,
        *,
        version: int = V1.offsets,
        **more: Any,
    ) -> ErrorCode:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=transactional_id,
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=[partition])],
            **more,
        )
        answer = self.ask(ApiKey.TXN_OFFSET_COMMIT, version, request)
        return ErrorCode(answer.topics[0].partitions[0].error_code)
