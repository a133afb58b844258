"""What the active controller decides, served on the controller's listeners: for brokers, and for clients by KIP-919."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.controller.answers import error_response
from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.wire.api_table import ApiKey

if TYPE_CHECKING:
    from tidelog.node.node import Node

VERSIONS: dict[ApiKey, tuple[int, int]] = {
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.ALTER_PARTITION: (2, 3),
    ApiKey.UPDATE_FEATURES: (0, 2),
    ApiKey.BROKER_REGISTRATION: (0, 4),
    ApiKey.BROKER_HEARTBEAT: (0, 2),
    ApiKey.UNREGISTER_BROKER: (0, 0),
    ApiKey.CONTROLLER_REGISTRATION: (0, 0),
    ApiKey.ALLOCATE_PRODUCER_IDS: (0, 0),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: (0, 0),
}


def handle(node: Node, request: Request) -> Any:
    """Give it to this node's controller; whoever asks the wrong node is told so and looks again."""
    controller = node.cluster.controller
    if (
        request.api_key == ApiKey.BROKER_HEARTBEAT
        and controller is not None
        and controller.is_life_of(request.body.broker_id, request.body.broker_epoch)
    ):
        node.broker_watch.heard_on(request.connection_id, request.body.broker_id)
    if node.cluster.handle_locally(request):
        return None
    return error_response(
        request.api_key, request.body, ErrorCode.NOT_CONTROLLER, "another node is the active controller"
    )
