"""Spark Connect: the formats work there, and what needs the driver says so."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.spark.connect_job import ROWS
from tests.spark.sink_faults import TOPIC, create_topic
from tests.spark.sink_judge import read_committed, require_counted_once
from tests.support.nodes import Node
from tests.support.processes import ManagedProcess

PARTITIONS = 3


def test_a_client_of_spark_connect_reads_and_writes(node: Node, tmp_path: Path) -> None:
    create_topic(node.client_port, 1)
    command = [sys.executable, "-m", "tests.spark.connect_job", node.bootstrap, TOPIC, str(tmp_path / "checkpoint")]
    client = ManagedProcess(command, tmp_path / "client.log")
    assert client.wait(600) == 0, client.tail()
    said = client.tail(200)
    assert f"batch {ROWS}\n" in said
    assert f"stream {ROWS}\n" in said
    for name in ("write", "write_stream"):
        assert f"{name} refused: a client of Spark Connect cannot see" in said
    require_counted_once(read_committed(node.bootstrap, TOPIC, PARTITIONS), PARTITIONS, ROWS)
