"""DescribeConfigsRequest and DescribeConfigsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class DescribeConfigsResource(Message):
    """What DescribeConfigsRequest.resources holds."""

    __slots__ = ("configuration_keys", "resource_name", "resource_type")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("resource_type", "int8", "0+", "", -1, "", 0, None),
        ("resource_name", "string", "0+", "", -1, "", "", None),
        ("configuration_keys", "[]string", "0+", "0+", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = [] if configuration_keys is EMPTY else configuration_keys


class DescribeConfigsRequest(Message):
    """Kafka's DescribeConfigsRequest, versions 1-4."""

    __slots__ = ("include_documentation", "include_synonyms", "resources")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 32
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("resources", (DescribeConfigsResource,), "0+", "", -1, "", (), None),
        ("include_synonyms", "bool", "1+", "", -1, "", False, None),
        ("include_documentation", "bool", "3+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsResource] = EMPTY,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation


class DescribeConfigsSynonym(Message):
    """What DescribeConfigsResourceResult.synonyms holds."""

    __slots__ = ("name", "source", "value")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "1+", "", -1, "", "", None),
        ("value", "string", "1+", "0+", -1, "", "", None),
        ("source", "int8", "1+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribeConfigsResourceResult(Message):
    """What DescribeConfigsResult.configs holds."""

    __slots__ = (
        "config_source",
        "config_type",
        "documentation",
        "is_sensitive",
        "name",
        "read_only",
        "synonyms",
        "value",
    )
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("value", "string", "0+", "0+", -1, "", "", None),
        ("read_only", "bool", "0+", "", -1, "", False, None),
        ("config_source", "int8", "1+", "", -1, "", -1, None),
        ("is_sensitive", "bool", "0+", "", -1, "", False, None),
        ("synonyms", (DescribeConfigsSynonym,), "1+", "", -1, "", (), None),
        ("config_type", "int8", "3+", "", -1, "", 0, None),
        ("documentation", "string", "3+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = EMPTY,
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = [] if synonyms is EMPTY else synonyms
        self.config_type = config_type
        self.documentation = documentation


class DescribeConfigsResult(Message):
    """What DescribeConfigsResponse.results holds."""

    __slots__ = ("configs", "error_code", "error_message", "resource_name", "resource_type")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", "", None),
        ("resource_type", "int8", "0+", "", -1, "", 0, None),
        ("resource_name", "string", "0+", "", -1, "", "", None),
        ("configs", (DescribeConfigsResourceResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY else configs


class DescribeConfigsResponse(Message):
    """Kafka's DescribeConfigsResponse, versions 1-4."""

    __slots__ = ("results", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (1, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "4+"
    API_KEY: ClassVar[int] = 32
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("results", (DescribeConfigsResult,), "0+", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
