"""`tidelog groups` against a real node: what is told is true, and nothing is moved without being asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.conftest import Tidelog
from tests.support.nodes import TidelogNode, passing_node
from tidelog.client import Client
from tidelog.client.groups import commit_offsets, report_positions


@pytest.fixture(scope="module")
def node() -> Iterator[TidelogNode]:
    with passing_node(TidelogNode, {"offsets.topic.num.partitions": "1"}) as started:
        yield started


@pytest.fixture
def ask(tidelog: Tidelog, node: TidelogNode) -> Any:
    def run(*words: object) -> Any:
        outcome = tidelog("groups", *words, "--bootstrap", node.bootstrap, "--json")
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    return run


@pytest.fixture
def group(tidelog: Tidelog, node: TidelogNode, request: pytest.FixtureRequest) -> str:
    """A group that has committed 3 of 7 records in partition 0 of a topic of the same name."""
    name: str = request.node.name
    assert tidelog("topics", "create", name, "--partitions", 2, "--bootstrap", node.bootstrap).code == 0
    lines = b"".join(b"%d\n" % number for number in range(7))
    words = ("produce", name, "--partition", 0, "--bootstrap", node.bootstrap)
    assert tidelog(*words, stdin=lines).code == 0
    with Client(node.bootstrap) as client:
        commit_offsets(client, name, {(name, 0): 3})
    return name


def test_four_positions_and_none_of_them_guessed(group: str, node: TidelogNode, ask: Any) -> None:
    (described,) = ask("describe", group)
    (row,) = described["partitions"]
    assert (row["committed"], row["position"], row["high_watermark"], row["log_end"]) == (3, "unknown", 7, 7)
    assert (row["lag"], row["position_lag"]) == (4, "unknown")
    with Client(node.bootstrap) as client:
        assert report_positions(client, group, {(group, 0): 5})
    (described,) = ask("describe", group)
    (row,) = described["partitions"]
    assert (row["committed"], row["position"], row["position_lag"], row["lag"]) == (3, 5, 2, 4)


def test_a_group_that_is_ahead_of_its_log_is_seen(group: str, node: TidelogNode, ask: Any) -> None:
    """Records were lost that it had read: no lag would hide that."""
    with Client(node.bootstrap) as client:
        commit_offsets(client, group, {(group, 0): 9})
    (described,) = ask("describe", group)
    (row,) = described["partitions"]
    assert (row["committed"], row["log_end"], row["lag"]) == (9, 7, -2)


def test_groups_are_listed(group: str, ask: Any) -> None:
    assert {"group": group, "state": "Empty", "type": "classic", "protocol_type": "", "coordinator": 1} in ask("list")


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 7),
        (("--to-offset", 5), 5),
        (("--to-offset", 100), 7),
        (("--shift-by", -2), 1),
        (("--shift-by", -20), 0),
        (("--to-time", 0), 0),
        (("--to-time", "2200-01-01T00:00:00Z"), 7),
    ],
    ids=str,
)
def test_offsets_are_moved_only_when_told_to(
    node: TidelogNode, tidelog: Tidelog, ask: Any, how: tuple[object, ...], expected: int
) -> None:
    if tidelog("topics", "create", "moved", "--bootstrap", node.bootstrap).code == 0:
        words = ("produce", "moved", "--bootstrap", node.bootstrap)
        assert tidelog(*words, stdin=b"".join(b"%d\n" % number for number in range(7))).code == 0
    with Client(node.bootstrap) as client:
        commit_offsets(client, "moved", {("moved", 0): 3})
    planned = ask("reset-offsets", "moved", *how)
    assert planned["offsets"] == [{"topic": "moved", "partition": 0, "from": 3, "to": expected}]
    assert ask("describe", "moved")[0]["partitions"][0]["committed"] == 3
    assert ask("reset-offsets", "moved", *how, "--execute")["executed"]
    assert ask("describe", "moved")[0]["partitions"][0]["committed"] == expected


@pytest.mark.parametrize(
    ("how", "warning"),
    [
        (("--to-offset", 100), "{}-0: offset 100 is beyond its end: 7 is taken"),
        (("--shift-by", -20), "{}-0: offset -17 is before its start: 0 is taken"),
        (("--to-time", "2200-01-01T00:00:00Z"), "{}-0 has no record of that time or later: its end, 7, is taken"),
        (("--to-offset", 7), ""),
        (("--to-earliest",), ""),
    ],
    ids=str,
)
def test_it_is_said_where_an_offset_is_not_what_was_asked_for(
    node: TidelogNode, tidelog: Tidelog, how: tuple[object, ...], warning: str
) -> None:
    topic = "warned"
    if tidelog("topics", "create", topic, "--bootstrap", node.bootstrap).code == 0:
        lines = b"".join(b"%d\n" % number for number in range(7))
        assert tidelog("produce", topic, "--bootstrap", node.bootstrap, stdin=lines).code == 0
        with Client(node.bootstrap) as client:
            commit_offsets(client, topic, {(topic, 0): 3})
    expected = [warning.format(topic)] if warning else []
    words = ("groups", "reset-offsets", topic, "--topic", topic, *how, "--bootstrap", node.bootstrap)
    outcome = tidelog(*words)
    assert outcome.code == 0
    assert outcome.err == "".join(f"tidelog groups reset-offsets: {line}\n" for line in expected)
    assert json.loads(tidelog(*words, "--json").out)["warnings"] == expected


def test_a_new_group_may_begin_where_it_is_told(group: str, ask: Any) -> None:
    rows = ask("reset-offsets", f"{group}-new", "--topic", group, "--to-latest", "--execute")["offsets"]
    assert [(row["partition"], row["from"], row["to"]) for row in rows] == [(0, None, 7), (1, None, 0)]


def test_a_deleted_group_is_gone(group: str, node: TidelogNode, tidelog: Tidelog, ask: Any) -> None:
    assert ask("delete", group) == [{"group": group, "deleted": True}]
    gone = tidelog("groups", "describe", group, "--bootstrap", node.bootstrap)
    assert gone.code == 1
    assert "GROUP_ID_NOT_FOUND" in gone.err
    again = tidelog("groups", "delete", group, "--bootstrap", node.bootstrap)
    assert again.code == 1


def test_mistakes_are_one_line(tidelog: Tidelog, node: TidelogNode) -> None:
    wrong = tidelog("groups", "reset-offsets", "g", "--topic", "t", "--bootstrap", node.bootstrap)
    assert wrong.code == 2
    assert "--to-offset" in wrong.err
    unknown = tidelog("groups", "describe", "nobody", "--bootstrap", node.bootstrap)
    assert unknown.code == 1
    assert unknown.err.count("\n") == 1


def test_consume_goes_on_where_its_group_is_and_says_where_it_is(
    group: str, node: TidelogNode, tidelog: Tidelog, ask: Any
) -> None:
    """A second run must not print again what the first printed, and the position is that of its consumer."""
    words = ("consume", group, "--group", group, "--bootstrap", node.bootstrap)
    assert tidelog(*words, "--max", 2).out.split() == ["3", "4"]
    row = next(one for one in ask("describe", group)[0]["partitions"] if one["partition"] == 0)
    assert (row["committed"], row["position"], row["position_lag"]) == (5, 5, 2)
    assert tidelog(*words).out.split() == ["5", "6"]
    assert tidelog(*words).out == ""
    fresh = ("consume", group, "--group", f"{group}-new", "--bootstrap", node.bootstrap)
    assert tidelog(*fresh, "--from", "6").out.split() == ["6"]
