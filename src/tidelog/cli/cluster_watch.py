"""Looking at a local cluster: what its nodes say of themselves, and its partitions as they stand.

A node that is paused takes connections and says nothing, so only those whose process runs are asked, and not for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidelog.cli.output import table
from tidelog.client.metadata import PartitionView
from tidelog.client.query import NodeQueries
from tidelog.client.replicas import Answers, PartitionPicture, picture
from tidelog.errors import KafkaError
from tidelog.runtime.cluster_plan import HOST
from tidelog.runtime.supervisor import NodeStatus

_TIMEOUT_MS = 500
_INTERNAL = "__"


class NodeWatch:
    """Asks the running nodes of a local cluster, over connections that are kept."""

    def __init__(self) -> None:
        self._queries = NodeQueries({}, timeout_ms=_TIMEOUT_MS)

    def ask(
        self, statuses: Iterable[NodeStatus], question: str, arguments: Mapping[str, Any] | None = None
    ) -> dict[int, dict[str, Any]]:
        """What each running node answered; those that did not are left out."""
        return {
            node_id: answer
            for node_id, answer in self._ask(statuses, question, arguments).items()
            if not isinstance(answer, KafkaError)
        }

    def pictures(self, statuses: Iterable[NodeStatus], limit: int) -> tuple[list[PartitionPicture], int]:
        """The first so many partitions, those of the cluster itself last, and how many there are at least."""
        brokers = [status for status in statuses if "broker" in status.roles]
        answers = self._ask(brokers, "replicas", {"limit": limit})
        told = [answer for answer in answers.values() if not isinstance(answer, KafkaError)]
        places = {(one["topic"], one["partition"]) for answer in told for one in answer["replicas"]}
        ordered = sorted(places, key=lambda place: (place[0].startswith(_INTERNAL), *place))
        total = max([len(places), *(int(answer["total"]) for answer in told)])
        return [picture(topic, _view(topic, number, answers), answers) for topic, number in ordered[:limit]], total

    def close(self) -> None:
        """Close the connections."""
        self._queries.close()

    def _ask(
        self, statuses: Iterable[NodeStatus], question: str, arguments: Mapping[str, Any] | None
    ) -> dict[int, dict[str, Any] | KafkaError]:
        for status in statuses:
            port = status.port or status.controller_port
            if status.state == "running" and port is not None:
                self._queries.addresses[status.node_id] = (HOST, port)
            else:
                self._queries.addresses.pop(status.node_id, None)
        return self._queries.ask(question, arguments)


def partition_lines(pictures: Iterable[PartitionPicture], total: int) -> list[str]:
    """A table of partitions: leader, epoch, ISR, high watermark, and the end of each replica's log."""
    pictures = list(pictures)
    rows = [
        [
            f"{one.topic}-{one.partition}",
            "none" if one.leader is None else one.leader,
            one.leader_epoch,
            one.isr if _is_isr_known(one) else "?",
            one.high_watermark,
            "  ".join(_end(one, replica.broker, replica.log_end_offset) for replica in one.replicas),
        ]
        for one in pictures
    ]
    lines = table(["partition", "leader", "epoch", "isr", "hw", "leo of each replica"], rows) if rows else []
    return lines + ([f"… and {total - len(pictures)} partitions more"] if total > len(pictures) else [])


def _end(one: PartitionPicture, broker: int, log_end_offset: int | None) -> str:
    """`2:17`, marked where the replica is known not to be in sync."""
    mark = " out" if _is_isr_known(one) and broker not in one.isr else ""
    return f"{broker}:{'?' if log_end_offset is None else log_end_offset}{mark}"


def _is_isr_known(one: PartitionPicture) -> bool:
    """Whether its leader has told: what is not heard from a leader that is silent is not the empty set."""
    return one.leader is None or one.high_watermark is not None


def _view(topic: str, number: int, answers: Answers) -> PartitionView:
    """A partition as its newest leader among those that answered knows it, in place of the cluster's metadata."""
    told = {
        node_id: replica
        for node_id, answer in answers.items()
        if not isinstance(answer, KafkaError)
        for replica in answer["replicas"]
        if (replica["topic"], replica["partition"]) == (topic, number)
    }
    leading = [replica for replica in told.values() if "followers" in replica]
    newest = max(leading or told.values(), key=lambda replica: int(replica["leader_epoch"]))
    members = {*told, *(int(one["node"]) for one in newest.get("followers", ()))}
    return PartitionView(
        number, int(newest["leader"]), int(newest["leader_epoch"]), sorted(members), newest.get("isr", []), [], [], []
    )
