"""Answering DescribeQuorum (KIP-836): who votes, who follows, how far each is."""

from __future__ import annotations

from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.quorum.core import Core
from tidelog.quorum.leadership import Leader, Leadership
from tidelog.quorum.metadata_log import TOPIC
from tidelog.quorum.requests import only_partition
from tidelog.quorum.voters import ReplicaKey
from tidelog.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)


def handle_describe(core: Core, leadership: Leadership, request: Request) -> None:
    """Answer DescribeQuorum; only the leader knows."""
    body = request.body
    assert isinstance(body, DescribeQuorumRequest)
    leader = leadership.leader
    if only_partition(body.topics) is None:
        topics = [
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    _failed(part.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for part in topic.partitions
                ],
            )
            for topic in body.topics
        ]
        core.reply(request, DescribeQuorumResponse(topics=topics))
        return
    partition = _failed(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if leader is not None:
        leadership.forget_silent_observers(leader)
        partition = _described(core, leader)
    topic = DescribeQuorumResponseTopicData(topic_name=TOPIC, partitions=[partition])
    core.reply(request, DescribeQuorumResponse(topics=[topic], nodes=_nodes(core) if leader is not None else []))


def _failed(index: int, code: ErrorCode) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(partition_index=index, error_code=code, error_message=code.name)


def _described(core: Core, leader: Leader) -> DescribeQuorumResponsePartitionData:
    voters = [_state(core, leader, voter.key) for voter in core.voters]
    known = {voter.key for voter in core.voters}
    observers = [_state(core, leader, key) for key in sorted(leader.progress) if key not in known]
    if not core.is_voter:
        observers.append(_state(core, leader, core.identity.key))
    return DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        leader_id=core.identity.node_id,
        leader_epoch=core.epoch,
        high_watermark=-1 if leader.high_watermark is None else leader.high_watermark,
        current_voters=voters,
        observers=observers,
    )


def _state(core: Core, leader: Leader, key: ReplicaKey) -> ReplicaState:
    if key.id == core.identity.node_id:
        return ReplicaState(
            replica_id=key.id,
            replica_directory_id=core.identity.directory_id,
            log_end_offset=core.log.end_offset,
            last_fetch_timestamp=core.outbox.now_ms,
            last_caught_up_timestamp=core.outbox.now_ms,
        )
    progress = leader.progress.get(key)
    if progress is None:
        return ReplicaState(replica_id=key.id, replica_directory_id=key.directory_id, log_end_offset=-1)
    return ReplicaState(
        replica_id=key.id,
        replica_directory_id=key.directory_id,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=progress.last_fetch_ms,
        last_caught_up_timestamp=progress.last_caught_up_ms,
    )


def _nodes(core: Core) -> list[Node]:
    return [
        Node(
            node_id=voter.id,
            listeners=[Listener(name=name, host=host, port=port) for name, (host, port) in voter.endpoints.items()],
        )
        for voter in core.voters
    ]
