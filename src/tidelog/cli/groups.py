"""`tidelog groups`: list, describe, reset-offsets, delete."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC
from typing import TYPE_CHECKING, Any

from tidelog.cli.frame import Exit, Parser, add_cluster, add_json, connect, describe
from tidelog.cli.output import print_json, table
from tidelog.cli.values import whole_number
from tidelog.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from tidelog.client import Client

SUMMARY = "list, describe and delete consumer groups, and reset their offsets"
EXAMPLES = """\
  tidelog groups list
  tidelog groups describe billing
  tidelog groups reset-offsets billing --topic orders --to-earliest
  tidelog groups reset-offsets billing --topic orders:0 --to-offset 42 --execute
  tidelog groups delete billing"""
UNKNOWN = "unknown"
"""Stands where a consumer has not said it: a position is never guessed."""
TopicPartition = tuple[str, int]


def configure(parser: Parser) -> None:
    """The options of each subcommand."""
    commands = parser.add_commands()
    commands.add("list", "name all groups", "  tidelog groups list --json", _list)
    described = commands.add(
        "describe",
        "show members, and for each partition what is committed, read, replicated and written",
        "  tidelog groups describe billing\n  tidelog groups describe billing --json",
        _describe,
    )
    described.add_argument("groups", metavar="GROUP", nargs="+")
    reset = commands.add(
        "reset-offsets",
        "move what a group without members has committed; shows what would be done unless --execute is given",
        "  tidelog groups reset-offsets billing --topic orders --to-earliest\n"
        "  tidelog groups reset-offsets billing --shift-by -100 --execute\n"
        "  tidelog groups reset-offsets billing --topic orders:0 --to-time 2026-01-31T12:00:00Z",
        _reset,
    )
    reset.add_argument("group", metavar="GROUP")
    reset.add_argument(
        "--topic",
        type=_topic,
        action="append",
        default=[],
        metavar="TOPIC[:P,…]",
        help="default: every partition the group has an offset of",
    )
    to = reset.add_mutually_exclusive_group(required=True)
    to.add_argument("--to-offset", type=whole_number, metavar="N")
    to.add_argument("--to-earliest", action="store_true")
    to.add_argument("--to-latest", action="store_true")
    to.add_argument("--to-time", type=_time_ms, metavar="TIME", help="ISO 8601, or milliseconds since 1970")
    to.add_argument("--shift-by", type=int, metavar="N", help="records forward, or back where it is negative")
    mode = reset.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="only show what would be done (the default)")
    mode.add_argument("--execute", action="store_true", help="do it")
    delete = commands.add("delete", "delete groups without members", "  tidelog groups delete billing", _delete)
    delete.add_argument("groups", metavar="GROUP", nargs="+")
    commands.share(add_cluster, add_json)


def _list(arguments: argparse.Namespace) -> int:
    from tidelog.client.groups import list_groups

    with connect(arguments) as client:
        found = list_groups(client)
    if arguments.json:
        print_json([one._asdict() for one in found])
    else:
        rows = [(one.group, one.state, one.type, one.protocol_type, one.coordinator) for one in found]
        print("\n".join(table(["group", "state", "type", "protocol", "coordinator"], rows)))
    return Exit.OK


# --- describe ---


def _describe(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        described = [describe_group(client, group) for group in arguments.groups]
    if arguments.json:
        print_json(described)
        return Exit.OK
    for number, group in enumerate(described):
        print(("\n" if number else "") + describe_text(group))
    return Exit.OK


def describe_group(client: Client, group: str) -> dict[str, Any]:
    """A group, its members, and of every partition it has to do with the four positions and the lag of each."""
    from tidelog.client import groups

    view = groups.describe_group(client, group)
    committed = groups.committed_offsets(client, group)
    positions = groups.reported_positions(client, group)
    owners = {partition: member for member in view.members for partition in member.partitions}
    wanted = sorted({*committed, *owners, *positions})
    watermarks, ends = _ends(client, wanted)
    rows = []
    for where in wanted:
        owner = owners.get(where)
        own = committed[where].offset if where in committed and committed[where].offset >= 0 else None
        position, end = positions.get(where), ends.get(where)
        rows.append(
            {
                "topic": where[0],
                "partition": where[1],
                "committed": own,
                "position": UNKNOWN if position is None else position,
                "high_watermark": watermarks.get(where),
                "log_end": end,
                "lag": _lag(watermarks.get(where), own),
                "position_lag": UNKNOWN if position is None else _lag(watermarks.get(where), position),
                "uncommitted": _lag(end, watermarks.get(where)),
                "member": None if owner is None else owner.member_id,
            }
        )
    return {
        "group": view.group,
        "state": view.state,
        "type": view.type,
        "assignor": view.protocol,
        "coordinator": view.coordinator,
        "members": [
            {"member": one.member_id, "instance": one.instance_id, "client": one.client_id, "host": one.host}
            for one in view.members
        ],
        "partitions": rows,
    }


def _lag(end: int | None, offset: int | None) -> int | None:
    """Below zero, as in Kafka's tool, where a group has committed what the log does not have: records were lost."""
    return None if end is None or offset is None else end - offset


def _ends(
    client: Client, wanted: list[TopicPartition]
) -> tuple[dict[TopicPartition, int | None], dict[TopicPartition, int | None]]:
    """High watermark and log end of each partition; None where the topic or its leader is gone."""
    from tidelog.client.offsets import LATEST, list_offsets

    watermarks: dict[TopicPartition, int | None] = {}
    ends: dict[TopicPartition, int | None] = {}
    for topic in sorted({topic for topic, _ in wanted}):
        partitions = dict.fromkeys([one for one in wanted if one[0] == topic], LATEST)
        try:
            watermarks |= {where: one.offset for where, one in list_offsets(client, partitions).items()}
            ends |= {where: one.offset for where, one in list_offsets(client, partitions, to_log_end=True).items()}
        except KafkaError as error:
            if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE):
                raise
    return watermarks, ends


