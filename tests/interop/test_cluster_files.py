"""What three nodes leave on their disks after kills, elections, snapshots and cut logs, judged by DumpLogSegments."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.support import cluster_of, create_topic, load_on, wait_in_step
from tests.interop import judge
from tests.interop.toolbox import Toolbox
from tests.support.processes import wait_until
from tidelog.verify.cluster import LocalCluster

TOPIC, PARTITIONS = "judged", 3
ROUNDS = 4


@dataclass
class Left:
    """The data directories of the stopped nodes."""

    directories: list[Path]
    leader_epoch: int
    quorum_epoch: int


@pytest.fixture(scope="module")
def left() -> Iterator[Left]:
    """A cluster under load, its leaders and controllers killed in turn, then stopped."""
    settings = {
        "metadata_log_max_record_bytes_between_snapshots": "3000",
        "metadata_log_segment_bytes": "8388608",
        "log_segment_bytes": "1048576",
        "log_index_interval_bytes": "1024",
    }
    with tempfile.TemporaryDirectory(prefix="interop-") as scratch, cluster_of(3, **settings) as cluster:
        create_topic(cluster, TOPIC, PARTITIONS)
        with load_on(cluster, TOPIC, PARTITIONS, rate=600) as load:
            for round_ in range(ROUNDS):
                _kill_one(cluster, by_leader=round_ % 2 == 0)
                load.go_on()
                _churn(cluster, round_)
        wait_in_step(cluster, TOPIC, PARTITIONS)
        leader = max(int(each["leader_epoch"]) for held in cluster.replicas(TOPIC).values() for each in held.values())
        quorum = max(int(cluster.ask(node_id, "node")["quorum"]["epoch"]) for node_id in cluster.node_ids)
        assert cluster.stop_all() == []
        yield Left([Path(each.data_directory) for each in cluster.plan.nodes], leader, quorum)
        assert scratch


def _kill_one(cluster: LocalCluster, *, by_leader: bool) -> None:
    victim = cluster.leader(TOPIC, 0) if by_leader else cluster.controller()
    assert victim is not None
    cluster.kill(victim)
    wait_until(
        lambda: cluster.leader(TOPIC, 0) not in (victim, None) and cluster.controller() not in (victim, None),
        60,
        "its work is done by others",
    )
    cluster.start(victim)
    cluster.wait_ready()


def _churn(cluster: LocalCluster, round_: int) -> None:
    """Enough metadata for a snapshot or two."""
    for number in range(3):
        create_topic(cluster, f"churn-{round_}-{number}", 4)


def test_every_file_of_every_node(left: Left, toolbox: Toolbox) -> None:
    found = []
    for directory in left.directories:
        offsets = judge.judge_everything(toolbox, directory)
        found.append(
            {
                partition: [
                    offset
                    for each in sorted((directory / f"{TOPIC}-{partition}").glob("*.log"))
                    for offset in offsets[str(each)]
                ]
                for partition in range(PARTITIONS)
            }
        )
    assert found[0] == found[1] == found[2]
    assert all(offsets == list(range(len(offsets))) and offsets for offsets in found[0].values())


def test_the_replicas_of_a_partition_are_the_same_bytes(left: Left) -> None:
    """Epochs are kept from the leader, so no replica's log differs in a single byte."""
    for partition in range(PARTITIONS):
        logs = [
            b"".join(each.read_bytes() for each in sorted((directory / f"{TOPIC}-{partition}").glob("*.log")))
            for directory in left.directories
        ]
        assert logs[0] == logs[1] == logs[2]
        assert logs[0]


def test_the_metadata_log_and_its_snapshots_decode(left: Left, toolbox: Toolbox) -> None:
    assert left.leader_epoch >= ROUNDS // 2
    assert left.quorum_epoch > 1
    for directory in left.directories:
        metadata = directory / "__cluster_metadata-0"
        snapshots = [each for each in metadata.glob("*.checkpoint") if not each.name.startswith("0" * 20)]
        assert snapshots, f"{directory} has no snapshot"
        said = judge.dump(toolbox, sorted(snapshots), "--cluster-metadata-decoder")
        judge.check(said)
        for kind in ("FEATURE_LEVEL_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "REGISTER_BROKER_RECORD"):
            assert f'"type":"{kind}"' in said
        for control in ("SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"):
            assert control in said
        log = judge.dump(toolbox, sorted(metadata.glob("*.log")), "--cluster-metadata-decoder", "--deep-iteration")
        judge.check(log)
        assert "LeaderChange" in log
        epochs = [int(each) for each in re.findall(r"partitionLeaderEpoch: (\d+)", log)]
        assert epochs == sorted(epochs), "the quorum's epochs never go back in the log"
        assert epochs[-1] >= left.quorum_epoch  # nodes that stop one after the other may elect once more
