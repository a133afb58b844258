"""A producer of a simulated cluster: one record a request, acks, retries, idempotence, a ledger of what it was told.

It follows Kafka's own clients where an outcome depends on it: retries keep a record's sequence, five requests may be in
flight, and an idempotent producer that has to send one again sends that one alone until it is settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.ledger import ACKNOWLEDGED, FAILED, UNKNOWN, Entry
from tidelog.sim.client import Client, TopicPartition
from tidelog.sim.world import World
from tidelog.wire.api_table import ApiKey
from tidelog.wire.batch import Record, build_batch
from tidelog.wire.messages.init_producer_id import InitProducerIdRequest
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE_VERSION = 11
ALL = -1


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """Kafka's settings of a producer, with Kafka's defaults but for `linger` (none) and the timeouts (shorter)."""

    acks: int = ALL
    enable_idempotence: bool = True
    max_in_flight_requests_per_connection: int = 5
    request_timeout_ms: int = 5_000
    delivery_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retries: int = 2**31 - 1

    @classmethod
    def from_words(cls, words: Mapping[str, str]) -> ProducerSettings:
        """From settings as people write them: `acks=all`, `enable.idempotence=false`, `retry.backoff.ms=20`."""
        values: dict[str, Any] = {}
        for name, text in words.items():
            field = name.replace(".", "_")
            if field not in cls.__slots__:
                raise ValueError(f"{name} is no setting of a producer")
            if field == "acks":
                values[field] = ALL if text == "all" else int(text)
            else:
                values[field] = text == "true" if field == "enable_idempotence" else int(text)
        if "enable_idempotence" not in values:
            values["enable_idempotence"] = values.get("acks", ALL) == ALL
        return cls(**values)


class Sending:
    """A record on its way."""

    __slots__ = (
        "attempts",
        "begun_ms",
        "error",
        "in_flight",
        "key",
        "not_before_ms",
        "number",
        "record_key",
        "sequence",
        "value",
    )

    def __init__(
        self, key: TopicPartition, value: str, number: int, begun_ms: int, record_key: bytes | None = None
    ) -> None:
        self.key = key
        self.value = value
        self.record_key = record_key
        self.number = number
        self.sequence = -1
        """Its sequence in the partition, for an idempotent producer; drawn at the first attempt and kept."""
        self.begun_ms = begun_ms
        self.not_before_ms = begun_ms
        self.attempts = 0
        self.in_flight = False
        self.error = ErrorCode.NONE


class Producer(Client):
    """Hands records to leaders until each is settled."""

    def __init__(self, world: World, name: str, brokers: Sequence[int], settings: ProducerSettings) -> None:
        super().__init__(world, name, brokers)
        self.settings = settings
        self.ledger: list[Entry] = []
        self.errors: Counter[str] = Counter()
        """Answers that were no acknowledgement, by name."""
        self.retries = 0
        self.on_settled: Callable[[Entry], None] | None = None
        self.producer_id, self.producer_epoch = -1, -1
        self._waiting: dict[TopicPartition, list[Sending]] = {}
        """Everything unsettled, in the order it was handed over."""
        self._next_number = 0
        self._next_sequence: dict[TopicPartition, int] = {}
        self._is_initialising = False
        self._has_gap = False
        self._is_looking: set[str] = set()

    @property
    def unsettled(self) -> list[Sending]:
        """Records whose fate is not known yet."""
        return [one for waiting in self._waiting.values() for one in waiting]

    @property
    def waiting_count(self) -> int:
        """How many records are unsettled."""
        return sum(map(len, self._waiting.values()))

    def send(self, topic: str, partition: int, value: str, record_key: bytes | None = None) -> None:
        """Hand over a record; its outcome goes into the ledger. With a key, an empty value is a tombstone."""
        sending = Sending((topic, partition), value, self._next_number, self.world.now_ms, record_key)
        self._next_number += 1
        self._waiting.setdefault(sending.key, []).append(sending)
        self.after(self.settings.delivery_timeout_ms, lambda: self._expire(sending))
        self._pump(sending.key)

    # --- sending ---

    def _pump(self, key: TopicPartition) -> None:
        """Send what may be sent now."""
        if self.closed:
            return
        if self._has_gap and not any(one.in_flight for one in self.unsettled):
            self._begin_anew()
        if self._has_gap:
            return
        if self.settings.enable_idempotence and self.producer_id < 0:
            self._initialise()
            return
        waiting = self._waiting.get(key, [])
        leader = self.leaders.get(key, (-1, -1))[0]
        if leader < 0:
            if waiting:
                self._look_for_leader(key)
            return
        in_flight = sum(one.in_flight for one in waiting)
        for sending in waiting:
            if sending.in_flight:
                continue
            if in_flight >= self.settings.max_in_flight_requests_per_connection:
                break
            if sending.not_before_ms > self.world.now_ms:
                if self.settings.enable_idempotence:
                    break  # what comes after would be out of order
                continue
            if self.settings.enable_idempotence and sending is not waiting[0] and waiting[0].attempts > 1:
                break
            in_flight += 1
            self._send(leader, sending)

    def _send(self, leader: int, sending: Sending) -> None:
        topic, partition = sending.key
        sending.in_flight = True
        sending.attempts += 1
        self.retries += sending.attempts > 1
        is_tombstone = sending.record_key is not None and not sending.value
        record = Record(0, self.world.now_ms, sending.record_key, None if is_tombstone else sending.value.encode())
        if self.settings.enable_idempotence:
            if sending.sequence < 0:
                sending.sequence = self._next_sequence.get(sending.key, 0)
                self._next_sequence[sending.key] = sending.sequence + 1
            batch = build_batch(
                [record],
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=sending.sequence,
            )
        else:
            batch = build_batch([record])
        data = PartitionProduceData(index=partition, records=batch)
        acks, timeout_ms = self.settings.acks, self.settings.request_timeout_ms
        request = ProduceRequest(
            acks=acks, timeout_ms=timeout_ms, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
        )
        if acks == 0:
            self.ask(leader, ApiKey.PRODUCE, PRODUCE_VERSION, request, lambda _: None, timeout_ms)
            self._settle(sending, UNKNOWN, -1)
            return
        attempt = sending.attempts
        self.ask(
            leader,
            ApiKey.PRODUCE,
            PRODUCE_VERSION,
            request,
            lambda response: self._answered(sending, attempt, response),
            timeout_ms + 1000,
        )

    def _answered(self, sending: Sending, attempt: int, response: Any) -> None:
        if self.closed or sending.attempts != attempt or not sending.in_flight:
            return
        sending.in_flight = False
        answer: Any = None if response is None else response.responses[0].partition_responses[0]
        code = ErrorCode.NETWORK_EXCEPTION if answer is None else ErrorCode(answer.error_code)
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._settle(sending, ACKNOWLEDGED, answer.base_offset)
            return
        self.errors[code.name] += 1
        sending.error = code
        out_of_turn = code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and sending is not self._waiting[sending.key][0]
        if not (code.retriable or out_of_turn) or sending.attempts > self.settings.retries:
            self._settle(sending, FAILED, -1)
            return
        if code in _LOOK_AGAIN:
            self.leaders.pop(sending.key, None)
        sending.not_before_ms = self.world.now_ms + self.settings.retry_backoff_ms
        self.after(self.settings.retry_backoff_ms, lambda: self._pump(sending.key))

    def _expire(self, sending: Sending) -> None:
        if sending in self._waiting.get(sending.key, ()):
            self.errors["delivery timeout"] += 1
            # After an attempt nobody knows whether it is stored; before the first it is certainly not.
            self._settle(sending, UNKNOWN if sending.attempts else FAILED, -1)

    def _settle(self, sending: Sending, outcome: str, offset: int) -> None:
        waiting = self._waiting[sending.key]
        if sending not in waiting:
            return
        waiting.remove(sending)
        self._has_gap = self._has_gap or (sending.sequence >= 0 and outcome != ACKNOWLEDGED)
        sending.in_flight = False
        error = "" if sending.error is ErrorCode.NONE else sending.error.name
        topic, partition = sending.key
        entry = Entry(
            self.name, sending.number, sending.value, topic, partition, offset, outcome, error, self.world.now_ms
        )
        self.ledger.append(entry)
        if self.on_settled is not None:
            self.on_settled(entry)
        self._pump(sending.key)

    # --- what must be known first ---

    def _begin_anew(self) -> None:
        """A record that was given up left a gap in the sequences: go on as another producer, as Kafka's clients do."""
        self._has_gap = False
        self.producer_id = self.producer_epoch = -1
        self._next_sequence.clear()
        for sending in self.unsettled:
            sending.sequence = -1

    def _look_for_leader(self, key: TopicPartition) -> None:
        topic = key[0]
        if topic in self._is_looking:
            return
        self._is_looking.add(topic)

        def found() -> None:
            self._is_looking.discard(topic)
            for waiting in [one for one in self._waiting if one[0] == topic]:
                if self.leaders.get(waiting, (-1, -1))[0] >= 0:
                    self._pump(waiting)
                else:
                    self.after(self.settings.retry_backoff_ms, lambda waiting=waiting: self._pump(waiting))  # type: ignore[misc]

        self.find_leader(topic, found)

    def _initialise(self) -> None:
        if self._is_initialising:
            return
        self._is_initialising = True

        def answered(response: Any) -> None:
            self._is_initialising = False
            if response is None or response.error_code:
                self.after(self.settings.retry_backoff_ms, self._initialise)
                return
            self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
            for key in list(self._waiting):
                self._pump(key)

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        self.ask(self.any_broker(), ApiKey.INIT_PRODUCER_ID, 4, request, answered, 5000)


_LOOK_AGAIN = frozenset(
    (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
    )
)
