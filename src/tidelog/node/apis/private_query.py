"""The private query, version 0: what this node knows and Kafka's protocol cannot say. Not advertised.

replicas {"topic": NAME, "limit": N}   replicas here: role, epochs, positions, and of a leader its followers; of all
                                       topics when none is named, the cluster's own last, and so many at most
image {"topic": NAME}                  the metadata as far as this node has it: brokers, and a topic's partitions
node {}                                this node: state, role in the quorum, open sessions
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.replica.leadership import NEVER_MS, FollowerProgress, Leadership
from tidelog.replica.partition import Partition, Role
from tidelog.wire.apis import PRIVATE_QUERY
from tidelog.wire.private_query import TidelogQueryResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = PRIVATE_QUERY
VERSIONS = (0, 0)


def handle(node: Node, request: Request) -> TidelogQueryResponse:
    """Answer one question."""
    question = _QUESTIONS.get(request.body.question)
    if question is None:
        known = ", ".join(sorted(_QUESTIONS))
        message = f"no such question: {request.body.question!r}; known are {known}"
        return TidelogQueryResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=message)
    try:
        arguments = json.loads(request.body.arguments)
        if not isinstance(arguments, dict):
            raise ValueError("not an object")
    except ValueError as error:
        message = f"the arguments are not a JSON object: {error}"
        return TidelogQueryResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=message)
    return TidelogQueryResponse(answer=json.dumps(question(node, arguments)))


def _node(node: Node, _arguments: dict[str, Any]) -> dict[str, Any]:
    quorum = node.cluster.quorum
    return {
        "node": node.node_id,
        "state": node.lifecycle.state.value,
        "broker_epoch": node.lifecycle.broker_epoch,
        "metadata_offset": node.cluster.image_offset,
        "quorum": {
            "role": quorum.role.value,
            "is_voter": quorum.is_voter,
            "epoch": quorum.epoch,
            "leader": quorum.leader_id,
            "high_watermark": quorum.high_watermark,
            "log_end_offset": quorum.log_end_offset,
        },
        "fetch_sessions": len(node.fetch_sessions),
        "events_dropped": 0 if node.replication_events is None else node.replication_events.dropped,
    }


def _image(node: Node, arguments: dict[str, Any]) -> dict[str, Any]:
    image = node.image
    topic = image.topic(str(arguments.get("topic", "")))
    return {
        "node": node.node_id,
        "metadata_offset": node.cluster.image_offset,
        "controller": node.cluster.quorum.leader_id,
        "controller_epoch": node.cluster.quorum.epoch,
        "brokers": [
            {"node": broker_id, "epoch": broker.epoch, "fenced": broker.fenced}
            for broker_id, broker in sorted(image.brokers.items())
        ],
        "topic_id": None if topic is None else topic.topic_id.hex(),
        "partitions": [
            {
                "partition": index,
                "replicas": list(state.replicas),
                "leader": state.leader,
                "leader_epoch": state.leader_epoch,
                "partition_epoch": state.partition_epoch,
                "isr": list(state.isr),
                "elr": list(state.eligible_leader_replicas),
            }
            for index, state in ([] if topic is None else sorted(topic.partitions.items()))
        ],
    }


def _replicas(node: Node, arguments: dict[str, Any]) -> dict[str, Any]:
    topic, limit = arguments.get("topic"), arguments.get("limit")
    wanted = [partition for (name, _), partition in node.replicas.partitions.items() if topic is None or name == topic]
    wanted.sort(key=lambda one: (one.topic.startswith("__"), one.topic, one.index))
    shown = wanted[:limit] if isinstance(limit, int) else wanted
    return {
        "node": node.node_id,
        "total": len(wanted),
        "replicas": [_replica(node, partition) for partition in shown],
    }


def _replica(node: Node, partition: Partition) -> dict[str, Any]:
    log = partition.log
    answer: dict[str, Any] = {
        "topic": partition.topic,
        "partition": partition.index,
        "role": partition.role.value,
        "leader": partition.leader_id,
        "leader_epoch": partition.leader_epoch,
        "log_start_offset": log.log_start_offset,
        "log_end_offset": log.log_end_offset,
        "high_watermark": partition.high_watermark,
        "last_stable_offset": partition.last_stable_offset if partition.role is not Role.OFFLINE else None,
        "recovery_point": log.recovery_point,
        "size_bytes": log.size_bytes,
        "directory": node.replicas.directory_of(partition).storage.root,
        "epochs": [{"epoch": epoch, "start_offset": start} for epoch, start in log.epochs],
    }
    leadership = partition.leadership
    if leadership is not None:
        answer["isr"] = list(leadership.isr)
        answer["proposed_isr"] = None if leadership.proposed is None else list(leadership.proposed)
        answer["partition_epoch"] = leadership.partition_epoch
        answer["followers"] = [
            _follower(node, partition, leadership, broker_id, progress)
            for broker_id, progress in sorted(leadership.followers.items())
        ]
    return answer


def _follower(
    node: Node, partition: Partition, leadership: Leadership, broker_id: int, progress: FollowerProgress
) -> dict[str, Any]:
    now_ms = node.outbox.now_ms
    end_offset = partition.log.log_end_offset
    is_caught_up = progress.log_end_offset == end_offset
    caught_up_ms = None if progress.last_caught_up_ms == NEVER_MS else now_ms - progress.last_caught_up_ms
    return {
        "node": broker_id,
        "log_end_offset": progress.log_end_offset,
        "lag": max(0, end_offset - progress.log_end_offset) if progress.log_end_offset >= 0 else None,
        "caught_up_ms_ago": 0 if is_caught_up else caught_up_ms,
        "in_sync": broker_id in leadership.isr,
        "why_not": None if broker_id in leadership.isr else _why_not(node, partition, leadership, broker_id, progress),
        "dropped_for": progress.dropped_for or None,
    }


def _why_not(
    node: Node, partition: Partition, leadership: Leadership, broker_id: int, progress: FollowerProgress
) -> str:
    """Why a follower is not in the ISR, in words."""
    broker = node.image.brokers.get(broker_id)
    if broker is None:
        return "its broker is not registered"
    if broker.fenced:
        return "its broker is fenced"
    if broker.in_controlled_shutdown:
        return "its broker is stopping"
    return _why_not_yet(partition, leadership, progress, broker.epoch) + (
        f"; it left because {progress.dropped_for}" if progress.dropped_for else ""
    )


def _why_not_yet(partition: Partition, leadership: Leadership, progress: FollowerProgress, broker_epoch: int) -> str:
    """What a follower that could be in the ISR lacks."""
    if progress.log_end_offset < 0:
        return "it has not fetched from this leader yet"
    if progress.broker_epoch not in (-1, broker_epoch):
        return "it fetched in an earlier life of its broker"
    if progress.log_end_offset < leadership.epoch_start_offset:
        start = leadership.epoch_start_offset
        return f"it is at {progress.log_end_offset}, before the start of this leader epoch ({start})"
    if progress.log_end_offset < partition.high_watermark:
        return f"it is at {progress.log_end_offset}, behind the high watermark ({partition.high_watermark})"
    return "it has caught up and waits for the controller"


def _positions(node: Node, arguments: dict[str, Any]) -> dict[str, Any]:
    group = str(arguments.get("group", ""))
    positions = node.groups.state_of(group).positions.of_group(group, node.outbox.now_ms)
    return {"positions": [[topic, partition, position] for (topic, partition), position in sorted(positions.items())]}


def _report_positions(node: Node, arguments: dict[str, Any]) -> dict[str, Any]:
    group = str(arguments.get("group", ""))
    state = node.groups.state_of(group)
    try:
        rows = [(str(topic), int(partition), int(position)) for topic, partition, position in arguments["positions"]]
    except (KeyError, TypeError, ValueError):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "positions are [topic, partition, offset] each") from None
    for topic, partition, position in rows:
        state.positions.report(group, topic, partition, position, node.outbox.now_ms)
    return {}


_QUESTIONS: dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]] = {
    "image": _image,
    "node": _node,
    "positions": _positions,
    "replicas": _replicas,
    "report_positions": _report_positions,
}
