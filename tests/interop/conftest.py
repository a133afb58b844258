"""One filled node directory, written once and judged in many ways."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interop import stock
from tests.interop import toolbox as toolbox_module
from tests.interop.stock import Stock
from tests.interop.toolbox import Toolbox
from tests.support.nodes import KafkaNode, Node, TidelogNode, peer_under_test


@dataclass
class Filled:
    """A stopped node, what is in it, and a copy of its directory per use."""

    node: Node
    stock: Stock

    def take_over(self, peer: type[Node], directory: Path) -> Node:
        """Another program on a copy of the data: same node id, same ports, as the metadata says."""
        data = self.node.copy_data(directory / "data")
        return peer(
            directory,
            client_port=self.node.client_port,
            controller_port=self.node.controller_port,
            data_directory=data,
        )


@pytest.fixture(scope="session")
def toolbox() -> Toolbox:
    """Kafka's tools in one JVM."""
    return toolbox_module.shared()


@pytest.fixture(scope="session", autouse=True)
def _no_toolbox_left() -> Iterator[None]:
    yield
    toolbox_module.end_shared()


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory for one test."""
    directory = Path(tempfile.mkdtemp(prefix="interop-"))
    yield directory
    shutil.rmtree(directory)


FREQUENT_SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
"""So that there are some: by default the first would come after an hour or 20 MB."""


def _fill(peer: type[Node]) -> Iterator[Filled]:
    directory = Path(tempfile.mkdtemp(prefix=f"interop-{peer.peer}-"))
    try:
        with peer(directory, properties=FREQUENT_SNAPSHOTS) as node:
            contents = stock.fill(node)
        yield Filled(node, contents)
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def filled() -> Iterator[Filled]:
    """A directory written by the broker under test: Tidelog, unless BROKER_UNDER_TEST says Kafka."""
    yield from _fill(peer_under_test())


@pytest.fixture(scope="session")
def filled_by_kafka() -> Iterator[Filled]:
    """A directory written by Apache Kafka."""
    yield from _fill(KafkaNode)


@pytest.fixture(scope="session")
def successor() -> type[Node]:
    """Who is started on a directory of Apache Kafka."""
    return KafkaNode if os.environ.get("BROKER_UNDER_TEST") == "kafka" else TidelogNode
