"""Transactional producers of a simulated cluster, of both protocols, and zombies: several with one transactional id.

    write       transaction after transaction over the partitions of a topic, committed, aborted or left behind
    transform   reads committed records of a partition, writes each again and commits its offset with them

    v1          adds partitions itself; after a write that it gave up it aborts and asks for a new epoch (KIP-360)
    v2          leaves adding to the leaders, gets a new epoch with each end (KIP-890)

A producer may fall asleep in the middle of a transaction and go on as if nothing had been; meanwhile another one with
the same transactional id has taken over. What a producer knows of its transactions stays in its `Identity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.sim.committing import Committer, GroupNotes, IsCoordinator
from tidelog.sim.reading import end_of, records_of
from tidelog.sim.scripted import BUSY, GROUP, RETRY_MS, TRANSACTION, Script
from tidelog.sim.work_shape import COPY, LEDGER, LEDGER_PARTITIONS, TransactorShape
from tidelog.sim.world import World
from tidelog.wire.api_table import ApiKey
from tidelog.wire.batch import Record, build_batch
from tidelog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tidelog.wire.messages.end_txn import EndTxnRequest
from tidelog.wire.messages.init_producer_id import InitProducerIdRequest
from tidelog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"
MOST_TRANSFORMED = 6
WRITE_TRIES = 30
_REPEATED = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


class Write:
    """One record of a transaction."""

    __slots__ = ("index", "offset", "topic", "value")

    def __init__(self, topic: str, index: int, value: str) -> None:
        self.topic = topic
        self.index = index
        self.value = value
        self.offset = -1
        """Where it was acknowledged; -1 while nobody knows whether it is stored."""


class Attempt:
    """One transaction, as its producer knows it."""

    __slots__ = ("commit_asked_ms", "group_offset", "name", "outcome", "writes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.writes: list[Write] = []
        self.commit_asked_ms: int | None = None
        """When its commit was first asked for; before that nobody may see it."""
        self.outcome = UNKNOWN
        self.group_offset: int | None = None
        """What it commits for its group."""


class Identity:
    """A transactional id, whoever has it at a time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.group = f"{name}-group"
        self.attempts: list[Attempt] = []
        self.initialised: list[tuple[int, int]] = []
        """When a producer was told its epoch, and which."""
        self.zombie_answers: list[str] = []
        """What was answered well to somebody whose time was over."""

    def begin(self) -> Attempt:
        """The next transaction."""
        attempt = Attempt(f"{self.name}.{len(self.attempts)}")
        self.attempts.append(attempt)
        return attempt


