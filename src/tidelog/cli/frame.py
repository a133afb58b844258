"""What every command shares: its parser, its exit codes, and one line for every mistake."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from tidelog.cli.values import seconds_as_ms
from tidelog.errors import ConfigError, CorruptionError, DirectoryError, ErrorCode, KafkaError, TidelogError

if TYPE_CHECKING:
    from tidelog.client import Client
    from tidelog.config import NodeConfig

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


class Exit(IntEnum):
    """The exit codes of every command; `tidelog --help` documents them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    DIRECTORY = 4
    DAMAGED = 5
    BUG = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141


class UsageError(TidelogError):
    """The words typed do not make a command; nothing was done."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when a known word is close, else nothing: the end of a line about an unknown word."""
    from difflib import get_close_matches

    matches = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else ""


class Parser(argparse.ArgumentParser):
    """argparse with one line for a mistake, the nearest known word, and no guessed abbreviations."""

    def __init__(self, **keywords: Any) -> None:
        keywords.setdefault("allow_abbrev", False)
        keywords.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**keywords)
        self._chosen: argparse._SubParsersAction[Any] | None = None

    def error(self, message: str) -> NoReturn:
        """What argparse calls for a mistake: one line instead of the usage text."""
        raise UsageError(f"{self.prog}: {message} (see {self.prog} --help)")

    def add_commands(self) -> Commands:
        """Room for subcommands; the one chosen is `arguments.subcommand`."""
        self._chosen = self.add_subparsers(dest="subcommand", metavar="COMMAND", required=True, parser_class=Parser)
        return Commands(self._chosen)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            kind = "command" if isinstance(action, argparse._SubParsersAction) else "value"
            hint = nearest(str(value), choices) or f"; choose from {', '.join(choices)}"
            if kind == "command":
                self.error(f"unknown command {str(value)!r}{hint}")
            raise argparse.ArgumentError(action, f"{value!r} is not possible{hint}")

    def parse_whole(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse, or raise UsageError naming the first word nobody asked for and the nearest option."""
        arguments, extra = self.parse_known_args(list(words))
        if extra:
            parser = self
            while parser._chosen is not None:
                parser = parser._chosen.choices[arguments.subcommand]
                if parser._chosen is None:
                    break
            unknown = extra[0].split("=")[0]
            if unknown.startswith("-") and unknown != "-":
                parser.error(f"unknown option {unknown}{nearest(unknown, parser._option_string_actions)}")
            parser.error(f"unexpected {extra[0]!r}")
        return arguments


class Commands:
    """The subcommands of a command."""

    def __init__(self, parsers: argparse._SubParsersAction[Any]) -> None:
        self._parsers = parsers

    def add(self, name: str, summary: str, examples: str, run: Callable[[argparse.Namespace], int]) -> Parser:
        """One more: its parser remembers what to run."""
        parser: Parser = self._parsers.add_parser(
            name, help=summary, description=summary[:1].upper() + summary[1:] + ".", epilog="examples:\n" + examples
        )
        parser.set_defaults(run=run)
        return parser

    def share(self, *options: Callable[[argparse.ArgumentParser], None]) -> None:
        """Give the same options to all that were added, after their own: none is forgotten."""
        for parser in self._parsers.choices.values():
            for add in options:
                add(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """The switch that every command has."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """How commands that talk to a cluster find it, and how long they try."""
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT,…",
        default=os.environ.get("TIDELOG_BOOTSTRAP") or DEFAULT_BOOTSTRAP,
        help="brokers to ask first (default: the variable TIDELOG_BOOTSTRAP, or 127.0.0.1:9092)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        dest="timeout_ms",
        type=seconds_as_ms,
        default=30_000,
        help="give up when the cluster has not answered in this time (default: 30)",
    )


def connect(arguments: argparse.Namespace) -> Client:
    """A client of the cluster that the options of `add_cluster` name."""
    from tidelog.client import Client

    return Client(arguments.bootstrap, timeout_ms=arguments.timeout_ms)


def warn_of_unused(where: str, names: Iterable[str]) -> None:
    """One line for each setting that was taken and that changes nothing: whoever gave it counts on it."""
    from tidelog.config.others import without_effect

    for name in names:
        reason = without_effect(name)
        if reason is not None:
            print(f"{where}: warning: {name} has no effect on a Tidelog broker: {reason}", file=sys.stderr)


def load_config(path: str) -> NodeConfig:
    """The settings in a properties file; ConfigError with the file's name for anything wrong in it."""
    from tidelog.config import NodeConfig, parse_properties

    try:
        with open(path, encoding="utf-8") as file:
            return NodeConfig.from_properties(parse_properties(file.read()))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a directory, not a properties file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text file") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def run_command(name: str, words: Sequence[str]) -> int:
    """Load one command, run it, and turn whatever ends it into one line and an exit code."""
    where = f"tidelog {name}"
    try:
        command = import_module(f"tidelog.cli.{name}")
        summary: str = command.SUMMARY
        parser = Parser(
            prog=where,
            description=summary[:1].upper() + summary[1:] + ".",
            epilog="examples:\n" + command.EXAMPLES,
        )
        command.configure(parser)
        arguments = parser.parse_whole(words)
        if getattr(arguments, "subcommand", None):
            where = f"{where} {arguments.subcommand}"
        run = arguments.run if "run" in arguments else command.run
        code = int(run(arguments))
        sys.stdout.flush()
        return code
    except SystemExit as finished:  # argparse after --help
        return finished.code if isinstance(finished.code, int) else Exit.OK
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return reader_has_gone()
    except UsageError as error:
        return _fail(str(error), Exit.USAGE)
    except ConfigError as error:
        return _fail(f"{where}: {error}", Exit.USAGE)
    except DirectoryError as error:
        return _fail(f"{where}: {error}", Exit.DIRECTORY)
    except CorruptionError as error:
        return _fail(f"{where}: {error}", Exit.DAMAGED)
    except KafkaError as error:
        unreachable = is_unreachable(error)
        text = error.message if unreachable and error.message else describe(error)
        return _fail(f"{where}: {text}", Exit.UNREACHABLE if unreachable else Exit.FAILED)
    except TidelogError as error:
        return _fail(f"{where}: {error}", Exit.FAILED)
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}: {named}{error.strerror or error}", Exit.FAILED)
    except Exception as error:
        if os.environ.get("TIDELOG_TRACEBACK"):
            raise
        return _fail(f"{where}: fault in Tidelog: {type(error).__name__}: {error}", Exit.BUG)


def reader_has_gone() -> int:
    """Whoever read our output has gone (head, a closed pager): the interpreter must not complain at its own flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.BROKEN_PIPE


def is_unreachable(error: KafkaError) -> bool:
    """Whether no answer came, rather than one that refuses."""
    return error.code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)


def describe(error: KafkaError) -> str:
    """A Kafka error for a person: its name, and what the broker said about it."""
    return f"{error.code.name}: {error.message}" if error.message else error.code.name


def _fail(line: str, code: Exit) -> int:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    print(" ".join(line.split("\n")), file=sys.stderr)
    return code
