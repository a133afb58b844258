"""Real nodes for a script: planned as it asks, led through the links, and looked at through their private queries."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Self

from tidelog.config import NodeConfig
from tidelog.log import names
from tidelog.realstage.frame_links import FrameLinks
from tidelog.runtime.cluster_plan import HOST, ClusterPlan, NodePlan
from tidelog.runtime.formatting import prepare_cluster
from tidelog.sim.network import CONTROL, DATA
from tidelog.sim.stage import PartitionView, Plan, ReplicaView, StoredRecord, Told
from tidelog.sim.stored import StoredRecords
from tidelog.verify.cluster import LocalCluster, free_base_port

ANSWER_MS = 2000
Image = dict[str, Any]
_NOTHING: Image = {"metadata_offset": -1, "brokers": [], "partitions": [], "controller": None, "controller_epoch": -1}


class RealNodes:
    """The processes of one cluster; what each knows, what its disk holds, what it told."""

    def __init__(self, directory: str, plan: Plan, links: FrameLinks) -> None:
        brokers, controllers = set(plan.brokers), set(plan.controllers)
        node_ids = sorted(brokers | controllers)
        base = free_base_port(2 * len(node_ids))
        plans = tuple(
            NodePlan(
                node_id,
                (*(("broker",) if node_id in brokers else ()), *(("controller",) if node_id in controllers else ())),
                os.path.join(directory, f"node-{node_id}"),
                base + number if node_id in brokers else None,
                base + len(node_ids) + number if node_id in controllers else None,
            )
            for number, node_id in enumerate(node_ids)
        )
        self.brokers = sorted(brokers)
        self.plan = ClusterPlan(directory, plans, is_new=True)
        self.entrances = {
            one.node_id: links.open_entrance(None, one.node_id, DATA, one.port) for one in plans if one.port is not None
        }
        """Where clients reach each broker; what brokers advertise."""
        configs = [
            NodeConfig.from_properties(self.plan.properties(one, {**plan.settings, **self._own_settings(one, plan)}))
            for one in plans
        ]
        prepare_cluster(self.plan, configs, {one.node_id: self._peer_addresses(one, links) for one in plans})
        self.cluster = LocalCluster.prepared(self.plan, ["--log-format", "json"])
        self._read_bytes: dict[int, int] = {}
        self._stored = StoredRecords()
        self._highest: dict[tuple[int, str], int] = {}
        self.went_back: list[str] = []
        """Epochs that a node saw go back, in words."""

    def _own_settings(self, node: NodePlan, plan: Plan) -> dict[str, str]:
        own = {"replication.events.enable": "false"}
        if "offsets.topic.num.partitions" not in plan.settings:
            own["offsets.topic.num.partitions"] = "1"
        if node.node_id in self.entrances:
            own["advertised.listeners"] = f"PLAINTEXT://{HOST}:{self.entrances[node.node_id]}"
        if node.node_id in plan.racks:
            own["broker.rack"] = plan.racks[node.node_id]
        return own

    def _peer_addresses(self, node: NodePlan, links: FrameLinks) -> str:
        led = []
        for other in self.plan.nodes:
            if other is node:
                continue
            if other.port is not None:
                entrance = links.open_entrance(node.node_id, other.node_id, DATA, other.port)
                led.append(f"{HOST}:{self.entrances[other.node_id]}={HOST}:{entrance}")
            if other.controller_port is not None:
                entrance = links.open_entrance(node.node_id, other.node_id, CONTROL, other.controller_port)
                led.append(f"{HOST}:{other.controller_port}={HOST}:{entrance}")
        return ",".join(led)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.__exit__()

    @property
    def bootstrap(self) -> str:
        """What clients are told."""
        return ",".join(f"{HOST}:{port}" for port in self.entrances.values())

    def data_directory(self, node_id: int) -> str:
        """Where a node keeps its files."""
        return self.cluster.plan_of(node_id).data_directory

    # --- what they know ---

    def images(self, topic: str) -> dict[int, Image]:
        """The committed metadata as each answering broker has it."""
        found = {}
        for node_id in self.brokers:
            answer = self.cluster.ask(node_id, "image", ANSWER_MS, topic=topic)
            if answer is not None:
                found[node_id] = answer
                self._look_at_epochs(node_id, topic, answer)
        return found

    def newest_image(self, topic: str) -> Image:
        """That of the broker that has most of it."""
        return max(self.images(topic).values(), key=lambda one: int(one["metadata_offset"]), default=_NOTHING)

    def controller(self) -> tuple[int, int] | None:
        """Node and epoch of the active controller, as the broker with the latest epoch knows it."""
        known = [one for one in self.images("").values() if one["controller"] is not None and one["controller"] >= 0]
        newest = max(known, key=lambda one: int(one["controller_epoch"]), default=None)
        return None if newest is None else (newest["controller"], newest["controller_epoch"])

    def is_running(self, node_id: int) -> bool:
        """Whether its process runs, paused or not."""
        return node_id not in self.cluster.down

    def _look_at_epochs(self, node_id: int, topic: str, image: Image) -> None:
        self._note(node_id, "controller epoch", image["controller_epoch"])
        for one in image["partitions"]:
            for what in ("leader epoch", "partition epoch"):
                self._note(node_id, f"{what} of {topic}-{one['partition']}", one[what.replace(" ", "_")])

    def _note(self, node_id: int, what: str, epoch: int) -> None:
        highest = self._highest.get((node_id, what), -1)
        if epoch < highest:
            self.went_back.append(f"node {node_id}: the {what} went from {highest} to {epoch}")
        self._highest[node_id, what] = max(highest, epoch)

    def forget_epochs(self, node_id: int) -> None:
        """A node that starts reads what it had from the beginning."""
        self._highest = {key: epoch for key, epoch in self._highest.items() if key[0] != node_id}

    # --- the replicas of a partition ---

    def partition(self, topic: str, index: int) -> PartitionView:
        """One partition as the newest metadata and its replicas have it."""
        image = self.newest_image(topic)
        state = next((one for one in image["partitions"] if one["partition"] == index), None)
        assert state is not None, f"nobody knows {topic}-{index}"
        told = {node_id: self._told_replica(node_id, topic, index) for node_id in state["replicas"]}
        leading = told.get(state["leader"])
        is_known = state["leader"] < 0 or state["leader"] in self.cluster.paused
        if leading is not None:
            is_known = leading.get("partition_epoch") == state["partition_epoch"]
        return PartitionView(
            topic,
            index,
            tuple(state["replicas"]),
            state["leader"],
            state["leader_epoch"],
            tuple(state["isr"]),
            tuple(state["elr"]),
            tuple(self._lane(node_id, topic, index, state, told[node_id]) for node_id in state["replicas"]),
            is_known,
        )

    def _told_replica(self, node_id: int, topic: str, index: int) -> dict[str, Any] | None:
        answer = self.cluster.ask(node_id, "replicas", ANSWER_MS, topic=topic)
        replicas: Sequence[dict[str, Any]] = () if answer is None else answer["replicas"]
        return next((one for one in replicas if one["partition"] == index), None)

    def _lane(
        self, node_id: int, topic: str, index: int, state: dict[str, Any], told: dict[str, Any] | None
    ) -> ReplicaView:
        if node_id in self.cluster.down:
            word = "down"
        elif node_id in self.cluster.paused:
            word = "paused"
        elif told is None:
            word = "starting"
        elif node_id == state["leader"]:
            word = "leader"
        elif node_id in state["isr"]:
            word = "in sync"
        else:
            word = "eligible" if node_id in state["elr"] else "out of sync"
        records = self._records(node_id, topic, index)
        end_offset = records[-1].offset + 1 if records else 0
        return ReplicaView(node_id, word, records, end_offset, None if told is None else told["high_watermark"])

    def hosts(self, node_id: int, topic: str, partitions: int) -> bool:
        """Whether a node has taken over its replicas of a topic and, where it leads, begun to lead."""
        answer = self.cluster.ask(node_id, "replicas", ANSWER_MS, topic=topic)
        return answer is not None and len(answer["replicas"]) == partitions

    def log_bytes(self, node_id: int, topic: str, index: int) -> bytes:
        """A replica's segments, one after the other, as they are on its disk."""
        directory = os.path.join(self.data_directory(node_id), names.directory_name(topic, index))
        found = []
        try:
            for name in sorted(os.listdir(directory)):
                if name.endswith(".log"):
                    with open(os.path.join(directory, name), "rb") as file:
                        found.append(file.read())
        except FileNotFoundError:  # not there yet, or just renamed for deletion
            return b""
        return b"".join(found)

    def _records(self, node_id: int, topic: str, index: int) -> tuple[StoredRecord, ...]:
        return self._stored.parse(node_id, topic, index, self.log_bytes(node_id, topic, index))

    # --- what they told ---

    def take_told(self) -> list[Told]:
        """Events in the logs of the nodes since the last call, in the order of their times."""
        found = []
        for node_id in self.cluster.node_ids:
            path = self.cluster.plan_of(node_id).log_path
            try:
                with open(path, "rb") as file:
                    file.seek(self._read_bytes.get(node_id, 0))
                    data = file.read()
            except FileNotFoundError:
                continue
            whole = data[: data.rfind(b"\n") + 1]
            self._read_bytes[node_id] = self._read_bytes.get(node_id, 0) + len(whole)
            for line in whole.splitlines():
                fields = json.loads(line) if line.startswith(b"{") else {}
                # The cluster's own topics are no part of a story.
                if fields and not str(fields.get("topic", "")).startswith("__"):
                    found.append((fields.pop("time"), Told(node_id, fields.pop("event"), fields)))
        return [told for _, told in sorted(found, key=lambda pair: str(pair[0]))]