class Transactor(Committer):
    """One producer with a transactional id that it may have to share."""

    def __init__(
        self,
        world: World,
        brokers: Sequence[int],
        shape: TransactorShape,
        identity: Identity,
        is_coordinator: IsCoordinator,
    ) -> None:
        super().__init__(world, shape.name, brokers, shape.draw, is_coordinator)
        self.shape = shape
        self.identity = identity
        self.is_ending = False
        """Faults are over: no new transactions but those that catch up."""
        self.is_done = False
        self.position = 0
        """What its group had committed when it last looked, for one that transforms."""
        self._notes = GroupNotes(identity.group)
        self._producer_id, self._epoch = -1, -1
        self._sequences: dict[tuple[str, int], int] = {}
        self._added: set[tuple[str, int]] = set()
        self.play(self._life())

    # --- a life ---

    def _life(self) -> Script:
        yield from self.sleeping(self.shape.begins_ms)
        while not self._has_enough():
            yield from self._initialising(-1, -1)
            for _ in range(1 + self.chance.below(6)):
                goes_on = yield from self._transacting()
                if not goes_on or self._has_enough():
                    break
                yield from self.sleeping(self.shape.interval_ms)
            yield from self.sleeping((50, 400, 1_500)[self.chance.below(3)] if self.shape.has_rival else RETRY_MS)
        self.is_done = True

    def _has_enough(self) -> bool:
        return self.is_ending and not (self.shape.transforms and self.shape.is_first)

    def _initialising(self, producer_id: int, epoch: int) -> Script:
        """Get an epoch that fences those before; with an id and epoch of its own, the next one."""
        request = InitProducerIdRequest(
            transactional_id=self.identity.name,
            transaction_timeout_ms=self.shape.timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        while True:
            code, answer = yield from self._asking(ApiKey.INIT_PRODUCER_ID, 5, request)
            if code is ErrorCode.NONE:
                self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
                self._sequences.clear()
                self.identity.initialised.append((self.world.now_ms, self._epoch))
                return True
            if producer_id >= 0:
                return False
            yield from self.sleeping(RETRY_MS)

    def _asking(self, api_key: int, version: int, body: Any) -> Script:
        found = yield from self.asking_coordinator(
            TRANSACTION, self.identity.name, api_key, version, body, lambda one: int(one.error_code)
        )
        return found

    # --- a transaction ---

    def _transacting(self) -> Script:
        """One transaction; whether this producer may go on with its epoch."""
        self._added.clear()
        if self.shape.is_v2:
            self._sequences.clear()
        attempt = self.identity.begin()
        if self.shape.transforms:
            fetched = yield from self._what_to_transform(attempt)
            if fetched is None:
                self.identity.attempts.remove(attempt)
                yield from self.sleeping(100)
                return True
        else:
            for number in range(1 + self.chance.below(4)):
                attempt.writes.append(Write(LEDGER, self.chance.below(LEDGER_PARTITIONS), f"{attempt.name}.{number}"))
        for write in attempt.writes:
            yield from self._sleeping_in_the_middle()
            code = yield from self._writing(write)
            if code is not ErrorCode.NONE:
                goes_on = yield from self._giving_up(attempt, code)
                return goes_on
        if attempt.group_offset is not None:
            code = yield from self._committing_offset(attempt.group_offset)
            if code is not ErrorCode.NONE:
                goes_on = yield from self._giving_up(attempt, code)
                return goes_on
        yield from self._sleeping_in_the_middle()
        if not self.is_ending and self.chance.below(14) == 0:
            return False  # dies, and leaves it open
        goes_on = yield from self._ending(attempt, is_commit=self.is_ending or self.chance.below(4) > 0)
        return goes_on

    def _sleeping_in_the_middle(self) -> Script:
        if self.shape.has_rival and not self.is_ending and self.chance.below(8) == 0:
            yield from self.sleeping(1_000 + self.chance.below(3_000))

    def _giving_up(self, attempt: Attempt, code: ErrorCode) -> Script:
        """A write failed or was given up: abort where that is still ours to do."""
        if code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING):
            return False
        goes_on = yield from self._ending(attempt, is_commit=False)
        if goes_on and not self.shape.is_v2:
            # What was given up may still arrive: it must not count for the next transaction.
            goes_on = yield from self._initialising(self._producer_id, self._epoch)
        return goes_on

    def _ending(self, attempt: Attempt, *, is_commit: bool) -> Script:
        if is_commit:
            attempt.commit_asked_ms = self.world.now_ms
        request = EndTxnRequest(
            transactional_id=self.identity.name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=is_commit,
        )
        sent_ms = self.world.now_ms
        code, answer = yield from self._asking(ApiKey.END_TXN, 5 if self.shape.is_v2 else 4, request)
        if code is not ErrorCode.NONE:
            return False
        self._note_answer(sent_ms, "commit" if is_commit else "abort")
        attempt.outcome = COMMITTED if is_commit else ABORTED
        if self.shape.is_v2:
            self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        return True

    def _note_answer(self, sent_ms: int, what: str) -> None:
        """Whoever asks after another producer was told a later epoch must not be answered well."""
        later = [epoch for at_ms, epoch in self.identity.initialised if at_ms < sent_ms and epoch > self._epoch]
        if later:
            self.identity.zombie_answers.append(
                f"{self.name} of epoch {self._epoch} could {what} with {self.identity.name} at {sent_ms}, when epoch "
                f"{max(later)} had been given to another producer"
            )

    # --- writing ---

    def _writing(self, write: Write) -> Script:
        """Store a record; NONE when it was acknowledged."""
        place = (write.topic, write.index)
        if not self.shape.is_v2 and place not in self._added:
            code = yield from self._adding(*place)
            if code is not ErrorCode.NONE:
                return code
        sequence = self._sequences.get(place, 0)
        batch = build_batch(
            [Record(0, self.world.now_ms, None, write.value.encode())],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        code = ErrorCode.NETWORK_EXCEPTION
        for _ in range(WRITE_TRIES):
            leader = yield from self.leading(*place)
            data = PartitionProduceData(index=write.index, records=bytes(batch))
            request = ProduceRequest(
                transactional_id=self.identity.name,
                acks=-1,
                timeout_ms=2_000,
                topic_data=[TopicProduceData(name=write.topic, partition_data=[data])],
            )
            sent_ms = self.world.now_ms
            version = 12 if self.shape.is_v2 else 11
            answer = yield from self.asking(
                leader, ApiKey.PRODUCE, version, request, self.shape.patience_ms, leaves=True
            )
            told = None if answer is None else answer.responses[0].partition_responses[0]
            code = ErrorCode.NETWORK_EXCEPTION if told is None else ErrorCode(told.error_code)
            if told is not None and code in (ErrorCode.NONE, _REPEATED):
                self._note_answer(sent_ms, "write")
                write.offset = told.base_offset
                self._sequences[place] = sequence + 1
                return ErrorCode.NONE
            if code not in BUSY or (told is None and self.shape.is_hasty):
                return code
            self.look_again(*place)
            yield from self.sleeping(RETRY_MS)
        return code

    def _adding(self, topic: str, index: int) -> Script:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.identity.name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index])],
        )
        sent_ms = self.world.now_ms
        code, _ = yield from self.asking_coordinator(
            TRANSACTION,
            self.identity.name,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            request,
            lambda one: int(one.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code),
        )
        if code is ErrorCode.NONE:
            self._note_answer(sent_ms, "add a partition")
            self._added.add((topic, index))
        return code

    # --- transforming ---

    def _what_to_transform(self, attempt: Attempt) -> Script:
        """Read on from what the group has committed; None when there is nothing to read."""
        index = self.shape.partition
        committed = yield from self.finding(self._notes, index)
        if committed is None:
            return None
        self.position = position = max(0, committed)
        found = yield from self.fetching(LEDGER, index, position, is_committed=True, wait_ms=200)
        if found is None:
            return None
        records = records_of(found[0], position, is_committed=True)
        end = end_of(found[0], position)
        if end <= position:
            return None
        if len(records) > MOST_TRANSFORMED:
            records, end = records[:MOST_TRANSFORMED], records[MOST_TRANSFORMED][0]
        attempt.writes = [Write(COPY, index, f"{offset}:{value}") for offset, value in records]
        attempt.group_offset = end
        return True

    def _committing_offset(self, offset: int) -> Script:
        who: dict[str, Any] = {
            "transactional_id": self.identity.name,
            "producer_id": self._producer_id,
            "producer_epoch": self._epoch,
            "group_id": self.identity.group,
        }
        if not self.shape.is_v2:
            code, _ = yield from self._asking(ApiKey.ADD_OFFSETS_TO_TXN, 3, AddOffsetsToTxnRequest(**who))
            if code is not ErrorCode.NONE:
                return code
        partition = TxnOffsetCommitRequestPartition(partition_index=self.shape.partition, committed_offset=offset)
        topic = TxnOffsetCommitRequestTopic(name=LEDGER, partitions=[partition])
        sent_ms = self.world.now_ms
        code, _ = yield from self.asking_coordinator(
            GROUP,
            self.identity.group,
            ApiKey.TXN_OFFSET_COMMIT,
            5 if self.shape.is_v2 else 3,
            TxnOffsetCommitRequest(**who, topics=[topic]),
            lambda one: int(one.topics[0].partitions[0].error_code),
            tries=3 if self.shape.is_hasty else WRITE_TRIES,
            leaves=True,
            patience_ms=self.shape.patience_ms,
        )
        if code is ErrorCode.NONE:
            self._note_answer(sent_ms, "commit an offset")
        return code
