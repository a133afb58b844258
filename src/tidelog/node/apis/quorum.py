"""The quorum's own requests, served on the controller's listeners (KIP-595, KIP-630, KIP-853, KIP-996)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.events import Request
from tidelog.wire.api_table import ApiKey

if TYPE_CHECKING:
    from tidelog.node.node import Node

VERSIONS: dict[ApiKey, tuple[int, int]] = {
    ApiKey.FETCH: (4, 18),
    ApiKey.VOTE: (0, 2),
    ApiKey.BEGIN_QUORUM_EPOCH: (0, 1),
    ApiKey.END_QUORUM_EPOCH: (0, 1),
    ApiKey.FETCH_SNAPSHOT: (0, 1),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.ADD_RAFT_VOTER: (0, 1),
    ApiKey.REMOVE_RAFT_VOTER: (0, 0),
    ApiKey.UPDATE_RAFT_VOTER: (0, 0),
}


def handle(node: Node, request: Request) -> None:
    """Give it to the quorum, which answers by itself."""
    node.cluster.quorum.handle(request)
