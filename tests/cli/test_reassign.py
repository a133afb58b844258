"""Plans for moving replicas: made evenly, read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Tidelog
from tidelog.cli.reassign import make_plan, read_plan
from tidelog.errors import ConfigError


def test_a_plan_spreads_leaders_and_what_they_are_followed_by() -> None:
    before = {("t", number): [1, 2, 3] for number in range(12)}
    plan = make_plan(before, [4, 5, 6, 7], None)
    assert all(len(set(replicas)) == 3 for replicas in plan.values())
    leaders = [replicas[0] for replicas in plan.values()]
    assert [leaders.count(broker) for broker in (4, 5, 6, 7)] == [3, 3, 3, 3]
    held = [broker for replicas in plan.values() for broker in replicas]
    assert [held.count(broker) for broker in (4, 5, 6, 7)] == [9, 9, 9, 9]
    # When broker 4 dies, its leaderships do not all fall to one other.
    assert len({replicas[1] for replicas in plan.values() if replicas[0] == 4}) == 3
    assert make_plan({("t", 0): [1, 2]}, [3], 1) == {("t", 0): [3]}
    with pytest.raises(ConfigError, match="t-0 needs 2 brokers, and --brokers names 1"):
        make_plan({("t", 0): [1, 2]}, [3], None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "is not a plan: Expecting value"),
        ("{}", "is not a plan: 'partitions' is missing"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "is not a plan: 'replicas' is missing"),
        ('{"partitions": []}', "it names no partition"),
        ("[1]", r'it is not {"partitions": \[…\]}'),
        ('{"partitions": {"t": 0}}', r'it is not {"partitions": \[…\]}'),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": "1,2"}]}', "a partition is not "),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [9999999999]}]}', "a number is above 2147483647"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_plan(str(file))


def test_a_plan_that_is_not_there(tidelog: Tidelog, tmp_path: Path) -> None:
    file = tmp_path / "none.json"
    with pytest.raises(ConfigError, match="there is no file"):
        read_plan(str(file))
    assert tidelog("reassign", "start", "--topic", "t") == (
        2,
        "",
        "tidelog reassign start: give --plan, or --topic and --brokers\n",
    )
