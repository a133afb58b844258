"""Three nodes, Tidelog's or Apache Kafka's, each a broker and a voter, behind the same few methods.

The same settings for both: the defaults of each program, three voters of a dynamic quorum (KIP-853), one log directory.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from confluent_kafka.admin import AdminClient, NewTopic

from tests.support import java, probe
from tests.support.nodes import KafkaNode, TidelogNode, new_cluster_id
from tests.support.ports import free_ports
from tests.support.processes import ManagedProcess
from tidelog.client.connection import Connection
from tidelog.errors import KafkaError
from tidelog.wire.message import Message
from tidelog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from tidelog.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

NODES = 3
WAIT_S = 180.0
DEFAULTS_OF_KAFKA = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "50",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
"""A single node of the tests is given smaller ones."""


class KafkaMember(KafkaNode):
    """One of three Kafka nodes."""

    cluster_id = ""
    voters = ""

    def format(self) -> None:
        """By Kafka's StorageTool, with the voters that all three are given."""
        words = ("format", "-t", self.cluster_id, "-c", str(self.config_file), "--initial-controllers", self.voters)
        java.run_tool("kafka.tools.StorageTool", *words)


class TidelogMember(TidelogNode):
    """One of three Tidelog nodes."""

    cluster_id = ""
    voters = ""

    def format(self) -> None:
        """By `tidelog format`, with the voters that all three are given."""
        words = ["--cluster-id", self.cluster_id, "--initial-controllers", self.voters]
        process = ManagedProcess(
            [sys.executable, "-m", "tidelog", "format", "--config", str(self.config_file), *words],
            self.log_file,
            environment=self.environment(),
        )
        if process.wait(60) != 0:
            raise process.fail("tidelog format failed")


