"""`tidelog partitions`: where every replica stands, asked of every broker."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tidelog.cli.frame import Exit, Parser, UsageError, add_cluster, add_json, connect
from tidelog.cli.output import print_json, table
from tidelog.cli.values import identifier

if TYPE_CHECKING:
    from tidelog.client.client import Client
    from tidelog.client.replicas import PartitionPicture, ReplicaView

SUMMARY = "show where every replica of a topic stands, and why"
EXAMPLES = """\
  tidelog partitions describe orders
  tidelog partitions describe orders --partition 0 --json"""

_NODE_TIMEOUT_MS = 2_000
"""How long one broker is waited for; a paused one takes connections and says nothing."""


def configure(parser: Parser) -> None:
    """The options of each subcommand."""
    commands = parser.add_commands()
    described = commands.add(
        "describe",
        "show each replica's end, high watermark, lag, epochs, and why it is not in the ISR",
        "  tidelog partitions describe orders\n"
        "  tidelog partitions describe orders --partition 0 --json\n\n"
        "HW 3 (committed through 2): the high watermark is the first offset that is not committed yet.",
        _describe,
    )
    described.add_argument("topic", metavar="TOPIC")
    described.add_argument("--partition", type=identifier, metavar="N", help="only this one")
    add_cluster(described)
    add_json(described)


def _describe(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        pictures = _pictures(client, arguments.topic, arguments.partition)
    if arguments.json:
        print_json([as_json(one) for one in pictures])
    else:
        print("\n\n".join(_text(one) for one in pictures))
    return Exit.OK


def _pictures(client: Client, topic: str, partition: int | None) -> list[PartitionPicture]:
    from tidelog.client.admin import describe_topics
    from tidelog.client.cluster_admin import list_brokers
    from tidelog.client.query import NodeQueries
    from tidelog.client.replicas import picture

    (view,) = describe_topics(client, [topic])
    if partition is not None and partition not in view.partitions:
        raise UsageError(f"tidelog partitions describe: {topic} has no partition {partition}")
    addresses = {broker.broker_id: (broker.host, broker.port) for broker in list_brokers(client).brokers}
    queries = NodeQueries(addresses, timeout_ms=min(_NODE_TIMEOUT_MS, client.timeout_ms))
    try:
        answers = queries.ask("replicas", {"topic": topic})
    finally:
        queries.close()
    wanted = view.partitions if partition is None else [partition]
    return [picture(topic, view.partitions[number], answers) for number in wanted]


def as_json(one: PartitionPicture) -> dict[str, Any]:
    """A partition for programs."""
    replicas = [
        replica._asdict() | {"epochs": [{"epoch": epoch, "start_offset": start} for epoch, start in replica.epochs]}
        for replica in one.replicas
    ]
    return one._asdict() | {"replicas": replicas}


def watermark_text(high_watermark: int | None) -> str | None:
    """`HW 3 (committed through 2)`: a high watermark is read wrong more often than right."""
    if high_watermark is None:
        return None
    return f"HW {high_watermark} " + (
        f"(committed through {high_watermark - 1})" if high_watermark else "(nothing committed)"
    )


def _text(one: PartitionPicture) -> str:
    leader = "no leader" if one.leader is None else f"leader {one.leader}"
    head = [leader, f"leader epoch {one.leader_epoch}", f"ISR {_numbers(one.isr)}"]
    head += [f"ISR asked for {_numbers(one.proposed_isr)}"] if one.proposed_isr is not None else []
    head += [f"eligible leaders {_numbers(one.eligible_leaders)}"] if one.eligible_leaders else []
    head += [text] if (text := watermark_text(one.high_watermark)) else []
    rows = [
        [
            replica.broker,
            replica.role,
            replica.log_start_offset,
            replica.log_end_offset,
            watermark_text(replica.high_watermark),
            replica.lag,
            "in" if replica.in_isr else "out",
            "; ".join(filter(None, [replica.why_not, replica.note])),
        ]
        for replica in one.replicas
    ]
    lines = [f"{one.topic}-{one.partition}  {', '.join(head)}"]
    headings = ["broker", "role", "start", "leo", "high watermark", "lag", "isr", "why"]
    lines += ["  " + line for line in table(headings, rows)]
    lines += ["  " + line for line in _epoch_lines(one.replicas)]
    return "\n".join(lines)


def _epoch_lines(replicas: list[ReplicaView]) -> list[str]:
    """The epochs in the logs: one line where all replicas have the same."""
    known = [replica for replica in replicas if replica.role in ("leader", "follower")]
    histories = {tuple(replica.epochs) for replica in known}
    if len(histories) == 1:
        return [f"epochs: {_epochs(known[0])}"]
    return [f"epochs of broker {replica.broker}: {_epochs(replica)}" for replica in known]


def _epochs(replica: ReplicaView) -> str:
    return ", ".join(f"{epoch} from offset {start}" for epoch, start in replica.epochs) or "none: the log is empty"


def _numbers(numbers: list[int]) -> str:
    return ",".join(map(str, numbers)) or "empty"
