"""What the cluster does when a node is cut off, silent, killed or emptied, and when it is back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.chaos.conftest import Cluster, tidelog


def replica(found: Any, broker: int) -> Any:
    return next(one for one in found["replicas"] if one["broker"] == broker)


def other_than(cluster: Cluster, node: int) -> int:
    return next(one for one in cluster.nodes if one != node)


def test_a_leader_cut_off_loses_its_leadership_and_follows_when_healed(cluster: Cluster) -> None:
    cluster.create("cut", 1, 2, 3)
    cluster.write("cut", 3, via=1)
    assert cluster.chaos("partition", "1/2,3").out == "links: 1-2 cut, 1-3 cut\n"

    cluster.wait(lambda: cluster.has_isr("cut", 2, 3, via=2), "the others go on without it")
    led = cluster.partition("cut", via=2)
    assert led["leader"] in (2, 3)
    assert led["leader_epoch"] > 0
    alone = replica(led, 1)
    assert (alone["role"], alone["leader_epoch"]) == ("leader", 0), "it cannot know"
    assert alone["note"] == "believes in epoch 0, led by 1"
    assert "fenced" in alone["why_not"]
    cluster.write("cut", 2, via=2)
    status = json.loads(tidelog("chaos", "--dir", cluster.directory, "status", "--json").out)
    assert [link["state"] for link in status[0]["links"]] == ["cut", "cut"]

    cluster.chaos("heal")
    cluster.wait(lambda: cluster.has_isr("cut", 1, 2, 3), "it is back in the ISR")
    healed = cluster.partition("cut")
    assert healed["leader"] != 1
    assert [one["log_end_offset"] for one in healed["replicas"]] == [5, 5, 5]
    assert replica(healed, 1)["role"] == "follower"

    def is_told() -> bool:
        told = tidelog("events", "--topic", "cut", "--bootstrap", cluster.bootstrap()).out
        return "cut-0 leader 1 -> " in told and "broker 1 fenced" in told

    cluster.wait(is_told, "the story is written down")


def test_a_silent_leader_is_replaced_when_its_session_ends(cluster: Cluster) -> None:
    """A paused node keeps its connections: only time tells."""
    cluster.create("silent", 2, 3, 1)
    cluster.write("silent", 1, via=2)
    cluster.chaos("pause", 2)
    assert "paused" in tidelog("status", "--dir", cluster.directory).out
    cluster.wait(lambda: cluster.has_isr("silent", 1, 3, via=3), "the others go on without it")
    found = cluster.partition("silent", via=3)
    assert found["leader"] in (1, 3)
    assert replica(found, 2)["role"] == "unreachable"
    assert "no answer in time" in replica(found, 2)["note"]
    cluster.chaos("resume", 2)
    cluster.wait(lambda: cluster.has_isr("silent", 1, 2, 3), "it is back in the ISR")


def test_a_held_follower_leaves_the_isr_and_catches_up_when_it_is_released(cluster: Cluster) -> None:
    """Nobody is told of a held link: what waits on it arrives late and changes nothing."""
    cluster.create("held", 1, 2, 3)
    cluster.chaos("partition", "3", "--hold")
    cluster.wait(lambda: cluster.has_isr("held", 1, 2, via=1), "node 3 is out")
    leader = cluster.partition("held", via=1)["leader"]
    cluster.write("held", 4, via=leader)
    cluster.chaos("heal")
    cluster.wait(lambda: cluster.has_isr("held", 1, 2, 3), "it is back in the ISR")
    assert [one["log_end_offset"] for one in cluster.partition("held")["replicas"]] == [4, 4, 4]


def test_a_wiped_node_has_no_vote_and_copies_again(cluster: Cluster) -> None:
    cluster.create("wiped", 2, 1, 3)
    cluster.write("wiped", 3, via=2)
    before = {one["node"]: one["directory_id"] for one in cluster.ask("quorum", "describe")["replicas"]}
    cluster.chaos("wipe", 3)
    assert tidelog("status", "--dir", cluster.directory).code == 1
    cluster.wait(lambda: cluster.has_isr("wiped", 1, 2, via=1), "its death is seen")
    cluster.chaos("start", 3)
    cluster.wait(lambda: cluster.has_isr("wiped", 1, 2, 3), "it has copied everything")
    found = replica(cluster.partition("wiped"), 3)
    assert (found["log_end_offset"], found["high_watermark"]) == (3, 3)

    def kinds() -> dict[tuple[str, str], int]:
        described = cluster.ask("quorum", "describe") or {"replicas": []}
        return {(one["kind"], one["directory_id"]): one["node"] for one in described["replicas"]}

    cluster.wait(lambda: 3 in [node for (kind, _), node in kinds().items() if kind == "observer"], "it observes")
    assert kinds()["voter", before[3]] == 3, "the vote is that of the disk it lost"

    gone = tidelog("quorum", "remove", 3, "--bootstrap", cluster.bootstrap())
    assert (gone.code, gone.out) == (0, f"removed voter 3 with directory {before[3]}\n")
    again = tidelog("quorum", "remove", 3, "--bootstrap", cluster.bootstrap())
    assert (again.code, again.err) == (2, "tidelog quorum remove: node 3 is no voter; these are: 1, 2\n")
    properties = Path(cluster.directory, "node-3", "server.properties")
    added = tidelog("quorum", "add", "--config", properties, "--bootstrap", cluster.bootstrap(), "--json")
    assert added.code == 0, added.err
    said = json.loads(added.out)
    assert said["directory_id"] != before[3]
    assert kinds()["voter", said["directory_id"]] == 3, "it votes with the disk it has now"
    twice = tidelog("quorum", "add", "--config", properties, "--bootstrap", cluster.bootstrap())
    assert twice.code == 1
    assert "DUPLICATE_VOTER" in twice.err
