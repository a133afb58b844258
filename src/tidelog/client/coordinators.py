"""Who looks after a group or a transactional id, and asking it, wherever it has moved to by then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.client.backoff import Deadline, raise_for
from tidelog.client.client import Client
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.message import Message
from tidelog.wire.messages.find_coordinator import FindCoordinatorRequest

GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators, as FindCoordinator numbers them."""
REQUEST_TIMEOUT_MS = 30_000
MOVING = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
"""Ask again: somebody will look after it soon."""


def find_coordinator(client: Client, key: str, kind: int, deadline: Deadline) -> int:
    """The broker that looks after a group or a transactional id; asking makes the internal topic, too."""
    request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
    answer = client.ask(request, timeout_ms=max(1, min(REQUEST_TIMEOUT_MS, deadline.remaining_ms)))
    one = answer.coordinators[0] if answer.coordinators else answer
    raise_for(one.error_code, one.error_message)
    return int(one.node_id)


def wait_for_coordinator(client: Client, key: str, kind: int, deadline: Deadline) -> int:
    """The same, asked again while nobody does."""
    while True:
        try:
            return find_coordinator(client, key, kind, deadline)
        except KafkaError as error:
            if error.code not in MOVING:
                raise
            deadline.pause(error)
            client.turn_elsewhere()


def ask_coordinator(
    client: Client,
    key: str,
    kind: int,
    request: Message,
    code_of: Callable[[Any], int],
    *,
    highest: int | None = None,
    busy: tuple[ErrorCode, ...] = (),
) -> tuple[int, Any]:
    """Ask whoever looks after something, again where it moved or answers one of `busy`; the broker and its answer.

    Other codes are for the caller to read.
    """
    deadline = Deadline(client.timeout_ms)
    while True:
        broker_id = wait_for_coordinator(client, key, kind, deadline)
        try:
            answer = client.connect(broker_id, deadline).call(request, deadline.remaining_ms, highest)
            code = code_of(answer)
            if code in (*MOVING, *busy):
                raise_for(code)
            return broker_id, answer
        except KafkaError as error:
            if error.code not in (*MOVING, *busy, ErrorCode.NETWORK_EXCEPTION, ErrorCode.BROKER_NOT_AVAILABLE):
                raise
            deadline.pause(error)
            client.turn_elsewhere()
