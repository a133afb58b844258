"""One blocking connection to one broker: requests out, answers back in the same order."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from tidelog.errors import DecodeError, ErrorCode, KafkaError
from tidelog.wire import frames
from tidelog.wire.apis import ApiKey, api_name, api_versions
from tidelog.wire.message import Message
from tidelog.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

MAX_FRAME_BYTES = 256 * 1024 * 1024
"""A longer answer is taken for garbage, not for a reason to allocate."""
_SOFTWARE = "tidelog"


def address_text(host: str, port: int) -> str:
    """`host:port` as it can be given back to a command: an address of IPv6 stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Connection:
    """A connection whose versions are negotiated. After an error it is closed and stays closed."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        timeout_ms: int,
        allocate: Callable[[int], bytearray | memoryview] = bytearray,
    ) -> None:
        """`allocate` gives the memory for each answer: whoever is done with one before the next may give the same."""
        self.host = host
        self.port = port
        self.address = address_text(host, port)
        self._client_id = client_id
        self._allocate = allocate
        self._next_correlation_id = 0
        self._unanswered: deque[tuple[int, int, int]] = deque()
        """Correlation id, API and version of what was sent and expects an answer, oldest first."""
        try:
            self._socket: socket.socket | None = socket.create_connection((host, port), timeout=timeout_ms / 1000)
        except OSError as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{self.address}: {_reason(error)}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.features: dict[str, int] = {}
        """The level of each feature that the cluster has settled on (KIP-584); empty where a broker has none."""
        self.versions = self._negotiate(timeout_ms)
        """Lowest and highest version the broker has of each API."""

    def fileno(self) -> int:
        """For select."""
        return self._require().fileno()

    @property
    def is_open(self) -> bool:
        """Whether no error and no `close` has ended it."""
        return self._socket is not None

    @property
    def is_idle(self) -> bool:
        """Whether every answer has come."""
        return not self._unanswered

    def supports(self, request: type[Message]) -> bool:
        """Whether there is a version of this API that both sides know."""
        low, high = self.versions.get(request.API_KEY, (0, -1))
        ours = api_versions(request.API_KEY)
        return max(low, ours[0]) <= min(high, ours[1])

    def version_of(self, request: type[Message], highest: int | None = None) -> int:
        """The highest version of an API that both sides know (and that is not above `highest`)."""
        low, high = self.versions.get(request.API_KEY, (0, -1))
        ours = api_versions(request.API_KEY)
        version = min(high, ours[1] if highest is None else min(highest, ours[1]))
        if version < max(low, ours[0]):
            theirs = f"versions {low} to {high}" if high >= low else "no version"
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{self.address} serves {theirs} of {api_name(request.API_KEY)}; known here are {ours[0]} to {ours[1]}",
            )
        return version

    def call(self, request: Message, timeout_ms: int, highest: int | None = None) -> Any:
        """Send a request and wait for its answer."""
        self.send(request, self.version_of(type(request), highest), timeout_ms)
        return self.receive(timeout_ms)

    def send(self, request: Message, version: int, timeout_ms: int, *, answered: bool = True) -> None:
        """Send a request; its answer comes with `receive`, after those of earlier requests."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        parts = frames.encode_request(request.API_KEY, version, correlation_id, self._client_id, request)
        connected = self._require()
        try:
            connected.settimeout(max(timeout_ms, 1) / 1000)
            connected.sendall(b"".join(parts))  # type: ignore[arg-type]  # a client's records are bytes, never slices
        except OSError as error:
            raise self._failed(error) from None
        except BaseException:  # Ctrl-C: half a request is out
            self.close()
            raise
        if answered:
            self._unanswered.append((correlation_id, request.API_KEY, version))

    def receive(self, timeout_ms: int) -> Any:
        """Wait for the answer to the oldest request that has none yet."""
        expected_id, api_key, version = self._unanswered.popleft()
        deadline = time.monotonic() + timeout_ms / 1000
        try:
            frame = self._read_frame(deadline)
        except BaseException:  # Ctrl-C, too: the rest of the answer would be taken for the next one
            self.close()
            raise
        try:
            correlation_id, answer = frames.decode_response(api_key, version, frame)
        except DecodeError as error:
            self.close()
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{self.address} sent garbage: {error}") from None
        if correlation_id != expected_id:
            self.close()
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{self.address} answered another request")
        return answer

    def close(self) -> None:
        """Close; safe to call twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _read_frame(self, deadline: float) -> memoryview:
        length = int.from_bytes(self._read_exactly(bytearray(4), deadline), "big", signed=True)
        if not 4 <= length <= MAX_FRAME_BYTES:
            self.close()
            raise KafkaError(
                ErrorCode.NETWORK_EXCEPTION, f"{self.address} does not speak Kafka's protocol: length {length}"
            )
        return self._read_exactly(self._allocate(length), deadline)

    def _read_exactly(self, memory: bytearray | memoryview, deadline: float) -> memoryview:
        buffer = memoryview(memory)
        length = len(buffer)
        filled = 0
        connected = self._require()
        try:
            while filled < length:
                connected.settimeout(max(deadline - time.monotonic(), 0.001))
                count = connected.recv_into(buffer[filled:])
                if count == 0:
                    raise ConnectionError("the connection was closed")
                filled += count
        except OSError as error:
            raise self._failed(error) from None
        return buffer.toreadonly()

    def _negotiate(self, timeout_ms: int) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="1")
        answer = self._ask_versions(request, api_versions(ApiKey.API_VERSIONS)[1], timeout_ms)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            known = next((key.max_version for key in answer.api_keys if key.api_key == ApiKey.API_VERSIONS), 0)
            answer = self._ask_versions(request, min(known, api_versions(ApiKey.API_VERSIONS)[1]), timeout_ms)
        if answer.error_code:
            self.close()
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{self.address} refused ApiVersions")
        self.features = {one.name: one.max_version_level for one in answer.finalized_features}
        return {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}

    def _ask_versions(self, request: ApiVersionsRequest, version: int, timeout_ms: int) -> ApiVersionsResponse:
        self.send(request, version, timeout_ms)
        answer: ApiVersionsResponse = self.receive(timeout_ms)
        return answer

    def _require(self) -> socket.socket:
        if self._socket is None:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{self.address}: the connection is closed")
        return self._socket

    def _failed(self, error: OSError) -> KafkaError:
        self.close()
        code = ErrorCode.REQUEST_TIMED_OUT if isinstance(error, TimeoutError) else ErrorCode.NETWORK_EXCEPTION
        return KafkaError(code, f"{self.address}: {_reason(error)}")


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror or str(error) or type(error).__name__).lower()
