"""`tidelog produce`: records from standard input."""

from __future__ import annotations

import argparse
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tidelog.cli.frame import Exit, Parser, UsageError, add_cluster, add_json
from tidelog.cli.output import print_json
from tidelog.cli.records_text import LineError, TextRecord, parse_json_line, parse_line
from tidelog.cli.values import identifier

if TYPE_CHECKING:
    from tidelog.client.producer import Producer

SUMMARY = "write records from standard input"
EXAMPLES = """\
  echo hello | tidelog produce orders
  printf 'a:1\\nb:2\\n' | tidelog produce orders --key-separator :
  printf 'source:web,try:1\\thello\\n' | tidelog produce orders --headers
  echo '{"key": "a", "value": "1", "headers": {"source": "web"}}' | tidelog produce orders --json-lines
  tidelog consume orders --json-lines | tidelog produce copy --json-lines --ignore-partitions

One record a line. In JSON lines, key_base64 and value_base64 take bytes that are no text; a value that is no string is
written as JSON. When all is acknowledged, the number of records is printed on standard error (with --json on standard
output). Records are acknowledged before the command ends; at exit code 0 none was lost."""

_LINGER_SECONDS = 0.1
_READ_BYTES = 1 << 20


def configure(parser: Parser) -> None:
    """The options."""
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--key-separator", metavar="TEXT", help="a line is key TEXT value")
    parser.add_argument("--headers", action="store_true", help="a line begins with name:value,name:value and a tab")
    parser.add_argument("--json-lines", action="store_true", help="a line is a JSON object")
    parser.add_argument("--partition", type=identifier, metavar="N", help="default: by key, or any")
    parser.add_argument("--ignore-partitions", action="store_true", help="with --json-lines: choose partitions anew")
    parser.add_argument("--acks", choices=["all", "1", "0"], default="all", help="who must have it (default: all)")
    parser.add_argument("--compression", choices=["none", "gzip", "snappy", "lz4", "zstd"], default="none")
    parser.add_argument(
        "--idempotent", action="store_true", help="no duplicates when an acknowledgement is lost and sent again"
    )
    parser.add_argument("--null-empty", action="store_true", help="an empty value is a null (a tombstone)")
    add_cluster(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read lines until the end, then wait for what is not acknowledged yet."""
    from tidelog.client.client import Client
    from tidelog.client.producer import Delivery, Producer

    if arguments.json_lines and (arguments.key_separator or arguments.headers):
        raise UsageError("tidelog produce: --json-lines has keys and headers of its own")
    if arguments.key_separator == "":
        raise UsageError("tidelog produce: --key-separator must not be empty")
    written: dict[int, int] = {}

    def delivered(delivery: Delivery) -> None:
        written[delivery.partition] = written.get(delivery.partition, 0) + delivery.record_count

    try:
        with Client(arguments.bootstrap, client_id="tidelog-produce", timeout_ms=arguments.timeout_ms) as client:
            client.topic(arguments.topic, create=True)
            producer = Producer(
                client,
                acks=-1 if arguments.acks == "all" else int(arguments.acks),
                compression=arguments.compression,
                idempotent=arguments.idempotent,
                on_delivery=delivered,
            )
            with producer:
                _read_lines(arguments, producer)
    finally:
        total = sum(written.values())
        if arguments.json:
            print_json({"topic": arguments.topic, "records": total, "partitions": dict(sorted(written.items()))})
        else:
            print(f"{total} record{'' if total == 1 else 's'} written to {arguments.topic}", file=sys.stderr)
    return Exit.OK


def _lines(idle: Callable[[], None]) -> Iterator[bytes]:
    """Standard input line by line; `idle` is called when the next is not there yet, since it may never come."""
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):  # somebody put another stream in its place
        yield from sys.stdin.buffer
        return
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    begun = b""
    while True:
        if not poller.poll(_LINGER_SECONDS * 1000):
            idle()
            poller.poll()
        data = os.read(descriptor, _READ_BYTES)
        if not data:
            break
        *lines, begun = (begun + data).split(b"\n")
        yield from lines
    if begun:
        yield begun


def _read_lines(arguments: argparse.Namespace, producer: Producer) -> None:
    separator = arguments.key_separator.encode() if arguments.key_separator is not None else None
    last_flush = time.monotonic()
    for number, raw in enumerate(_lines(producer.flush), start=1):
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        if arguments.json_lines and not line.strip():
            continue
        try:
            record = parse_json_line(line) if arguments.json_lines else parse_line(line, separator, arguments.headers)
        except LineError as error:
            producer.flush()
            raise LineError(f"line {number}: {error}") from None
        if arguments.null_empty and record.value == b"":
            record = TextRecord(record.key, None, *record[2:])
        given = None if arguments.ignore_partitions else record.partition
        producer.send(
            arguments.topic,
            record.value,
            key=record.key,
            headers=record.headers,
            timestamp_ms=record.timestamp_ms,
            partition=given if arguments.partition is None else arguments.partition,
        )
        # Somebody typing wants each line written at once; a pipe wants batches.
        if time.monotonic() - last_flush > _LINGER_SECONDS:
            producer.flush()
            last_flush = time.monotonic()
