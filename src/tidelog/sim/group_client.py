"""What a consumer of a simulated cluster has to do with its group: commit, say where it is, ask how that stands.

It is no member of the group: it reads what it is told to read, and commits as a consumer without a subscription does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.sim.client import Client
from tidelog.wire.api_table import ApiKey
from tidelog.wire.apis import PRIVATE_QUERY
from tidelog.wire.messages.find_coordinator import FindCoordinatorRequest
from tidelog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tidelog.wire.private_query import TidelogQueryRequest

Then = Callable[[Any], None]
RETRY_MS = 100
TIMEOUT_MS = 5000


class GroupClient(Client):
    """Asks the coordinator of a group, again until it has answered for good."""

    def commit(self, group: str, topic: str, partition: int, offset: int, then: Then) -> None:
        """Commit an offset, then continue with None."""
        wanted = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[wanted])]
        )

        def code_of(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        self._ask_coordinator(group, ApiKey.OFFSET_COMMIT, 9, request, code_of, lambda _answer: then(None))

    def committed(self, group: str, topic: str, partition: int, then: Then) -> None:
        """Continue with what a group has committed; None when it has committed nothing."""
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])

        def found(answer: Any) -> None:
            offsets = {
                (one.name, each.partition_index): each.committed_offset
                for one in answer.groups[0].topics
                for each in one.partitions
            }
            then(offsets.get((topic, partition)))

        self._ask_coordinator(group, ApiKey.OFFSET_FETCH, 9, request, lambda one: int(one.groups[0].error_code), found)

    def report(self, group: str, topic: str, partition: int, position: int, then: Then) -> None:
        """Say what a consumer of a group reads next, then continue with None."""
        arguments = {"group": group, "positions": [[topic, partition, position]]}
        self._ask_privately(group, "report_positions", arguments, lambda _answer: then(None))

    def reported(self, group: str, topic: str, partition: int, then: Then) -> None:
        """Continue with what a consumer of a group reported lately; None when none has."""

        def found(answer: dict[str, Any]) -> None:
            rows = [position for name, index, position in answer["positions"] if (name, index) == (topic, partition)]
            then(rows[0] if rows else None)

        self._ask_privately(group, "positions", {"group": group}, found)

    def _ask_privately(self, group: str, question: str, arguments: dict[str, Any], then: Then) -> None:
        request = TidelogQueryRequest(question=question, arguments=json.dumps(arguments))
        self._ask_coordinator(
            group, PRIVATE_QUERY, 0, request, lambda one: int(one.error_code), lambda one: then(json.loads(one.answer))
        )

    def _ask_coordinator(
        self, group: str, api_key: int, version: int, body: Any, code_of: Callable[[Any], int], then: Then
    ) -> None:
        def again() -> None:
            self.after(RETRY_MS, lambda: self._ask_coordinator(group, api_key, version, body, code_of, then))

        def answered(response: Any) -> None:
            if response is None or code_of(response) != ErrorCode.NONE:
                again()
            else:
                then(response)

        def located(response: Any) -> None:
            coordinator = None if response is None else response.coordinators[0]
            if coordinator is None or coordinator.error_code:
                again()
            else:
                self.ask(coordinator.node_id, api_key, version, body, answered, TIMEOUT_MS)

        request = FindCoordinatorRequest(coordinator_keys=[group])
        self.ask(self.any_broker(), ApiKey.FIND_COORDINATOR, 4, request, located, TIMEOUT_MS)
