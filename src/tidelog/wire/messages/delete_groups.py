"""DeleteGroupsRequest and DeleteGroupsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class DeleteGroupsRequest(Message):
    """Kafka's DeleteGroupsRequest, versions 0-2."""

    __slots__ = ("groups_names",)
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 42
    FIELDS: ClassVar[tuple[Field, ...]] = (("groups_names", "[]string", "0+", "", -1, "", (), None),)

    def __init__(
        self,
        *,
        groups_names: list[str] = EMPTY,
    ) -> None:
        self.groups_names = [] if groups_names is EMPTY else groups_names


class DeletableGroupResult(Message):
    """What DeleteGroupsResponse.results holds."""

    __slots__ = ("error_code", "group_id")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("group_id", "string", "0+", "", -1, "", "", None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code


class DeleteGroupsResponse(Message):
    """Kafka's DeleteGroupsResponse, versions 0-2."""

    __slots__ = ("results", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 42
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("results", (DeletableGroupResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
