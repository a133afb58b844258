"""`tidelog configs`: describe and alter the settings of topics and brokers, and list those there are."""

from __future__ import annotations

import argparse
from typing import Any

from tidelog.cli.frame import Exit, Parser, UsageError, add_cluster, add_json, connect, warn_of_unused
from tidelog.cli.output import print_json, table
from tidelog.cli.values import name_and_value

SUMMARY = "describe and alter settings of topics and brokers"
EXAMPLES = """\
  tidelog configs describe --topic orders
  tidelog configs alter --topic orders --set retention.ms=60000 --delete segment.bytes
  tidelog configs alter --brokers --set log.retention.ms=60000
  tidelog configs list retention"""


def configure(parser: Parser) -> None:
    """The options of each subcommand."""
    commands = parser.add_commands()

    describe = commands.add(
        "describe",
        "show settings, their values and where those come from",
        "  tidelog configs describe --topic orders\n"
        "  tidelog configs describe --topic orders --all --doc\n"
        "  tidelog configs describe --broker 1 log.retention.ms",
        _describe,
    )
    describe.add_argument("names", metavar="NAME", nargs="*", help="only these settings")
    describe.add_argument("--all", action="store_true", help="also those that were never given and have their default")
    describe.add_argument("--doc", action="store_true", help="also what each setting does")

    alter = commands.add(
        "alter",
        "change settings: all that are named, or none",
        "  tidelog configs alter --topic orders --set retention.ms=60000\n"
        "  tidelog configs alter --topic orders --append cleanup.policy=delete\n"
        "  tidelog configs alter --broker 1 --delete log.retention.ms",
        _alter,
    )
    alter.add_argument("--set", type=name_and_value, action="append", default=[], metavar="NAME=VALUE")
    alter.add_argument("--delete", action="append", default=[], metavar="NAME", help="back to the default")
    alter.add_argument(
        "--append", type=name_and_value, action="append", default=[], metavar="NAME=VALUE", help="add to a list"
    )
    alter.add_argument(
        "--subtract", type=name_and_value, action="append", default=[], metavar="NAME=VALUE", help="take from a list"
    )
    alter.add_argument("--validate-only", action="store_true", help="say whether it would work, and change nothing")

    delete = commands.add(
        "delete",
        "give settings their default back",
        "  tidelog configs delete --topic orders retention.ms segment.bytes",
        _delete,
    )
    delete.add_argument("names", metavar="NAME", nargs="+")

    for subcommand in (describe, alter, delete):
        of = subcommand.add_mutually_exclusive_group(required=True)
        of.add_argument("--topic", metavar="TOPIC")
        of.add_argument("--broker", metavar="ID", help="one broker")
        of.add_argument("--brokers", action="store_true", help="what all brokers share")
        add_cluster(subcommand)
        add_json(subcommand)

    list_ = commands.add(
        "list",
        "name every setting there is; needs no cluster",
        "  tidelog configs list\n  tidelog configs list retention --json",
        _list,
    )
    list_.add_argument("words", metavar="WORD", nargs="*", help="only settings whose name contains it")
    list_.add_argument("--of", choices=["topic", "node"], help="only settings of topics, or of nodes")
    add_json(list_)


def _resource(arguments: argparse.Namespace) -> tuple[Any, str, str]:
    """Type, name, and what to call it."""
    from tidelog.client.admin import ResourceType

    if arguments.topic is not None:
        return ResourceType.TOPIC, arguments.topic, f"topic {arguments.topic}"
    if arguments.broker is not None:
        if not arguments.broker.isdigit():
            raise UsageError(f"tidelog configs: --broker is a number, not {arguments.broker!r}")
        return ResourceType.BROKER, arguments.broker, f"broker {arguments.broker}"
    return ResourceType.BROKER, "", "all brokers"