def describe_text(group: dict[str, Any]) -> str:
    """The same for people."""
    lines = [
        f"{group['group']}  {group['state']}, {group['type']}"
        + (f", {group['assignor']}" if group["assignor"] else "")
        + f", {len(group['members'])} members, coordinator {group['coordinator']}"
    ]
    if group["members"]:
        lines += [
            "  " + line
            for line in table(
                ["member", "instance", "client", "host"], [list(one.values()) for one in group["members"]]
            )
        ]
        lines.append("")
    headings = ["topic", "partition", "committed", "position", "hw", "log end", "lag", "position lag", "member"]
    names = [
        "topic",
        "partition",
        "committed",
        "position",
        "high_watermark",
        "log_end",
        "lag",
        "position_lag",
        "member",
    ]
    rows = [[row[name] for name in names] for row in group["partitions"]]
    lines += ["  " + line for line in table(headings, rows)] if rows else ["  no offsets"]
    return "\n".join(lines)


# --- reset-offsets ---


def _reset(arguments: argparse.Namespace) -> int:
    from tidelog.client import groups

    with connect(arguments) as client:
        view = None
        try:
            view = groups.describe_group(client, arguments.group)
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND or not arguments.topic:
                raise
        if view is not None and view.members:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {arguments.group} has {len(view.members)} members; stop them before its offsets are moved",
            )
        committed = {where: one.offset for where, one in groups.committed_offsets(client, arguments.group).items()}
        targets, warnings = _targets(client, arguments, committed)
        for warning in warnings:
            print(f"tidelog groups reset-offsets: {warning}", file=sys.stderr)
        if arguments.execute and targets:
            groups.commit_offsets(client, arguments.group, targets)
    rows = [
        {"topic": topic, "partition": partition, "from": committed.get((topic, partition)), "to": offset}
        for (topic, partition), offset in sorted(targets.items())
    ]
    if arguments.json:
        executed = bool(arguments.execute)
        print_json({"group": arguments.group, "executed": executed, "offsets": rows, "warnings": warnings})
        return Exit.OK
    print("\n".join(table(["topic", "partition", "from", "to"], [list(row.values()) for row in rows])))
    if not arguments.execute:
        print("dry run: nothing was changed; --execute does it")
    return Exit.OK


def _targets(
    client: Client, arguments: argparse.Namespace, committed: dict[TopicPartition, int]
) -> tuple[dict[TopicPartition, int], list[str]]:
    """Where each partition goes, never outside of what the log has, and what to warn of: where that is not what was
    asked for.
    """
    from tidelog.client.offsets import EARLIEST, LATEST, list_offsets

    wanted: list[TopicPartition] = []
    for topic, partitions in arguments.topic:
        known = client.topic(topic).partitions
        missing = [one for one in partitions or () if one not in known]
        if missing:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {missing[0]}")
        wanted += [(topic, partition) for partition in (partitions or sorted(known))]
    wanted = wanted or sorted(committed)
    if not wanted:
        return {}, []
    starts = list_offsets(client, dict.fromkeys(wanted, EARLIEST))
    ends = list_offsets(client, dict.fromkeys(wanted, LATEST))
    times = list_offsets(client, dict.fromkeys(wanted, arguments.to_time)) if arguments.to_time is not None else {}
    targets = {}
    warnings = []
    for where in wanted:
        start, end = starts[where].offset, ends[where].offset
        name = f"{where[0]}-{where[1]}"
        if arguments.to_earliest:
            target = start
        elif arguments.to_latest:
            target = end
        elif arguments.to_time is not None:
            target = times[where].offset
            if target < 0:
                warnings.append(f"{name} has no record of that time or later: its end, {end}, is taken")
                target = end
        elif arguments.shift_by is not None:
            if where not in committed:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{name} has no committed offset to shift")
            target = committed[where] + arguments.shift_by
        else:
            target = arguments.to_offset
        if target < start:
            warnings.append(f"{name}: offset {target} is before its start: {start} is taken")
        elif target > end:
            warnings.append(f"{name}: offset {target} is beyond its end: {end} is taken")
        targets[where] = min(max(target, start), end)
    return targets, warnings


def _topic(text: str) -> tuple[str, list[int] | None]:
    name, colon, partitions = text.partition(":")
    try:
        return name, [int(one) for one in partitions.split(",")] if colon else None
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC or TOPIC:0,1") from None


def _time_ms(text: str) -> int:
    from datetime import datetime

    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


# --- delete ---


def _delete(arguments: argparse.Namespace) -> int:
    from tidelog.client.groups import delete_group

    rows: list[dict[str, Any]] = []
    with connect(arguments) as client:
        for group in arguments.groups:
            try:
                delete_group(client, group)
                rows.append({"group": group, "deleted": True})
            except KafkaError as error:
                rows.append({"group": group, "deleted": False, "error": error.code.name})
                print(f"tidelog groups delete: {group}: {describe(error)}", file=sys.stderr)
    if arguments.json:
        print_json(rows)
    else:
        for row in rows:
            if row["deleted"]:
                print(f"deleted {row['group']}")
    return Exit.OK if all(row["deleted"] for row in rows) else Exit.FAILED
