"""UpdateFeaturesRequest and UpdateFeaturesResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class FeatureUpdateKey(Message):
    """What UpdateFeaturesRequest.feature_updates holds."""

    __slots__ = ("allow_downgrade", "feature", "max_version_level", "upgrade_type")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("feature", "string", "0+", "", -1, "", "", None),
        ("max_version_level", "int16", "0+", "", -1, "", 0, None),
        ("allow_downgrade", "bool", "0", "", -1, "", False, None),
        ("upgrade_type", "int8", "1+", "", -1, "", 1, None),
    )

    def __init__(
        self,
        *,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type


class UpdateFeaturesRequest(Message):
    """Kafka's UpdateFeaturesRequest, versions 0-2."""

    __slots__ = ("feature_updates", "timeout_ms", "validate_only")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 57
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("timeout_ms", "int32", "0+", "", -1, "", 60000, None),
        ("feature_updates", (FeatureUpdateKey,), "0+", "", -1, "", (), None),
        ("validate_only", "bool", "1+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is EMPTY else feature_updates
        self.validate_only = validate_only


class UpdatableFeatureResult(Message):
    """What UpdateFeaturesResponse.results holds."""

    __slots__ = ("error_code", "error_message", "feature")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("feature", "string", "0+", "", -1, "", "", None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", "", None),
    )

    def __init__(
        self,
        *,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message


class UpdateFeaturesResponse(Message):
    """Kafka's UpdateFeaturesResponse, versions 0-2."""

    __slots__ = ("error_code", "error_message", "results", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 57
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", "", None),
        ("results", (UpdatableFeatureResult,), "0-1", "", -1, "", (), None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY else results
