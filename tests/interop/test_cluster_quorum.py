"""kafka-metadata-quorum on three voters: who leads, who follows, one more voter, one less."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.support import cluster_of
from tests.interop.cluster import TOOLS, WAIT_S, Operator
from tests.interop.toolbox import Toolbox
from tests.support.nodes import TidelogNode
from tests.support.ports import free_ports
from tests.support.processes import ManagedProcess, wait_until

NEW_ID = 4
QUORUM = f"{TOOLS}.MetadataQuorumCommand"


@pytest.fixture(scope="module")
def operator(toolbox: Toolbox) -> Iterator[Operator]:
    """One cluster for both tests."""
    with tempfile.TemporaryDirectory(prefix="interop-") as scratch, cluster_of(3) as cluster:
        yield Operator(cluster, toolbox, Path(scratch))


def status(operator: Operator) -> dict[str, str]:
    """`describe --status`: name to text."""
    said = operator.quorum("describe", "--status")
    return dict(line.split(":", 1) for line in said.splitlines() if ":" in line)


def voters(operator: Operator) -> dict[int, str]:
    """The voters' ids and their directories."""
    return {each["id"]: each["directoryId"] for each in json.loads(status(operator)["CurrentVoters"])}


def observers(operator: Operator) -> list[int]:
    """Who follows the log and does not vote."""
    return [each["id"] for each in json.loads(status(operator)["CurrentObservers"])]


def replication(operator: Operator) -> dict[int, tuple[str, int]]:
    """`describe --replication`: role and lag of each node."""
    said = operator.quorum("describe", "--replication")
    rows = [line.split() for line in said.splitlines() if re.match(r"\d", line)]
    return {int(row[0]): (row[-1], int(row[3])) for row in rows}


def has_caught_up(operator: Operator, node_id: int) -> bool:
    """Whether a node had the whole log at some moment, as the leader saw it."""
    said = operator.quorum("describe", "--replication")
    rows = [line.split() for line in said.splitlines() if line.startswith(f"{node_id} ")]
    return len(rows) == 1 and int(rows[0][5]) > 0


def directory_id(data: Path) -> str:
    """A log directory's own name."""
    found = re.search(r"^directory\.id=(\S+)", (data / "meta.properties").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_describe_through_an_election(operator: Operator) -> None:
    cluster = operator.cluster
    before = status(operator)
    leader = int(before["LeaderId"])
    assert leader == cluster.controller()
    assert voters(operator) == {each.node_id: directory_id(Path(each.data_directory)) for each in cluster.plan.nodes}
    assert json.loads(before["CurrentObservers"]) == []
    wait_until(
        lambda: sorted(replication(operator).values()) == [("Follower", 0), ("Follower", 0), ("Leader", 0)],
        WAIT_S,
        "all voters are at the log's end",
    )
    by_controller = operator.ask_controller(QUORUM, "describe", "--status")
    assert f"LeaderId:               {leader}" in by_controller
    cluster.kill(leader)
    wait_until(lambda: int(status(operator)["LeaderId"]) not in (leader, -1), WAIT_S, "another voter leads")
    after = status(operator)
    assert int(after["LeaderEpoch"]) > int(before["LeaderEpoch"])
    wait_until(
        lambda: int(status(operator)["HighWatermark"]) >= int(before["HighWatermark"]),
        WAIT_S,
        "what was committed is known to be so by the new leader, too",
    )
    assert leader in voters(operator), "a dead voter is a voter still"
    cluster.start(leader)
    cluster.wait_ready()
    wait_until(lambda: replication(operator).get(leader) == ("Follower", 0), WAIT_S, "the former leader has caught up")


@contextmanager
def another_controller(operator: Operator, directory: Path) -> Iterator[Path]:
    """A controller that is no voter; the path of its properties file."""
    (port,) = free_ports(1)
    properties = {
        "node.id": str(NEW_ID),
        "process.roles": "controller",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": operator.any_controller,
        "log.dirs": str(directory / "data"),
    }
    file = directory / "controller.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    environment = TidelogNode(directory).environment()
    command = [sys.executable, "-m", "tidelog"]
    cluster_id = status(operator)["ClusterId"].strip()
    subprocess.run(
        [*command, "format", "--config", str(file), "--cluster-id", cluster_id, "--no-initial-controllers"],
        env=environment,
        check=True,
        capture_output=True,
    )
    process = ManagedProcess([*command, "node", "--config", str(file)], directory / "log", environment=environment)
    try:
        yield file
        process.require_running()
    finally:
        process.kill()


def test_a_voter_is_added_and_removed(operator: Operator, scratch: Path) -> None:
    before = voters(operator)
    with another_controller(operator, scratch) as properties:
        wait_until(lambda: observers(operator) == [NEW_ID], WAIT_S, "the new controller follows")
        new_directory = directory_id(scratch / "data")
        wait_until(lambda: has_caught_up(operator, NEW_ID), WAIT_S, "it has the whole log: nobody else may be a voter")
        with_config = ("--command-config", str(properties))
        dry = operator.quorum(*with_config, "add-controller", "--dry-run")
        assert new_directory in dry
        assert voters(operator) == before, "that was a dry run"
        added = operator.quorum(*with_config, "add-controller")
        assert f"Added controller {NEW_ID} with directory id {new_directory}" in added
        assert voters(operator) == before | {NEW_ID: new_directory}
        assert observers(operator) == []
        assert "DuplicateVoter" in operator.quorum(*with_config, "add-controller", expect_failure=True)
        operator.topics("--create", "--topic", "by-four", "--partitions", "3")
        gone = ("--controller-id", str(NEW_ID), "--controller-directory-id")
        stranger = next(iter(before.values()))
        assert "VoterNotFound" in operator.quorum("remove-controller", *gone, stranger, expect_failure=True)
        removed = operator.quorum("remove-controller", *gone, new_directory)
        assert f"controller {NEW_ID} with directory id {new_directory}" in removed
        assert voters(operator) == before
        operator.topics("--delete", "--topic", "by-four")
