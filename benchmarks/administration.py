"""Topics for benchmarks."""

from __future__ import annotations

import time

from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.nodes import Node


def create_topic(node: Node, name: str, partitions: int) -> None:
    """Make a topic and wait until all its partitions have a leader."""
    client = AdminClient({"bootstrap.servers": node.bootstrap})
    client.create_topics([NewTopic(name, partitions, 1)])[name].result(120)
    deadline = time.monotonic() + 120
    while True:
        described = client.list_topics(name, timeout=30).topics[name]
        if len(described.partitions) == partitions and all(each.leader >= 0 for each in described.partitions.values()):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} has no leaders")
        time.sleep(0.01)


def delete_topic(node: Node, name: str) -> None:
    """Delete a topic."""
    client = AdminClient({"bootstrap.servers": node.bootstrap})
    client.delete_topics([name])[name].result(120)
