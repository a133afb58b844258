"""The quorum's requests and answers, each about the one partition there is."""

from __future__ import annotations

from typing import Any

from tidelog.errors import ErrorCode
from tidelog.quorum.core import Core
from tidelog.quorum.metadata_log import TOPIC
from tidelog.quorum.voters import Peer, ReplicaKey
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages import begin_quorum_epoch as begin
from tidelog.wire.messages import end_quorum_epoch as end
from tidelog.wire.messages import vote

QUORUM_APIS: dict[int, tuple[int, int]] = {
    ApiKey.FETCH: (12, 18),
    ApiKey.VOTE: (0, 2),
    ApiKey.BEGIN_QUORUM_EPOCH: (0, 1),
    ApiKey.END_QUORUM_EPOCH: (0, 1),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.FETCH_SNAPSHOT: (0, 1),
    ApiKey.ADD_RAFT_VOTER: (0, 1),
    ApiKey.REMOVE_RAFT_VOTER: (0, 0),
    ApiKey.UPDATE_RAFT_VOTER: (0, 0),
}
"""What `Quorum.handle` answers, with the versions. Fetch is for the quorum on the controller's listeners only."""

CONTROL_CHANNEL = "quorum"
"""Votes and words about leaders: never behind a fetch that the leader holds."""
FETCH_CHANNEL = "quorum-fetch"


def only_partition(topics: list[Any]) -> Any | None:
    """The partition of a request or answer that is about `__cluster_metadata-0` and nothing else."""
    if len(topics) != 1 or getattr(topics[0], "topic_name", TOPIC) != TOPIC or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if getattr(partition, "partition_index", 0) == 0 else None


def is_for_cluster(core: Core, cluster_id: str | None) -> bool:
    """Whether a request is meant for this cluster; one that does not say is."""
    return cluster_id is None or cluster_id == core.identity.cluster_id


def is_for_replica(core: Core, voter_id: int, directory_id: bytes) -> bool:
    """Whether a request is meant for this very replica: not for one whose disk this node lost (KIP-853)."""
    identity = core.identity
    return voter_id < 0 or (voter_id == identity.node_id and directory_id in (bytes(16), identity.directory_id))


def endpoints_of(core: Core, endpoint_class: Any) -> list[Any]:
    """The leader's address, as answers carry it."""
    leader = core.leader_peer()
    return [] if leader is None else [endpoint_class(node_id=leader[0], host=leader[1], port=leader[2])]


def leader_told(leader_id: int, endpoints: list[Any]) -> tuple[int | None, Peer | None]:
    """The leader that an answer tells of, and its address if it has one."""
    if leader_id < 0:
        return None, None
    for endpoint in endpoints:
        if endpoint.node_id == leader_id:
            return leader_id, (leader_id, endpoint.host, endpoint.port)
    return leader_id, None


def leader_id_or_none(core: Core) -> int:
    """The leader's id on the wire: -1 for none."""
    return -1 if core.leader_id is None else core.leader_id


def vote_request(core: Core, voter: ReplicaKey, pre_vote: bool) -> vote.VoteRequest:
    """Ask a voter for its vote in this epoch, or whether it would give it."""
    return vote.VoteRequest(
        cluster_id=core.identity.cluster_id,
        voter_id=voter.id,
        topics=[
            vote.VoteRequestTopicData(
                topic_name=TOPIC,
                partitions=[
                    vote.VoteRequestPartitionData(
                        replica_epoch=core.epoch,
                        replica_id=core.identity.node_id,
                        replica_directory_id=core.identity.directory_id,
                        voter_directory_id=voter.directory_id,
                        last_offset_epoch=core.log.last_epoch,
                        last_offset=core.log.end_offset,
                        pre_vote=pre_vote,
                    )
                ],
            )
        ],
    )


def vote_response(core: Core, code: ErrorCode, granted: bool = False) -> vote.VoteResponse:
    """Answer a vote request."""
    partition = vote.VoteResponsePartitionData(
        error_code=code, leader_id=leader_id_or_none(core), leader_epoch=core.epoch, vote_granted=granted
    )
    return vote.VoteResponse(
        topics=[vote.VoteResponseTopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=endpoints_of(core, vote.NodeEndpoint),
    )


def begin_request(core: Core, voter: ReplicaKey) -> begin.BeginQuorumEpochRequest:
    """Tell a voter that this replica leads."""
    partition = begin.BeginQuorumEpochRequestPartitionData(
        voter_directory_id=voter.directory_id, leader_id=core.identity.node_id, leader_epoch=core.epoch
    )
    return begin.BeginQuorumEpochRequest(
        cluster_id=core.identity.cluster_id,
        voter_id=voter.id,
        topics=[begin.BeginQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            begin.LeaderEndpoint(name=name, host=host, port=port)
            for name, (host, port) in (core.identity.endpoints or {}).items()
        ],
    )


def begin_response(core: Core, code: ErrorCode) -> begin.BeginQuorumEpochResponse:
    """Answer a leader that told of itself."""
    partition = begin.BeginQuorumEpochResponsePartitionData(
        error_code=code, leader_id=leader_id_or_none(core), leader_epoch=core.epoch
    )
    return begin.BeginQuorumEpochResponse(
        topics=[begin.BeginQuorumEpochResponseTopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=endpoints_of(core, begin.NodeEndpoint),
    )


def end_request(core: Core, preferred: list[ReplicaKey]) -> end.EndQuorumEpochRequest:
    """Tell a voter that this replica gave up leading, and who would be the best successor."""
    partition = end.EndQuorumEpochRequestPartitionData(
        leader_id=core.identity.node_id,
        leader_epoch=core.epoch,
        preferred_successors=[key.id for key in preferred],
        preferred_candidates=[
            end.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id) for key in preferred
        ],
    )
    return end.EndQuorumEpochRequest(
        cluster_id=core.identity.cluster_id,
        topics=[end.EndQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            end.LeaderEndpoint(name=name, host=host, port=port)
            for name, (host, port) in (core.identity.endpoints or {}).items()
        ],
    )


def end_response(core: Core, code: ErrorCode) -> end.EndQuorumEpochResponse:
    """Answer a leader that gave up."""
    partition = end.EndQuorumEpochResponsePartitionData(
        error_code=code, leader_id=leader_id_or_none(core), leader_epoch=core.epoch
    )
    return end.EndQuorumEpochResponse(
        topics=[end.EndQuorumEpochResponseTopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=endpoints_of(core, end.NodeEndpoint),
    )


def leader_of_request(core: Core, leader_id: int, endpoints: list[Any]) -> Peer | None:
    """Where a leader that told of itself is reached: by this quorum's listener, else by any it named."""
    named = {endpoint.name: (endpoint.host, endpoint.port) for endpoint in endpoints}
    address = named.get(core.identity.listener) or next(iter(named.values()), None)
    return core.peer(leader_id) if address is None else (leader_id, *address)
