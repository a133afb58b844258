"""Three nodes of Apache Kafka behind proxies, for kills of a broker that has others to take over from it.

One node alone will not do where a coordinator is killed between its decision and its markers. It comes back, is fenced
by its own controller for the session of its former self, and takes its partitions, which have no leader then, for
deleted ones: the markers may be skipped for good, whoever the client is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cluster import Cluster, KafkaMember
from tests.spark.sink_faults import Stage, create_topic
from tests.spark.sink_proxy import Proxy, Traps
from tests.support.ports import free_ports

PROPERTIES = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "min.insync.replicas": "2",
}


@contextlib.contextmanager
def three_kafka_nodes(directory: Path) -> Iterator[Stage]:
    """Brokers advertise their proxies to clients only; among themselves they talk directly."""
    cluster = Cluster("kafka", directory, PROPERTIES)
    traps = Traps()
    with contextlib.ExitStack() as opened:
        proxies = []
        for node, port in zip(cluster.nodes.values(), free_ports(len(cluster.nodes)), strict=True):
            (inner,) = free_ports(1)
            assert isinstance(node, KafkaMember)
            node.heap, node.quick_start = "384m", True
            listeners = f"PLAINTEXT://127.0.0.1:{node.client_port},INNER://127.0.0.1:{inner}"
            node.properties |= {
                "listeners": f"{listeners},CONTROLLER://127.0.0.1:{node.controller_port}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},INNER://127.0.0.1:{inner}",
                "inter.broker.listener.name": "INNER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            }
            proxies.append(opened.enter_context(Proxy(port, node.client_port, traps)))
        opened.callback(cluster.end)
        cluster.start()
        create_topic(proxies[0].port, 3)
        by_port = {node.client_port: node for node in cluster.nodes.values()}

        def revive() -> None:
            for node in cluster.nodes.values():
                if node.process is None:
                    node.start()

        stage = Stage(proxies, traps, cluster.bootstrap, lambda port: by_port[port].kill(), revive)
        try:
            yield stage
            stage.settle()
        finally:
            stage.end()
