"""Members of groups in a simulated cluster: they join, read, commit, fall asleep, leave and die, in both protocols.

    classic    JoinGroup, SyncGroup, Heartbeat; the first among them shares out the partitions, eagerly or cooperatively
    consumer   ConsumerGroupHeartbeat; the coordinator shares them out (KIP-848)

One that wakes up commits first, as an application does that had been at work on what it read: its generation may be
over by then, and others may have read further. A static one comes back under its own name, and now and then somebody
who still has its former id commits (KIP-345). In some groups each life is of one protocol or the other, so that the
group moves over, is of both, and moves back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.sim.committing import Committer, GroupNotes, IsCoordinator
from tidelog.sim.reading import end_of, records_of
from tidelog.sim.scripted import GROUP, RETRY_MS, Script
from tidelog.sim.sharing import COOPERATIVE, RANGE, decode_share, encode_share, share, subscription_of
from tidelog.sim.work_shape import CHANGING, CLASSIC, LEDGER, MemberShape
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

SESSION_MS = 2_000
"""Of classic members; those of KIP-848 have a little longer (`work_shape.SETTINGS`)."""
REBALANCE_MS = 2_500
PROMPT_MS = 1_000
"""An answer that took longer may be about what was the case before somebody else was taken out, or came."""
LEAVE_STATIC_EPOCH = -2
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
        self._is_classic = shape.protocol == CLASSIC
        self._member_id = ""
        self._generation = -1
        self._positions: dict[int, int] = {}
        """By partition that is its own: where it reads on."""
        self._committed: dict[int, int] = {}
        self._instance_id = shape.name if shape.is_static else None
        self._place: tuple[int, frozenset[int]] = (-1, frozenset())
        """Of a static member: the generation that it was last in, and what it had there."""
        self._place_until_ms = 0
        """Of one of KIP-848 that has said it will be back: until when its place is kept for it."""
        self._former_id = ""
        self.play(self._life())

    @property
    def _who(self) -> str:
        """By what others know it in a generation: a static member may have several ids."""
        return self._instance_id or self._member_id

    def _life(self) -> Script:
        yield from self._beginning()
        yield from self.sleeping(self.shape.begins_ms)
        while True:
            self._lives += 1
            self._former_id = self._member_id
            if self.shape.protocol == CHANGING:
                self._is_classic = self.chance.below(2) == 0
            self._member_id = "" if self._is_classic else f"{self.name}-{self._lives}"
            yield from self._living()
            self._drop()
            self._generation = -1
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
        if self.shape.is_static and self._former_id and self.chance.below(2):
            yield from self._haunting()
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
        """It reads nothing any more."""
        for index in self._positions:
            self.notes.gives_up(index, self._who)
        self._positions.clear()
        self._committed.clear()

    def _haunting(self) -> Script:
        """Somebody who was thought dead commits under the id that this static member had before."""
        code = yield from self.committing(
            self.notes, 0, 0, self._generation, self._former_id, self._instance_id, tries=1
        )
        if code is ErrorCode.NONE:
            self.notes.misplaced.append(
                f"{self._former_id} of {self._who} may commit, though {self._member_id} has taken its place"
            )

    # --- reading ---

    def _polling(self) -> Script:
        """Commit what was read before, read on; whether it is still a member."""
        for index, position in list(self._positions.items()):
            if position > self._committed.get(index, -1):
                code = yield from self.committing(
                    self.notes, index, position, self._generation, self._member_id, self._instance_id, tries=10
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

    def _owning(self, indexes: Sequence[int], *, is_prompt: bool) -> Script:
        """Take partitions over where those before have left off; whether that could be found out."""
        for index in [one for one in self._positions if one not in indexes]:
            self.notes.gives_up(index, self._who)
            del self._positions[index]
            self._committed.pop(index, None)
        for index in indexes:
            if self.shape.protocol != CHANGING:  # there generations begin anew when the group was empty
                self.notes.owns(self._generation, index, self._who)
            if is_prompt and index not in self._positions:
                self.notes.takes(index, self._who, self.world.now_ms)
        for index in indexes:
            if index in self._positions:
                continue
            who = (-1, None) if self._is_classic else (self._generation, self._member_id)
            offset = yield from self.finding(self.notes, index, *who)
            if offset is None:
                return False
            self._positions[index] = max(0, offset)
            # Whoever committed it may never have been told so: then it is committed once more, until somebody is.
            self._committed[index] = min(max(0, offset), self.notes.acknowledged.get(index, 0))
        return True

    # --- the classic protocol ---

    def _joining_classic(self) -> Script:
        """Cooperatively it reads on while it joins, gives up what it has no more, and joins again to say so."""
        is_cooperative = self.shape.is_cooperative
        while True:
            if not is_cooperative:
                self._drop()
            request = JoinGroupRequest(
                group_id=self.shape.group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type="consumer",
                protocols=[
                    JoinGroupRequestProtocol(
                        name=COOPERATIVE if is_cooperative else RANGE,
                        metadata=subscription_of(self._positions, self._generation),
                    )
                ],
            )
            version = 9 if self.shape.is_static else 5
            code, joined = yield from self._asking(ApiKey.JOIN_GROUP, version, request, patience_ms=8_000)
            if code is ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id
                continue
            if code is not ErrorCode.NONE:
                return False
            self._member_id, self._generation = joined.member_id, joined.generation_id
            asked_ms = self.world.now_ms
            code, synced = yield from self._asking(ApiKey.SYNC_GROUP, 3, self._sync(joined), patience_ms=8_000)
            if code is ErrorCode.REBALANCE_IN_PROGRESS:
                continue
            if code is not ErrorCode.NONE:
                return False
            given = decode_share(synced.assignment)
            self._look_at_place(given)
            is_revoked = any(index not in given for index in self._positions)
            if is_revoked:
                is_in = yield from self._polling()  # commit before somebody else takes over
                if not is_in:
                    return False
            is_known = yield from self._owning(given, is_prompt=self._is_prompt(asked_ms))
            if is_known and (is_revoked or (is_cooperative and joined.skip_assignment)):
                # A leader that is back does not know whether what was to move has been given to anybody (KIP-814): the
                # next generation, which would have, may be lost. A restarted one of Java's would leave it at that.
                continue
            return is_known

    def _look_at_place(self, given: Sequence[int]) -> None:
        """A static member has one share in a generation, whatever its id is; at an epoch it may get more.

        Of KIP-848 one that died, or was away for longer than its session, has lost its place, and may be new at the
        epoch that it had: a target is not made at once for everybody who goes.
        """
        generation, before = self._place
        self._place = (self._generation, frozenset(given))
        is_same = before == frozenset(given) if self._is_classic else before <= frozenset(given)
        is_kept = self._is_classic or (self.notes.has_true_clocks and self.world.now_ms < self._place_until_ms)
        self._place_until_ms = 0
        if self.shape.is_static and generation == self._generation and is_kept and not is_same:
            self.notes.misplaced.append(
                f"{self._who} of {self.notes.name} had {sorted(before)} in generation {generation}, came back and"
                f" was given {sorted(given)}"
            )

    def _sync(self, joined: Any) -> SyncGroupRequest:
        """With everybody's share when this member is the one to say."""
        shares = []
        if joined.leader == self._member_id and not joined.skip_assignment:
            metadata = {one.member_id: bytes(one.metadata) for one in joined.members}
            found = share(joined.protocol_name, metadata, self.chance.below(len(metadata)))
            shares = [
                SyncGroupRequestAssignment(member_id=member_id, assignment=encode_share(indexes))
                for member_id, indexes in found.items()
            ]
        return SyncGroupRequest(
            group_id=self.shape.group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            assignments=shares,
        )

    def _asking(
        self, api_key: int, version: int, body: Any, *, patience_ms: int = 4_000, tries: int = 20, again: Any = None
    ) -> Script:
        found = yield from self.asking_coordinator(
            GROUP,
            self.shape.group,
            api_key,
            version,
            body,
            lambda one: int(one.error_code),
            tries=tries,
            patience_ms=patience_ms,
            again=again,
        )
        return found

    def _is_prompt(self, asked_ms: int) -> bool:
        """Whether an answer tells how things are: it came soon, and from whoever coordinates the group now."""
        node_id = self._coordinators.get((GROUP, self.shape.group), -1)
        return self.world.now_ms - asked_ms < PROMPT_MS and self._is_coordinator(node_id, self.shape.group)

    def _heard(self, asked_ms: int) -> None:
        """The coordinator knows that it lives: what it has is its own for a session from then."""
        if self._is_prompt(asked_ms):
            for index in self._positions:
                self.notes.holds(index, self._who, asked_ms + SESSION_MS)

    def _beating(self) -> Script:
        """Tell that it lives; whether it is still a member."""
        if not self._is_classic:
            is_in = yield from self._beating_consumer()
            return is_in
        request = HeartbeatRequest(
            group_id=self.shape.group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
        )
        asked_ms = self.world.now_ms
        code, _ = yield from self._asking(ApiKey.HEARTBEAT, 3, request)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            is_in = yield from self._polling()
            return is_in and (yield from self._joining_classic())
        if code is ErrorCode.NONE:
            self._heard(asked_ms)
        return code is ErrorCode.NONE

    def _leaving(self) -> Script:
        """A static member of the classic protocol goes without a word; one of KIP-848 says that it will be back."""
        had = frozenset(self._positions)
        self._drop()
        if self._is_classic and self.shape.is_static:
            return
        if self._is_classic:
            identity = MemberIdentity(member_id=self._member_id)
            request = LeaveGroupRequest(group_id=self.shape.group, members=[identity])
            yield from self._asking(ApiKey.LEAVE_GROUP, 3, request, tries=3)
        else:
            epoch, self._generation = self._generation, LEAVE_STATIC_EPOCH if self.shape.is_static else -1
            asked_ms = self.world.now_ms
            code, _ = yield from self._asking(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, self._beat(()), tries=3)
            self._place = (epoch if code is ErrorCode.NONE else -1, had)
            self._place_until_ms = asked_ms + SESSION_MS

    # --- the consumer protocol ---

    def _beat(self, owned: Sequence[int] | None, *, is_full: bool = False) -> ConsumerGroupHeartbeatRequest:
        """What it has is said when that has changed; all else when it joins, and when an answer did not come: it may
        have been told something there that is told once only, unless one says everything, as Java's consumers do.
        """
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.shape.group,
            member_id=self._member_id,
            member_epoch=self._generation,
            instance_id=self._instance_id,
        )
        if self._generation == 0 or is_full:
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
        is_joining = self._generation == 0
        asked_ms = self.world.now_ms
        again = self._beat(() if is_joining else tuple(self._positions), is_full=True)
        code, answer = yield from self._asking(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, self._beat(owned), again=again)
        if code is not ErrorCode.NONE:
            return False
        self._generation = answer.member_epoch
        if answer.assignment is None:
            self._heard(asked_ms)
            return True
        given = [index for one in answer.assignment.topic_partitions for index in one.partitions]
        if is_joining:
            self._look_at_place(given)
        revoked = [index for index in self._positions if index not in given]
        if revoked:
            is_in = yield from self._polling()  # commit before somebody else takes over
            if not is_in:
                return False
        is_known = yield from self._owning(given, is_prompt=self._is_prompt(asked_ms))
        if not is_known:
            return False
        is_in = yield from self._beating_consumer(owned=given)
        return is_in
