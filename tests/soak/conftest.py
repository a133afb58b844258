"""How long, and a node of one's own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nodes import PEERS, Node

# As tests/spark has it: these tests start many JVMs, and none of them lives for long.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture(scope="session")
def minutes() -> float:
    """How long all tests that run for a time may take together."""
    return float(os.environ.get("TIDELOG_SOAK_MINUTES", "60"))


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node of the test's own; a module may set NODE_PROPERTIES for it."""
    peer = PEERS[os.environ.get("BROKER_UNDER_TEST", "tidelog")]
    properties = getattr(request.module, "NODE_PROPERTIES", {})
    with (
        tempfile.TemporaryDirectory(prefix=f"{peer.peer}-") as directory,
        peer(Path(directory), properties=properties) as started,
    ):
        yield started
        started.running.require_running()
