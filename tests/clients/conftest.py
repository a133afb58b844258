"""The node under test, and topics nobody else uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.clients import confluent
from tests.support.nodes import Node, passing_node, peer_under_test

TopicMaker = Callable[..., str]


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """One node for all tests of a module: Tidelog, unless BROKER_UNDER_TEST asks for Apache Kafka.

    A module may set NODE_PROPERTIES for it.
    """
    with passing_node(peer_under_test(), getattr(request.module, "NODE_PROPERTIES", {})) as started:
        yield started


@pytest.fixture
def make_topic(node: Node, request: pytest.FixtureRequest) -> TopicMaker:
    """Makes a topic named after the test; a second one in the same test gets a number."""
    made: list[str] = []

    def make(partitions: int = 1, **config: str) -> str:
        plain = "".join(each if each.isalnum() or each in "_-." else "-" for each in request.node.name)
        name = f"{plain}-{len(made)}" if made else plain
        made.append(name)
        settings = {key.replace("_", "."): value for key, value in config.items()}
        confluent.create_topic(node, name, partitions, settings)
        return name

    return make
