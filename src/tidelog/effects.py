"""What a node wants done. `Node.step` returns a list of these, to be carried out in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidelog.storage import File, Storage


class Reply:
    """Answer a request. `body` None means that the client expects no answer (acks=0): the slot is just released."""

    __slots__ = ("body", "connection_id", "slot")

    def __init__(self, connection_id: int, slot: int, body: Any) -> None:
        self.connection_id = connection_id
        self.slot = slot
        self.body = body

    def __repr__(self) -> str:
        return f"Reply(connection={self.connection_id}, slot={self.slot}, {self.body!r})"


class Close:
    """Close a client's connection."""

    __slots__ = ("connection_id", "reason")

    def __init__(self, connection_id: int, reason: str) -> None:
        self.connection_id = connection_id
        self.reason = reason

    def __repr__(self) -> str:
        return f"Close(connection={self.connection_id}, {self.reason!r})"


class Send:
    """Send a request to a peer; PeerAnswered or PeerFailed with the same request id comes back exactly once.

    `channel` separates connections to one peer: a parked long poll holds up whatever is behind it on its connection.
    """

    __slots__ = ("api_key", "api_version", "body", "channel", "host", "peer_id", "port", "request_id", "timeout_ms")

    def __init__(
        self,
        peer_id: int,
        host: str,
        port: int,
        channel: str,
        request_id: int,
        api_key: int,
        api_version: int,
        body: Any,
        timeout_ms: int,
    ) -> None:
        self.peer_id = peer_id
        self.host = host
        self.port = port
        self.channel = channel
        self.request_id = request_id
        self.api_key = api_key
        self.api_version = api_version
        self.body = body
        self.timeout_ms = timeout_ms

    def __repr__(self) -> str:
        return f"Send(peer={self.peer_id}/{self.channel}, request={self.request_id}, {self.body!r})"


class Flush:
    """Make things durable, off the loop; FlushDone with the same token comes back exactly once.

    In this order: each file's bytes, each replacement (temporary file, flush, rename), each directory's entries.
    """

    __slots__ = ("directories", "files", "replacements", "storage", "token")

    def __init__(
        self,
        token: int,
        storage: Storage,
        files: Sequence[File] = (),
        replacements: Sequence[tuple[str, bytes]] = (),
        directories: Sequence[str] = (),
    ) -> None:
        self.token = token
        self.storage = storage
        self.files = files
        self.replacements = replacements
        self.directories = directories

    def __repr__(self) -> str:
        names = [file.path for file in self.files] + [path for path, _ in self.replacements] + list(self.directories)
        return f"Flush({self.token}, {names})"


class Work:
    """Run a pure job over closed files in a helper; WorkDone with the same token comes back exactly once.

    `job` is a module-level function taking the storage and `arguments`; it writes only new temporary files.
    """

    __slots__ = ("arguments", "job", "storage", "token")

    def __init__(self, token: int, storage: Storage, job: Any, arguments: tuple[Any, ...] = ()) -> None:
        self.token = token
        self.storage = storage
        self.job = job
        self.arguments = arguments

    def __repr__(self) -> str:
        return f"Work({self.token}, {self.job.__name__}{self.arguments})"


class Tell:
    """Something worth showing to people: one log line, and for replication events one record of the event topic."""

    __slots__ = ("fields", "kind", "level")

    def __init__(self, kind: str, fields: Mapping[str, Any], level: str = "info") -> None:
        self.kind = kind
        self.fields = fields
        self.level = level
        """debug (not logged, but for the event topic), info, warning or error."""

    def __repr__(self) -> str:
        return f"Tell({self.kind}, {dict(self.fields)})"


class Halt:
    """End the process: after a clean stop (exit code 0), or because going on could lose data."""

    __slots__ = ("exit_code", "reason")

    def __init__(self, exit_code: int, reason: str) -> None:
        self.exit_code = exit_code
        self.reason = reason

    def __repr__(self) -> str:
        return f"Halt({self.exit_code}, {self.reason!r})"


Effect = Reply | Close | Send | Flush | Work | Tell | Halt
