"""A consumer group (KIP-848).

    EMPTY       -> ASSIGNING      a member joined
    ASSIGNING   -> RECONCILING    the target assignment belongs to the group's epoch; members move towards it
    RECONCILING -> STABLE         every member has what the target gives it
    any         -> ASSIGNING      subscriptions, members or topics changed: the group's epoch is raised
    any         -> EMPTY          the last member is gone

The state follows from epochs: the group's, the target assignment's, and each member's. No partition has two owners:
one is assigned only when no other member has it, not even to revoke it.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum

from tidelog.coordination.shard import KeyAndValue
from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups.consumer import records
from tidelog.groups.consumer.member import NOTHING, Assignment, ConsumerMember
from tidelog.outbox import Timer

MEMBER_EPOCH_VERSION = 9
"""The first version of OffsetCommit for members of this protocol: only there can they be told what is wrong."""


class State(Enum):
    """See the head of this file; the values are what clients are told."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ResolvedPattern:
    """A regular expression and the topics that it named when it was last looked at."""

    __slots__ = ("timestamp_ms", "topics", "topics_version")

    def __init__(self, topics: frozenset[str], topics_version: int, timestamp_ms: int) -> None:
        self.topics = topics
        self.topics_version = topics_version
        self.timestamp_ms = timestamp_ms


class ConsumerGroup:
    """Changed by replayed records only, but for its timers."""

    type_name = "consumer"
    protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        """Raised when anything changes that the assignment rests on."""
        self.metadata_hash = 0
        """Of the subscribed topics and their partitions, as the epoch saw them."""
        self.assignment_epoch = 0
        """The group's epoch that the target assignment was made for. Invariant: never above `epoch`."""
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.target: dict[str, Assignment] = {}
        self.patterns: dict[str, ResolvedPattern] = {}
        self.owners: dict[tuple[bytes, int], str] = {}
        """Who has a partition, or still has to give it up. Invariant: one member each."""
        self.checked_topics_version = -1
        """The topics' version that the hash was last compared at."""
        self.session_deadlines_ms: dict[str, int] = {}
        self.session_timers: dict[str, Timer] = {}
        """Invariant: none is due after its member's deadline."""
        self.rebalance_timers: dict[str, Timer] = {}
        self.assignment_timer: Timer | None = None
        self.syncing: dict[str, Timer] = {}
        """Members of the classic protocol that have to join again, or to ask for their assignment, until then."""

    # --- states ---

    @property
    def state(self) -> State:
        """What clients are told."""
        if not self.members:
            return State.EMPTY
        if self.epoch > self.assignment_epoch:
            return State.ASSIGNING
        if all(member.is_settled_at(self.assignment_epoch) for member in self.members.values()):
            return State.STABLE
        return State.RECONCILING

    @property
    def is_empty(self) -> bool:
        """Whether nobody is in it."""
        return not self.members

    is_unused = is_empty

    def stop_timers(self) -> None:
        """Nothing of this group happens by itself any more."""
        for timers in (self.session_timers, self.rebalance_timers, self.syncing):
            for timer in timers.values():
                timer.cancel()
            timers.clear()
        if self.assignment_timer is not None:
            self.assignment_timer.cancel()
            self.assignment_timer = None

    # --- subscriptions ---

    def topics_of(self, member: ConsumerMember) -> set[str]:
        """What a member wants to read: topics named, and those its expression named when last looked at."""
        topics = set(member.topics)
        if member.pattern and member.pattern in self.patterns:
            topics |= self.patterns[member.pattern].topics
        return topics

    def subscribes_to(self, topic: str) -> bool:
        """Whether a topic's offsets are still wanted."""
        return any(topic in self.topics_of(member) for member in self.members.values())

    def preferred_assignor(self, members: dict[str, ConsumerMember], default: str) -> str:
        """What most members ask for."""
        votes = Counter(one.server_assignor for one in members.values() if one.server_assignor)
        return votes.most_common(1)[0][0] if votes else default

    def target_of(self, member_id: str) -> Assignment:
        """What a member is to have in the end."""
        return self.target.get(member_id, NOTHING)

    # --- members ---

    def put(self, member: ConsumerMember) -> None:
        """Replay: a member is as given."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._release(before)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for assignment in (member.assigned, member.revoking):
            for topic_id, partitions in assignment.items():
                for partition in partitions:
                    self.owners[topic_id, partition] = member.member_id

    def remove(self, member_id: str) -> None:
        """Replay: a member is gone, and what it had is free."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member)
            if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
                del self.static_members[member.instance_id]
        self.session_deadlines_ms.pop(member_id, None)
        for timers in (self.session_timers, self.rebalance_timers, self.syncing):
            timer = timers.pop(member_id, None)
            if timer is not None:
                timer.cancel()

    def _release(self, member: ConsumerMember) -> None:
        for assignment in (member.assigned, member.revoking):
            for topic_id, partitions in assignment.items():
                for partition in partitions:
                    if self.owners.get((topic_id, partition)) == member.member_id:
                        del self.owners[topic_id, partition]

    def member(self, member_id: str) -> ConsumerMember:
        """A member by its id."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of the group.")
        return member

    def check_instance(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """The member that a request of the classic protocol speaks for."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.member(member_id)
        if member.classic is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "The member does not use the classic protocol.")
        return member

    # --- offsets ---

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        api_version: int = MEMBER_EPOCH_VERSION,
        is_transactional: bool = False,
    ) -> None:
        """Whether a commit is from a member in its present epoch, or from nobody's while nobody is in the group."""
        if generation < 0 and not self.members:
            return
        if generation < 0 and is_transactional and not member_id and instance_id is None:
            return
        member = self.member(member_id)
        if member.classic is None and not is_transactional and api_version < MEMBER_EPOCH_VERSION:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if generation != member.epoch:
            stale = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION if is_transactional else stale)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Whether a reader that says who it is reads in its present epoch."""
        if member_id is None and member_epoch < 0:
            return
        if self.member(member_id or "").epoch != member_epoch:
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)

    def check_offset_deletion(self) -> None:
        """Offsets of topics nobody subscribes to may go at any time."""

    def offsets_expire_from(self, commit_timestamp_ms: int) -> int | None:
        """The retention of a topic nobody subscribes to runs from the commit."""
        return commit_timestamp_ms

    def tombstones(self) -> list[KeyAndValue]:
        """The end of all of the group's records but its offsets."""
        content: list[KeyAndValue] = []
        for member_id in self.members:
            content += records.member_tombstones(self.group_id, member_id)
        content += [records.pattern(self.group_id, pattern, None) for pattern in self.patterns]
        return [*content, *records.group_tombstones(self.group_id)]
