"""What every replica says of itself, put together: one picture of each partition, by the newest leader epoch told.

A broker that was cut off may still believe in an older epoch; that is shown beside the truth, not instead of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tidelog.client.metadata import PartitionView
from tidelog.errors import KafkaError

Answers = Mapping[int, "dict[str, Any] | KafkaError"]
"""Of each broker, its answer to `replicas`, or why there is none."""


class ReplicaView(NamedTuple):
    """One replica of one partition."""

    broker: int
    role: str
    """leader, follower, offline, unreachable (the broker does not answer) or absent (it has no such replica)."""
    log_start_offset: int | None
    log_end_offset: int | None
    high_watermark: int | None
    lag: int | None
    """Records behind the leader."""
    in_isr: bool
    why_not: str | None
    """Why it is not in the ISR."""
    leader_epoch: int | None
    """The epoch it believes in."""
    note: str | None
    """What else is wrong with it: it cannot be asked, or believes in an older epoch."""
    epochs: list[tuple[int, int]]
    """Each epoch in its log with the offset where it starts."""


class PartitionPicture(NamedTuple):
    """One partition, as its replicas and the cluster's metadata tell of it together."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    isr: list[int]
    proposed_isr: list[int] | None
    """An ISR the leader has asked for and the controller has not decided yet."""
    eligible_leaders: list[int]
    high_watermark: int | None
    replicas: list[ReplicaView]


def picture(topic: str, view: PartitionView, answers: Answers) -> PartitionPicture:
    """Put together what is known of one partition: `view` is the cluster's metadata."""
    told = {
        broker_id: replica
        for broker_id, answer in answers.items()
        if not isinstance(answer, KafkaError) and (replica := _find(answer, topic, view.partition)) is not None
    }
    epoch = max([view.leader_epoch, *(int(one["leader_epoch"]) for one in told.values())])
    leaders = [broker_id for broker_id, one in told.items() if one["role"] == "leader" and one["leader_epoch"] == epoch]
    leading = told[leaders[0]] if leaders else None
    if leading is not None:
        leader: int | None = leaders[0]
        isr = list(leading["isr"])
    else:
        newest = [one for one in told.values() if one["leader_epoch"] == epoch and epoch > view.leader_epoch]
        named = int(newest[0]["leader"]) if newest else view.leader
        leader = named if named >= 0 else None
        isr = list(view.isr)
    followers = {} if leading is None else {int(one["node"]): one for one in leading["followers"]}
    unknown = "the leader cannot be asked" if leading is None else "the leader does not say"
    replicas = [
        _replica(
            broker_id,
            told.get(broker_id),
            answers.get(broker_id),
            leading,
            followers,
            isr,
            epoch,
            unknown if leader is not None else _why_without_leader(broker_id in view.eligible_leaders),
        )
        for broker_id in view.replicas
    ]
    return PartitionPicture(
        topic,
        view.partition,
        leader,
        epoch,
        isr,
        None if leading is None else leading.get("proposed_isr"),
        list(view.eligible_leaders),
        None if leading is None else int(leading["high_watermark"]),
        replicas,
    )


def _replica(
    broker_id: int,
    told: dict[str, Any] | None,
    answer: dict[str, Any] | KafkaError | None,
    leading: dict[str, Any] | None,
    followers: Mapping[int, dict[str, Any]],
    isr: Iterable[int],
    epoch: int,
    unknown: str,
) -> ReplicaView:
    in_isr = broker_id in isr
    progress = followers.get(broker_id)
    why_not = None if in_isr else (progress or {}).get("why_not") or unknown
    note: str | None
    if told is None:
        if isinstance(answer, KafkaError):
            role, note = "unreachable", f"cannot be asked: {answer.message or answer.code.name}"
        elif answer is None:
            role, note = "unreachable", "its broker is not registered"
        else:
            role, note = "absent", "its broker has no such replica yet"
        # What the leader has heard of it is better than nothing.
        heard = None if progress is None or progress["log_end_offset"] < 0 else int(progress["log_end_offset"])
        lag = None if progress is None else progress["lag"]
        return ReplicaView(broker_id, role, None, heard, None, lag, in_isr, why_not, None, note, [])
    own_epoch = int(told["leader_epoch"])
    note = f"believes in epoch {own_epoch}, led by {told['leader']}" if own_epoch < epoch else None
    end_offset = int(told["log_end_offset"])
    lag = None if leading is None or note else max(0, int(leading["log_end_offset"]) - end_offset)
    return ReplicaView(
        broker_id,
        str(told["role"]),
        int(told["log_start_offset"]),
        end_offset,
        int(told["high_watermark"]),
        lag,
        in_isr,
        why_not,
        own_epoch,
        note,
        [(int(one["epoch"]), int(one["start_offset"])) for one in told["epochs"]],
    )


def _why_without_leader(is_eligible: bool) -> str:
    """Of a partition that nobody leads: whom it waits for, and whom it does not take (KIP-966)."""
    if is_eligible:
        return "nobody leads: it has every committed record and leads when its broker is back"
    return "nobody leads, and it may lack committed records"


def _find(answer: dict[str, Any], topic: str, partition: int) -> dict[str, Any] | None:
    for replica in answer["replicas"]:
        if replica["topic"] == topic and replica["partition"] == partition:
            found: dict[str, Any] = replica
            return found
    return None
