"""Partitions as they are typed: TOPIC, or TOPIC:PARTITION."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tidelog.cli.frame import Exit, UsageError, describe

if TYPE_CHECKING:
    from tidelog.client.client import Client, TopicPartition
    from tidelog.client.metadata import PartitionView
    from tidelog.errors import KafkaError


class Place(NamedTuple):
    """A topic, or one partition of it."""

    topic: str
    partition: int | None


def place(text: str) -> Place:
    """An argument TOPIC or TOPIC:PARTITION."""
    match = re.fullmatch(r"([^:]+)(?::(\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC or TOPIC:PARTITION")
    return Place(match[1], None if match[2] is None else int(match[2]))


def partitions_at(client: Client, places: Sequence[Place], command: str) -> dict[TopicPartition, PartitionView]:
    """The partitions meant, whether or not somebody leads them; UsageError for one that is not there."""
    from tidelog.client.admin import describe_topics

    views = {view.name: view for view in describe_topics(client, [one.topic for one in places])} if places else {}
    found: dict[TopicPartition, PartitionView] = {}
    for one in places:
        known = views[one.topic].partitions
        if one.partition is not None and one.partition not in known:
            raise UsageError(f"{command}: {one.topic} has no partition {one.partition}")
        for number in known if one.partition is None else [one.partition]:
            found[one.topic, number] = known[number]
    return found


def tell_refusals(command: str, outcomes: Mapping[TopicPartition, KafkaError | None]) -> Exit:
    """A line for each partition that was refused; the exit code that follows."""
    refused = {where: error for where, error in sorted(outcomes.items()) if error is not None}
    for (topic, partition), error in refused.items():
        print(f"{command}: {topic}-{partition}: {describe(error)}", file=sys.stderr)
    return Exit.FAILED if refused else Exit.OK
