"""Produce, versions 3 to 13 (advertised from 0, so that older librdkafka keeps compression on).

Each partition is checked, appended and answered by itself. acks=0: no answer, and an error closes the connection, which
is all such a client can notice. acks=1: answered when the leader's log counts it. acks=all: when it is committed.
KIP-98 idempotence, KIP-467 per-record errors, KIP-516 topic ids (v13), KIP-951 the new leader's address (v10), KIP-890:
the first records of a transaction in a partition wait for its coordinator's word (v11 knows TRANSACTION_ABORTABLE, from
v12 on the leader adds the partition to the transaction).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidelog.errors import ErrorCode, KafkaError, StorageError
from tidelog.events import Request
from tidelog.groups.service import TOPIC as OFFSETS_TOPIC
from tidelog.node.transaction_verification import Asker, Support
from tidelog.outbox import Timer
from tidelog.replica.partition import Partition
from tidelog.replica.refused_batches import Place
from tidelog.transactions.service import TOPIC as TRANSACTIONS_TOPIC
from tidelog.wire.api_table import ApiKey
from tidelog.wire.batch_header import HEADER_SIZE, TRANSACTIONAL, read_producer
from tidelog.wire.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.PRODUCE
VERSIONS = (0, 13)
BY_TOPIC_ID_VERSION = 13
ABORTABLE_VERSION = 11
ADDS_PARTITIONS_VERSION = 12
ALL, LEADER, NONE = -1, 1, 0
COORDINATORS_TOPICS = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC))
"""Written by coordinators alone: what others put there would count only with the next one, and differently then."""
ADMIN_CLIENT_ID = "__admin_client"
"""Who may write there nevertheless, as in Kafka."""
_ATTRIBUTES_AT = 22
"""The low byte of a batch's attributes."""


def handle(node: Node, request: Request) -> ProduceResponse | None:
    """Append what can be appended, and answer when `acks` is satisfied for all of it."""
    body = request.body
    acks = body.acks
    if acks not in (ALL, LEADER, NONE):
        return _refuse(body, ErrorCode.INVALID_REQUIRED_ACKS)
    wait = _Wait(node, request, ProduceResponse()) if acks != NONE else None
    failed_code = 0
    refused = node.replicas.refused
    answers = ProduceResponse() if wait is None else wait.response
    for topic_data in body.topic_data:
        topic, topic_id = topic_data.name, topic_data.topic_id
        if request.api_version >= BY_TOPIC_ID_VERSION:
            topic = node.topic_name(topic_id)
        partition_answers = []
        for wanted in topic_data.partition_data:
            answer = PartitionProduceResponse(index=wanted.index, base_offset=-1)
            partition_answers.append(answer)
            try:
                if topic is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
                if topic in COORDINATORS_TOPICS and request.client_id != ADMIN_CLIENT_ID:
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"clients may not write to {topic}")
                partition = node.replicas.find(topic, wanted.index)
                if refused:
                    refused.check_first(_place(topic_data, wanted), wanted.records, partition.log.producers.producers)
                if is_transactional(wanted.records):
                    _Verified(node, request, _place(topic_data, wanted), partition, wanted.records, answer, wait).take()
                    continue
                end_offset = _append(node, partition, wanted.records, acks, answer)
            except KafkaError as refusal:
                error = refused.judged(_place(topic_data, wanted), wanted.records, refusal)
                failed_code = error.code
                _fail(node, answer, error.code, error.message, topic, wanted.index)
                continue
            if wait is not None:
                wait.add(partition, end_offset, answer, acks)
        answers.responses.append(
            TopicProduceResponse(name=topic_data.name, topic_id=topic_id, partition_responses=partition_answers)
        )
    if wait is None:
        if failed_code:
            node.outbox.close(request.connection_id, f"produce with acks=0 failed: {ErrorCode(failed_code).name}")
        node.outbox.reply(request.connection_id, request.slot, None)
        return None
    return wait.start(body.timeout_ms)


def _place(topic_data: Any, wanted: Any) -> Place:
    """A partition as this request names it; made only for what is refused, or follows something that was."""
    return topic_data.name or topic_data.topic_id, wanted.index


def is_transactional(records: Any) -> bool:
    """Whether the batch says that it is part of a transaction; one cut short says nothing and is refused later."""
    return records is not None and len(records) >= HEADER_SIZE and bool(records[_ATTRIBUTES_AT] & TRANSACTIONAL)


