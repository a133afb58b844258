"""What a pipeline says of itself: its options, the columns it takes in, the tables it leaves, and what runs.

PIPELINE = Pipeline(name="land", summary="…", options=(Option("topics", "…", metavar="T,…"),), …, run=run)

outcome = PIPELINE.run(spark, PIPELINE.options_of(bootstrap="127.0.0.1:9092", topics="orders"), Silent())
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from tidelog.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidelog.spark.pipelines.progress import Progress

Settings = Mapping[str, str]
"""Settings of Spark, with their dots."""


class Options:
    """The options of one run, each as an attribute of its name; what was not given has its default."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"there is no option {name}") from None

    def __repr__(self) -> str:
        return f"Options({self._values})"


@dataclass(frozen=True)
class Option:
    """One option, the same on a command line (`--starting-offsets`) and in Python (`starting_offsets=`)."""

    name: str
    """With underscores."""
    help: str
    default: Any = None
    kind: Callable[[str], Any] = str
    """Makes its value from text; `bool` makes it a switch that is off unless it is named."""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    variable: str = ""
    """The environment variable that goes before the default."""

    @property
    def default_now(self) -> Any:
        """What holds where it is not given."""
        return os.environ.get(self.variable) or self.default

    @property
    def flag(self) -> str:
        """As it is typed."""
        return "--" + self.name.replace("_", "-")

    @property
    def help_with_default(self) -> str:
        """Its sentence and, where it has a default that can be shown, that."""
        if self.default is None or self.kind is bool:
            return self.help
        return f"{self.help} (default: {f'the variable {self.variable}, or ' if self.variable else ''}{self.default})"


@dataclass
class Outcome:
    """How a run ended: the exit code is 0 when `ok`."""

    ok: bool
    lines: Sequence[str]
    """For people, the verdict last."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs, fit for JSON."""


Run = Callable[["SparkSession", Options, "Progress"], Outcome]

BOOTSTRAP = Option(
    "bootstrap",
    "brokers to ask first",
    default="127.0.0.1:9092",
    metavar="HOST:PORT,…",
    variable="TIDELOG_BOOTSTRAP",
)
"""As every pipeline that reads a cluster has it."""

ACCEPT_LOSS = Option("accept_loss", "go on where records were deleted before they were read", kind=bool)
"""As every pipeline that follows topics has it."""


def no_settings(_options: Options) -> Settings:
    """Most pipelines need nothing special of Spark."""
    return {}


@dataclass(frozen=True)
class Pipeline:
    """One pipeline; see the head of this file."""

    name: str
    summary: str
    examples: str
    """Command lines with what they do, and whatever else the help should say."""
    options: tuple[Option, ...]
    reads: Mapping[str, str]
    """The columns that it takes in, as Spark's DDL, by what is read."""
    writes: Mapping[str, str]
    """The columns of what it leaves, as Spark's DDL, by table."""
    run: Run
    settings: Callable[[Options], Settings] = no_settings
    """What Spark has to be started with."""

    def options_of(self, **given: Any) -> Options:
        """Check names and fill in defaults; ConfigError with the nearest known name."""
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                raise ConfigError(f"{self.name} has no option {name}{nearest(name, known)}")
        values = {name: given.get(name, option.default_now) for name, option in known.items()}
        return self._checked(values)

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser of command lines the options."""
        for option in self.options:
            if option.kind is bool:
                parser.add_argument(option.flag, action="store_true", dest=option.name, help=option.help)
            else:
                parser.add_argument(
                    option.flag,
                    dest=option.name,
                    type=option.kind,
                    default=option.default_now,
                    choices=option.choices or None,
                    # argparse makes lists of choices into a metavar that no longer fits a line.
                    metavar=option.metavar or ("|".join(option.choices) if option.choices else None),
                    help=option.help_with_default.replace("%", "%%"),
                )

    def options_from(self, arguments: argparse.Namespace) -> Options:
        """What a parser that `add_to` filled has read."""
        return self._checked({option.name: getattr(arguments, option.name) for option in self.options})

    def _checked(self, values: dict[str, Any]) -> Options:
        for option in self.options:
            value = values[option.name]
            if option.kind is bool:
                values[option.name] = bool(value)
            elif option.choices and value is not None and value not in option.choices:
                hint = nearest(str(value), option.choices) or f"; choose from {', '.join(option.choices)}"
                raise ConfigError(f"{option.flag}: {value!r} is not possible{hint}")
            if option.required and values[option.name] is None:
                raise ConfigError(f"{self.name} needs {option.flag}: {option.help}")
        return Options(values)


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when a known word is close, else nothing."""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def words(text: str | None) -> list[str]:
    """The words of a list with commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def positive(text: str) -> int:
    """A whole number from 1 up."""
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def whole(text: str) -> int:
    """A whole number from 0 up."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up")
    return int(text)


def seconds(text: str) -> float:
    """A time in seconds, above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
