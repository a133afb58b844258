"""The node under test, and topics nobody else uses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients import confluent
from tests.support.nodes import PEERS, Node

TopicMaker = Callable[..., str]


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """One node for all tests of a module: Tidelog, unless BROKER_UNDER_TEST asks for Apache Kafka.

    A module may set NODE_PROPERTIES for it.
    """
    peer = PEERS[os.environ.get("BROKER_UNDER_TEST", "tidelog")]
    properties = getattr(request.module, "NODE_PROPERTIES", {})
    with (
        tempfile.TemporaryDirectory(prefix=f"{peer.peer}-") as directory,
        peer(Path(directory), properties=properties) as started,
    ):
        yield started
        started.running.require_running()


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
