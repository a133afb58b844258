"""A local cluster of real nodes: ready when it says so, seen when it dies, gone when it is stopped."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import SOURCE, Tidelog
from tests.support.processes import wait_until
from tidelog.cli import main
from tidelog.client import Client, Consumer, Producer
from tidelog.client.connection import Connection
from tidelog.verify.cluster import free_base_port
from tidelog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

UP = [sys.executable, "-m", "tidelog", "up"]


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class LocalCluster:
    """A directory and a port for `tidelog up`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_base_port(1)

    @property
    def words(self) -> list[str]:
        return ["--dir", str(self.directory), "--port", str(self.port)]

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def status(self, tidelog: Tidelog) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(tidelog("status", "--dir", self.directory, "--json").out)
        return found

    def assert_gone(self) -> None:
        """Only data and logs are left."""
        assert not is_open(self.port)
        assert sorted(path.name for path in self.directory.iterdir()) == ["node-1"]
        assert sorted(path.name for path in (self.directory / "node-1").iterdir()) == [
            "data",
            "node.log",
            "server.properties",
        ]


@pytest.fixture
def local(tmp_path: Path, tidelog: Tidelog) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path / "cluster")
    yield cluster
    tidelog("down", "--dir", cluster.directory)


def test_ready_means_a_topic_can_be_made_and_written(local: LocalCluster, tidelog: Tidelog) -> None:
    assert tidelog("up", *local.words, "--detach") == (0, f"ready bootstrap={local.bootstrap}\n", "")
    connection = Connection("127.0.0.1", local.port, client_id="test", timeout_ms=5_000)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
    assert [topic.error_code for topic in connection.call(request, 5_000).topics] == [0]
    connection.close()
    with Client(local.bootstrap) as client, Producer(client) as producer:
        producer.send("t", b"x")

    (node,) = local.status(tidelog)
    assert (node["id"], node["port"], node["state"]) == (1, local.port, "running")
    assert isinstance(node["memory_bytes"], int)
    assert node["memory_bytes"] > 5_000_000
    assert tidelog("status", "--dir", local.directory).code == 0

    code, _, err = tidelog("up", *local.words)
    assert code == 4
    assert f"a cluster is running in {local.directory}" in err

    assert tidelog("down", "--dir", local.directory, "--json") == (0, '{"stopped": [1], "killed": []}\n', "")
    local.assert_gone()
    log = (local.directory / "node-1" / "node.log").read_text()
    assert "exit_code=0" in log.splitlines()[-1]