class Cluster:
    """The three nodes; they keep ports and directories over stops, kills and starts."""

    def __init__(self, peer: str, directory: Path, properties: Mapping[str, str]) -> None:
        self.peer = peer
        self.directory = directory
        ports = free_ports(2 * NODES)
        servers = ",".join(f"127.0.0.1:{port}" for port in ports[NODES:])
        cluster_id = new_cluster_id()
        directories = [new_cluster_id() for _ in range(NODES)]
        voters = ",".join(
            f"{number + 1}@127.0.0.1:{ports[NODES + number]}:{directories[number]}" for number in range(NODES)
        )
        self.nodes: dict[int, KafkaMember | TidelogMember] = {}
        for number in range(NODES):
            own = {"node.id": str(number + 1), "controller.quorum.bootstrap.servers": servers}
            here = {"client_port": ports[number], "controller_port": ports[NODES + number]}
            place = directory / f"node-{number + 1}"
            node: KafkaMember | TidelogMember
            if peer == "kafka":
                node = KafkaMember(
                    place, properties=DEFAULTS_OF_KAFKA | own | dict(properties), heap="1G", quick_start=False, **here
                )
            else:
                node = TidelogMember(
                    place,
                    properties=own | dict(properties),
                    client_port=ports[number],
                    controller_port=ports[NODES + number],
                )
            node.cluster_id, node.voters = cluster_id, voters
            self.nodes[number + 1] = node

    @property
    def bootstrap(self) -> str:
        """What a client is configured with."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    # --- doing ---

    def prepare(self) -> None:
        """Write the configurations and format the directories."""
        for node in self.nodes.values():
            node.prepare()

    def launch(self) -> None:
        """Start all processes and do not wait."""
        for node in self.nodes.values():
            node.launch()

    def start(self) -> Self:
        """Start all and wait until each knows of all three."""
        self.prepare()
        self.launch()
        self.wait_in_service()
        return self

    def wait_in_service(self) -> None:
        """Until every node says that three brokers serve."""
        wait_until(
            lambda: all(knows_all(node.client_port) for node in self.nodes.values()), f"{self.peer} is in service"
        )

    def stop(self) -> None:
        """Ask all to end, then wait for each: one after the other the last ones would have no quorum to say goodbye."""
        for node in self.nodes.values():
            if node.process is not None:
                node.process.ask_to_stop()
        for node in self.nodes.values():
            if node.process is not None:
                node.process.wait(120)  # a second signal would end it at once
                node.process = None

    def end(self) -> None:
        """Kill what runs."""
        for node in self.nodes.values():
            if node.process is not None:
                node.process.kill()
                node.process = None

    # --- looking ---

    def cpu_seconds(self) -> float:
        """CPU time of all nodes together."""
        return sum(node.cpu_seconds() for node in self.nodes.values())

    def resident_bytes(self) -> float:
        """Memory of a node: the mean of the three."""
        return sum(node.resident_bytes() for node in self.nodes.values()) / NODES

    def ask(self, request: Message) -> Any:
        """One request to whichever node answers, as any Kafka client would send it."""
        problem: KafkaError | None = None
        for node in self.nodes.values():
            if node.process is None:
                continue
            try:
                connection = Connection("127.0.0.1", node.client_port, client_id="benchmark", timeout_ms=10_000)
                with contextlib.closing(connection):
                    return connection.call(request, 30_000)
            except KafkaError as error:
                problem = error
        raise problem or AssertionError("no node runs")

    def controller(self) -> int:
        """The active controller's node id, -1 while there is none."""
        partition = DescribeQuorumRequestPartitionData(partition_index=0)
        wanted = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
        answer = self.ask(DescribeQuorumRequest(topics=[wanted]))
        if answer.error_code:
            return -1
        found = answer.topics[0].partitions[0]
        return -1 if found.error_code else int(found.leader_id)

    def admin(self) -> AdminClient:
        """An admin client."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create_topic(self, name: str, partitions: int, **config: str) -> None:
        """A topic with three replicas, waited for until all are led and in sync."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        client = self.admin()
        client.create_topics([NewTopic(name, partitions, NODES, config=settings)])[name].result(WAIT_S)
        self.wait_in_sync({name: partitions}, client)

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        client = self.admin()
        client.delete_topics([name])[name].result(WAIT_S)

    def wait_in_sync(self, topics: Mapping[str, int], client: AdminClient | None = None) -> None:
        """Until every partition has a leader and three replicas in sync."""
        admin = client or self.admin()

        def in_sync() -> bool:
            found = admin.list_topics(timeout=60).topics
            return all(
                name in found
                and len(found[name].partitions) == count
                and all(each.leader >= 0 and len(each.isrs) == NODES for each in found[name].partitions.values())
                for name, count in topics.items()
            )

        wait_until(in_sync, f"all replicas of {', '.join(topics)} are in sync")

    def leader(self, topic: str) -> int:
        """Who leads partition 0."""
        return int(self.admin().list_topics(topic, timeout=30).topics[topic].partitions[0].leader)

    def lead(self, topic: str, node_id: int) -> None:
        """Make a node the leader of partition 0, as an operator would: preferred by order, then elected."""
        order = [node_id, *(other for other in self.nodes if other != node_id)]
        move = ReassignableTopic(name=topic, partitions=[ReassignablePartition(partition_index=0, replicas=order)])
        self.ask(AlterPartitionReassignmentsRequest(timeout_ms=30_000, topics=[move]))

        def leads() -> bool:
            if self.leader(topic) == node_id:
                return True
            wanted = TopicPartitions(topic=topic, partitions=[0])
            self.ask(ElectLeadersRequest(election_type=0, topic_partitions=[wanted], timeout_ms=10_000))
            return False

        wait_until(leads, f"node {node_id} leads {topic}")


def knows_all(port: int) -> bool:
    """Whether the broker on this port serves and names three brokers and a controller."""
    try:
        brokers, controller = probe.brokers_and_controller(port)
    except (OSError, EOFError):
        return False
    return len(brokers) == NODES and controller >= 0


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
    """Look again and again; TimeoutError naming `what`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.02)
