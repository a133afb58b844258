"""Requests that only the active controller decides: this broker passes them on and hands its answer back (KIP-590)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.controller.answers import error_response
from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.node.apis import controller, quorum
from tidelog.wire.api_table import ApiKey

if TYPE_CHECKING:
    from tidelog.node.node import Node

VERSIONS: dict[ApiKey, tuple[int, int]] = {
    api_key: (controller.VERSIONS.get(api_key) or quorum.VERSIONS[api_key])
    for api_key in (
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    )
}


def handle(node: Node, request: Request) -> None:
    """Ask the controller; a client that cannot be helped now is told so by a code it tries again on."""

    def answered(response: Any, error: str | None) -> None:
        if error is not None:
            response = error_response(request.api_key, request.body, ErrorCode.NOT_CONTROLLER, error)
        node.outbox.reply(request.connection_id, request.slot, response)

    node.link.ask(request.api_key, request.api_version, request.body, answered)
