"""Apache Kafka's administrative programs against three nodes, through faults where they are made for faults."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.cluster.support import ask, cluster_of
from tests.interop.cluster import TOOLS, WAIT_S, Operator
from tests.interop.toolbox import Toolbox
from tests.support import java
from tests.support.processes import wait_until
from tidelog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)


@pytest.fixture(scope="module")
def operator(toolbox: Toolbox) -> Iterator[Operator]:
    """One cluster for all of them; each test leaves it whole."""
    with tempfile.TemporaryDirectory(prefix="interop-") as scratch, cluster_of(3) as cluster:
        yield Operator(cluster, toolbox, Path(scratch))


@pytest.fixture(autouse=True)
def healed(operator: Operator) -> Iterator[None]:
    """A test that fails leaves no node down for the next one."""
    yield
    operator.cluster.heal()
    operator.cluster.wait_ready()


def test_topics(operator: Operator) -> None:
    named = ("--topic", "orders")
    made = operator.topics("--create", *named, "--partitions", "3", "--replication-factor", "3")
    assert "Created topic orders" in made
    assert "already exists" in operator.topics("--create", *named, expect_failure=True)
    too_many = ("--create", "--topic", "copies", "--partitions", "1", "--replication-factor", "4")
    assert "replication factor" in operator.topics(*too_many, expect_failure=True)
    partitions = operator.partitions("orders")
    assert len(partitions) == 3
    assert all(sorted(each["replicas"]) == [1, 2, 3] == sorted(each["isr"]) for each in partitions.values())
    assert sorted(each["leader"][0] for each in partitions.values()) == [1, 2, 3], "spread evenly"
    operator.topics("--alter", *named, "--partitions", "6")
    assert len(operator.partitions("orders")) == 6
    assert "orders" in operator.topics("--list").splitlines()
    operator.topics("--delete", *named)
    assert "orders" not in operator.topics("--list").splitlines()


def test_what_is_wrong_with_topics_while_a_node_is_down(operator: Operator) -> None:
    operator.make("pairs", "3:1", "min.insync.replicas=2")
    operator.make("alone", "3")
    operator.make("well", "1:2", "min.insync.replicas=1")
    asked = {
        "under-replicated": "--under-replicated-partitions",
        "at-min": "--at-min-isr-partitions",
        "under-min": "--under-min-isr-partitions",
        "unavailable": "--unavailable-partitions",
    }

    def said() -> dict[str, set[str]]:
        answers = {name: operator.topics("--describe", option) for name, option in asked.items()}
        return {name: set(re.findall(r"Topic: (pairs|alone|well)\b", answer)) for name, answer in answers.items()}

    healthy = said()
    assert healthy == {
        "under-replicated": set(),
        "at-min": {"pairs", "alone"},
        "under-min": set(),
        "unavailable": set(),
    }
    operator.cluster.kill(3)
    expected = {
        "under-replicated": {"pairs", "alone"},
        "at-min": set(),
        "under-min": {"pairs", "alone"},
        "unavailable": {"alone"},
    }
    wait_until(lambda: said() == expected, WAIT_S, "the tool sees what a dead node leaves")
    endpoints = operator.cluster_tool("list-endpoints", "--include-fenced-brokers")
    assert re.search(r"^3\s.*\bfenced", endpoints, re.MULTILINE)
    assert not re.search(r"^3\s", operator.cluster_tool("list-endpoints"), re.MULTILINE)
    operator.cluster.start(3)
    wait_until(lambda: said() == healthy, WAIT_S, "all is well again")
    operator.topics("--delete", "--topic", "pairs|alone|well")


def test_configs(operator: Operator) -> None:
    operator.make("configured", "1:2:3", "retention.ms=1000000")
    topic = ("--entity-type", "topics", "--entity-name", "configured")
    operator.configs("--alter", *topic, "--add-config", "max.message.bytes=40000,cleanup.policy=[compact,delete]")
    shown = operator.configs("--describe", *topic)
    assert {"max.message.bytes=40000", "cleanup.policy=compact,delete", "retention.ms=1000000"} <= set(shown.split())
    operator.configs("--alter", *topic, "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in operator.configs("--describe", *topic)
    assert "retention.ms" in operator.configs(
        "--alter", *topic, "--add-config", "retention.ms=soon", expect_failure=True
    )
    one, everyone = ("--entity-type", "brokers", "--entity-name", "2"), ("--entity-type", "brokers", "--entity-default")
    operator.configs("--alter", *everyone, "--add-config", "message.max.bytes=3000000")
    operator.configs("--alter", *one, "--add-config", "message.max.bytes=2000000")
    assert "message.max.bytes=3000000" in operator.configs("--describe", *everyone)
    at_two = operator.configs("--describe", *one)
    assert (
        "DYNAMIC_BROKER_CONFIG:message.max.bytes=2000000, DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes=3000000"
        in (at_two)
    )
    elsewhere = operator.configs("--describe", "--all", "--entity-type", "brokers", "--entity-name", "3")
    assert re.search(r"message\.max\.bytes=3000000", elsewhere)
    assert "node.id=3" in elsewhere
    from_controller = operator.ask_controller("kafka.admin.ConfigCommand", "--describe", "--all", *one[:3], "1")
    assert "message.max.bytes=3000000" in from_controller
    assert "fixed when the node starts" in operator.configs(
        "--alter", *one, "--add-config", "broker.rack=attic", expect_failure=True
    )
    operator.configs("--alter", *one, "--delete-config", "message.max.bytes")
    operator.configs("--alter", *everyone, "--delete-config", "message.max.bytes")
    assert "message.max.bytes" not in operator.configs("--describe", *one) + operator.configs("--describe", *everyone)


def test_features(operator: Operator) -> None:
    described = operator.features("describe")
    levels = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", described))
    assert levels == {
        "eligible.leader.replicas.version": "1",
        "group.version": "1",
        "kraft.version": "1",
        "metadata.version": "4.3-IV0",
        "transaction.version": "2",
    }
    assert operator.ask_controller(f"{TOOLS}.FeatureCommand", "describe").count("Feature: ") == len(levels)
    assert "can be downgraded" in operator.features("downgrade", "--feature", "group.version=0", "--dry-run")
    operator.features("downgrade", "--feature", "group.version=0")
    assert re.search(r"group\.version.*FinalizedVersionLevel: 0", operator.features("describe"))
    operator.features("upgrade", "--feature", "group.version=1", "--feature", "kraft.version=1")
    assert dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", operator.features("describe"))) == levels
    for wrong, complaint in (
        (("upgrade", "--feature", "group.version=9"), "only supports versions 0-1"),
        (("upgrade", "--feature", "share.version=1"), "does not support the given feature"),
        (("downgrade", "--feature", "kraft.version=0"), "kraft.version"),
        (("downgrade", "--release-version", "4.0-IV0"), "metadata.version"),
    ):
        assert complaint in operator.features(*wrong, expect_failure=True)
    assert dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", operator.features("describe"))) == levels


def test_elections(operator: Operator) -> None:
    operator.make("led", "1:2:3,2:3:1,3:1:2")
    everywhere = {0: [1], 1: [2], 2: [3]}
    operator.cluster.kill(2)
    wait_until(lambda: operator.partitions("led")[1]["leader"] == [3], WAIT_S, "node 3 leads for node 2")
    named = ("--election-type", "preferred", "--topic", "led", "--partition", "1")
    assert "PreferredLeaderNotAvailable" in operator.elect(*named, expect_failure=True)
    operator.cluster.start(2)
    operator.wait_in_sync("led")
    assert operator.partitions("led")[1]["leader"] == [3], "nobody has asked yet"
    said = operator.elect("--election-type", "preferred", "--all-topic-partitions")
    assert "led-1" in said
    operator.wait_leaders("led", everywhere)
    assert "Valid replica already elected" in operator.elect(*named)
    asked = operator.file("elect.json", {"partitions": [{"topic": "led", "partition": 0}]})
    assert "Valid replica already elected" in operator.elect("--election-type", "unclean", "--path-to-json-file", asked)
    operator.topics("--delete", "--topic", "led")


def test_an_unclean_election(operator: Operator) -> None:
    """The whole ISR is dead and a replica outside it lives: it leads when an operator says so, and not before."""
    operator.make("risky", "2:3", "min.insync.replicas=1")
    operator.write("risky", 10, 1)
    operator.cluster.kill(3)
    wait_until(lambda: operator.partitions("risky")[0]["isr"] == [2], WAIT_S, "node 3 is out of the ISR")
    operator.write("risky", 10, 1)
    operator.cluster.kill(2)
    operator.cluster.start(3)
    wait_until(lambda: operator.partitions("risky")[0]["leader"] == [], WAIT_S, "nobody leads")
    wait_until(
        lambda: re.search(r"^3\s.*unfenced", operator.cluster_tool("list-endpoints"), re.MULTILINE) is not None,
        WAIT_S,
        "node 3 is in service",
    )
    named = ("--topic", "risky", "--partition", "0")
    assert operator.elect("--election-type", "preferred", *named, expect_failure=True)
    assert "risky-0" in operator.elect("--election-type", "unclean", *named)
    operator.wait_leaders("risky", {0: [3]})
    operator.cluster.start(2)
    operator.wait_in_sync("risky")
    ends = operator.tool("GetOffsetShell", "--topic", "risky")
    assert ends.strip() == "risky:0:10", "what only node 2 had is gone, as was asked for"
    operator.topics("--delete", "--topic", "risky")


def test_reassignment(operator: Operator) -> None:
    operator.make("moved", "1:2,2:1")
    operator.write("moved", 2_000, 2)
    wanted = operator.file("topics.json", {"version": 1, "topics": [{"topic": "moved"}]})
    proposed = operator.reassign("--generate", "--topics-to-move-json-file", wanted, "--broker-list", "2,3")
    plan = json.loads(proposed.splitlines()[-1])
    assert {broker for each in plan["partitions"] for broker in each["replicas"]} == {2, 3}
    with_file = ("--reassignment-json-file", operator.file("plan.json", plan))
    said = operator.reassign("--execute", *with_file, "--throttle", "20000000")
    assert "Successfully started partition reassignments for moved-0,moved-1" in said
    assert "The inter-broker throttle limit was set to 20000000 B/s" in said
    wait_until(
        lambda: operator.reassign("--verify", *with_file).count("is completed") == 2, WAIT_S, "the moves are done"
    )
    moved = {each["partition"]: each["replicas"] for each in plan["partitions"]}
    assert {index: each["replicas"] for index, each in operator.partitions("moved").items()} == moved
    operator.wait_in_sync("moved")
    left = operator.configs("--describe", "--entity-type", "topics", "--entity-name", "moved")
    assert "throttled" not in left, "--verify takes the throttle away"
    assert operator.tool("GetOffsetShell", "--topic", "moved").split() == ["moved:0:1000", "moved:1:1000"]
    assert "No partition reassignments found" in operator.reassign("--list")


def test_a_reassignment_with_a_throttle(operator: Operator) -> None:
    operator.make("throttled", "1:2")
    operator.write("throttled", 3_000, 1, size=1_000)
    plan = {"version": 1, "partitions": [{"topic": "throttled", "partition": 0, "replicas": [1, 3]}]}
    with_file = ("--reassignment-json-file", operator.file("throttled.json", plan))
    said = operator.reassign("--execute", *with_file, "--throttle", "1000")
    assert "inter-broker throttle limit was set to 1000 B/s" in said
    broker = operator.configs("--describe", "--entity-type", "brokers", "--entity-name", "3")
    assert "follower.replication.throttled.rate=1000" in broker
    topic = operator.configs("--describe", "--entity-type", "topics", "--entity-name", "throttled")
    assert "leader.replication.throttled.replicas=0:1,0:2" in topic
    assert "follower.replication.throttled.replicas=0:3" in topic
    assert "is still in progress" in operator.reassign("--verify", *with_file), "3 MB would take most of an hour"
    operator.reassign("--execute", *with_file, "--additional", "--throttle", "100000000")
    wait_until(
        lambda: "is completed" in operator.reassign("--verify", *with_file), WAIT_S, "the move is done, let loose"
    )
    assert sorted(operator.partitions("throttled")[0]["isr"]) == [1, 3]
    left = operator.configs("--describe", "--entity-type", "brokers", "--entity-name", "3")
    left += operator.configs("--describe", "--entity-type", "topics", "--entity-name", "throttled")
    assert "throttled.r" not in left, "verify takes the throttle off"


def test_a_reassignment_that_hangs_is_cancelled(operator: Operator) -> None:
    operator.make("stuck", "1:2")
    operator.write("stuck", 100, 1)
    operator.cluster.kill(3)
    wait_until(lambda: "unfenced" not in _line_of(operator, 3), WAIT_S, "node 3 is fenced")
    plan = {"version": 1, "partitions": [{"topic": "stuck", "partition": 0, "replicas": [1, 3]}]}
    with_file = ("--reassignment-json-file", operator.file("stuck.json", plan))
    assert "Unknown broker id 3" in operator.reassign("--execute", *with_file, expect_failure=True)
    # The tool wants to see node 3 alive; the controller, as Kafka's, does not insist on that.
    move = ReassignablePartition(partition_index=0, replicas=[1, 3])
    topic = ReassignableTopic(name="stuck", partitions=[move])
    answer = ask(operator.cluster, AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[topic]))
    assert answer.responses[0].partitions[0].error_code == 0
    assert re.search(r"stuck-0: replicas: 1,3,2\. adding: 3\. removing: 2\.", operator.reassign("--list"))
    assert "is still in progress" in operator.reassign("--verify", *with_file)
    assert "there is an existing partition assignment" in operator.reassign(
        "--execute", *with_file, expect_failure=True
    )
    # Without the option it would take the throttle off each broker, the dead one too, and wait for that.
    said = operator.reassign("--cancel", *with_file, "--preserve-throttles")
    assert "Successfully cancelled partition reassignment for: stuck-0" in said
    assert "No partition reassignments found" in operator.reassign("--list")
    assert operator.partitions("stuck")[0]["replicas"] == [1, 2]
    operator.cluster.start(3)
    operator.cluster.wait_ready()
    operator.write("stuck", 100, 1)
    operator.topics("--delete", "--topic", "stuck")


def _line_of(operator: Operator, broker_id: int) -> str:
    endpoints = operator.cluster_tool("list-endpoints", "--include-fenced-brokers")
    return next(line for line in endpoints.splitlines() if line.startswith(f"{broker_id} "))


def test_the_cluster(operator: Operator) -> None:
    cluster = operator.cluster
    stored = {
        re.search(r"^cluster\.id=(\S+)", Path(node.data_directory, "meta.properties").read_text(), re.MULTILINE)[1]  # type: ignore[index]
        for node in cluster.plan.nodes
    }
    assert stored == {operator.cluster_tool("cluster-id").split()[-1]}
    endpoints = operator.cluster_tool("list-endpoints")
    for node in cluster.plan.nodes:
        assert re.search(rf"^{node.node_id}\s+127\.0\.0\.1\s+{node.port}\s", endpoints, re.MULTILINE)
    versions = operator.tool("BrokerApiVersionsCommand")
    assert len(re.findall(r"\(id: [123] rack: null isFenced: false\)", versions)) == 3
    assert len(re.findall(r"AlterPartitionReassignments\(45\): 0 to 1", versions)) == 3
    assert "not currently registered" in operator.cluster_tool("unregister", "--id", "99", expect_failure=True)


def test_log_dirs_and_offsets(operator: Operator) -> None:
    operator.make("sized", "1:2:3,2:3:1")
    operator.write("sized", 1_000, 2)
    operator.wait_in_sync("sized")
    assert operator.tool("GetOffsetShell", "--topic", "sized").split() == ["sized:0:500", "sized:1:500"]
    assert operator.tool("GetOffsetShell", "--topic", "sized", "--time", "earliest").split() == [
        "sized:0:0",
        "sized:1:0",
    ]

    def shown() -> list[dict[str, int]]:
        said = operator.tool("LogDirsCommand", "--describe", "--topic-list", "sized")
        (answer,) = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        assert [each["broker"] for each in answer["brokers"]] == [1, 2, 3]
        directories = [directory for each in answer["brokers"] for directory in each["logDirs"]]
        assert [each["error"] for each in directories] == [None] * 3
        assert {each["logDir"] for each in directories} == {node.data_directory for node in operator.cluster.plan.nodes}
        return [{one["partition"]: one["size"] for one in each["partitions"]} for each in directories]

    wait_until(lambda: shown()[0] == shown()[1] == shown()[2], WAIT_S, "every node has the same bytes")
    assert min(shown()[0].values()) > 50_000


class Verification:
    """ReplicaVerificationTool: fetches from every replica and compares, until it is stopped."""

    def __init__(self, operator: Operator, topic: str) -> None:
        command = java.tool_command(
            f"{TOOLS}.ReplicaVerificationTool",
            (
                *("--broker-list", operator.cluster.bootstrap, "--topics-include", topic),
                *("--time", "-2", "--report-interval-ms", "500"),
            ),
        )
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the tool
        self._process = subprocess.Popen(command, stdout=self._said, stderr=subprocess.STDOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(60)
        self._said.close()

    def wait_for(self, pattern: str) -> str:
        """Everything it said, once that has the pattern."""
        deadline = time.monotonic() + WAIT_S
        while True:
            self._said.seek(0)
            said = self._said.read().decode()
            if re.search(pattern, said) is not None:
                return said
            assert self._process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)


def test_replica_verification(operator: Operator) -> None:
    operator.make("verified", "1:2:3,2:3:1")
    operator.write("verified", 2_000, 2)
    operator.cluster.kill(1)
    operator.write("verified", 2_000, 2)
    operator.cluster.start(1)
    operator.wait_in_sync("verified")
    with Verification(operator, "verified") as verification:
        said = verification.wait_for(r"max lag is 0 for partition verified-\d at offset 2000 among 2 partitions")
        assert "failed" not in said.lower()
        assert "exception" not in said.lower()


def test_replica_verification_sees_a_record_that_differs(operator: Operator) -> None:
    """A follower's file is altered while it is down, checksum and all: to be sure that the tool looks."""
    operator.make("altered", "1:3")
    operator.write("altered", 1, 1)
    operator.wait_in_sync("altered")
    operator.cluster.stop(3)
    segment = Path(operator.cluster.plan_of(3).data_directory) / "altered-0" / f"{0:020}.log"
    _forge(segment)
    operator.cluster.start(3)
    operator.wait_in_sync("altered")
    with Verification(operator, "altered") as verification:
        verification.wait_for("partition altered-0 has unmatched checksum at offset 0")
    operator.topics("--delete", "--topic", "altered")


def _forge(segment: Path) -> None:
    from tidelog.wire.crc import crc32c

    content = bytearray(segment.read_bytes())
    content[-2] ^= 1
    content[17:21] = crc32c(content[21:], 0).to_bytes(4, "big")
    segment.write_bytes(content)
