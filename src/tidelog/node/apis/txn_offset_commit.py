"""TxnOffsetCommit, versions 0 to 5: offsets of a group that count when the transaction is committed.

KIP-447 the member and its generation (v3), KIP-890: the group's coordinator asks the transaction's before it takes the
first offsets, and from v5 on adds its partition to the transaction itself (v4 knows TRANSACTION_ABORTABLE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.groups import commits
from tidelog.groups.service import TOPIC as OFFSETS_TOPIC
from tidelog.node.transaction_verification import Asker, Support
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.TXN_OFFSET_COMMIT
VERSIONS = (0, 5)
ABORTABLE_VERSION = 4
ADDS_PARTITION_VERSION = 5


def handle(node: Node, request: Request) -> None:
    """Answer when the offsets are written; they count from the transaction's commit on."""
    _Commit(node, request).begin()


class _Commit:
    """One request, which may have to wait for the transaction's coordinator."""

    __slots__ = ("answers", "body", "node", "request", "response", "wanted")

    def __init__(self, node: Node, request: Request) -> None:
        self.node = node
        self.request = request
        self.body = request.body
        self.response = TxnOffsetCommitResponse()
        self.answers: list[TxnOffsetCommitResponsePartition] = []
        self.wanted: list[commits.Commit] = []

    def begin(self) -> None:
        """Sort out topics that are not there, then commit the rest."""
        for topic in self.body.topics:
            is_there = self.node.image.topic(topic.name) is not None
            told = TxnOffsetCommitResponseTopic(name=topic.name)
            self.response.topics.append(told)
            for one in topic.partitions:
                answer = TxnOffsetCommitResponsePartition(partition_index=one.partition_index)
                told.partitions.append(answer)
                if not is_there:
                    answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    continue
                self.answers.append(answer)
                self.wanted.append(
                    commits.Commit(
                        topic.name,
                        one.partition_index,
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.committed_metadata or "",
                    )
                )
        self._try()

    def _try(self) -> None:
        """Commit, or ask the transaction's coordinator first."""
        body, node = self.body, self.node
        try:
            if not body.group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            shard = node.groups.coordinator.shard_of(body.group_id, node.group_topics.partitions_of(OFFSETS_TOPIC))
            adds = self.request.api_version >= ADDS_PARTITION_VERSION
            is_verified = not adds and not node.config.transaction_partition_verification_enable
            if is_verified or not node.verification.is_needed(shard.partition, body.producer_id, body.producer_epoch):
                self._commit(None)
                return
            if not body.transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
            known = Support.ABORTABLE if self.request.api_version >= ABORTABLE_VERSION else Support.OLD
            asker = Asker(body.transactional_id, body.producer_id, body.producer_epoch, Support.ADDS if adds else known)
            node.verification.ask(shard.partition, asker, self._commit, self._try)
        except KafkaError as error:
            self._answer([error.code] * len(self.answers))

    def _commit(self, complaint: KafkaError | None) -> None:
        body = self.body
        committer = commits.Committer(
            body.group_id, body.member_id, body.group_instance_id, body.generation_id, self.request.api_version
        )
        producer = (body.producer_id, body.producer_epoch)
        try:
            if complaint is not None:
                raise complaint
            state = self.node.groups.state_of(body.group_id)
            commits.commit_in_transaction(state, committer, producer, self.wanted, self._answer)
        except KafkaError as error:
            self._answer([_CODES.get(error.code, error.code)] * len(self.answers))

    def _answer(self, codes: list[ErrorCode]) -> None:
        for answer, code in zip(self.answers, codes, strict=True):
            answer.error_code = code
        self.node.outbox.reply(self.request.connection_id, self.request.slot, self.response)


_CODES = {
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}
"""Codes of a leader that a coordinator's client does not expect."""
