"""What can happen to a node. `Node.step(event, now_ms)` takes one of these and nothing else."""

from __future__ import annotations

from typing import Any

LOCAL_CONNECTION = -1
"""Connection id of what a node asks itself: the answer resumes whoever asked (see Outbox.expect)."""


class Request:
    """A decoded request came in. `slot` names its place in the connection's order of answers."""

    __slots__ = ("api_key", "api_version", "body", "client_address", "client_id", "connection_id", "listener", "slot")

    def __init__(
        self,
        connection_id: int,
        slot: int,
        api_key: int,
        api_version: int,
        client_id: str | None,
        body: Any,
        client_address: str = "",
        listener: str = "PLAINTEXT",
    ) -> None:
        self.connection_id = connection_id
        self.slot = slot
        self.api_key = api_key
        self.api_version = api_version
        self.client_id = client_id
        self.body = body
        """A message of tidelog.wire.messages. Record bytes in it are memoryviews valid only during this step."""
        self.client_address = client_address
        self.listener = listener


class ConnectionClosed:
    """A client's connection ended; whatever waits for it can be dropped."""

    __slots__ = ("by_peer", "connection_id", "reason")

    def __init__(self, connection_id: int, reason: str = "", by_peer: bool = True) -> None:
        self.connection_id = connection_id
        self.reason = reason
        self.by_peer = by_peer
        """Whether the other side or the network ended it; False where this node did (silence, bad input, a Close)."""


class PeerAnswered:
    """A peer answered a Send."""

    __slots__ = ("body", "peer_id", "request_id")

    def __init__(self, peer_id: int, request_id: int, body: Any) -> None:
        self.peer_id = peer_id
        self.request_id = request_id
        self.body = body


CONNECTION_REFUSED = "connection refused"
"""Reason of a PeerFailed: the machine is there and nobody listens on it, so the process is gone."""


class PeerFailed:
    """A Send will not be answered: no connection, connection lost, or the answer could not be read."""

    __slots__ = ("peer_id", "reason", "request_id")

    def __init__(self, peer_id: int, request_id: int, reason: str) -> None:
        self.peer_id = peer_id
        self.request_id = request_id
        self.reason = reason


class FlushDone:
    """A Flush finished; `error` is the disk's complaint, or None."""

    __slots__ = ("error", "token")

    def __init__(self, token: int, error: str | None = None) -> None:
        self.token = token
        self.error = error


class WorkDone:
    """A Work finished in its helper; `error` says why it did not."""

    __slots__ = ("error", "result", "token")

    def __init__(self, token: int, result: Any = None, error: str | None = None) -> None:
        self.token = token
        self.result = result
        self.error = error


class Tick:
    """Time passed: the runtime sends one when `Node.wake_at_ms` is reached."""

    __slots__ = ()


class StopRequested:
    """A clean stop was asked for (SIGTERM): resign, flush, checkpoint, then Halt."""

    __slots__ = ()


Event = Request | ConnectionClosed | PeerAnswered | PeerFailed | FlushDone | WorkDone | Tick | StopRequested
