"""How long, and a node of one's own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.nodes import Node, passing_node, peer_under_test

# As tests/spark has it: these tests start many JVMs, and none of them lives for long.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def minutes() -> float:
    """How long all tests that run for a time may take together."""
    return float(os.environ.get("TIDELOG_SOAK_MINUTES", "60"))


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node of the test's own; a module may set NODE_PROPERTIES for it."""
    with passing_node(peer_under_test(), getattr(request.module, "NODE_PROPERTIES", {})) as started:
        yield started
