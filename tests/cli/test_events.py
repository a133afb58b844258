"""What happened to replicas can be read: every kind that is kept has words, and none that matters is left out."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.conftest import SOURCE
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
