"""`tidelog reassign`: move replicas while partitions serve."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidelog.cli.frame import Exit, Parser, UsageError, add_cluster, add_json, connect
from tidelog.cli.output import print_json, table
from tidelog.cli.places import Place, partitions_at, place, tell_refusals
from tidelog.cli.values import INT32_MAX, identifier, positive_long, replication_factor
from tidelog.errors import ConfigError, TidelogError

if TYPE_CHECKING:
    from tidelog.client.client import Client, TopicPartition

SUMMARY = "move replicas to other brokers"
EXAMPLES = """\
  tidelog reassign start --topic orders --brokers 2,3,4 --dry-run    show the plan and do nothing
  tidelog reassign start --topic orders --brokers 2,3,4 --wait
  tidelog reassign start --plan plan.json
  tidelog reassign start --plan plan.json --throttle 10000000        at most 10 MB a second on each broker
  tidelog reassign verify                                            is it done? then the throttle goes
  tidelog reassign list
  tidelog reassign cancel orders:0

A plan is JSON as Kafka's tools write it:
  {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3, 4]}]}
The first replica of each partition is its preferred leader. A throttle holds for the replicas that move, on every
broker that has to do with them, and stays until `verify` (or --wait) finds that everything is done."""

_POLL_SECONDS = 0.1


def configure(parser: Parser) -> None:
    """The options of each subcommand."""
    commands = parser.add_commands()
    start = commands.add(
        "start",
        "move partitions to the replicas of a plan",
        "  tidelog reassign start --topic orders --brokers 2,3,4 --dry-run --json >plan.json\n"
        "  tidelog reassign start --plan plan.json --wait",
        _start,
    )
    start.add_argument("--plan", metavar="FILE", help="a plan as JSON; - is standard input")
    start.add_argument("--topic", type=place, action="append", default=[], metavar="TOPIC[:PARTITION]")
    start.add_argument("--brokers", type=_brokers, metavar="1,2,3", help="spread the topics over these brokers")
    start.add_argument(
        "--replication-factor", type=replication_factor, metavar="N", help="with --topic; default: as many as now"
    )
    start.add_argument("--dry-run", action="store_true", help="show the plan and do nothing")
    start.add_argument("--wait", action="store_true", help="return when all of it is done, or --timeout is over")
    start.add_argument(
        "--throttle",
        type=positive_long,
        metavar="BYTES",
        help="bytes a second on each broker, for what moves",
    )
    commands.add(
        "verify",
        "say whether anything is still being moved, and take the throttle away when nothing is",
        "  tidelog reassign verify",
        _verify,
    )
    commands.add("list", "show the partitions that are being moved", "  tidelog reassign list --json", _list)
    cancel = commands.add(
        "cancel",
        "take back moves that are not done",
        "  tidelog reassign cancel\n  tidelog reassign cancel orders:0",
        _cancel,
    )
    cancel.add_argument("places", metavar="TOPIC[:PARTITION]", nargs="*", type=place, help="default: all under way")
    commands.share(add_cluster, add_json)


def _start(arguments: argparse.Namespace) -> int:
    from tidelog.cli.throttling import throttle, unthrottle
    from tidelog.client.cluster_admin import alter_reassignments, list_reassignments

    if bool(arguments.plan) == bool(arguments.topic) or bool(arguments.topic) != bool(arguments.brokers):
        raise UsageError("tidelog reassign start: give --plan, or --topic and --brokers")
    with connect(arguments) as client:
        if arguments.plan:
            plan = read_plan(arguments.plan)
            places = [Place(*where) for where in plan]
            before = {
                key: view.replicas for key, view in partitions_at(client, places, "tidelog reassign start").items()
            }
        else:
            views = partitions_at(client, arguments.topic, "tidelog reassign start")
            before = {where: view.replicas for where, view in views.items()}
            plan = make_plan(before, arguments.brokers, arguments.replication_factor)
        if arguments.dry_run:
            if arguments.json:
                print_json(_as_kafka(plan))
            else:
                print(_plan_text(before, plan))
            return Exit.OK
        throttled = [] if arguments.throttle is None else throttle(client, before, plan, arguments.throttle)
        outcomes = alter_reassignments(client, plan)
        code = tell_refusals("tidelog reassign start", outcomes)
        begun = {where: plan[where] for where, error in outcomes.items() if error is None}
        if throttled and not begun and not list_reassignments(client):
            unthrottle(client, throttled)
        if arguments.wait:
            _wait(client, begun, arguments.timeout_ms)
            unthrottle(client, throttled)
    if arguments.json:
        print_json({"before": _as_kafka(before), "plan": _as_kafka(begun), "done": arguments.wait})
    elif begun:
        print(_plan_text(before, begun))
        print("all moved" if arguments.wait else "under way: tidelog reassign list shows it")
    return Exit(code)


def _wait(client: Client, begun: Mapping[TopicPartition, Sequence[int]], timeout_ms: int) -> None:
    from tidelog.client.cluster_admin import list_reassignments

    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        left = sorted(set(list_reassignments(client)) & set(begun))
        if not left:
            return
        if time.monotonic() > deadline:
            raise TidelogError(f"not done after {timeout_ms / 1000:g} s: {left[0][0]}-{left[0][1]} is still under way")
        time.sleep(_POLL_SECONDS)


def _verify(arguments: argparse.Namespace) -> int:
    from tidelog.cli.throttling import remove_throttle
    from tidelog.client.cluster_admin import list_reassignments

    with connect(arguments) as client:
        under_way = sorted(list_reassignments(client))
        freed = [] if under_way else remove_throttle(client)
    if arguments.json:
        rows = [{"topic": topic, "partition": partition} for topic, partition in under_way]
        print_json({"under_way": rows, "throttle_removed": freed})
        return Exit.FAILED if under_way else Exit.OK
    for topic, partition in under_way:
        print(f"{topic}-{partition} is still being moved")
    if not under_way:
        print("nothing is being moved")
    for name in freed:
        print(f"no longer throttled: {name}")
    return Exit.FAILED if under_way else Exit.OK


def _list(arguments: argparse.Namespace) -> int:
    from tidelog.client.cluster_admin import list_reassignments

    with connect(arguments) as client:
        found = list_reassignments(client)
    if arguments.json:
        print_json(
            [{"topic": where[0], "partition": where[1], **one._asdict()} for where, one in sorted(found.items())]
        )
    elif not found:
        print("no partition is being moved")
    else:
        rows = [[*where, one.replicas, one.adding, one.removing] for where, one in sorted(found.items())]
        print("\n".join(table(["topic", "partition", "replicas", "adding", "removing"], rows)))
    return Exit.OK


def _cancel(arguments: argparse.Namespace) -> int:
    from tidelog.client.cluster_admin import alter_reassignments, list_reassignments

    with connect(arguments) as client:
        if arguments.places:
            named = partitions_at(client, arguments.places, "tidelog reassign cancel")
            # A topic as a whole means what of it is under way; a partition that was named is asked about as it is.
            under_way = set(list_reassignments(client)) | {tuple(one) for one in arguments.places}
            wanted = [where for where in named if where in under_way]
        else:
            wanted = list(list_reassignments(client))
        outcomes = alter_reassignments(client, dict.fromkeys(wanted, None)) if wanted else {}
    cancelled = sorted(where for where, error in outcomes.items() if error is None)
    if arguments.json:
        print_json([{"topic": topic, "partition": partition} for topic, partition in cancelled])
    else:
        for topic, partition in cancelled:
            print(f"cancelled the move of {topic}-{partition}")
        if not outcomes:
            print("no partition is being moved")
    return Exit(tell_refusals("tidelog reassign cancel", outcomes))


# --- plans ---


def make_plan(
    before: Mapping[TopicPartition, Sequence[int]], brokers: Sequence[int], replication_factor: int | None
) -> dict[TopicPartition, list[int]]:
    """Spread partitions over brokers: first replicas in turn, the others so that no broker follows only one other."""
    plan: dict[TopicPartition, list[int]] = {}
    for turn, (where, now) in enumerate(sorted(before.items())):
        factor = replication_factor or len(now)
        if factor > len(brokers):
            raise ConfigError(f"{where[0]}-{where[1]} needs {factor} brokers, and --brokers names {len(brokers)}")
        others = [brokers[(turn + step) % len(brokers)] for step in range(1, len(brokers))]
        shift = turn // len(brokers) % max(1, len(others))
        plan[where] = [brokers[turn % len(brokers)], *(others[shift:] + others[:shift])[: factor - 1]]
    return plan


def read_plan(path: str) -> dict[TopicPartition, list[int]]:
    """A plan in Kafka's JSON; ConfigError says what is wrong with it."""
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        plan = _plan_of(json.loads(text))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}") from None
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"{path} is not a plan: {reason}") from None
    if not plan:
        raise ConfigError(f"{path} is not a plan: it names no partition")
    return plan


