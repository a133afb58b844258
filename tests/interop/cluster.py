"""A three-node cluster of real processes with Apache Kafka's tools at hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.cluster.support import wait_known
from tests.interop.toolbox import Toolbox
from tests.support.processes import wait_until
from tidelog.verify.cluster import LocalCluster

TOOLS = "org.apache.kafka.tools"
WAIT_S = 60.0


class Operator:
    """Somebody who knows the cluster only through Kafka's programs."""

    def __init__(self, cluster: LocalCluster, tools: Toolbox, scratch: Path) -> None:
        self.cluster = cluster
        self._tools = tools
        self._scratch = scratch
        self._server = ("--bootstrap-server", cluster.bootstrap)

    @property
    def any_controller(self) -> str:
        """The address of a controller's listener."""
        return f"127.0.0.1:{self.cluster.plan.controllers[0].controller_port}"

    def topics(self, *arguments: str, expect_failure: bool = False) -> str:
        """kafka-topics."""
        return self._run(f"{TOOLS}.TopicCommand", *arguments, expect_failure=expect_failure)

    def configs(self, *arguments: str, expect_failure: bool = False) -> str:
        """kafka-configs."""
        return self._run("kafka.admin.ConfigCommand", *arguments, expect_failure=expect_failure)

    def features(self, *arguments: str, expect_failure: bool = False) -> str:
        """kafka-features."""
        return self._run(f"{TOOLS}.FeatureCommand", *arguments, expect_failure=expect_failure)

    def quorum(self, *arguments: str, expect_failure: bool = False) -> str:
        """kafka-metadata-quorum."""
        return self._run(f"{TOOLS}.MetadataQuorumCommand", *arguments, expect_failure=expect_failure)

    def elect(self, *arguments: str, expect_failure: bool = False) -> str:
        """kafka-leader-election."""
        return self._run(f"{TOOLS}.LeaderElectionCommand", *arguments, expect_failure=expect_failure)

    def reassign(self, *arguments: str, expect_failure: bool = False) -> str:
        """kafka-reassign-partitions."""
        command = f"{TOOLS}.reassign.ReassignPartitionsCommand"
        return self._run(command, *arguments, expect_failure=expect_failure)

    def tool(self, name: str, *arguments: str) -> str:
        """Another tool of the tools' package."""
        return self._run(f"{TOOLS}.{name}", *arguments)

    def ask_controller(self, main_class: str, *arguments: str) -> str:
        """A tool that speaks to a controller's listener (KIP-919)."""
        return self._run_to_the_end(main_class, "--bootstrap-controller", self.any_controller, *arguments)

    def cluster_tool(self, command: str, *arguments: str, expect_failure: bool = False) -> str:
        """kafka-cluster, whose command comes before its options."""
        words = (command, *self._server, *arguments)
        return self._run_to_the_end(f"{TOOLS}.ClusterTool", *words, expect_failure=expect_failure)

    def _run(self, main_class: str, *arguments: str, expect_failure: bool = False) -> str:
        return self._run_to_the_end(main_class, *self._server, *arguments, expect_failure=expect_failure)

    def _run_to_the_end(self, main_class: str, *arguments: str, expect_failure: bool = False) -> str:
        """The next tool may ask a broker that learns of a change a moment after the one that has answered for it."""
        said = self._tools.run(main_class, *arguments, expect_failure=expect_failure)
        wait_known(self.cluster)
        return said

    # --- what they say ---

    def partitions(self, topic: str) -> dict[int, dict[str, list[int]]]:
        """kafka-topics --describe: leader, replicas and ISR of each partition."""
        found = {}
        for line in self.topics("--describe", "--topic", topic).splitlines():
            match = re.search(r"Partition: (\d+)\s+Leader: (\S+)\s+Replicas: (\S*)\s+Isr: ?(\S*)", line)
            if match is not None:
                leader = [] if match[2] == "none" else [int(match[2])]
                found[int(match[1])] = {"leader": leader, "replicas": _ids(match[3]), "isr": _ids(match[4])}
        return found

    def wait_in_sync(self, topic: str) -> None:
        """Until every replica of a topic is in its ISR."""

        def in_sync() -> bool:
            described = self.partitions(topic).values()
            return all(each["leader"] and sorted(each["isr"]) == sorted(each["replicas"]) for each in described)

        wait_until(in_sync, WAIT_S, f"every replica of {topic} is in sync")

    def wait_leaders(self, topic: str, leaders: dict[int, list[int]]) -> None:
        """Until partitions are led as expected."""
        wait_until(
            lambda: {index: each["leader"] for index, each in self.partitions(topic).items()} == leaders,
            WAIT_S,
            f"{topic} is led by {leaders}",
        )

    def make(self, topic: str, assignment: str, *config: str) -> None:
        """A topic whose replicas are where the test wants them, `1:2,2:3`."""
        options = [word for each in config for word in ("--config", each)]
        self.topics("--create", "--topic", topic, "--replica-assignment", assignment, *options)

    def file(self, name: str, content: Any) -> str:
        """A JSON file for a tool."""
        path = self._scratch / name
        path.write_text(json.dumps(content))
        return str(path)

    def write(self, topic: str, records: int, partitions: int, size: int = 100) -> None:
        """Some records with acks=all, spread over the partitions."""
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "enable.idempotence": True, "linger.ms": 1})
        for number in range(records):
            producer.produce(topic, b"%d" % number + bytes(size), partition=number % partitions)
        assert producer.flush(WAIT_S) == 0


def _ids(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]
