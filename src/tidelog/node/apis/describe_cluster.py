"""DescribeCluster, versions 0 to 2: the brokers or the controllers of the cluster (KIP-700, KIP-919)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse

if TYPE_CHECKING:
    from tidelog.node.node import Node

API_KEY = ApiKey.DESCRIBE_CLUSTER
VERSIONS = (0, 2)
BROKERS, CONTROLLERS = 1, 2


def handle(node: Node, request: Request) -> DescribeClusterResponse:
    """Who there is, as seen through the listener the request came by."""
    body = request.body
    if body.endpoint_type != BROKERS:
        known = body.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="this listener is a broker's",
            endpoint_type=BROKERS,
        )
    brokers = []
    for broker_id, broker in sorted(node.image.brokers.items()):
        endpoint = broker.endpoint(request.listener)
        if endpoint is not None and (not broker.fenced or body.include_fenced_brokers):
            brokers.append(
                DescribeClusterBroker(
                    broker_id=broker_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.fenced,
                )
            )
    return DescribeClusterResponse(
        cluster_id=node.cluster_id, controller_id=node.controller_for_clients(), brokers=brokers
    )
