"""Committing, fetching and deleting offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidelog.coordination.shard import Answer, KeyAndValue
from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups import records
from tidelog.groups.classic import rebalance
from tidelog.groups.classic.group import ClassicGroup, State
from tidelog.groups.offsets import CommittedOffset, TopicPartition
from tidelog.groups.state import GroupsState

GROUP_ID_NOT_FOUND_VERSION = 9
"""From this version of OffsetCommit on a missing group is called that (KIP-848)."""
NO_OFFSET = CommittedOffset(-1, -1, "", -1)


class Commit(NamedTuple):
    """One partition's offset in a request."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class Committer(NamedTuple):
    """Who commits: a member in its generation, or nobody's member (generation -1)."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    api_version: int


def commit(
    state: GroupsState,
    committer: Committer,
    commits: Sequence[Commit],
    retention_ms: int,
    answer: Callable[[list[ErrorCode]], None],
) -> None:
    """Write what may be written; `answer` hears each commit's code when that is committed.

    Raises KafkaError, with nothing written, when the committer is not who it says.
    """
    _check_committer(state, committer)
    now_ms = state.outbox.now_ms
    expire_ms = now_ms + retention_ms if retention_ms >= 0 else -1
    codes, content = check_and_encode(state, committer.group_id, commits, expire_ms)
    try:
        state.write(content, lambda code: answer([own or code for own in codes]))
    except KafkaError as error:
        raise commit_failure(error) from None


def commit_in_transaction(
    state: GroupsState,
    committer: Committer,
    producer: tuple[int, int],
    commits: Sequence[Commit],
    answer: Callable[[list[ErrorCode]], None],
) -> None:
    """The same within a transaction of a producer (id and epoch): pending until the transaction's marker.

    Who commits may leave out its member and generation, as clients before KIP-447 did.
    """
    group = state.groups.get(committer.group_id)
    if group is not None:
        group.check_commit(committer.member_id, committer.instance_id, committer.generation, is_transactional=True)
    elif committer.generation >= 0:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    codes, content = check_and_encode(state, committer.group_id, commits)
    producer_id, producer_epoch = producer
    try:
        state.write(
            content,
            lambda code: answer([own or code for own in codes]),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=True,
        )
    except KafkaError as error:
        raise commit_failure(error) from None


def check_and_encode(
    state: GroupsState, group_id: str, commits: Sequence[Commit], expire_ms: int = -1
) -> tuple[list[ErrorCode], list[KeyAndValue]]:
    """Each commit's own code, and the records of those that may be written."""
    now_ms = state.outbox.now_ms
    limit = state.config.offset_metadata_max_bytes
    codes: list[ErrorCode] = []
    content: list[KeyAndValue] = []
    for one in commits:
        if len(one.metadata) > limit:  # characters, as Kafka counts them
            codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        codes.append(ErrorCode.NONE)
        committed = CommittedOffset(one.offset, one.leader_epoch, one.metadata, now_ms, expire_ms)
        content.append(records.offset_commit(group_id, one.topic, one.partition, committed))
    return codes, content


def commit_failure(error: KafkaError) -> KafkaError:
    """A batch that is too large is the committer's own doing."""
    if error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
        return KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, error.message)
    return error


def _check_committer(state: GroupsState, committer: Committer) -> None:
    group = state.groups.get(committer.group_id)
    if group is None:
        if committer.generation >= 0:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND
                if committer.api_version >= GROUP_ID_NOT_FOUND_VERSION
                else ErrorCode.ILLEGAL_GENERATION
            )
        return  # a consumer that assigns its partitions itself: its first offset makes the group
    member = group.check_commit(
        committer.member_id, committer.instance_id, committer.generation, api_version=committer.api_version
    )
    if (
        isinstance(group, ClassicGroup)
        and member is not None
        and group.state in (State.STABLE, State.PREPARING_REBALANCE)
    ):
        rebalance.keep_alive(state, group, member)


class Fetched(NamedTuple):
    """What a fetch says of one partition."""

    topic: str
    partition: int
    committed: CommittedOffset
    code: ErrorCode


def fetch(
    state: GroupsState, group_id: str, wanted: Sequence[TopicPartition] | None, *, require_stable: bool
) -> list[Fetched]:
    """The offsets of these partitions, or of all the group has; one about to change is not stable (KIP-447)."""
    offsets = state.offsets
    keys = [key for key, _ in offsets.of_group(group_id)] if wanted is None else wanted
    found = []
    for topic, partition in keys:
        if require_stable and offsets.has_pending(group_id, topic, partition):
            found.append(Fetched(topic, partition, NO_OFFSET, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        else:
            committed = offsets.get(group_id, topic, partition) or NO_OFFSET
            found.append(Fetched(topic, partition, committed, ErrorCode.NONE))
    return found


def delete(
    state: GroupsState,
    group_id: str,
    wanted: Sequence[TopicPartition],
    answer: Callable[[dict[TopicPartition, ErrorCode]], None],
) -> None:
    """Delete offsets of topics that nobody in the group subscribes to; `answer` hears when that is committed."""
    group = state.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    group.check_offset_deletion()
    codes: dict[TopicPartition, ErrorCode] = {}
    content = []
    known = state.offsets.partitions_of_group(group_id)
    for topic, partition in wanted:
        if group.subscribes_to(topic):
            codes[topic, partition] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            continue
        codes[topic, partition] = ErrorCode.NONE
        if (topic, partition) in known:
            content.append(records.offset_tombstone(group_id, topic, partition))
            known.discard((topic, partition))
    state.write(content, lambda code: answer({key: own or code for key, own in codes.items()}))


def tombstones_of(state: GroupsState, group_id: str) -> list[KeyAndValue]:
    """The end of every offset of a group."""
    return [records.offset_tombstone(group_id, *key) for key in sorted(state.offsets.partitions_of_group(group_id))]


def delete_group(state: GroupsState, group_id: str, answer: Answer) -> None:
    """Delete an empty group with its offsets; `answer` hears when that, or that it is gone already, is committed."""
    group = state.groups.get(group_id)
    if group is None:
        state.when_committed(lambda code: answer(code or ErrorCode.GROUP_ID_NOT_FOUND))
        return
    if not (group.state is State.EMPTY if isinstance(group, ClassicGroup) else group.is_empty):
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    state.write([*tombstones_of(state, group_id), *group.tombstones()], answer)


def check_reader(state: GroupsState, group_id: str, member_id: str | None, member_epoch: int) -> None:
    """Whether a member of a consumer group reads in its present epoch (KIP-848)."""
    group = state.groups.get(group_id)
    if group is not None:
        group.check_fetch(member_id, member_epoch)
