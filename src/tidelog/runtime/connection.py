"""One client's connection: frames in, answers out in the order of the requests, and a bound on both.

    reading -> paused     too many requests unanswered, or too many bytes of answers not taken by the client
    paused  -> reading    below both bounds again
    any     -> closed     by the client, by the node, for bad input, for silence

Requests are given to the node as they come, so that pipelined writes overlap; each takes a slot, and an answer leaves
when the slots before it are done.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from tidelog.errors import DecodeError, StorageError
from tidelog.events import Request
from tidelog.runtime.loop import READ, WRITE
from tidelog.runtime.receiving import Receiver
from tidelog.runtime.sending import Sender, SliceCut
from tidelog.storage import Slice
from tidelog.wire.api_table import ApiKey
from tidelog.wire.frames import UnsupportedVersion, decode_request, encode_response

if TYPE_CHECKING:
    from tidelog.runtime.server import Server

FRAMES_PER_TURN = 200
"""Requests of one connection before others have their turn."""


class Connection:
    """A client's connection. The server makes it, feeds it and forgets it."""

    __slots__ = (
        "_answers",
        "_blocked",
        "_fd",
        "_first_open_slot",
        "_interest",
        "_max_in_flight",
        "_max_queued_bytes",
        "_next_slot",
        "_pending",
        "_resuming",
        "_server",
        "_socket",
        "address",
        "connection_id",
        "dirty",
        "is_closed",
        "last_active_ms",
        "listener",
        "receiver",
        "sender",
    )

    def __init__(
        self, server: Server, connection_id: int, accepted: socket.socket, address: str, listener: str
    ) -> None:
        self.connection_id = connection_id
        self.address = address
        self.listener = listener
        self.last_active_ms = server.loop.now_ms
        self.is_closed = False
        self.dirty = False
        """Has answers that the server will send at the end of the turn."""
        self.receiver = Receiver(server.memory, server.limits.request_max_bytes)
        self.sender = Sender(accepted)
        self._server = server
        self._socket = accepted
        self._fd = accepted.fileno()
        self._max_in_flight = server.limits.max_in_flight_requests
        self._max_queued_bytes = server.limits.max_queued_response_bytes
        """Limits that change hold for connections made later."""
        self._next_slot = 0
        self._first_open_slot = 0
        """Every slot below it is answered and handed to the sender."""
        self._pending: dict[int, tuple[int, int, int]] = {}
        """By slot, what an answer needs: API key, version, correlation id."""
        self._answers: dict[int, list[bytes | Slice]] = {}
        """Answers that wait for an earlier slot."""
        self._blocked = False
        """The socket took less than was queued."""
        self._resuming = False
        """`resume` is going to be called, and there may be whole frames that were not looked at."""
        self._interest = READ
        server.loop.watch(self._fd, READ, self.ready)

    # --- in ---

    def ready(self, events: int) -> None:
        """The loop says that the socket can be read or written."""
        try:
            if events & WRITE:
                self.send()
            if events & READ and not self.is_closed and not self._resuming:
                self._read()
        except Exception as error:
            self._server.fail(self, error)

    def _read(self) -> None:
        receiver = self.receiver
        if self._server.memory.is_short and receiver.is_between_frames and self._server.must_wait(self):
            self._server.wait_for_memory(self)
            return
        try:
            count = receiver.receive(self._socket)
        except BlockingIOError:
            return
        except OSError as error:
            self._server.close(self, f"connection lost: {error.strerror}")
            return
        if not count:
            self._server.close(self, "closed by the client")
            return
        self.last_active_ms = self._server.loop.now_ms
        self._take_frames()

    def resume(self) -> None:
        """Go on with frames that are already here, and with reading."""
        self._resuming = False
        if not self.is_closed:
            try:
                self._take_frames()
            except Exception as error:
                self._server.fail(self, error)

    def _take_frames(self) -> None:
        receiver = self.receiver
        allowance = FRAMES_PER_TURN
        try:
            while not self._is_full():
                frame = receiver.next_frame()
                if frame is None:
                    break
                self._take(frame)
                if self.is_closed:
                    return
                allowance -= 1
                if not allowance:
                    self._resume_later()
                    break
        except DecodeError as error:
            self._server.refuse(self, str(error))
            return
        receiver.settle()
        self._update_interest()

    def _take(self, frame: memoryview) -> None:
        server = self._server
        try:
            request = decode_request(frame, server.api_versions)
        except UnsupportedVersion as error:
            if error.api_key != ApiKey.API_VERSIONS:
                server.refuse(self, str(error))
                return
            slot = self._open_slot(ApiKey.API_VERSIONS, 0, error.correlation_id)
            self.answer(slot, server.unsupported_api_versions())
            return
        slot = self._open_slot(request.api_key, request.api_version, request.correlation_id)
        server.on_request(
            Request(
                self.connection_id,
                slot,
                request.api_key,
                request.api_version,
                request.client_id,
                request.body,
                self.address,
                self.listener,
            )
        )

    def _open_slot(self, api_key: int, api_version: int, correlation_id: int) -> int:
        slot = self._next_slot
        self._next_slot = slot + 1
        self._pending[slot] = (api_key, api_version, correlation_id)
        return slot

    # --- out ---

    @property
    def is_waiting(self) -> bool:
        """Whether the node still owes an answer."""
        return bool(self._pending)

    def answer(self, slot: int, body: Any) -> None:
        """Answer a request, as soon as those before it are answered; None is no answer at all (acks=0)."""
        head = self._pending.pop(slot, None)
        if head is None:
            raise ValueError(f"slot {slot} of connection {self.connection_id} is not open")
        parts = [] if body is None else encode_response(*head, body)
        if slot != self._first_open_slot:
            self._answers[slot] = parts
            return
        self.sender.add(parts)
        slot += 1
        while self._answers and slot in self._answers:
            self.sender.add(self._answers.pop(slot))
            slot += 1
        self._first_open_slot = slot
        if not self.dirty:
            self.dirty = True
            self._server.dirty.append(self)

    def send(self) -> None:
        """Write what is queued, as far as the socket takes it."""
        self.dirty = False
        try:
            done = self.sender.send()
        except SliceCut as error:
            self._server.close(self, str(error), warn=True)
            return
        except StorageError as error:
            self._server.close(self, f"an answer could not be read: {error}", warn=True)
            return
        except OSError as error:
            self._server.close(self, f"connection lost: {error.strerror}")
            return
        except Exception as error:
            self._server.fail(self, error)
            return
        self.last_active_ms = self._server.loop.now_ms
        self._blocked = not done
        if not self._interest & READ and not self._resuming and not self._is_full():
            self._resume_later()
        self._update_interest()

    def disconnect(self) -> None:
        """Let go of the socket and of all memory; only the server calls this."""
        self.is_closed = True
        if self._interest:
            self._server.loop.unwatch(self._fd)
        self._interest = 0
        self._socket.close()
        self.receiver.close()
        self.sender.clear()
        self._pending.clear()
        self._answers.clear()

    # --- bounds ---

    def stop_reading(self) -> None:
        """Leave the socket alone until `resume`."""
        self._resuming = True
        self._update_interest()

    def _is_full(self) -> bool:
        return (
            self._next_slot - self._first_open_slot >= self._max_in_flight
            or self.sender.queued_bytes >= self._max_queued_bytes
        )

    def _resume_later(self) -> None:
        self._resuming = True
        self._server.loop.again(self.resume)

    def _update_interest(self) -> None:
        interest = WRITE if self._blocked else 0
        if not self._resuming and not self._is_full():
            interest |= READ
        if interest == self._interest:
            return
        self._server.loop.rewatch(self._fd, self._interest, interest, self.ready)
        self._interest = interest
