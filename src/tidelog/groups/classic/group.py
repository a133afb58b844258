"""A classic group.

EMPTY                -> PREPARING_REBALANCE    a first member joined
PREPARING_REBALANCE  -> COMPLETING_REBALANCE   everybody joined, or the time for it is up: a new generation
                     -> EMPTY                  nobody is left
COMPLETING_REBALANCE -> STABLE                 the leader's assignment is committed
                     -> PREPARING_REBALANCE    a member joined with something new, left or fell silent
STABLE               -> PREPARING_REBALANCE    likewise, or the leader joined again
any                  -> DEAD                   deleted, now a group of the other protocol, or looked after elsewhere
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum

from tidelog.coordination.shard import KeyAndValue
from tidelog.errors import DecodeError, ErrorCode, KafkaError
from tidelog.groups import records
from tidelog.groups.classic.member import Member
from tidelog.outbox import Timer
from tidelog.wire.codec import decode
from tidelog.wire.records.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.wire.records.group_metadata import GroupMetadataValue, MemberMetadata

CONSUMER_PROTOCOL_TYPE = "consumer"
"""Groups of consumers, as opposed to Connect's workers and others: what their members say can be read here."""


class State(Enum):
    """See the head of this file; the values are what clients are told."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


LEGAL_TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.PREPARING_REBALANCE, State.DEAD}),
    State.PREPARING_REBALANCE: frozenset({State.COMPLETING_REBALANCE, State.EMPTY, State.DEAD}),
    State.COMPLETING_REBALANCE: frozenset({State.STABLE, State.PREPARING_REBALANCE, State.DEAD}),
    State.STABLE: frozenset({State.PREPARING_REBALANCE, State.DEAD}),
    State.DEAD: frozenset(),
}


class ClassicGroup:
    """The group's generation and its members."""

    type_name = "classic"

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.previous_state = State.EMPTY
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        """None: nobody ever joined, only offsets were committed."""
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member id by instance id. Invariant: every value is a member with that instance id."""
        self.pending_members: dict[str, Timer] = {}
        """Ids handed out by MEMBER_ID_REQUIRED (KIP-394) whose owner has not come back yet."""
        self.pending_syncs: set[str] = set()
        """Members of this generation that have not asked for their assignment yet."""
        self.assigned_generation = -1
        """The last one whose assignment is on its way into the log: no generation has two."""
        self.subscribed_topics: frozenset[str] | None = frozenset()
        """None: the group is not one of consumers, or what its members say cannot be read."""
        self.new_member_added = False
        """While a new group waits for more members: somebody came since it last looked."""
        self.join_timer: Timer | None = None
        self.sync_timer: Timer | None = None

    # --- states ---

    def move_to(self, state: State, now_ms: int) -> None:
        """Change the state, legally."""
        assert state in LEGAL_TRANSITIONS[self.state], f"{self.group_id}: {self.state.name} -> {state.name}"
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now_ms

    @property
    def is_empty(self) -> bool:
        """Whether nobody is in it."""
        return not self.members

    @property
    def is_unused(self) -> bool:
        """Whether nobody is in it, nor about to be."""
        return self.state is State.EMPTY and not self.pending_members

    @property
    def is_of_consumers(self) -> bool:
        """Whether what members say can be read here."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def has_all_joined(self) -> bool:
        """Whether every member's join is held, and nobody is known to be on the way."""
        return not self.pending_members and all(one.join_reply is not None for one in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a join phase may take: as long as its slowest member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def stop_timers(self) -> None:
        """Nothing of this group happens by itself any more."""
        for timer in (self.join_timer, self.sync_timer, *self.pending_members.values()):
            if timer is not None:
                timer.cancel()
        self.join_timer = self.sync_timer = None
        for member in self.members.values():
            member.stop_session()

    def end(self, now_ms: int) -> None:
        """It is deleted, of the other protocol from here on, or looked after elsewhere: nothing of it happens any more,
        whatever still waits for records of it.
        """
        self.stop_timers()
        if self.state is not State.DEAD:
            self.move_to(State.DEAD, now_ms)

    # --- members ---

    def add(self, member: Member) -> None:
        """Take a member in; the first one leads."""
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.forget_pending(member.member_id)

    def remove(self, member_id: str) -> None:
        """Forget a member, whatever it was here; another one leads where it did."""
        member = self.members.pop(member_id, None)
        if member is not None:
            member.stop_session()
            if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
                del self.static_members[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.forget_pending(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static(self, instance_id: str, member_id: str) -> Member:
        """A static member came back under a new member id: it takes the place of the old one (KIP-345)."""
        old_id = self.static_members[instance_id]
        member = self.members.pop(old_id)
        member.stop_session()
        member.member_id = member_id
        self.members[member_id] = member
        self.static_members[instance_id] = member_id
        if self.leader_id == old_id:
            self.leader_id = member_id
        if old_id in self.pending_syncs:
            self.pending_syncs.discard(old_id)
            self.pending_syncs.add(member_id)
        return member

    def forget_pending(self, member_id: str) -> None:
        """An id that was handed out is used, or given up."""
        timer = self.pending_members.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member that a request speaks for."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def elect_joined_leader(self) -> bool:
        """A leader that did not join again gives way to one that did; False when nobody has joined."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.join_reply is not None:
            return True
        for member in self.members.values():
            if member.join_reply is not None:
                self.leader_id = member.member_id
                return True
        return False

    # --- protocols ---

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols has one in common with all others."""
        names = set(names)
        if self.is_empty:
            return bool(protocol_type) and bool(names)
        return protocol_type == self.protocol_type and bool(names & self._common_protocols())

    def _common_protocols(self) -> set[str]:
        counts = Counter(name for member in self.members.values() for name in member.names())
        return {name for name, count in counts.items() if count == len(self.members)}

    def select_protocol(self) -> str | None:
        """What most members like best among what all of them have."""
        candidates = self._common_protocols()
        votes = Counter(vote for member in self.members.values() if (vote := member.vote(candidates)) is not None)
        return votes.most_common(1)[0][0] if votes else None

    def next_generation(self, now_ms: int) -> None:
        """The join phase is over."""
        self.generation += 1
        self.pending_syncs.clear()
        self.protocol = self.select_protocol() if self.members else None
        self.subscribed_topics = self._read_subscriptions()
        self.move_to(State.COMPLETING_REBALANCE if self.members else State.EMPTY, now_ms)

    def _read_subscriptions(self) -> frozenset[str] | None:
        if not self.is_of_consumers:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                # Version 0 is the beginning of every version.
                subscription, _ = decode(ConsumerProtocolSubscription, 0, member.metadata(self.protocol), 2)
            except DecodeError:
                return None
            topics.update(subscription.topics)
        return frozenset(topics)

    def subscribes_to(self, topic: str) -> bool:
        """Whether a topic's offsets are still wanted; a group of consumers that cannot be read wants all."""
        if self.subscribed_topics is None:
            return self.is_of_consumers
        return topic in self.subscribed_topics

    # --- offsets ---

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        api_version: int = 0,
        is_transactional: bool = False,
    ) -> Member | None:
        """Whether a commit is from whom it says it is; returns the member, or None for one that is in no group.

        Any version of the request will do.
        """
        if generation < 0 and self.state is State.EMPTY:
            return None
        member = None
        if generation >= 0 or member_id or instance_id is not None:
            member = self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional and self.state is not State.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state is State.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return member

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may read a classic group's offsets."""

    def check_offset_deletion(self) -> None:
        """Whether offsets may be deleted: of a group of consumers those nobody subscribes to, else of an empty one."""
        if self.state is not State.EMPTY and not self.is_of_consumers:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def offsets_expire_from(self, commit_timestamp_ms: int) -> int | None:
        """When the retention of an offset began; None while it does not run."""
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.state is State.EMPTY:
            return self.state_since_ms if self.state_since_ms >= 0 else commit_timestamp_ms
        if self.is_of_consumers and self.subscribed_topics is not None and self.state is State.STABLE:
            return commit_timestamp_ms
        return None

    # --- what is stored ---

    def to_value(self, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
        """The group as its record says it."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader_id,
            current_state_timestamp=self.state_since_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ],
        )

    def tombstones(self) -> list[KeyAndValue]:
        """The end of the group's own record."""
        return [records.group_tombstone(self.group_id)]

    def assignments(self) -> dict[str, bytes]:
        """What every member was given."""
        return {member_id: member.assignment for member_id, member in self.members.items()}

    @classmethod
    def from_value(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        """A group as another coordinator, or this one before, left it."""
        group = cls(group_id, value.current_state_timestamp)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        for one in value.members:
            timeout_ms = one.session_timeout if one.rebalance_timeout == -1 else one.rebalance_timeout
            group.add(
                Member(
                    one.member_id,
                    one.group_instance_id,
                    one.client_id,
                    one.client_host,
                    timeout_ms,
                    one.session_timeout,
                    ((value.protocol or "", bytes(one.subscription)),),
                    bytes(one.assignment),
                )
            )
        group.leader_id = value.leader if value.members else None
        group.state = State.STABLE if value.members else State.EMPTY
        group.subscribed_topics = group._read_subscriptions()
        return group