def _plan_of(document: Any) -> dict[TopicPartition, list[int]]:
    """What a plan's JSON says; TypeError, KeyError or ValueError when it says something else."""
    if not isinstance(document, dict) or not isinstance(document["partitions"], list):
        raise TypeError('it is not {"partitions": […]}')
    plan = {}
    for one in document["partitions"]:
        if not isinstance(one, dict) or not isinstance(one["replicas"], list):
            raise TypeError('a partition is not {"topic": …, "partition": …, "replicas": […]}')
        number, replicas = int(one["partition"]), [int(broker) for broker in one["replicas"]]
        if max(number, *replicas, 0) > INT32_MAX:
            raise ValueError(f"a number is above {INT32_MAX}")
        plan[str(one["topic"]), number] = replicas
    return plan


def _as_kafka(plan: Mapping[TopicPartition, Sequence[int]]) -> dict[str, Any]:
    return {
        "version": 1,
        "partitions": [
            {"topic": topic, "partition": partition, "replicas": list(replicas)}
            for (topic, partition), replicas in sorted(plan.items())
        ],
    }


def _plan_text(before: Mapping[TopicPartition, Sequence[int]], plan: Mapping[TopicPartition, Sequence[int]]) -> str:
    rows = [[*where, before[where], replicas] for where, replicas in sorted(plan.items())]
    return "\n".join(table(["topic", "partition", "replicas now", "replicas then"], rows))


def _brokers(text: str) -> list[int]:
    try:
        brokers = [identifier(word) for word in text.split(",")]
    except argparse.ArgumentTypeError:
        brokers = []
    if not brokers or len(set(brokers)) < len(brokers):
        raise argparse.ArgumentTypeError(f"{text!r} is not different broker ids like 1,2,3")
    return brokers