def test_a_killed_node_is_told_and_comes_back_with_its_data(local: LocalCluster, tidelog: Tidelog) -> None:
    tidelog("up", *local.words, "--detach", "--json")
    with Client(local.bootstrap) as client, Producer(client) as producer:
        producer.send("t", b"before")
    pid = local.status(tidelog)[0]["pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: local.status(tidelog)[0]["state"] == "dead", 60, "the death is seen")
    assert "topic-created" in str(local.status(tidelog)[0]["last_log_line"])
    assert tidelog("status", "--dir", local.directory).code == 1

    moved = free_base_port(1)
    assert tidelog("up", "--dir", local.directory, "--port", moved, "--detach").code == 0
    with Client(f"127.0.0.1:{moved}") as client:
        records = Consumer(client, {("t", 0): 0}).read_until({("t", 0): 1})
        assert [record.value for record in records] == [b"before"]


def start(local: LocalCluster, *words: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*UP, *local.words, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"ready bootstrap={local.bootstrap}\n"
    return process


@pytest.mark.parametrize("how", [signal.SIGTERM, "down"])  # Ctrl-C is tried on a terminal, below
def test_the_foreground_stops_its_nodes(local: LocalCluster, tidelog: Tidelog, how: signal.Signals | str) -> None:
    process = start(local)
    if isinstance(how, signal.Signals):
        process.send_signal(how)
    else:
        assert tidelog("down", "--dir", local.directory).out == "stopped 1 of 1 nodes\n"
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
    local.assert_gone()


def test_the_foreground_tells_when_its_node_dies(local: LocalCluster, tidelog: Tidelog) -> None:
    process = start(local)
    pid = local.status(tidelog)[0]["pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert err.startswith("node 1 is dead (killed by SIGKILL): ")
    assert err.count("\n") == 1


def test_a_terminal_gets_a_table(local: LocalCluster) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*UP, *local.words], stdout=theirs, stderr=theirs, stdin=theirs, start_new_session=True)
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + 60
    while seen.count(b"Ctrl-C stops the nodes") < 2 and time.monotonic() < deadline:
        if select.select([ours], [], [], 1)[0]:
            seen += os.read(ours, 10_000)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    os.close(ours)
    text = seen.decode()
    assert text.startswith(f"ready bootstrap={local.bootstrap}\r\n")
    assert re.search(r"\x1b\[\d+A", text), "it is drawn over the last drawing"
    assert [word for word in text.split("\r\n")[2].split() if not word.isdigit()][:2] == [
        "broker+controller",
        "running",
    ]


def test_what_keeps_a_cluster_from_starting_is_one_line(local: LocalCluster, tidelog: Tidelog) -> None:
    with socket.create_server(("127.0.0.1", local.port)):
        code, out, err = tidelog("up", *local.words)
        assert (code, out) == (1, "")
        assert err == (f"tidelog up: port {local.port} (node 1) is in use by another program: choose another --port\n")
    assert not local.directory.exists()
    assert tidelog("up", *local.words, "--detach").code == 0
    assert tidelog("down", "--dir", local.directory).code == 0
    meta = local.directory / "node-1" / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=9"))
    code, out, err = tidelog("up", *local.words)
    assert (code, out) == (1, "")
    assert err.startswith("tidelog up: node 1 ended (exit code 4): tidelog node: ")
    assert not is_open(local.port)
    assert not (local.directory / "tidelog.json").exists()


# --- commands against one cluster ---


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory, port = str(tmp_path_factory.mktemp("shared")), str(free_base_port(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", SOURCE)
        assert main(["up", "--dir", directory, "--port", port, "--detach"]) == 0
    yield f"127.0.0.1:{port}"
    main(["down", "--dir", directory])


@pytest.fixture
def cluster(bootstrap: str, tidelog: Tidelog, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TIDELOG_BOOTSTRAP", bootstrap)
    return bootstrap


def test_a_topic_from_its_making_to_its_end(cluster: str, tidelog: Tidelog) -> None:
    made = tidelog("topics", "create", "orders", "--partitions", "3", "--config", "retention.ms=60000")
    assert made == (0, "created orders: 3 partitions, replication factor 1\n", "")
    code, _, err = tidelog("topics", "create", "orders")
    assert code == 1
    assert err.startswith("tidelog topics create: TOPIC_ALREADY_EXISTS: ")
    assert tidelog("topics", "create", "orders", "--if-not-exists").out == "orders exists already\n"
    would = tidelog("topics", "create", "later", "--validate-only").out
    assert would == "would create later: 1 partition, replication factor 1\n"
    assert tidelog("topics", "list").out == "orders\n"
    assert tidelog("topics", "list", "--json").out == '[{"topic": "orders", "partitions": 3, "internal": false}]\n'

    assert tidelog("produce", "orders", "--partition", "1", stdin=b"a\nb\n").code == 0
    lines = tidelog("topics", "describe", "orders").out.splitlines()
    assert lines[0].startswith("orders  id ")
    assert lines[0].endswith(", 3 partitions, replication factor 1")
    assert lines[1] == "  retention.ms=60000"
    assert lines[2].split() == ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "ELR", "OFFLINE", "START", "END"]
    assert lines[4].split() == ["1", "1", "0", "1", "1", "-", "-", "0", "2"]
    (topic,) = json.loads(tidelog("topics", "describe", "--json").out)
    assert topic["partitions"][1]["end_offset"] == 2
    assert topic["configs"] == {"retention.ms": "60000"}

    altered = tidelog("topics", "alter", "orders", "--partitions", "4", "--config", "segment.bytes=2097152")
    assert altered.out == "altered orders: segment.bytes=2097152, 4 partitions\n"
    code, _, err = tidelog("topics", "alter", "orders", "--partitions", "2", "--remove-config", "segment.bytes")
    assert (code, "INVALID_PARTITIONS" in err) == (1, True)
    (topic,) = json.loads(tidelog("topics", "describe", "orders", "--json").out)
    assert (len(topic["partitions"]), topic["configs"]["segment.bytes"]) == (4, "2097152")

    assert tidelog("topics", "delete", "orders").out == "deleted orders\n"
    assert "UNKNOWN_TOPIC_OR_PARTITION" in tidelog("topics", "delete", "orders").err
    assert tidelog("topics", "delete", "orders", "--if-exists").out == "there is no topic orders\n"
    assert tidelog("topics", "list").out == ""


def test_one_refusal_neither_hides_nor_stops_the_others(cluster: str, tidelog: Tidelog) -> None:
    code, out, err = tidelog("topics", "create", "one", "no good", "two")
    assert (code, out.splitlines()) == (
        1,
        ["created one: 1 partition, replication factor 1", "created two: 1 partition, replication factor 1"],
    )
    assert err.startswith("tidelog topics create: INVALID_TOPIC_EXCEPTION: ")
    code, out, err = tidelog("topics", "delete", "one", "none", "two", "--json")
    assert code == 1
    assert [fields.get("deleted", fields.get("error")) for fields in json.loads(out)] == [
        True,
        "UNKNOWN_TOPIC_OR_PARTITION",
        True,
    ]


def test_settings_of_topics_and_brokers(cluster: str, tidelog: Tidelog) -> None:
    tidelog("topics", "create", "set")
    code, out, err = tidelog(
        "configs", "alter", "--topic", "set", "--set", "retention.ms=5", "--set", "segment.ms=7000"
    )
    assert (code, err) == (0, "")
    assert out == "altered topic set: retention.ms=5, segment.ms=7000\n"
    rows = [line.split() for line in tidelog("configs", "describe", "--topic", "set").out.splitlines()]
    assert ["retention.ms", "5", "topic"] in rows
    code, _, err = tidelog("configs", "alter", "--topic", "set", "--set", "retention.ms=9", "--set", "retention.mss=1")
    assert (code, err.startswith("tidelog configs alter: INVALID_CONFIG: ")) == (1, True)
    assert tidelog("configs", "describe", "--topic", "set", "retention.ms", "--json").out.startswith(
        '[{"name": "retention.ms", "value": "5", "source": "topic", "read_only": false'
    )
    assert tidelog("configs", "delete", "--topic", "set", "retention.ms").code == 0
    found = json.loads(tidelog("configs", "describe", "--topic", "set", "retention.ms", "--json").out)
    assert found[0]["source"] == "default"
    code, out, err = tidelog("configs", "alter", "--topic", "set", "--set", "preallocate=true", "--json")
    assert (code, json.loads(out)["applied"]) == (0, True)
    assert err.startswith("tidelog configs alter: warning: preallocate has no effect")
    assert "has no setting 'speed'" in tidelog("configs", "describe", "--topic", "set", "speed").err
    assert "is named twice" in tidelog("configs", "alter", "--brokers", "--set", "a=1", "--delete", "a").err

    broker = tidelog("configs", "describe", "--broker", "1")
    assert ["node.id", "1", "properties", "file"] in [line.split() for line in broker.out.splitlines()]
    assert tidelog("configs", "alter", "--brokers", "--set", "log.retention.ms=99000").code == 0
    found = json.loads(tidelog("configs", "describe", "--topic", "set", "retention.ms", "--json").out)
    assert (found[0]["value"], found[0]["source"]) == ("99000", "cluster, dynamic")
    code, _, err = tidelog("configs", "describe", "--broker", "7")
    assert (code, err) == (1, "tidelog configs describe: BROKER_NOT_AVAILABLE: there is no broker 7 in the cluster\n")


def test_records_through_a_real_node(cluster: str, tidelog: Tidelog) -> None:
    for compression in ("none", "gzip", "snappy", "lz4", "zstd"):
        words = ["--key-separator", "=", "--compression", compression, "--idempotent"]
        assert tidelog("produce", "through", *words, stdin=f"k={compression}\n".encode()).code == 0
    assert tidelog("consume", "through").out.split() == ["none", "gzip", "snappy", "lz4", "zstd"]
    line = json.loads(tidelog("consume", "through", "--from", "4", "--json-lines").out)
    assert (line["key"], line["value"], line["offset"]) == ("k", "zstd", 4)
    assert tidelog("consume", "through", "--from", "@1", "--max", "2").out == "none\ngzip\n"
    follower = subprocess.Popen(
        [sys.executable, "-m", "tidelog", "consume", "through", "--follow", "--from", "latest", "--max", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        # "latest" is wherever the end is when it has connected: write until it has seen something.
        while follower.poll() is None:
            tidelog("produce", "through", stdin=b"live\n")
        assert follower.communicate()[0] == "live\n"
    finally:
        follower.kill()
        follower.wait()
