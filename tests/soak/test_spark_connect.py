"""Spark Connect: the formats work there, and what needs the driver says so."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.clients import confluent
from tests.spark.connect_job import ROWS
from tests.spark.sink_faults import TOPIC, create_topic
from tests.spark.sink_judge import read_committed, require_counted_once
from tests.support.nodes import Node
from tests.support.processes import ManagedProcess

COPY = "copied"
PARTITIONS = 3


def test_a_client_of_spark_connect_reads_and_writes(node: Node, tmp_path: Path) -> None:
    create_topic(node.client_port, 1)
    confluent.create_topic(node, COPY, PARTITIONS)
    words = (node.bootstrap, TOPIC, COPY, str(tmp_path / "checkpoint"))
    command = [sys.executable, "-m", "tests.spark.connect_job", *words]
    client = ManagedProcess(command, tmp_path / "client.log")
    assert client.wait(600) == 0, client.tail()
    said = client.log_file.read_text(errors="replace")
    assert f"batch {ROWS}\n" in said
    assert f"stream {ROWS}\n" in said
    for name in ("write", "write_stream"):
        assert f"{name} refused: a client of Spark Connect cannot see" in said
    assert said.count("together ended: True\n") == 2
    refused = r"apart refused: .*(another task writes there too|tasks wrote to|by another task that failed)"
    assert re.search(refused, said, re.DOTALL), said[-4000:]
    assert f"copied {ROWS}\n" in said
    for topic in (TOPIC, COPY):
        require_counted_once(read_committed(node.bootstrap, topic, PARTITIONS), PARTITIONS, ROWS)