def _describe(arguments: argparse.Namespace) -> int:
    from tidelog.client.admin import describe_configs

    kind, name, title = _resource(arguments)
    with connect(arguments) as client:
        found = describe_configs(client, kind, name, keys=arguments.names or None, documentation=arguments.doc)
    missing = set(arguments.names) - {config.name for config in found}
    if missing:
        raise UsageError(f"tidelog configs describe: {title} has no setting {min(missing)!r}")
    shown = [one for one in found if arguments.all or arguments.names or one.source != "default"]
    if arguments.json:
        print_json(
            [
                {
                    "name": one.name,
                    "value": one.value,
                    "source": one.source,
                    "read_only": one.is_read_only,
                    "sensitive": one.is_sensitive,
                    **({"doc": one.documentation} if arguments.doc else {}),
                }
                for one in shown
            ]
        )
        return Exit.OK
    if not shown:
        print(f"{title} has no settings of its own (--all shows the defaults)")
    elif arguments.doc:
        for one in shown:
            print(f"{one.name}={_shown(one)}  ({one.source})\n    {one.documentation or ''}")
    else:
        for line in table(["name", "value", "source"], [[one.name, _shown(one), one.source] for one in shown]):
            print(line)
    return Exit.OK


def _shown(config: Any) -> str:
    return "(hidden)" if config.is_sensitive else str(config.value if config.value is not None else "")


def _alter(arguments: argparse.Namespace) -> int:
    from tidelog.client.admin import AlterOperation

    changes = [
        *((name, AlterOperation.SET, value) for name, value in arguments.set),
        *((name, AlterOperation.DELETE, None) for name in arguments.delete),
        *((name, AlterOperation.APPEND, value) for name, value in arguments.append),
        *((name, AlterOperation.SUBTRACT, value) for name, value in arguments.subtract),
    ]
    if not changes:
        raise UsageError("tidelog configs alter: nothing to do: give --set, --delete, --append or --subtract")
    return _apply(arguments, changes, validate_only=arguments.validate_only)


def _delete(arguments: argparse.Namespace) -> int:
    from tidelog.client.admin import AlterOperation

    return _apply(arguments, [(name, AlterOperation.DELETE, None) for name in arguments.names], validate_only=False)


def _apply(arguments: argparse.Namespace, changes: list[Any], *, validate_only: bool) -> int:
    from tidelog.client.admin import alter_configs

    names = [name for name, _, _ in changes]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"tidelog configs: {twice} is named twice")
    kind, name, title = _resource(arguments)
    with connect(arguments) as client:
        alter_configs(client, kind, name, changes, validate_only=validate_only)
    warn_of_unused("tidelog configs alter", (name for name, _, value in changes if value is not None))
    if arguments.json:
        done = [{"name": key, "operation": operation.name.lower(), "value": value} for key, operation, value in changes]
        print_json({"of": title, "applied": not validate_only, "changes": done})
        return Exit.OK
    verb = "would alter" if validate_only else "altered"
    print(f"{verb} {title}: {', '.join(_change_text(*change) for change in changes)}")
    return Exit.OK


def _change_text(name: str, operation: Any, value: str | None) -> str:
    signs = {"SET": "=", "APPEND": " + ", "SUBTRACT": " - "}
    return f"{name} back to its default" if value is None else f"{name}{signs[operation.name]}{value}"


def _list(arguments: argparse.Namespace) -> int:
    from tidelog.config import NodeConfig, TopicConfig
    from tidelog.config.others import explained

    scopes = {"topic": TopicConfig.SETTINGS, "node": NodeConfig.SETTINGS}
    found = [
        (of, settings[name])
        for of, settings in scopes.items()
        if arguments.of in (None, of)
        for name in sorted(settings)
        if not settings[name].internal and all(word in name for word in arguments.words)
    ]
    if not found:
        raise UsageError(f"tidelog configs list: no setting has {' and '.join(arguments.words)!r} in its name")
    if arguments.json:
        print_json(
            [
                {
                    "of": of,
                    "name": one.name,
                    "default": one.format(one.default),
                    "allowed": one.allowed or None,
                    "dynamic": one.scope.value != "node",
                    "doc": explained(one),
                }
                for of, one in found
            ]
        )
        return Exit.OK
    for of, one in found:
        default = one.format(one.default)
        allowed = f"; {one.allowed}" if one.allowed else ""
        print(f"{of:5}  {one.name}={'' if default is None else default}{allowed}\n       {explained(one)}")
    return Exit.OK
