"""FindCoordinator, versions 0 to 6: where a group or a transactional id is looked after (KIP-699 batches, v4).

Groups and transactions are not served yet: every key is answered COORDINATOR_NOT_AVAILABLE with a reason, which clients
that only assign partitions never notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.FIND_COORDINATOR
VERSIONS = (0, 6)
BATCHED_VERSION = 4
GROUP, TRANSACTION = 0, 1
REASON = "this broker does not serve groups and transactions yet"


def handle(node: Node, request: Request) -> FindCoordinatorResponse:
    """The same answer for every key, by its kind."""
    known = request.body.key_type in (GROUP, TRANSACTION)
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE if known else ErrorCode.INVALID_REQUEST
    if request.api_version < BATCHED_VERSION:
        return FindCoordinatorResponse(error_code=code, error_message=REASON, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=REASON)
            for key in request.body.coordinator_keys
        ]
    )