class _Verified:
    """One partition's batch of a transaction: appended at once, or when the coordinator has confirmed it."""

    __slots__ = ("acks", "answer", "node", "partition", "place", "records", "request", "wait")

    def __init__(
        self,
        node: Node,
        request: Request,
        place: Place,
        partition: Partition,
        records: Any,
        answer: PartitionProduceResponse,
        wait: _Wait | None,
    ) -> None:
        self.node = node
        self.request = request
        self.place = place
        self.partition = partition
        self.records = records
        self.answer = answer
        self.wait = wait
        self.acks: int = request.body.acks

    def take(self) -> None:
        """Append, or ask; raises KafkaError when it is refused now."""
        self.partition.check_leader()
        producer_id, epoch, _ = read_producer(self.records)
        transactional_id = self.request.body.transactional_id
        verification, version = self.node.verification, self.request.api_version
        adds = version >= ADDS_PARTITIONS_VERSION
        if (not adds and not self.node.config.transaction_partition_verification_enable) or (
            not verification.is_needed(self.partition, producer_id, epoch)
        ):
            self._append()
            return
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "a transactional batch without a transactional id")
        known = Support.ABORTABLE if version >= ABORTABLE_VERSION else Support.OLD
        asker = Asker(transactional_id, producer_id, epoch, Support.ADDS if adds else known)
        # The bytes belong to the connection's buffer, which the next step overwrites.
        self.records = memoryview(bytearray(self.records))
        if self.wait is not None:
            self.wait.hold(self.partition, self.answer)
        verification.ask(self.partition, asker, self._confirmed, self._again)

    def _append(self) -> None:
        end_offset = _append(self.node, self.partition, self.records, self.acks, self.answer)
        if self.wait is not None:
            self.wait.add(self.partition, end_offset, self.answer, self.acks)

    def _confirmed(self, complaint: KafkaError | None) -> None:
        self._retake(self._append, complaint)

    def _again(self) -> None:
        self._retake(self._take_turn, None)

    def _take_turn(self) -> None:
        """As when it came; but what it waited behind may have been refused."""
        producers = self.partition.log.producers.producers
        self.node.replicas.refused.check_first(self.place, self.records, producers)
        self.take()

    def _retake(self, action: Callable[[], None], complaint: KafkaError | None) -> None:
        if self.wait is not None:
            self.wait.release(self.answer)
        try:
            if complaint is not None:
                raise complaint
            action()
        except KafkaError as refusal:
            error = self.node.replicas.refused.judged(self.place, self.records, refusal)
            topic, index = self.partition.topic, self.partition.index
            _fail(self.node, self.answer, error.code, error.message, topic, index)
            if self.wait is None:
                reason = f"produce with acks=0 failed: {error.code.name}"
                self.node.outbox.close(self.request.connection_id, reason)
        if self.wait is not None:
            self.wait.answer_if_done()


def _append(node: Node, partition: Partition, records: Any, acks: int, answer: PartitionProduceResponse) -> int:
    """Append one partition's batches; returns the end offset that the answer waits for."""
    partition.check_leader()
    if records is None or len(records) == 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, "no records")
    if acks == ALL:
        partition.check_enough_replicas()
    try:
        appended = partition.append(records, node.outbox.now_ms)
    except StorageError as error:
        raise node.replicas.disk_failed(partition, error) from None
    answer.base_offset = appended.first_offset
    answer.log_append_time_ms = appended.log_append_time_ms
    answer.log_start_offset = partition.log.log_start_offset
    if not appended.duplicate:
        node.replicas.appended(partition, len(records))
    return appended.last_offset + 1


def _fail(node: Node, answer: PartitionProduceResponse, code: int, message: str, topic: str | None, index: int) -> None:
    answer.error_code = code
    answer.base_offset = -1
    answer.error_message = message or None
    if code == ErrorCode.NOT_LEADER_OR_FOLLOWER and topic is not None:
        partition = node.replicas.partitions.get((topic, index))
        if partition is not None:
            answer.current_leader = LeaderIdAndEpoch(leader_id=partition.leader_id, leader_epoch=partition.leader_epoch)


def _refuse(body: Any, code: ErrorCode) -> ProduceResponse | None:
    """The same code for every partition of the request."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=one.index, error_code=code, base_offset=-1)
                    for one in topic.partition_data
                ],
            )
            for topic in body.topic_data
        ]
    )


class _Wait:
    """A produce request waiting for its partitions: answered when the last one is there, or when its time is up."""

    __slots__ = ("is_answered", "node", "pending", "request", "response", "started", "timer")

    def __init__(self, node: Node, request: Request, response: ProduceResponse) -> None:
        self.node = node
        self.request = request
        self.response = response
        self.pending: dict[int, tuple[Partition, PartitionProduceResponse, Any]] = {}
        self.started = False
        self.is_answered = False
        self.timer: Timer | None = None

    def add(self, partition: Partition, end_offset: int, answer: PartitionProduceResponse, acks: int) -> None:
        """Wait until a partition's append counts."""
        number = id(answer)

        def acknowledge(code: ErrorCode) -> None:
            if self.pending.pop(number, None) is None:
                return
            if code is not ErrorCode.NONE:
                _fail(self.node, answer, code, "", partition.topic, partition.index)
            self.answer_if_done()

        if self.is_answered:
            return  # its time was up before it was appended
        self.pending[number] = (partition, answer, acknowledge)
        if acks == ALL:
            partition.when_committed(end_offset, acknowledge)
        else:
            partition.when_durable(end_offset, acknowledge)

    def hold(self, partition: Partition, answer: PartitionProduceResponse) -> None:
        """Wait for a partition that is not appended to yet, until it is released."""
        if not self.is_answered:
            self.pending[id(answer)] = (partition, answer, None)

    def release(self, answer: PartitionProduceResponse) -> None:
        """It will be added, or is refused."""
        self.pending.pop(id(answer), None)

    def start(self, timeout_ms: int) -> ProduceResponse | None:
        """The answer, when nothing is left to wait for; otherwise it will come."""
        if not self.pending:
            self.is_answered = True
            return self.response
        self.started = True
        self.timer = self.node.outbox.after(max(0, timeout_ms), self._time_is_up)
        return None

    def answer_if_done(self) -> None:
        """Answer when nothing is left to wait for."""
        if self.started and not self.pending and not self.is_answered:
            self._answer()

    def _time_is_up(self) -> None:
        for partition, answer, acknowledge in list(self.pending.values()):
            partition.forget(acknowledge)
            _fail(self.node, answer, ErrorCode.REQUEST_TIMED_OUT, "", partition.topic, partition.index)
        self.pending.clear()
        self._answer()

    def _answer(self) -> None:
        self.is_answered = True
        if self.timer is not None:
            self.timer.cancel()
        self.node.outbox.reply(self.request.connection_id, self.request.slot, self.response)
