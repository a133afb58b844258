"""`tidelog events`: the story of the replicas, from the topic that the nodes write it to."""

from __future__ import annotations

import argparse
import heapq
import json
import re
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidelog.cli.events_text import KINDS, event_line
from tidelog.cli.frame import Exit, Parser, add_cluster, add_json
from tidelog.cli.output import print_json
from tidelog.cli.values import INT64_MAX
from tidelog.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from tidelog.client.client import Client
    from tidelog.client.consumer import Consumer

SUMMARY = "show what happened to replicas, and why"
EXAMPLES = """\
  tidelog events                            all that is kept
  tidelog events --follow --since 1m        the last minute, and what comes, until Ctrl-C
  tidelog events --topic orders --since 2026-11-15T10:00:00Z --json
  tidelog events --kind leader-elected --kind isr-changed

Elections, ISR changes, truncations, fencings and changes of controller, each with its reason, as the nodes wrote them
to the topic __replication_events. --positions adds where partitions stood (at most once a second each). --since takes
30s, 10m, 2h, 1d, a time (2026-11-15, 2026-11-15T10:00:00Z) or milliseconds since 1970 as @1763200800000."""

TOPIC = "__replication_events"
POSITIONS = "replica-positions"
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_REORDERED = 1_000
"""Nodes write for themselves, so events of one moment come in any order; so many are held back to be put in order."""
_WAIT_MS = 500


def configure(parser: Parser) -> None:
    """The options."""
    parser.add_argument("--follow", action="store_true", help="wait for more at the end")
    parser.add_argument("--topic", metavar="T", help="only what is about this topic")
    parser.add_argument("--since", type=_since, metavar="WHEN", help="only what happened since then")
    parser.add_argument(
        "--kind", action="append", choices=sorted(KINDS), metavar="KIND", help="only this kind; may be given again"
    )
    parser.add_argument("--positions", action="store_true", help="also where partitions stood")
    add_cluster(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what there is, or for ever."""
    from tidelog.client.client import Client

    with Client(arguments.bootstrap, client_id="tidelog-events", timeout_ms=arguments.timeout_ms) as client:
        for event in _events(client, arguments.follow, arguments.since):
            if _is_wanted(event, arguments):
                if arguments.json:
                    print_json(event)
                else:
                    print(event_line(event))
                if arguments.follow:
                    sys.stdout.flush()
    return Exit.OK


def _is_wanted(event: dict[str, Any], arguments: argparse.Namespace) -> bool:
    kind = event.get("kind")
    if arguments.topic is not None and event.get("topic") != arguments.topic:
        return False
    if arguments.since is not None and int(event.get("time_ms", 0)) < arguments.since:
        return False
    if arguments.kind:
        return kind in arguments.kind
    return arguments.positions or kind != POSITIONS


def _events(client: Client, follow: bool, since_ms: int | None) -> Iterator[dict[str, Any]]:
    """Events in the order of their time, as far as they come close together."""
    consumer = _consumer(client, follow, since_ms)
    if consumer is None:
        return
    waiting: list[tuple[int, int, dict[str, Any]]] = []
    count = 0
    while True:
        at_end = not any(position < consumer.ends.get(where, 0) for where, position in consumer.positions.items())
        if at_end and not follow:
            break
        for fetched in consumer.fetch(_WAIT_MS):
            for record in consumer.decode(fetched):
                event = _read(record.value)
                if event is not None:
                    count += 1
                    heapq.heappush(waiting, (int(event.get("time_ms", 0)), count, event))
                while len(waiting) > _REORDERED:
                    yield heapq.heappop(waiting)[2]
        while follow and waiting:
            yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]


def _consumer(client: Client, follow: bool, since_ms: int | None) -> Consumer | None:
    """A reader from where the story is to begin; None when nothing was ever written."""
    from tidelog.client.consumer import Consumer
    from tidelog.client.offsets import EARLIEST, LATEST, list_offsets

    while True:
        try:
            wanted = [(TOPIC, number) for number in client.topic(TOPIC).partitions]
            break
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            if not follow:
                print(f"tidelog events: there is no topic {TOPIC}: nothing was written yet", file=sys.stderr)
                return None
    ends = {where: found.offset for where, found in list_offsets(client, dict.fromkeys(wanted, LATEST)).items()}
    starts = list_offsets(client, dict.fromkeys(wanted, EARLIEST if since_ms is None else since_ms))
    positions = {where: starts[where].offset if starts[where].offset >= 0 else ends[where] for where in wanted}
    consumer = Consumer(client, positions, max_wait_ms=_WAIT_MS, reset=EARLIEST)
    if not follow:
        consumer.ends = ends
    return consumer


def _read(value: bytes | None) -> dict[str, Any] | None:
    """An event; None for what somebody else wrote to the topic."""
    try:
        event = json.loads(value or b"")
    except ValueError:
        return None
    return event if isinstance(event, dict) and "kind" in event else None


def _since(text: str) -> int:
    """A moment in milliseconds."""
    ago = re.fullmatch(r"(\d+)([smhd])", text)
    if ago:
        # Before 1970 nothing was written, and a negative time means something else to a broker.
        return max(0, int(time.time() * 1000) - int(ago[1]) * _UNIT_MS[ago[2]])
    if re.fullmatch(r"@\d+", text):
        return min(int(text[1:]), INT64_MAX)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 10m, 2026-11-15T10:00:00Z or @milliseconds") from None
    return max(0, int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
