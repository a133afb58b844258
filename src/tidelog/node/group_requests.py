"""What requests of group members have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidelog.events import Request

if TYPE_CHECKING:
    from tidelog.node.node import Node


def replying(node: Node, request: Request) -> Callable[[Any], None]:
    """Sends the answer of a request, whenever it is ready."""
    return lambda response: node.outbox.reply(request.connection_id, request.slot, response)


def client_host(request: Request) -> str:
    """The member's machine as Kafka writes it: a slash and its address."""
    return f"/{request.client_address}" if request.client_address else ""
