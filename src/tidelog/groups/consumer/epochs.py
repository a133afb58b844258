"""What raises a group's epoch, and the target assignment that answers to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tidelog.coordination.shard import KeyAndValue
from tidelog.groups.consumer import records
from tidelog.groups.consumer.assignors import ASSIGNORS, Reader
from tidelog.groups.consumer.group import ConsumerGroup, ResolvedPattern
from tidelog.groups.consumer.member import Assignment, ConsumerMember
from tidelog.groups.consumer.topic_pattern import TopicPattern

if TYPE_CHECKING:
    from tidelog.groups.state import GroupsState


class Plan:
    """A change of a group being decided: the group as it will be, and the records that make it so."""

    def __init__(self, state: GroupsState, group: ConsumerGroup) -> None:
        self.state = state
        self.group = group
        self.members: dict[str, ConsumerMember] = dict(group.members)
        self.target: dict[str, Assignment] = dict(group.target)
        self.patterns: dict[str, ResolvedPattern] = dict(group.patterns)
        self.epoch = group.epoch
        self.metadata_hash = group.metadata_hash
        self.assignment_epoch = group.assignment_epoch
        self.content: list[KeyAndValue] = []

    # --- members ---

    def remove(self, member_id: str) -> None:
        """A member goes."""
        del self.members[member_id]
        self.target.pop(member_id, None)
        self.content += records.member_tombstones(self.group.group_id, member_id)

    def put(self, member: ConsumerMember) -> None:
        """A member comes, or says something else."""
        known = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if known is None or not known.same_metadata(member):
            self.content.append(records.member(self.group.group_id, member))

    def hand_over(self, old_id: str, member: ConsumerMember) -> None:
        """A static member came back under another id: what it is to have is the same."""
        target = self.target.get(old_id, {})
        self.remove(old_id)
        self.put(member)
        self.target[member.member_id] = target
        self.content.append(records.target(self.group.group_id, member.member_id, target))

    # --- topics ---

    def topics_of(self, member: ConsumerMember) -> set[str]:
        """What a member reads, by the newest resolution of its expression."""
        resolved = self.patterns.get(member.pattern or "")
        return {*member.topics, *(resolved.topics if resolved is not None else ())}

    def resolve_patterns(self) -> None:
        """Look at the topics there are: for expressions that are new, and for all of them when topics changed."""
        topics, now_ms = self.state.topics, self.state.outbox.now_ms
        used = {member.pattern for member in self.members.values() if member.pattern}
        for text in sorted(set(self.patterns) - used):
            del self.patterns[text]
            self.content.append(records.pattern(self.group.group_id, text, None))
        for text in sorted(used):
            known = self.patterns.get(text)
            if known is not None and self.group.checked_topics_version == topics.version:
                continue
            pattern = TopicPattern(text)
            found = frozenset(name for name in topics.names() if pattern.matches(name))
            if known is None or known.topics != found:
                self.patterns[text] = ResolvedPattern(found, topics.version, now_ms)
                self.content.append(records.pattern(self.group.group_id, text, found, topics.version, now_ms))

    def look_at_topics(self, *, raise_epoch: bool) -> None:
        """Raise the epoch when the subscribed topics are others, have other partitions, or when told to."""
        self.resolve_patterns()
        subscribed = {topic for member in self.members.values() for topic in self.topics_of(member)}
        metadata_hash = _hash(self.state, subscribed)
        if metadata_hash != self.metadata_hash or raise_epoch:
            self.metadata_hash = metadata_hash
            self.epoch += 1
            self.content.append(records.group_epoch(self.group.group_id, self.epoch, metadata_hash))

    # --- the target assignment ---

    @property
    def assignment_is_due_ms(self) -> int:
        """When the next target may be made: the first one at once.

        One of the future was made by a coordinator whose clock was ahead: it is taken to be made just now.
        """
        if self.group.assignment_epoch == 0:
            return 0
        interval_ms = self.state.group_config(self.group.group_id).consumer_assignment_interval_ms
        return min(self.group.assignment_timestamp_ms, self.state.outbox.now_ms) + interval_ms

    def assign(self) -> None:
        """Make the target of the group's epoch, and write down what differs."""
        topics = self.state.topics
        ids = {
            name: topic_id
            for member in self.members.values()
            for name in self.topics_of(member)
            if (topic_id := topics.id_of(name)) is not None
        }
        readers = [
            Reader(
                member.member_id,
                member.instance_id,
                frozenset(ids[name] for name in self.topics_of(member) if name in ids),
                self.target.get(member.member_id, {}),
            )
            for member in self.members.values()
        ]
        name = self.group.preferred_assignor(self.members, self.state.config.group_consumer_assignors[0])
        assigned = ASSIGNORS[name](readers, {topic_id: topics.partitions_of(topic) for topic, topic_id in ids.items()})
        for member_id, assignment in assigned.items():
            if self.target.get(member_id) != assignment:
                self.target[member_id] = assignment
                self.content.append(records.target(self.group.group_id, member_id, assignment))
        self.assignment_epoch = self.epoch
        now_ms = self.state.outbox.now_ms
        self.content.append(records.target_epoch(self.group.group_id, self.epoch, now_ms))

    def is_owned(self, member: ConsumerMember, topic_id: bytes, partition: int) -> bool:
        """Whether a partition cannot be given to a member now: another has it, or it has still to give it up itself."""
        owner = self.group.owners.get((topic_id, partition))
        if owner is None or owner not in self.members:
            return False
        return owner != member.member_id or partition in member.revoking.get(topic_id, frozenset())


def _hash(state: GroupsState, names: Iterable[str]) -> int:
    """Of topics that are there, with their partitions; 0 for none."""
    rows: Mapping[str, tuple[bytes, int]] = {
        name: (topic_id, state.topics.partitions_of(name))
        for name in sorted(names)
        if (topic_id := state.topics.id_of(name)) is not None
    }
    if not rows:
        return 0
    return int.from_bytes(hashlib.sha256(repr(sorted(rows.items())).encode()).digest()[:8], "big", signed=True)
