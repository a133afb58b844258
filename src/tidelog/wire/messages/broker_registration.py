"""BrokerRegistrationRequest and BrokerRegistrationResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class Listener(Message):
    """What BrokerRegistrationRequest.listeners holds."""

    __slots__ = ("host", "name", "port", "security_protocol")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("host", "string", "0+", "", -1, "", "", None),
        ("port", "uint16", "0+", "", -1, "", 0, None),
        ("security_protocol", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        security_protocol: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol


class Feature(Message):
    """What BrokerRegistrationRequest.features holds."""

    __slots__ = ("max_supported_version", "min_supported_version", "name")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("name", "string", "0+", "", -1, "", "", None),
        ("min_supported_version", "int16", "0+", "", -1, "", 0, None),
        ("max_supported_version", "int16", "0+", "", -1, "", 0, None),
    )

    def __init__(
        self,
        *,
        name: str = "",
        min_supported_version: int = 0,
        max_supported_version: int = 0,
    ) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


class BrokerRegistrationRequest(Message):
    """Kafka's BrokerRegistrationRequest, versions 0-4."""

    __slots__ = (
        "broker_id",
        "cluster_id",
        "features",
        "incarnation_id",
        "is_migrating_zk_broker",
        "listeners",
        "log_dirs",
        "previous_broker_epoch",
        "rack",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 62
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("broker_id", "int32", "0+", "", -1, "", 0, None),
        ("cluster_id", "string", "0+", "", -1, "", "", None),
        ("incarnation_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("listeners", (Listener,), "0+", "", -1, "", (), None),
        ("features", (Feature,), "0+", "", -1, "", (), None),
        ("rack", "string", "0+", "0+", -1, "", "", None),
        ("is_migrating_zk_broker", "bool", "1+", "", -1, "", False, None),
        ("log_dirs", "[]uuid", "2+", "", -1, "", (), None),
        ("previous_broker_epoch", "int64", "3+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: bytes = ZERO_UUID,
        listeners: list[Listener] = EMPTY,
        features: list[Feature] = EMPTY,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: list[bytes] = EMPTY,
        previous_broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.incarnation_id = incarnation_id
        self.listeners = [] if listeners is EMPTY else listeners
        self.features = [] if features is EMPTY else features
        self.rack = rack
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.previous_broker_epoch = previous_broker_epoch


class BrokerRegistrationResponse(Message):
    """Kafka's BrokerRegistrationResponse, versions 0-4."""

    __slots__ = ("broker_epoch", "error_code", "throttle_time_ms")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 62
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("broker_epoch", "int64", "0+", "", -1, "", -1, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.broker_epoch = broker_epoch
