"""Members of groups in a simulated cluster: they join, read, commit, fall asleep, leave and die, in both protocols.

    classic    JoinGroup, SyncGroup, Heartbeat; the first among them shares out the partitions
    consumer   ConsumerGroupHeartbeat; the coordinator shares them out (KIP-848)

One that wakes up commits first, as an application does that had been at work on what it read: its generation may be
over by then, and others may have read further.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.sim.committing import Committer, GroupNotes, IsCoordinator
from tidelog.sim.reading import end_of, records_of
from tidelog.sim.scripted import GROUP, RETRY_MS, Script
from tidelog.sim.work_shape import CLASSIC, LEDGER, LEDGER_PARTITIONS, MemberShape
from tidelog.sim.world import World
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from tidelog.wire.messages.heartbeat import HeartbeatRequest
from tidelog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tidelog.wire.records.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.wire.stored import encode_versioned

SESSION_MS = 2_000
REBALANCE_MS = 2_500
MOODS = 24
"""Of so many polls one ends in sleep, one in death and one in leaving."""


class Member(Committer):
    """One member, life after life."""

    def __init__(
        self,
        world: World,
        brokers: Sequence[int],
        shape: MemberShape,
        notes: GroupNotes,
        is_coordinator: IsCoordinator,
    ) -> None:
        super().__init__(world, shape.name, brokers, shape.draw, is_coordinator)
        self.shape = shape
        self.notes = notes
        self.is_ending = False
        """Faults are over: no more moods."""
        self._lives = 0
        self._member_id = ""
        self._generation = -1
        self._positions: dict[int, int] = {}
        """By partition that is its own: where it reads on."""
        self._committed: dict[int, int] = {}
        self.play(self._life())

    @property
    def _is_classic(self) -> bool:
        return self.shape.protocol == CLASSIC

    def _life(self) -> Script:
        yield from self._beginning()
        yield from self.sleeping(self.shape.begins_ms)
        while True:
            self._lives += 1
            self._member_id = "" if self._is_classic else f"{self.name}-{self._lives}"
            yield from self._living()
            self._drop()
            yield from self.sleeping(300 + self.chance.below(2_000))

    def _beginning(self) -> Script:
        """Somebody commits for the group before anybody is in it: one without offsets is forgotten when it is empty,
        and its generations begin anew.
        """
        while not self.notes.acknowledged:
            if self.shape.is_first:
                yield from self.committing(self.notes, 0, 0)
            else:
                yield from self.sleeping(200)

    def _living(self) -> Script:
        """From joining to the end of it."""
        joining = self._joining_classic if self._is_classic else self._joining_consumer
        is_in = yield from joining()
        if not is_in:
            return
        while True:
            is_in = yield from self._polling()
            is_in = is_in and (yield from self._beating())
            if not is_in:
                return
            mood = MOODS if self.is_ending else self.chance.below(MOODS)
            if mood == 0:
                yield from self.sleeping(SESSION_MS + 500 + self.chance.below(2_500))
            elif mood == 1:
                return  # dies without a word
            elif mood == 2:
                yield from self._leaving()
                return
            yield from self.sleeping(self.shape.poll_ms)

    def _drop(self) -> None:
        self._generation = -1
        self._positions.clear()
        self._committed.clear()

    # --- reading ---

    def _polling(self) -> Script:
        """Commit what was read before, read on; whether it is still a member."""
        for index, position in list(self._positions.items()):
            if position > self._committed.get(index, -1):
                code = yield from self.committing(
                    self.notes, index, position, self._generation, self._member_id, tries=10
                )
                if code is ErrorCode.NONE:
                    self._committed[index] = position
                elif code is ErrorCode.STALE_MEMBER_EPOCH:
                    continue  # the next heartbeat tells the new one
                elif code is not ErrorCode.REBALANCE_IN_PROGRESS:
                    return False
        for index, position in list(self._positions.items()):
            found = yield from self.fetching(LEDGER, index, position, is_committed=True)
            if found is not None and index in self._positions:
                seen = self.notes.consumed.setdefault(index, set())
                seen.update(offset for offset, _ in records_of(found[0], position, is_committed=True))
                self._positions[index] = end_of(found[0], position)
        return True

    def _owning(self, indexes: Sequence[int]) -> Script:
        """Take partitions over where those before have left off; whether that could be found out."""
        for index in [one for one in self._positions if one not in indexes]:
            del self._positions[index]
            self._committed.pop(index, None)
        for index in indexes:
            self.notes.owns(self._generation, index, self._member_id)
        for index in indexes:
            if index in self._positions:
                continue
            who = (-1, None) if self._is_classic else (self._generation, self._member_id)
            offset = yield from self.finding(self.notes, index, *who)
            if offset is None:
                return False
            self._positions[index] = self._committed[index] = max(0, offset)
        return True

    # --- the classic protocol ---

    def _joining_classic(self) -> Script:
        subscription = encode_versioned(ConsumerProtocolSubscription(topics=[LEDGER]), 1)
        while True:
            request = JoinGroupRequest(
                group_id=self.shape.group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self._member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
            )
            code, joined = yield from self._asking(ApiKey.JOIN_GROUP, 5, request, patience_ms=8_000)
            if code is ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id
                continue
            if code is not ErrorCode.NONE:
                return False
            self._member_id, self._generation = joined.member_id, joined.generation_id
            code, synced = yield from self._asking(ApiKey.SYNC_GROUP, 3, self._sync(joined), patience_ms=8_000)
            if code is ErrorCode.REBALANCE_IN_PROGRESS:
                continue
            if code is not ErrorCode.NONE:
                return False
            self._positions.clear()
            self._committed.clear()
            is_known = yield from self._owning(list(synced.assignment))
            return is_known

    def _sync(self, joined: Any) -> SyncGroupRequest:
        """With everybody's share, a byte a partition, when this member is the one to say."""
        shares = []
        if joined.leader == self._member_id:
            ids = sorted(one.member_id for one in joined.members)
            first = self.chance.below(len(ids))
            shares = [
                SyncGroupRequestAssignment(
                    member_id=member_id,
                    assignment=bytes(
                        index for index in range(LEDGER_PARTITIONS) if (index + first) % len(ids) == number
                    ),
                )
                for number, member_id in enumerate(ids)
            ]
        return SyncGroupRequest(
            group_id=self.shape.group,
            generation_id=self._generation,
            member_id=self._member_id,
            assignments=shares,
        )

    def _asking(self, api_key: int, version: int, body: Any, *, patience_ms: int = 4_000, tries: int = 20) -> Script:
        found = yield from self.asking_coordinator(
            GROUP,
            self.shape.group,
            api_key,
            version,
            body,
            lambda one: int(one.error_code),
            tries=tries,
            patience_ms=patience_ms,
        )
        return found

    def _beating(self) -> Script:
        """Tell that it lives; whether it is still a member."""
        if not self._is_classic:
            is_in = yield from self._beating_consumer()
            return is_in
        request = HeartbeatRequest(group_id=self.shape.group, generation_id=self._generation, member_id=self._member_id)
        code, _ = yield from self._asking(ApiKey.HEARTBEAT, 3, request)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            is_in = yield from self._polling()
            return is_in and (yield from self._joining_classic())
        return code is ErrorCode.NONE

    def _leaving(self) -> Script:
        if self._is_classic:
            identity = MemberIdentity(member_id=self._member_id)
            request = LeaveGroupRequest(group_id=self.shape.group, members=[identity])
            yield from self._asking(ApiKey.LEAVE_GROUP, 3, request, tries=3)
        else:
            self._generation = -1
            yield from self._asking(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, self._beat(()), tries=3)

    # --- the consumer protocol ---

    def _beat(self, owned: Sequence[int] | None) -> ConsumerGroupHeartbeatRequest:
        """What it has is said when that has changed; all else when it joins."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.shape.group, member_id=self._member_id, member_epoch=self._generation
        )
        if self._generation == 0:
            request.subscribed_topic_names = [LEDGER]
            request.rebalance_timeout_ms = REBALANCE_MS
        if owned is not None:
            request.topic_partitions = []
            if owned:
                request.topic_partitions.append(
                    ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=self._topic_id, partitions=list(owned))
                )
        return request

    def _joining_consumer(self) -> Script:
        yield from self._finding_topic()
        self._generation = 0
        is_in = yield from self._beating_consumer(owned=())
        return is_in

    def _finding_topic(self) -> Script:
        self._topic_id = bytes(16)
        request = MetadataRequest(topics=[MetadataRequestTopic(name=LEDGER)], allow_auto_topic_creation=False)
        while self._topic_id == bytes(16):
            answer = yield from self.asking(self.any_broker(), ApiKey.METADATA, 12, request, 1_000)
            if answer is not None and not answer.topics[0].error_code:
                self._topic_id = answer.topics[0].topic_id
            else:
                yield from self.sleeping(RETRY_MS)

    def _beating_consumer(self, owned: Sequence[int] | None = None) -> Script:
        code, answer = yield from self._asking(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, self._beat(owned))
        if code is not ErrorCode.NONE:
            return False
        self._generation = answer.member_epoch
        if answer.assignment is None:
            return True
        given = [index for one in answer.assignment.topic_partitions for index in one.partitions]
        revoked = [index for index in self._positions if index not in given]
        if revoked:
            is_in = yield from self._polling()  # commit before somebody else takes over
            if not is_in:
                return False
        is_known = yield from self._owning(given)
        if not is_known:
            return False
        is_in = yield from self._beating_consumer(owned=given)
        return is_in
