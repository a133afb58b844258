"""DescribeClusterRequest and DescribeClusterResponse.

Written by tools/generate_messages.py: change that, not this.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.message import EMPTY, Field, Message


class DescribeClusterRequest(Message):
    """Kafka's DescribeClusterRequest, versions 0-2."""

    __slots__ = ("endpoint_type", "include_cluster_authorized_operations", "include_fenced_brokers")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 60
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("include_cluster_authorized_operations", "bool", "0+", "", -1, "", False, None),
        ("endpoint_type", "int8", "1+", "", -1, "", 1, None),
        ("include_fenced_brokers", "bool", "2+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers


class DescribeClusterBroker(Message):
    """What DescribeClusterResponse.brokers holds."""

    __slots__ = ("broker_id", "host", "is_fenced", "port", "rack")
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("broker_id", "int32", "0+", "", -1, "", 0, None),
        ("host", "string", "0+", "", -1, "", "", None),
        ("port", "int32", "0+", "", -1, "", 0, None),
        ("rack", "string", "0+", "0+", -1, "", None, None),
        ("is_fenced", "bool", "2+", "", -1, "", False, None),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced


class DescribeClusterResponse(Message):
    """Kafka's DescribeClusterResponse, versions 0-2."""

    __slots__ = (
        "brokers",
        "cluster_authorized_operations",
        "cluster_id",
        "controller_id",
        "endpoint_type",
        "error_code",
        "error_message",
        "throttle_time_ms",
    )
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = 60
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("throttle_time_ms", "int32", "0+", "", -1, "", 0, None),
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", None, None),
        ("endpoint_type", "int8", "1+", "", -1, "", 1, None),
        ("cluster_id", "string", "0+", "", -1, "", "", None),
        ("controller_id", "int32", "0+", "", -1, "", -1, None),
        ("brokers", (DescribeClusterBroker,), "0+", "", -1, "", (), None),
        ("cluster_authorized_operations", "int32", "0+", "", -1, "", -2147483648, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is EMPTY else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
