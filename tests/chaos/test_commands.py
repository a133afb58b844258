"""Moving replicas, electing leaders and reading about brokers, on real nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.chaos.conftest import Cluster, tidelog
from tidelog.cli.live import LiveTable
from tidelog.runtime.supervisor import Supervisor, read_state


def test_a_partition_moves_and_its_leadership_goes_back(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create("moved", 1, 2, 3)
    cluster.write("moved", 2, via=1)
    reached = ("--bootstrap", cluster.bootstrap())
    words = ("reassign", "start", "--topic", "moved", "--brokers", "3,2", "--replication-factor", 2)
    shown = tidelog(*words, "--dry-run", *reached)
    assert shown.out.split("\n")[1].split() == ["moved", "0", "1,2,3", "3,2"]
    plan = tmp_path / "plan.json"
    plan.write_text(tidelog(*words, "--dry-run", "--json", *reached).out)
    assert cluster.has_isr("moved", 1, 2, 3), "a dry run changes nothing"
    assert tidelog("reassign", "start", "--plan", plan, "--wait", *reached).code == 0
    cluster.wait(lambda: cluster.has_isr("moved", 2, 3), "it has moved")
    assert cluster.partition("moved")["leader"] in (2, 3)
    assert cluster.ask("reassign", "list") == []

    code, _, err = tidelog("reassign", "cancel", "moved:0", *reached)
    assert (code, err.count("\n")) == (1, 1)
    assert "NO_REASSIGNMENT_IN_PROGRESS" in err

    tidelog("elect", "preferred", "moved", *reached)
    cluster.wait(lambda: cluster.partition("moved")["leader"] == 3, "the first replica leads")
    assert tidelog("elect", "preferred", "moved:0", *reached).out == "moved-0 needs no election\n"
    assert tidelog("elect", "unclean", "moved:9", *reached) == (
        2,
        "",
        "tidelog elect unclean: moved has no partition 9\n",
    )


def test_a_move_that_cannot_end_is_taken_back(cluster: Cluster) -> None:
    cluster.create("stuck", 1, 2, 3)
    reached = ("--bootstrap", cluster.bootstrap(1))
    moved = tidelog("reassign", "start", "--topic", "stuck", "--brokers", "1,2", "--replication-factor", 2, *reached)
    assert moved.code == 0
    cluster.wait(lambda: cluster.has_isr("stuck", 1, 2), "two are left")
    cluster.chaos("kill", 3)
    words = ("reassign", "start", "--topic", "stuck", "--brokers", "1,2,3", "--replication-factor", 3)
    assert tidelog(*words, *reached).code == 0
    (under_way,) = cluster.ask("reassign", "list", via=1)
    assert (under_way["topic"], under_way["adding"]) == ("stuck", [3])
    assert tidelog("reassign", "cancel", *reached).out == "cancelled the move of stuck-0\n"
    assert cluster.ask("reassign", "list", via=1) == []


def test_a_dead_node_is_seen_and_comes_back(cluster: Cluster) -> None:
    cluster.create("dead", 3, 1, 2)
    cluster.chaos("kill", 3)
    again = tidelog("chaos", "--dir", cluster.directory, "pause", 3)
    assert again == (1, "", "tidelog chaos pause: node 3 is dead; tidelog chaos start 3 starts it\n")
    cluster.wait(lambda: cluster.has_isr("dead", 1, 2, via=1), "its death is seen")
    found = cluster.partition("dead", via=1)
    assert found["replicas"][0]["role"] == "unreachable"
    assert "connection refused" in found["replicas"][0]["note"]
    listed = {one["broker"]: one for one in cluster.ask("brokers", "list", via=1)}
    assert (listed[3]["fenced"], listed[3]["state"]) == (True, "unreachable")
    assert (listed[1]["fenced"], listed[1]["state"]) == (False, "running")
    cluster.chaos("start", 3)
    cluster.wait(lambda: cluster.has_isr("dead", 1, 2, 3), "it is back in the ISR")
    cluster.chaos("stop", 3)
    cluster.wait(lambda: cluster.has_isr("dead", 1, 2, via=1), "it has left in order")


def test_the_status_names_the_controller_that_most_follow(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.cli.cluster_watch._TIMEOUT_MS", 60_000)

    def followed() -> list[int | None]:
        return [node["controller"] for node in json.loads(tidelog("status", "--dir", cluster.directory, "--json").out)]

    cluster.wait(lambda: None not in followed() and len(set(followed())) == 1, "all follow one controller")
    controller = followed()[0]
    others = ",".join(str(node) for node in cluster.nodes if node != controller)
    cluster.chaos("partition", f"{controller}/{others}")

    def named() -> set[int | None]:
        return {
            node["controller"]
            for node in json.loads(tidelog("status", "--dir", cluster.directory, "--json").out)
            if node["id"] != controller
        }

    def is_named() -> bool:
        found = named()
        if len(found) != 1 or found & {controller, None}:
            return False
        return f"controller {found.pop()}, epoch" in tidelog("status", "--dir", cluster.directory).out

    cluster.wait(is_named, "the status names whom the others have elected")


def test_the_live_table_shows_nodes_and_partitions_in_the_room_there_is(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.create("shown", 2, 1, 3)
    cluster.write("shown", 7, via=2)
    tidelog("topics", "create", "wide", "--partitions", 30, "--bootstrap", cluster.bootstrap())

    def all_are_there() -> bool:
        found = cluster.ask("partitions", "describe", "wide") or ()
        return len(found) == 30 and all(
            one["role"] in ("leader", "follower") for each in found for one in each["replicas"]
        )

    cluster.wait(all_are_there, "all are there")
    monkeypatch.setattr("tidelog.cli.cluster_watch._TIMEOUT_MS", 60_000)
    state = read_state(cluster.directory)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "24")
    live = LiveTable(cast("Supervisor", SimpleNamespace(state=state)))
    capsys.readouterr()
    live.draw()
    lines = [line.removesuffix("\x1b[K") for line in capsys.readouterr().out.removesuffix("\x1b[J").splitlines()]
    assert len(lines) <= 24
    assert [line.split()[0] for line in lines[1:4]] == ["1", "2", "3"]
    assert lines[4].startswith("controller ")
    assert lines[5] == "links: all pass"
    assert lines[6].split()[:5] == ["PARTITION", "LEADER", "EPOCH", "ISR", "HW"]
    (row,) = [line.split() for line in lines if line.startswith("shown-0 ")]
    assert row[4:] == ["7", "1:7", "2:7", "3:7"]
    assert lines[-2].startswith("… and ")
    assert lines[-1].startswith("up 0:0")
    tidelog("topics", "delete", "wide", "--bootstrap", cluster.bootstrap())


def test_events_are_followed(cluster: Cluster) -> None:
    words = ["events", "--follow", "--kind", "topic-created", "--topic", "followed", "--json"]
    reader = subprocess.Popen(
        [sys.executable, "-m", "tidelog", *words, "--bootstrap", cluster.bootstrap()], stdout=subprocess.PIPE, text=True
    )
    try:
        cluster.create("followed", 1, 2, 3)
        assert reader.stdout is not None
        event = json.loads(reader.stdout.readline())
    finally:
        reader.kill()
        reader.communicate()
    assert (event["kind"], event["topic"], event["replication_factor"]) == ("topic-created", "followed", 3)
