"""`tidelog consume`: records to standard output."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

from tidelog.cli.frame import Exit, Parser, UsageError, add_cluster
from tidelog.cli.records_text import json_fields
from tidelog.cli.values import identifier, positive_integer

if TYPE_CHECKING:
    from tidelog.cli.consuming_group import ConsumingGroup
    from tidelog.client.client import Client, TopicPartition
    from tidelog.client.consumer import ConsumedRecord

SUMMARY = "write records to standard output"
EXAMPLES = """\
  tidelog consume orders                                   all there is now, then stop
  tidelog consume orders --follow                          and what comes, until Ctrl-C
  tidelog consume orders --from latest --follow            only what comes
  tidelog consume orders --from 100 --max 10 --partition 0
  tidelog consume orders --from 2026-11-15T10:00:00Z --json-lines
  tidelog consume orders --group billing --follow          on from what the group has committed

--from takes earliest, latest, an offset, a time (2026-11-15, 2026-11-15T10:00:00Z) or milliseconds since 1970 as
@1763200800000. Records of one partition come in order. JSON lines have topic, partition, offset, timestamp, key, value
and headers; key_base64 and value_base64 stand for bytes that are no text. With --group what was printed is committed
every 5 s and at the end, and `tidelog groups describe` shows the position in between; --from counts only where the
group has committed nothing. It reads every partition it is told to and joins nothing: a group with members refuses its
commits."""


def configure(parser: Parser) -> None:
    """The options."""
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--from", dest="start", default="earliest", metavar="WHERE", help="where to begin (earliest)")
    parser.add_argument("--max", type=positive_integer, metavar="N", help="stop after N records")
    parser.add_argument(
        "--partition", type=identifier, action="append", metavar="N", help="only this one; may be given again"
    )
    parser.add_argument("--group", metavar="NAME", help="read for a group: go on where it is, and commit")
    parser.add_argument("--follow", action="store_true", help="wait for more at the end")
    parser.add_argument("--key-separator", metavar="TEXT", help="print key TEXT value; a null is empty")
    parser.add_argument("--headers", action="store_true", help="print name:value,name:value and a tab first")
    parser.add_argument("--json-lines", "--json", action="store_true", help="print a JSON object a line")
    parser.add_argument(
        "--read-uncommitted", action="store_true", help="also records of transactions that are open or were aborted"
    )
    add_cluster(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print until the end, the given number, or for ever."""
    from tidelog.client.client import Client

    if arguments.json_lines and (arguments.key_separator is not None or arguments.headers):
        raise UsageError("tidelog consume: --json-lines has keys and headers of its own")
    separator = arguments.key_separator.encode() if arguments.key_separator is not None else None
    start = _parse_start(arguments.start)
    out = sys.stdout.buffer
    left = arguments.max
    with Client(arguments.bootstrap, client_id="tidelog-consume", timeout_ms=arguments.timeout_ms) as client:
        group = None
        if arguments.group is not None:
            from tidelog.cli.consuming_group import ConsumingGroup

            group = ConsumingGroup(client, arguments.group)
        try:
            for answer in _answers(client, arguments, start, group):
                for record in islice(answer, left):
                    if arguments.json_lines:
                        out.write(json.dumps(json_fields(record), ensure_ascii=False).encode() + b"\n")
                    else:
                        out.write(_line(record, separator, arguments.headers) + b"\n")
                    if group is not None:
                        group.read(record)
                    if left is not None:
                        left -= 1
                out.flush()
                if group is not None:
                    group.tend()
                if left == 0:
                    break
        except KeyboardInterrupt:  # the way out of --follow; what was printed is read
            if group is not None:
                group.end()
            raise
        if group is not None:
            group.end()
    return Exit.OK


def _answers(
    client: Client, arguments: argparse.Namespace, start: tuple[str, int], group: ConsumingGroup | None
) -> Iterator[Iterator[ConsumedRecord]]:
    """Records as they come, an answer at a time, each decoded while it is read; an empty one after every round."""
    from tidelog.client.consumer import Consumer
    from tidelog.client.offsets import EARLIEST, LATEST, list_offsets

    view = client.topic(arguments.topic, led=arguments.partition)
    missing = set(arguments.partition or ()) - set(view.partitions)
    if missing:
        raise UsageError(f"tidelog consume: {arguments.topic} has no partition {min(missing)}")
    wanted = [(arguments.topic, number) for number in arguments.partition or view.partitions]
    committed = not arguments.read_uncommitted
    ends = {
        where: found.offset
        for where, found in list_offsets(client, dict.fromkeys(wanted, LATEST), read_committed=committed).items()
    }
    starts = _starts(client, wanted, start, ends)
    if group is not None:
        starts = group.begin(starts)
    consumer = Consumer(client, starts, read_committed=committed, reset=EARLIEST)
    if not arguments.follow:
        consumer.ends = ends
    while arguments.follow or any(consumer.positions[where] < ends[where] for where in wanted):
        for fetched in consumer.fetch(500):
            end = 1 << 63 if arguments.follow else ends[fetched.topic, fetched.partition]
            yield takewhile(lambda record, end=end: record.offset < end, consumer.decode(fetched))  # type: ignore[misc]
        yield iter(())


def _starts(
    client: Client, wanted: list[TopicPartition], start: tuple[str, int], ends: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Where each partition begins."""
    from tidelog.client.offsets import EARLIEST, list_offsets

    kind, number = start
    if kind == "latest":
        return dict(ends)
    found = list_offsets(client, dict.fromkeys(wanted, number if kind == "timestamp" else EARLIEST))
    if kind == "offset":
        return {where: max(number, found[where].offset) for where in wanted}
    # A time after the last record is nowhere: begin at the end.
    return {where: found[where].offset if found[where].offset >= 0 else ends[where] for where in wanted}


def _parse_start(text: str) -> tuple[str, int]:
    if text in ("earliest", "latest"):
        return text, 0
    if text.isascii() and text.isdigit():
        return "offset", int(text)
    if text.startswith("@") and text[1:].isascii() and text[1:].isdigit():
        return "timestamp", int(text[1:])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"tidelog consume: --from {text!r} is not earliest, latest, an offset, a time like 2026-11-15T10:00:00Z, "
            "or @ and milliseconds"
        ) from None
    return "timestamp", int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _line(record: Any, separator: bytes | None, with_headers: bool) -> bytes:
    parts = []
    if with_headers:
        parts.append(b",".join(name.encode() + b":" + (value or b"") for name, value in record.headers) + b"\t")
    if separator is not None:
        parts.append((record.key or b"") + separator)
    parts.append(record.value or b"")
    return b"".join(parts)
