"""ApiVersionsRequest and ApiVersionsResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class ApiVersionsRequest(Message):
    """Kafka's ApiVersionsRequest, versions 0-4."""

    __slots__ = ("client_software_name", "client_software_version")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 18
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("client_software_name", "string", "3+", "", -1, "", "", None),
        ("client_software_version", "string", "3+", "", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version


class ApiVersion(Message):
    """What ApiVersionsResponse.api_keys holds."""

    __slots__ = ("api_key", "max_version", "min_version")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("api_key", "int16", "0+", "", -1, "", 0, None),
        ("min_version", "int16", "0+", "", -1, "", 0, None),
        ("max_version", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


class SupportedFeatureKey(Message):
    """What ApiVersionsResponse.supported_features holds."""

    __slots__ = ("max_version", "min_version", "name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "3+", "", -1, "", "", None),
        ("min_version", "int16", "3+", "", -1, "", 0, None),
        ("max_version", "int16", "3+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


class FinalizedFeatureKey(Message):
    """What ApiVersionsResponse.finalized_features holds."""

    __slots__ = ("max_version_level", "min_version_level", "name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "3+", "", -1, "", "", None),
        ("max_version_level", "int16", "3+", "", -1, "", 0, None),
        ("min_version_level", "int16", "3+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


class ApiVersionsResponse(Message):
    """Kafka's ApiVersionsResponse, versions 0-4."""

    __slots__ = (
        "api_keys",
        "error_code",
        "finalized_features",
        "finalized_features_epoch",
        "supported_features",
        "throttle_time_ms",
        "zk_migration_ready",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "3+"
    API_KEY: ClassVar[int] = 18
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("api_keys", (ApiVersion,), "0+", "", -1, "", (), None),
        ("throttle_time_ms", "int32", "1+", "", -1, "", 0, None),
        ("supported_features", (SupportedFeatureKey,), "3+", "", 0, "3+", (), None),
        ("finalized_features_epoch", "int64", "3+", "", 1, "3+", -1, None),
        ("finalized_features", (FinalizedFeatureKey,), "3+", "", 2, "3+", (), None),
        ("zk_migration_ready", "bool", "3+", "", 3, "3+", False, None),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] = EMPTY,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = EMPTY,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = EMPTY,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is EMPTY else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is EMPTY else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is EMPTY else finalized_features
        self.zk_migration_ready = zk_migration_ready
