"""One transaction, several processes: one of them begins and ends it, any number write into it.

    begin        InitProducerId: a new epoch; ends what an earlier epoch left open, and shuts its writers out
    write        by whoever has the `Identity`, each partition by one writer at a time, sequences from 0 (batches.py)
    add offset   a group's offset becomes part of the transaction: it counts when the transaction is committed
    end          EndTxn, once; asked again until it is answered

Protocol 1 tells the coordinator of each partition before it is written; in protocol 2 (KIP-890) the partition's leader
does, and every end raises the epoch. A transaction keeps to one of them: Produce of protocol 2 with EndTxn of
protocol 1 lets a late write of a dead process slip into the next transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from tidelog.client.backoff import Deadline, error_of, raise_for
from tidelog.client.client import Client, TopicPartition
from tidelog.client.coordinators import GROUP, REQUEST_TIMEOUT_MS, TRANSACTION, find_coordinator
from tidelog.client.groups import Committed
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.message import Message
from tidelog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tidelog.wire.messages.end_txn import EndTxnRequest
from tidelog.wire.messages.init_producer_id import InitProducerIdRequest
from tidelog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tidelog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

PROTOCOL_1, PROTOCOL_2 = 1, 2
FEATURE = "transaction.version"
PRODUCE_VERSIONS = {PROTOCOL_1: 11, PROTOCOL_2: 13}
"""Newest version of Produce in each protocol; 12 is the first of protocol 2."""
_END_VERSIONS = {PROTOCOL_1: 4, PROTOCOL_2: 5}
_OFFSET_VERSIONS = {PROTOCOL_1: 4, PROTOCOL_2: 5}
_ADD_PARTITIONS_VERSION = 3
"""Newer versions of AddPartitionsToTxn are for brokers."""
_OFFSET_FETCH_VERSION = 9
"""The newest that names topics by name."""
_STABLE_VERSION = 7
"""The first version of OffsetFetch that can wait for open transactions (KIP-447)."""
_LOST = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
"""After these nobody knows whether a request was heard."""
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
"""Another process has begun under the same transactional id, or the coordinator gave the transaction up."""


class Identity(NamedTuple):
    """All that a process needs in order to write into a transaction that another one began."""

    transactional_id: str
    producer_id: int
    epoch: int
    protocol: int


def protocol_of(client: Client, deadline: Deadline | None = None) -> int:
    """Which protocol the cluster has settled on; UNSUPPORTED_VERSION where it has no transactions."""
    connection = client.connect(None, deadline or Deadline(client.timeout_ms))
    for request in (InitProducerIdRequest, EndTxnRequest, TxnOffsetCommitRequest):
        if not connection.supports(request):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster at {connection.address} has no transactions",
            )
    return PROTOCOL_2 if connection.features.get(FEATURE, 0) >= PROTOCOL_2 else PROTOCOL_1


class Transactions:
    """The side that begins and ends; one at a time for a transactional id."""

    def __init__(self, client: Client, transactional_id: str, *, transaction_timeout_ms: int, timeout_ms: int) -> None:
        """`timeout_ms` is how long a request is tried again, `transaction_timeout_ms` what the coordinator allows."""
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self._client = client
        self._timeout_ms = timeout_ms
        self._last: Identity | None = None
        """Whom the coordinator knows us as: whoever begins with it is refused when another process took over."""

    def begin(self) -> Identity:
        """A new epoch under this id. The first takes the id over; later ones hold it, or are told they lost it."""
        protocol = protocol_of(self._client)
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.transaction_timeout_ms
        )
        if self._last is not None and self._last.protocol == protocol:
            request.producer_id, request.producer_epoch = self._last.producer_id, self._last.epoch
        lost: list[KafkaError] = []
        try:
            answer = self._ask(request, lost=lost)
        except KafkaError as error:
            if error.code not in FENCED or request.producer_id < 0 or not any(one.code in _LOST for one in lost):
                raise
            # An answer was lost: the epoch that is newer than ours may be our own, which a coordinator that has just
            # come back cannot tell. Taking the id over is safe either way, since it ends what is open.
            request.producer_id = request.producer_epoch = -1
            answer = self._ask(request)
        self._last = Identity(self.transactional_id, answer.producer_id, answer.producer_epoch, protocol)
        return self._last

    def add_offset(self, identity: Identity, group: str, where: TopicPartition, offset: int, metadata: str) -> None:
        """Make a group's offset part of the transaction."""
        if identity.protocol == PROTOCOL_1:
            self._ask(
                AddOffsetsToTxnRequest(
                    transactional_id=identity.transactional_id,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                    group_id=group,
                )
            )
        partition = TxnOffsetCommitRequestPartition(
            partition_index=where[1], committed_offset=offset, committed_metadata=metadata
        )
        request = TxnOffsetCommitRequest(
            transactional_id=identity.transactional_id,
            group_id=group,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=where[0], partitions=[partition])],
        )
        ask_until_answered(
            self._client,
            group,
            GROUP,
            request,
            lambda answer: (one.error_code for topic in answer.topics for one in topic.partitions),
            highest=_OFFSET_VERSIONS[identity.protocol],
            timeout_ms=self._timeout_ms,
        )

    def end(self, identity: Identity, *, commit: bool) -> None:
        """Commit or abort; returns when the coordinator has decided. Aborting what was never begun is fine."""
        request = EndTxnRequest(
            transactional_id=identity.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=commit,
        )
        try:
            answer = self._ask(request, _END_VERSIONS[identity.protocol])
        except KafkaError as error:
            if commit or error.code != ErrorCode.INVALID_TXN_STATE:
                raise
            answer = None
        if answer is not None and answer.producer_id >= 0 and identity.protocol == PROTOCOL_2:
            identity = identity._replace(producer_id=answer.producer_id, epoch=answer.producer_epoch)
        # An aborted transaction may still have writers that do not know it: the next epoch is taken, not asked for.
        self._last = identity if commit else None

    def _ask(self, request: Message, highest: int | None = None, lost: list[KafkaError] | None = None) -> Any:
        return ask_until_answered(
            self._client,
            self.transactional_id,
            TRANSACTION,
            request,
            lambda answer: (answer.error_code,),
            highest=highest,
            timeout_ms=self._timeout_ms,
            lost=lost,
        )


