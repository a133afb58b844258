"""ListTransactionsRequest and ListTransactionsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class ListTransactionsRequest(Message):
    """Kafka's ListTransactionsRequest, versions 0-2."""

    __slots__ = ("duration_filter", "producer_id_filters", "state_filters", "transactional_id_pattern")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 66
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("state_filters", "[]string", "0+", "", -1, "", (), None),
        ("producer_id_filters", "[]int64", "0+", "", -1, "", (), None),
        ("duration_filter", "int64", "1+", "", -1, "", -1, None),
        ("transactional_id_pattern", "string", "2+", "2+", -1, "", None, None),
    )

    def __init__(
        self,
        *,
        state_filters: list[str] = EMPTY,
        producer_id_filters: list[int] = EMPTY,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = [] if state_filters is EMPTY else state_filters
        self.producer_id_filters = [] if producer_id_filters is EMPTY else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern


class TransactionState(Message):
    """What ListTransactionsResponse.transaction_states holds."""

    __slots__ = ("producer_id", "transaction_state", "transactional_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("transactional_id", "string", "0+", "", -1, "", "", None),
        ("producer_id", "int64", "0+", "", -1, "", 0, None),
        ("transaction_state", "string", "0+", "", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponse(Message):
    """Kafka's ListTransactionsResponse, versions 0-2."""

    __slots__ = ("error_code", "throttle_time_ms", "transaction_states", "unknown_state_filters")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 66
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("unknown_state_filters", "[]string", "0+", "", -1, "", (), None),
        ("transaction_states", (TransactionState,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = EMPTY,
        transaction_states: list[TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is EMPTY else unknown_state_filters
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states
