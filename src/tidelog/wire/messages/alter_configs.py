"""AlterConfigsRequest and AlterConfigsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class AlterableConfig(Message):
    """What AlterConfigsResource.configs holds."""

    __slots__ = ("name", "value")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("value", "string", "0+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


class AlterConfigsResource(Message):
    """What AlterConfigsRequest.resources holds."""

    __slots__ = ("configs", "resource_name", "resource_type")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("resource_type", "int8", "0+", "", -1, "", 0, None),
        ("resource_name", "string", "0+", "", -1, "", "", None),
        ("configs", (AlterableConfig,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY else configs


class AlterConfigsRequest(Message):
    """Kafka's AlterConfigsRequest, versions 0-2."""

    __slots__ = ("resources", "validate_only")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 33
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("resources", (AlterConfigsResource,), "0+", "", -1, "", (), None),
        ("validate_only", "bool", "0+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        resources: list[AlterConfigsResource] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.validate_only = validate_only


class AlterConfigsResourceResponse(Message):
    """What AlterConfigsResponse.responses holds."""

    __slots__ = ("error_code", "error_message", "resource_name", "resource_type")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", "", None),
        ("resource_type", "int8", "0+", "", -1, "", 0, None),
        ("resource_name", "string", "0+", "", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name


class AlterConfigsResponse(Message):
    """Kafka's AlterConfigsResponse, versions 0-2."""

    __slots__ = ("responses", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "2+"
    API_KEY: ClassVar[int] = 33
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("responses", (AlterConfigsResourceResponse,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY else responses