def add_partitions(client: Client, identity: Identity, partitions: Iterable[TopicPartition], timeout_ms: int) -> None:
    """Tell the coordinator what will be written, as protocol 1 wants it; in protocol 2 the leaders do."""
    if identity.protocol != PROTOCOL_1:
        return
    topics = [
        AddPartitionsToTxnTopic(name=topic, partitions=[partition for _, partition in rows])
        for topic, rows in groupby(sorted(partitions), key=lambda pair: pair[0])
    ]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=identity.transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=topics,
    )
    ask_until_answered(
        client,
        identity.transactional_id,
        TRANSACTION,
        request,
        lambda answer: (
            one.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
            # The others of a request with one bad partition: the bad one says why.
            if one.partition_error_code != ErrorCode.OPERATION_NOT_ATTEMPTED
        ),
        highest=_ADD_PARTITIONS_VERSION,
        timeout_ms=timeout_ms,
    )


def stable_offsets(
    client: Client, group: str, timeout_ms: int, partitions: Iterable[TopicPartition] | None = None
) -> Mapping[TopicPartition, Committed]:
    """What a group has committed, once no open transaction could change it any more (KIP-447).

    Without `partitions`, of all that have an offset already: one that would be a partition's first is waited for only
    where the partition is named.
    """
    request = OffsetFetchRequest(group_id=group, topics=None, require_stable=True)
    request.groups = [OffsetFetchRequestGroup(group_id=group, topics=None)]
    if partitions is not None:
        rows = groupby(sorted(partitions), key=lambda pair: pair[0])
        wanted = {topic: [partition for _, partition in pairs] for topic, pairs in rows}
        request.topics = [OffsetFetchRequestTopic(name=name, partition_indexes=one) for name, one in wanted.items()]
        request.groups[0].topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=one) for name, one in wanted.items()
        ]

    def codes(answer: Any) -> Iterable[int]:
        for one in answer.groups or [answer]:
            yield one.error_code
            yield from (partition.error_code for topic in one.topics for partition in topic.partitions)

    answer = ask_until_answered(
        client,
        group,
        GROUP,
        request,
        codes,
        highest=_OFFSET_FETCH_VERSION,
        lowest=_STABLE_VERSION,
        timeout_ms=timeout_ms,
    )
    found = {}
    for topic in answer.groups[0].topics if answer.groups else answer.topics:
        for one in topic.partitions:
            if one.committed_offset >= 0:
                found[topic.name, one.partition_index] = Committed(
                    one.committed_offset, one.committed_leader_epoch, one.metadata or ""
                )
    return found


# --- coordinators ---


def ask_until_answered(
    client: Client,
    key: str,
    kind: int,
    request: Message,
    codes_of: Callable[[Any], Iterable[int]],
    *,
    timeout_ms: int,
    highest: int | None = None,
    lowest: int = 0,
    lost: list[KafkaError] | None = None,
) -> Any:
    """Ask the coordinator of a group or a transactional id, whoever that is by then, until there is an answer.

    Every request sent through here may be sent twice: the coordinator answers the repetition as it did the first. What
    was in the way is added to `lost`.
    """
    deadline = Deadline(timeout_ms)
    while True:
        try:
            broker_id = find_coordinator(client, key, kind, deadline)
            connection = client.connect(broker_id, deadline)
            version = connection.version_of(type(request), highest)
            if version < lowest:
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_VERSION,
                    f"{connection.address} is too old: {type(request).__name__} {lowest} is needed",
                )
            bound_ms = max(1, min(REQUEST_TIMEOUT_MS, deadline.remaining_ms))
            connection.send(request, version, bound_ms)
            answer = connection.receive(bound_ms)
            for code in codes_of(answer):
                raise_for(code, f"{type(request).__name__.removesuffix('Request')} of {key!r}: {_name(code)}")
            return answer
        except KafkaError as error:
            if not (error.code.retriable or error.code == ErrorCode.BROKER_NOT_AVAILABLE):
                raise
            if lost is not None:
                lost.append(error)
            deadline.pause(error)
            client.turn_elsewhere()
            if error.code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.BROKER_NOT_AVAILABLE):
                client.refresh(deadline=deadline)


def _name(code: int) -> str:
    return error_of(code).code.name
