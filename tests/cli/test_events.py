"""What happened to replicas can be read: every kind that is kept has words, and none that matters is left out."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.conftest import SOURCE
from tidelog.cli.events import _since
from tidelog.cli.events_text import KINDS, event_line
from tidelog.node import replication_events

TELLINGS = Path(SOURCE) / "tidelog" / "controller" / "telling.py"
NOT_ABOUT_REPLICAS = {"feature-changed", "config-changed", "controller-registered"}


def test_every_change_that_the_controller_tells_of_replicas_is_kept() -> None:
    told = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', TELLINGS.read_text()))
    assert {"leader-elected", "leader-lost", "isr-changed"} < told
    assert told - NOT_ABOUT_REPLICAS <= replication_events.KINDS


def test_every_kind_that_is_kept_has_words() -> None:
    assert replication_events.KINDS == KINDS


def test_an_event_is_a_line_with_its_reason() -> None:
    elected = {
        "time_ms": 1_794_719_567_508,
        "node": 3,
        "kind": "leader-elected",
        "topic": "orders",
        "partition": 0,
        "leader": 2,
        "leader_epoch": 1,
        "isr": [2, 3],
        "previous_leader": 1,
        "unclean": True,
        "reason": "broker 1 fenced",
        "dropped_before": 4,
    }
    assert event_line(elected).partition("  ")[2] == (
        "node 3  orders-0 leader 1 -> 2, epoch 1, ISR 2,3, unclean: committed records may be lost: broker 1 fenced "
        "(4 events before it were dropped)"
    )
    # A node of another version may tell more, or less, than this command knows.
    assert event_line({"time_ms": 0, "node": 1, "kind": "isr-changed", "x": 1}).endswith("node 1  isr-changed x=1")
    assert event_line({"time_ms": 0, "node": 1, "kind": "new", "x": 1}).endswith("node 1  new x=1")


def test_one_of_something_is_not_many() -> None:
    cut = {"time_ms": 0, "node": 1, "kind": "log-truncated", "topic": "orders", "partition": 0, "offset": 7}
    assert event_line({**cut, "records": 1}).endswith("orders-0 cut to offset 7, 1 record gone")
    assert event_line({**cut, "records": 2}).endswith("orders-0 cut to offset 7, 2 records gone")
    lost = {"time_ms": 0, "node": 1, "kind": "broker-directories-offline", "broker": 2, "directories": ["a"]}
    assert event_line(lost).endswith("broker 2 lost 1 directory")


def test_a_moment_is_never_one_that_means_something_else_to_a_broker() -> None:
    """Below 0 are names of offsets (-1 the latest, -2 the earliest), and there are 64 bits."""
    assert _since("@1794719567508") == 1_794_719_567_508
    assert _since("1970-01-01T00:00:01Z") == 1_000
    assert _since("10m") < _since("5m")
    assert [_since("99999999d"), _since("1969-12-31T00:00:00"), _since(f"@{10**30}")] == [0, 0, 2**63 - 1]
