"""ListGroupsRequest and ListGroupsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class ListGroupsRequest(Message):
    """Kafka's ListGroupsRequest, versions 0-5."""

    __slots__ = ("states_filter", "types_filter")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 16
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("states_filter", "[]string", "4+", "", -1, "", (), None),
        ("types_filter", "[]string", "5+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        states_filter: list[str] = EMPTY,
        types_filter: list[str] = EMPTY,
    ) -> None:
        self.states_filter = [] if states_filter is EMPTY else states_filter
        self.types_filter = [] if types_filter is EMPTY else types_filter


class ListedGroup(Message):
    """What ListGroupsResponse.groups holds."""

    __slots__ = ("group_id", "group_state", "group_type", "protocol_type")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("protocol_type", "string", "0+", "", -1, "", "", None),
        ("group_state", "string", "4+", "", -1, "", "", None),
        ("group_type", "string", "5+", "", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type


class ListGroupsResponse(Message):
    """Kafka's ListGroupsResponse, versions 0-5."""

    __slots__ = ("error_code", "groups", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 16
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "1+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("groups", (ListedGroup,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is EMPTY else groups
