"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from tidelog.outbox import Timer

Reply = Callable[[Any], None]
"""Sends an answer to whoever asked; called once."""
Protocols = tuple[tuple[str, bytes], ...]
"""Names in the order of the member's preference, each with what it has to say about itself."""


class Member:
    """Who it is, what it can, and which of its requests waits."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_reply",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_deadline_ms",
        "session_timeout_ms",
        "session_timer",
        "sync_reply",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        """Set for a static member (KIP-345)."""
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        """Joined and not yet told its member id: it cannot heartbeat, so its session is that of the join itself."""
        self.join_reply: Reply | None = None
        self.sync_reply: Reply | None = None
        self.session_deadline_ms = 0
        self.session_timer: Timer | None = None
        """One timer a member, which looks at the deadline when it fires: a heartbeat sets no new one."""

    @property
    def is_waiting(self) -> bool:
        """A member whose join or sync is held here is alive whatever its heartbeats say."""
        return self.join_reply is not None or self.sync_reply is not None

    def metadata(self, protocol: str | None) -> bytes:
        """What the member says about itself under a protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: Container[str]) -> str | None:
        """The first of its protocols that all members have."""
        return next((name for name, _ in self.protocols if name in candidates), None)

    def names(self) -> Iterable[str]:
        """Its protocols."""
        return (name for name, _ in self.protocols)

    def answer_join(self, response: Any) -> bool:
        """Answer the held join; False when none is held."""
        reply, self.join_reply = self.join_reply, None
        if reply is not None:
            reply(response)
        return reply is not None

    def answer_sync(self, response: Any) -> bool:
        """Answer the held sync; False when none is held."""
        reply, self.sync_reply = self.sync_reply, None
        if reply is not None:
            reply(response)
        return reply is not None

    def stop_session(self) -> None:
        """Its session is watched no longer."""
        if self.session_timer is not None:
            self.session_timer.cancel()
            self.session_timer = None
