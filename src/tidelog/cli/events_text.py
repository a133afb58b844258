"""One line for one event of the replicas: when, where, what, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tidelog.cli.output import counted

Event = Mapping[str, Any]


def event_line(event: Event) -> str:
    """An event as a person reads it; one of a kind unknown here with all its fields."""
    # In local time, as a node's own log has it.
    moment = datetime.fromtimestamp(int(event.get("time_ms", 0)) / 1000, UTC).astimezone()
    wording = _WORDINGS.get(str(event.get("kind")))
    try:
        text = _fields(event) if wording is None else wording(event)
    except (KeyError, TypeError, ValueError):  # of another version: its fields are not those known here
        text = _fields(event)
    reason = event.get("reason")
    if wording is not None and reason:
        text += f": {reason}"
    if event.get("dropped_before"):
        text += f" ({event['dropped_before']} events before it were dropped)"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}  node {event.get('node', '?')}  {text}"


def _fields(event: Event) -> str:
    told = [f"{name}={value}" for name, value in event.items() if name not in ("time_ms", "node", "kind")]
    return " ".join([str(event.get("kind")), *told])


def _place(event: Event) -> str:
    return f"{event['topic']}-{event['partition']}"


def _numbers(numbers: Any) -> str:
    return ",".join(map(str, numbers)) or "empty"


def _elected(event: Event) -> str:
    before = f"{event['previous_leader']} -> " if event["previous_leader"] >= 0 else "none -> "
    unclean = ", unclean: committed records may be lost" if event.get("unclean") else ""
    return (
        f"{_place(event)} leader {before}{event['leader']}, epoch {event['leader_epoch']}, "
        f"ISR {_numbers(event['isr'])}{unclean}"
    )


def _isr(event: Event) -> str:
    change = f"{_place(event)} ISR {_numbers(event['previous_isr'])} -> {_numbers(event['isr'])}"
    return change + (f", eligible leaders {_numbers(event['elr'])}" if event.get("elr") else "")


def _positions(event: Event) -> str:
    high_watermark, end = event["high_watermark"], event["log_end_offset"]
    followers = ", ".join(f"{broker} at {offset}" for broker, offset in event["followers"].items())
    return f"{_place(event)} leader {event['leader']} at {end}, HW {high_watermark}" + (
        f", followers {followers}" if followers else ""
    )


def _topic_created(event: Event) -> str:
    partitions = counted(event["partitions"], "partition")
    return f"topic {event['topic']} created, {partitions}, replication factor {event['replication_factor']}"


_WORDINGS: dict[str, Callable[[Event], str]] = {
    "broker-directories-offline": lambda event: (
        f"broker {event['broker']} lost {counted(len(event['directories']), 'directory', 'directories')}"
    ),
    "broker-fenced": lambda event: f"broker {event['broker']} fenced",
    "broker-registered": lambda event: f"broker {event['broker']} registered, epoch {event['epoch']}",
    "broker-running": lambda event: f"broker {event['broker']} runs, epoch {event['epoch']}",
    "broker-stopping": lambda event: f"broker {event['broker']} is stopping",
    "broker-unfenced": lambda event: f"broker {event['broker']} unfenced",
    "broker-unregistered": lambda event: f"broker {event['broker']} unregistered",
    "controller-active": lambda event: f"controller is {event['controller']}, epoch {event['epoch']}",
    "controller-resigned": lambda event: f"controller {event['controller']} resigned, epoch {event['epoch']}",
    "damaged-replica-discarded": lambda event: f"{_place(event)} thrown away, to be copied again",
    "damaged-replica-kept": lambda event: f"{_place(event)} kept although it is damaged",
    "isr-changed": _isr,
    "leader-elected": _elected,
    "leader-lost": lambda event: f"{_place(event)} has no leader, before {event['previous_leader']}",
    "log-damaged": lambda event: f"{_place(event)} is damaged",
    "log-directory-offline": lambda event: (
        f"directory {event['directory']} offline, {counted(event['partitions'], 'partition')}"
    ),
    "log-restarted": lambda event: f"{_place(event)} begins again at offset {event['offset']}",
    "log-truncated": lambda event: (
        f"{_place(event)} cut to offset {event['offset']}, {counted(event['records'], 'record')} gone"
    ),
    "partitions-added": lambda event: f"topic {event['topic']} has {counted(event['added'], 'partition')} more",
    "reassignment-cancelled": lambda event: f"{_place(event)} move cancelled, replicas {_numbers(event['replicas'])}",
    "reassignment-completed": lambda event: f"{_place(event)} moved, replicas {_numbers(event['replicas'])}",
    "reassignment-started": lambda event: (
        f"{_place(event)} moves: adding {_numbers(event['adding'])}, removing {_numbers(event['removing'])}"
    ),
    "replica-positions": _positions,
    "topic-created": _topic_created,
    "topic-deleted": lambda event: f"topic {event['topic']} deleted",
}
KINDS = frozenset(_WORDINGS)
"""The kinds that have words of their own."""
