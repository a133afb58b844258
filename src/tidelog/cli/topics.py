"""`tidelog topics`: create, list, describe, alter, delete."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidelog.cli.frame import (
    Exit,
    Parser,
    UsageError,
    add_cluster,
    add_json,
    connect,
    describe,
    is_unreachable,
    warn_of_unused,
)
from tidelog.cli.output import counted, print_json, table
from tidelog.cli.values import identifier, name_and_value, positive_integer, replication_factor
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.uuids import to_text

if TYPE_CHECKING:
    from tidelog.client import Client

SUMMARY = "create, list, describe, alter and delete topics"
EXAMPLES = """\
  tidelog topics create orders --partitions 3 --config retention.ms=86400000
  tidelog topics list
  tidelog topics describe orders --json
  tidelog topics alter orders --partitions 6
  tidelog topics delete orders"""


def configure(parser: Parser) -> None:
    """The options of each subcommand."""
    commands = parser.add_commands()

    create = commands.add(
        "create",
        "make topics",
        "  tidelog topics create orders\n"
        "  tidelog topics create orders payments --partitions 3 --config cleanup.policy=compact\n"
        "  tidelog topics create orders --assignment 1:2,2:3,3:1",
        _create,
    )
    create.add_argument("topics", metavar="TOPIC", nargs="+")
    create.add_argument("--partitions", type=positive_integer, metavar="N", help="default: num.partitions")
    create.add_argument(
        "--replication-factor", type=replication_factor, metavar="N", help="default: default.replication.factor"
    )
    create.add_argument(
        "--assignment",
        type=_assignment,
        metavar="1:2,2:3",
        help="replicas of each partition by broker id: partitions by commas, replicas by colons, leader first",
    )
    create.add_argument(
        "--config", type=name_and_value, action="append", default=[], metavar="NAME=VALUE", help="a topic's setting"
    )
    create.add_argument("--if-not-exists", action="store_true", help="an existing topic is no error")
    create.add_argument("--validate-only", action="store_true", help="say whether it would work, and make nothing")

    list_ = commands.add("list", "name all topics", "  tidelog topics list --internal", _list)
    list_.add_argument("--internal", action="store_true", help="also the topics the cluster keeps for itself")

    described = commands.add(
        "describe",
        "show partitions, leaders, replicas, offsets and settings",
        "  tidelog topics describe orders\n  tidelog topics describe --json",
        _describe,
    )
    described.add_argument("topics", metavar="TOPIC", nargs="*", help="default: all that are not internal")

    alter = commands.add(
        "alter",
        "add partitions, change settings",
        "  tidelog topics alter orders --partitions 6\n"
        "  tidelog topics alter orders --config retention.ms=60000 --remove-config segment.bytes",
        _alter,
    )
    alter.add_argument("topic", metavar="TOPIC")
    alter.add_argument("--partitions", type=positive_integer, metavar="N", help="the new number; it can only grow")
    alter.add_argument("--config", type=name_and_value, action="append", default=[], metavar="NAME=VALUE")
    alter.add_argument("--remove-config", action="append", default=[], metavar="NAME", help="back to the default")

    delete = commands.add("delete", "delete topics with all records", "  tidelog topics delete orders", _delete)
    delete.add_argument("topics", metavar="TOPIC", nargs="+")
    delete.add_argument("--if-exists", action="store_true", help="a missing topic is no error")

    commands.share(add_cluster, add_json)


def _create(arguments: argparse.Namespace) -> int:
    from tidelog.client.admin import create_topic

    if arguments.assignment and (arguments.partitions or arguments.replication_factor):
        raise UsageError("tidelog topics create: --assignment stands for --partitions and --replication-factor")

    def create(client: Client, name: str) -> tuple[dict[str, Any], str]:
        try:
            result = create_topic(
                client,
                name,
                partitions=arguments.partitions or -1,
                replication_factor=arguments.replication_factor or -1,
                assignments=arguments.assignment,
                configs=dict(arguments.config),
                validate_only=arguments.validate_only,
            )
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS or not arguments.if_not_exists:
                raise
            return {"topic": name, "created": False}, f"{name} exists already"
        made = {
            "topic": name,
            "created": not arguments.validate_only,
            "id": to_text(result.topic_id),
            "partitions": result.num_partitions,
            "replication_factor": result.replication_factor,
        }
        verb = "would create" if arguments.validate_only else "created"
        size = f"{counted(result.num_partitions, 'partition')}, replication factor {result.replication_factor}"
        return made, f"{verb} {name}: {size}"

    code = _each(arguments, create)
    warn_of_unused("tidelog topics create", (name for name, _ in arguments.config))
    return code


def _each(arguments: argparse.Namespace, change: Callable[[Client, str], tuple[dict[str, Any], str]]) -> int:
    """Change each topic and tell of each: a refusal of one neither hides nor stops the others."""
    results = []
    code = Exit.OK
    with connect(arguments) as client:
        for name in arguments.topics:
            try:
                fields, text = change(client, name)
                if not arguments.json:
                    print(text, flush=True)
            except KafkaError as error:
                if is_unreachable(error):
                    raise
                fields = {"topic": name, "error": error.code.name, "message": error.message}
                print(f"tidelog topics {arguments.subcommand}: {describe(error)}", file=sys.stderr)
                code = Exit.FAILED
            results.append(fields)
    if arguments.json:
        print_json(results)
    return code


def _list(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        topics = client.refresh(None).topics
    shown = [topics[name] for name in sorted(topics) if arguments.internal or not topics[name].is_internal]
    if arguments.json:
        print_json(
            [{"topic": one.name, "partitions": len(one.partitions), "internal": one.is_internal} for one in shown]
        )
    else:
        for topic in shown:
            print(topic.name)
    return Exit.OK


def _describe(arguments: argparse.Namespace) -> int:
    with connect(arguments) as client:
        described = _described(client, arguments.topics)
    if arguments.json:
        print_json(described)
        return Exit.OK
    for number, topic in enumerate(described):
        if number:
            print()
        print(_describe_text(topic))
    return Exit.OK


def _described(client: Client, names: list[str]) -> list[dict[str, Any]]:
    """Everything about the topics, with a few requests however many they are."""
    from tidelog.client.admin import ResourceType, describe_configs_of_all, describe_topics
    from tidelog.client.offsets import EARLIEST, LATEST, list_offsets

    topics = [view for view in describe_topics(client, names or None) if names or not view.is_internal]
    if not topics:
        return []
    led = [(topic.name, one.partition) for topic in topics for one in topic.partitions.values() if one.leader >= 0]
    starts = list_offsets(client, dict.fromkeys(led, EARLIEST)) if led else {}
    ends = list_offsets(client, dict.fromkeys(led, LATEST)) if led else {}
    configs = describe_configs_of_all(client, ResourceType.TOPIC, [topic.name for topic in topics])
    return [
        {
            "topic": topic.name,
            "id": to_text(topic.topic_id),
            "internal": topic.is_internal,
            "configs": {one.name: one.value for one in configs[topic.name] if one.source == "topic"},
            "partitions": [
                {
                    "partition": one.partition,
                    "leader": one.leader if one.leader >= 0 else None,
                    "epoch": one.leader_epoch,
                    "replicas": one.replicas,
                    "isr": one.isr,
                    "eligible_leaders": one.eligible_leaders,
                    "offline": one.offline,
                    "start_offset": starts[where].offset if (where := (topic.name, one.partition)) in starts else None,
                    "end_offset": ends[where].offset if where in ends else None,
                }
                for one in topic.partitions.values()
            ],
        }
        for topic in topics
    ]


def _describe_text(topic: dict[str, Any]) -> str:
    partitions = topic["partitions"]
    replication = max((len(one["replicas"]) for one in partitions), default=0)
    lines = [
        f"{topic['topic']}  id {topic['id']}, {counted(len(partitions), 'partition')}, replication factor {replication}"
        + (", internal" if topic["internal"] else "")
    ]
    lines += [f"  {name}={value}" for name, value in topic["configs"].items()]
    headings = ["partition", "leader", "epoch", "replicas", "isr", "elr", "offline", "start", "end"]
    rows = [list(one.values()) for one in partitions]
    lines += ["  " + line for line in table(headings, rows)]
    return "\n".join(lines)


def _alter(arguments: argparse.Namespace) -> int:
    from tidelog.client.admin import AlterOperation, ResourceType, alter_configs, create_partitions

    if not (arguments.partitions or arguments.config or arguments.remove_config):
        raise UsageError("tidelog topics alter: nothing to do: give --partitions, --config or --remove-config")
    changes: list[tuple[str, AlterOperation, str | None]] = [
        (name, AlterOperation.SET, value) for name, value in arguments.config
    ]
    changes += [(name, AlterOperation.DELETE, None) for name in arguments.remove_config]
    done: dict[str, Any] = {"topic": arguments.topic}
    with connect(arguments) as client:
        if changes:
            # Two requests: what the first would refuse must be known before the second has done its part.
            alter_configs(client, ResourceType.TOPIC, arguments.topic, changes, validate_only=True)
        if arguments.partitions:
            create_partitions(client, arguments.topic, arguments.partitions)
            done["partitions"] = arguments.partitions
        if changes:
            alter_configs(client, ResourceType.TOPIC, arguments.topic, changes)
            done["configs"] = {name: value for name, _, value in changes}
    warn_of_unused("tidelog topics alter", (name for name, _ in arguments.config))
    if arguments.json:
        print_json(done)
        return Exit.OK
    told = [f"{name}={value}" if value is not None else f"{name} removed" for name, _, value in changes]
    told += [counted(arguments.partitions, "partition")] if arguments.partitions else []
    print(f"altered {arguments.topic}: {', '.join(told)}")
    return Exit.OK


def _delete(arguments: argparse.Namespace) -> int:
    from tidelog.client.admin import delete_topics

    def delete(client: Client, name: str) -> tuple[dict[str, Any], str]:
        try:
            delete_topics(client, [name])
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not arguments.if_exists:
                raise
            return {"topic": name, "deleted": False}, f"there is no topic {name}"
        return {"topic": name, "deleted": True}, f"deleted {name}"

    return _each(arguments, delete)


def _assignment(text: str) -> dict[int, list[int]]:
    try:
        return {
            partition: [identifier(broker) for broker in replicas.split(":")]
            for partition, replicas in enumerate(text.split(","))
        }
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 1:2,2:3 (broker ids)") from None
