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
    """Who there is: brokers on a broker's listener, controllers on a controller's."""
    wanted = request.body.endpoint_type
    served = CONTROLLERS if node.is_controller_listener(request.listener) else BROKERS
    if wanted != served:
        known = wanted in (BROKERS, CONTROLLERS)
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"this listener is a {'controller' if served == CONTROLLERS else 'broker'}'s",
            endpoint_type=served,
        )
    if served == CONTROLLERS:
        leader_id = node.cluster.quorum.leader_id
        return DescribeClusterResponse(
            endpoint_type=served,
            cluster_id=node.cluster_id,
            controller_id=-1 if leader_id is None else leader_id,
            brokers=_controllers(node, request.listener),
        )
    brokers = _brokers(node, request.listener, request.body.include_fenced_brokers)
    return DescribeClusterResponse(
        cluster_id=node.cluster_id,
        controller_id=node.controller_for_clients([one.broker_id for one in brokers if not one.is_fenced]),
        brokers=brokers,
    )


def _brokers(node: Node, listener: str, include_fenced: bool) -> list[DescribeClusterBroker]:
    found = []
    for broker_id, broker in sorted(node.image.brokers.items()):
        endpoint = broker.endpoint(listener)
        if endpoint is not None and (not broker.fenced or include_fenced):
            found.append(
                DescribeClusterBroker(
                    broker_id=broker_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.fenced,
                )
            )
    return found


def _controllers(node: Node, listener: str) -> list[DescribeClusterBroker]:
    found = []
    for voter in node.cluster.quorum.voters:
        peer = node.cluster.quorum.voters.peer(voter.id, listener)
        if peer is not None:
            found.append(DescribeClusterBroker(broker_id=voter.id, host=peer[1], port=peer[2]))
    return found
