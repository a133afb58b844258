"""RegisterBrokerRecord.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, ZERO_UUID, Field, Message


class BrokerEndpoint(Message):
    """What RegisterBrokerRecord.end_points holds."""

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


class BrokerFeature(Message):
    """What RegisterBrokerRecord.features holds."""

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


class RegisterBrokerRecord(Message):
    """Kafka's RegisterBrokerRecord, versions 0-4."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "cordoned_log_dirs",
        "end_points",
        "features",
        "fenced",
        "in_controlled_shutdown",
        "incarnation_id",
        "is_migrating_zk_broker",
        "log_dirs",
        "rack",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("broker_id", "int32", "0+", "", -1, "", 0, None),
        ("is_migrating_zk_broker", "bool", "2+", "", -1, "", False, None),
        ("incarnation_id", "uuid", "0+", "", -1, "", ZERO_UUID, None),
        ("broker_epoch", "int64", "0+", "", -1, "", 0, None),
        ("end_points", (BrokerEndpoint,), "0+", "", -1, "", (), None),
        ("features", (BrokerFeature,), "0+", "", -1, "", (), None),
        ("rack", "string", "0+", "0+", -1, "", "", None),
        ("fenced", "bool", "0+", "", -1, "", True, None),
        ("in_controlled_shutdown", "bool", "1+", "", -1, "", False, None),
        ("log_dirs", "[]uuid", "3+", "", 0, "3+", (), None),
        ("cordoned_log_dirs", "[]uuid", "4+", "4+", 1, "4+", None, None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: bytes = ZERO_UUID,
        broker_epoch: int = 0,
        end_points: list[BrokerEndpoint] = EMPTY,
        features: list[BrokerFeature] = EMPTY,
        rack: str | None = "",
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[bytes] = EMPTY,
        cordoned_log_dirs: list[bytes] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.incarnation_id = incarnation_id
        self.broker_epoch = broker_epoch
        self.end_points = [] if end_points is EMPTY else end_points
        self.features = [] if features is EMPTY else features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
