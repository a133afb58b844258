"""`tidelog transactions`: list, describe, abort, find-hanging."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from tidelog.cli.frame import Exit, Parser, UsageError, add_cluster, add_json, connect
from tidelog.cli.output import counted, print_json, table
from tidelog.cli.values import identifier, whole_number
from tidelog.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from tidelog.client import Client
    from tidelog.client.transactions import OpenTransaction, TransactionView

SUMMARY = "list, describe and abort transactions, and find those that hang"
EXAMPLES = """\
  tidelog transactions list --state Ongoing
  tidelog transactions describe billing-1
  tidelog transactions abort billing-1
  tidelog transactions find-hanging --topic orders
  tidelog transactions abort --topic orders --partition 0 --start-offset 42"""
OPEN_COLUMNS = ["topic", "partition", "start offset", "producer", "epoch", "idle"]


def configure(parser: Parser) -> None:
    """The options of each subcommand."""
    commands = parser.add_commands()
    list_ = commands.add(
        "list",
        "name transactional ids, with what they are doing",
        "  tidelog transactions list --state Ongoing --longer-than-ms 60000\n"
        "  tidelog transactions list --pattern 'billing-.*' --json",
        _list,
    )
    list_.add_argument("--state", action="append", default=[], metavar="STATE", help="Ongoing, Empty, …; repeatable")
    list_.add_argument("--producer-id", type=whole_number, action="append", default=[], metavar="ID")
    list_.add_argument("--longer-than-ms", type=whole_number, default=-1, metavar="MS", help="open for longer")
    list_.add_argument("--pattern", metavar="REGEX", help="of the whole transactional id")
    described = commands.add(
        "describe",
        "show a transaction: its producer, its age, the partitions it wrote to",
        "  tidelog transactions describe billing-1",
        _describe,
    )
    described.add_argument("ids", metavar="TRANSACTIONAL-ID", nargs="+")
    abort = commands.add(
        "abort",
        "end an open transaction: all of it by its id, or what hangs in one partition by where it starts",
        "  tidelog transactions abort billing-1\n"
        "  tidelog transactions abort --topic orders --partition 0 --start-offset 42",
        _abort,
    )
    abort.add_argument("id", metavar="TRANSACTIONAL-ID", nargs="?")
    abort.add_argument("--topic", metavar="TOPIC")
    abort.add_argument("--partition", type=identifier, metavar="N")
    abort.add_argument("--start-offset", type=whole_number, metavar="N")
    find = commands.add(
        "find-hanging",
        "find transactions that are open in a partition and that no coordinator will end: readers of committed"
        " records wait for them for ever",
        "  tidelog transactions find-hanging\n  tidelog transactions find-hanging --topic orders --partition 0",
        _find_hanging,
    )
    find.add_argument("--topic", metavar="TOPIC", help="default: every topic")
    find.add_argument("--partition", type=identifier, metavar="N", help="only this one of the topic")
    commands.share(add_cluster, add_json)


def _list(arguments: argparse.Namespace) -> int:
    from tidelog.client.transactions import Filters, list_transactions

    filters = Filters(arguments.state, arguments.producer_id, arguments.longer_than_ms, arguments.pattern)
    with connect(arguments) as client:
        found = list_transactions(client, filters)
    if arguments.json:
        print_json([one._asdict() for one in found])
    else:
        rows = [(one.transactional_id, one.state, one.producer_id, one.coordinator) for one in found]
        print("\n".join(table(["transactional id", "state", "producer", "coordinator"], rows)))
    return Exit.OK


# --- describe ---


def _describe(arguments: argparse.Namespace) -> int:
    from tidelog.client.transactions import describe_transaction

    with connect(arguments) as client:
        views = [describe_transaction(client, one) for one in arguments.ids]
    now_ms = time.time_ns() // 1_000_000
    if arguments.json:
        print_json([_as_json(view, now_ms) for view in views])
        return Exit.OK
    print("\n\n".join(describe_text(view, now_ms) for view in views))
    return Exit.OK


def _age_ms(view: TransactionView, now_ms: int) -> int | None:
    """How long it is open; None when it is not."""
    is_open = view.state in ("Ongoing", "PrepareCommit", "PrepareAbort")
    return max(0, now_ms - view.start_ms) if is_open and view.start_ms >= 0 else None


def _as_json(view: TransactionView, now_ms: int) -> dict[str, Any]:
    return {
        **view._asdict(),
        "open_for_ms": _age_ms(view, now_ms),
        "partitions": [{"topic": topic, "partition": index} for topic, index in view.partitions],
    }


def describe_text(view: TransactionView, now_ms: int) -> str:
    """A transaction in a few lines."""
    age_ms = _age_ms(view, now_ms)
    age = "" if age_ms is None else f", open for {_duration(age_ms)} of {_duration(view.timeout_ms)}"
    lines = [
        f"{view.transactional_id}: {view.state}{age}",
        f"producer {view.producer_id}, epoch {view.producer_epoch}; coordinator {view.coordinator}",
    ]
    if view.partitions:
        lines += table(["topic", "partition"], view.partitions)
    return "\n".join(lines)


def _duration(duration_ms: int) -> str:
    seconds = duration_ms / 1000
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


# --- abort ---


def _abort(arguments: argparse.Namespace) -> int:
    from tidelog.client import transactions

    place = (arguments.topic, arguments.partition, arguments.start_offset)
    if (arguments.id is None) == (None in place) or (arguments.id is not None and place != (None, None, None)):
        raise UsageError(
            "tidelog transactions abort: give a TRANSACTIONAL-ID, or --topic, --partition and --start-offset together"
        )
    with connect(arguments) as client:
        if arguments.id is not None:
            transactions.abort_transaction(client, arguments.id)
            aborted = arguments.id
        else:
            hanging = _open_at(client, *place)
            transactions.abort_in_partition(client, hanging)
            aborted = f"the transaction of producer {hanging.producer_id} in {hanging.topic}-{hanging.partition}"
    if arguments.json:
        print_json({"aborted": aborted})
    else:
        print(f"aborted {aborted}")
    return Exit.OK


def _open_at(client: Client, topic: str, partition: int, start_offset: int) -> OpenTransaction:
    from tidelog.client.transactions import open_transactions

    for one in open_transactions(client, [(topic, partition)]):
        if one.start_offset == start_offset:
            return one
    raise KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"no transaction that starts at offset {start_offset} is open in {topic}-{partition}",
    )


# --- find-hanging ---


def _find_hanging(arguments: argparse.Namespace) -> int:
    from tidelog.client.transactions import find_hanging

    if arguments.partition is not None and arguments.topic is None:
        raise UsageError("tidelog transactions find-hanging: --partition needs --topic")
    with connect(arguments) as client:
        if arguments.topic is None:
            topics = client.refresh(None).topics
        else:
            topics = {arguments.topic: client.topic(arguments.topic)}
        partitions = [
            (topic, index)
            for topic, view in sorted(topics.items())
            for index in sorted(view.partitions)
            if arguments.partition in (None, index)
        ]
        if not partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{arguments.topic} has no such partition")
        hanging = find_hanging(client, partitions)
    if arguments.json:
        print_json([one._asdict() for one in hanging])
        return Exit.OK
    if not hanging:
        print(f"nothing hangs in {counted(len(partitions), 'partition')}")
        return Exit.OK
    now_ms = time.time_ns() // 1_000_000
    rows = [
        (
            one.topic,
            one.partition,
            one.start_offset,
            one.producer_id,
            one.producer_epoch,
            _duration(max(0, now_ms - one.last_timestamp_ms)),
        )
        for one in hanging
    ]
    print("\n".join(table(OPEN_COLUMNS, rows)))
    print("\nreaders of committed records stop there; to end one, abort it:")
    for one in hanging:
        where = f"--topic {one.topic} --partition {one.partition} --start-offset {one.start_offset}"
        print(f"  tidelog transactions abort {where}")
    return Exit.OK
