"""What a setting is: its name, type, default, range, scope and one sentence, declared once as one line of a class.

A class of settings is written like a dataclass and read like one, but is much cheaper to import and to hold:

    @settings
    class TopicConfig:
        segment_bytes: int = int32(1 << 30, TOPIC, "Bytes at which a segment is closed.", low=1 << 20)

An attribute is Kafka's name with underscores for dots. Defaults live on the class, an instance holds only what differs,
so ten thousand topics with the same settings cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Any, Self, TypeVar, dataclass_transform

from tidelog.errors import ConfigError

INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1


class Kind(IntEnum):
    """The type of a setting, numbered as DescribeConfigs numbers it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Scope(StrEnum):
    """Where a setting may be given, and whether it can change while the node runs."""

    NODE = "node"
    """In the properties file; fixed until the next start."""
    DYNAMIC = "dynamic"
    """In the properties file, and changed at run time for one broker or for all."""
    TOPIC = "topic"
    """On a topic; what is not given there comes from the broker's setting of the same meaning."""
    GROUP = "group"
    """On a consumer group; else the same."""


NODE, DYNAMIC, TOPIC, GROUP = Scope.NODE, Scope.DYNAMIC, Scope.TOPIC, Scope.GROUP

_BITS = {Kind.SHORT: 15, Kind.INT: 31, Kind.LONG: 63}
_WANTED = {
    Kind.BOOLEAN: "true or false",
    Kind.SHORT: "a whole number",
    Kind.INT: "a whole number",
    Kind.LONG: "a whole number",
    Kind.DOUBLE: "a number",
}


class Setting:
    """One setting: how its text is read, what it may be, and what people are told about it."""

    __slots__ = (
        "also",
        "choices",
        "default",
        "doc",
        "high",
        "internal",
        "kafka_default",
        "kind",
        "low",
        "name",
        "ours",
        "scope",
        "synonyms",
    )

    def __init__(
        self,
        kind: Kind,
        default: Any,
        scope: Scope,
        doc: str,
        *,
        name: str = "",
        low: float | None = None,
        high: float | None = None,
        choices: tuple[str, ...] = (),
        also: tuple[int, ...] = (),
        synonyms: tuple[str, ...] = (),
        ours: bool = False,
        internal: bool = False,
        kafka_default: str | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        """None means not set: another setting, or a rule told in `doc`, decides."""
        self.scope = scope
        self.doc = doc
        self.low = low
        self.high = high
        self.choices = choices
        self.also = also
        """Values allowed besides the range, such as -1 for "no limit"."""
        self.synonyms = synonyms
        """Of a topic setting: the broker settings it falls back to, the strongest first."""
        self.ours = ours
        """Apache Kafka has no such setting."""
        self.internal = internal
        """Not part of what Apache Kafka documents: for tests and tools."""
        self.kafka_default = kafka_default
        """Apache Kafka's default, where ours differs."""

    @property
    def attribute(self) -> str:
        """The name it has in Python."""
        return self.name.replace(".", "_")

    @property
    def sensitive(self) -> bool:
        """Whether its value must not be shown."""
        return self.kind is Kind.PASSWORD

    @property
    def allowed(self) -> str:
        """The allowed values in words; empty when the type alone says it."""
        if self.choices:
            return (
                "one of " + ", ".join(self.choices) if self.kind is not Kind.LIST else "of " + ", ".join(self.choices)
            )
        if self.kind not in _WANTED or self.kind is Kind.BOOLEAN or (self.low is None and self.high is None):
            return ""
        low = "-2^" + str(_BITS[self.kind]) if self.low is None and self.kind in _BITS else self.low
        high = _plain(self.high)
        if self.high is None:
            words = f"{_plain(low)} or more" if self.kind is Kind.DOUBLE else f"{_plain(low)} to {self._largest()}"
        else:
            words = f"{_plain(low)} to {high}"
        return words + "".join(f", or {value}" for value in self.also)

    def parse(self, text: str) -> Any:
        """The value of a text, or ConfigError naming the setting, the text and what is allowed."""
        text = text.strip()
        kind = self.kind
        if kind is Kind.LIST:
            return self._parse_list(text)
        if kind in (Kind.STRING, Kind.CLASS, Kind.PASSWORD):
            if self.choices and text not in self.choices:
                raise self._refused(text)
            return text
        if kind is Kind.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise ConfigError(f"{self.name}: {text!r} is not {_WANTED[kind]}")
            return text.lower() == "true"
        return self._parse_number(text)

    def format(self, value: Any) -> str | None:
        """The text of a value, as Kafka's tools show it; None for a setting that is not set."""
        if value is None:
            return None
        if self.kind is Kind.BOOLEAN:
            return "true" if value else "false"
        if self.kind is Kind.LIST:
            return ",".join(value)
        if self.kind is Kind.DOUBLE:
            return repr(value).replace("e+", "E")  # as Java writes it
        return str(value)

    def _parse_list(self, text: str) -> tuple[str, ...]:
        items = tuple(item.strip() for item in text.split(",")) if text else ()
        if "" in items:
            raise ConfigError(f"{self.name}: {text!r} has an empty entry")
        if len(set(items)) != len(items):
            raise ConfigError(f"{self.name}: {text!r} names an entry twice")
        for item in items:
            if self.choices and item not in self.choices:
                raise self._refused(item)
        return items

    def _parse_number(self, text: str) -> int | float:
        kind = self.kind
        value: int | float
        try:
            if not text.isascii() or "_" in text:  # Python reads more spellings of a number than Kafka does
                raise ValueError
            value = float(text) if kind is Kind.DOUBLE else int(text)
        except ValueError:
            raise ConfigError(f"{self.name}: {text!r} is not {_WANTED[kind]}") from None
        if value in self.also:
            return value
        below = self.low is not None and value < self.low
        above = self.high is not None and value > self.high
        if below or above or str(value) == "nan":
            raise self._refused(text)
        if kind is not Kind.DOUBLE and not -self._largest() - 1 <= value <= self._largest():
            raise ConfigError(f"{self.name}: {text} does not fit in {_BITS[kind] + 1} bits")
        return value

    def _largest(self) -> int:
        return (1 << _BITS[self.kind]) - 1

    def _refused(self, text: str) -> ConfigError:
        return ConfigError(f"{self.name}: {text!r} is not allowed; it must be {self.allowed}")

    def __repr__(self) -> str:
        return f"Setting({self.name}, {self.kind.name}, {self.default!r}, {self.scope})"


def _plain(value: Any) -> str:
    """A bound without a needless fraction: 0.0 reads 0."""
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


# Each returns Any, so that a class of settings reads and type-checks like a dataclass: `name: int = int32(…)`.


def boolean(default: bool | None, scope: Scope, doc: str, **more: Any) -> Any:
    """A setting that is true or false."""
    return Setting(Kind.BOOLEAN, default, scope, doc, **more)


def int16(default: int, scope: Scope, doc: str, **more: Any) -> Any:
    """A setting that is a whole number of 16 bits."""
    return Setting(Kind.SHORT, default, scope, doc, **more)


def int32(default: int | None, scope: Scope, doc: str, **more: Any) -> Any:
    """A setting that is a whole number of 32 bits."""
    return Setting(Kind.INT, default, scope, doc, **more)


def int64(default: int | None, scope: Scope, doc: str, **more: Any) -> Any:
    """A setting that is a whole number of 64 bits."""
    return Setting(Kind.LONG, default, scope, doc, **more)


def number(default: float, scope: Scope, doc: str, **more: Any) -> Any:
    """A setting that is a number with a fraction."""
    return Setting(Kind.DOUBLE, default, scope, doc, **more)


def string(default: str | None, scope: Scope, doc: str, **more: Any) -> Any:
    """A setting that is a text."""
    return Setting(Kind.STRING, default, scope, doc, **more)


def names(default: tuple[str, ...] | None, scope: Scope, doc: str, **more: Any) -> Any:
    """A setting that is a list, written with commas between its entries."""
    return Setting(Kind.LIST, default, scope, doc, **more)


Class = TypeVar("Class", bound=type)


class SettingsBase:
    """What every class of settings can do. Instances never change; `replace` makes another."""

    SETTINGS: Mapping[str, Setting] = {}
    """Every setting of the class by Kafka's name, in the order of its lines."""
    _ATTRIBUTES: frozenset[str] = frozenset()

    def __init__(self, **values: Any) -> None:
        for name in values:
            if name not in self._ATTRIBUTES:
                raise TypeError(f"{type(self).__name__} has no setting {name!r}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} does not change: use replace({name}=…)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} does not change")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._ATTRIBUTES)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, setting.attribute) for setting in self.SETTINGS.values()))

    def __repr__(self) -> str:
        given = ", ".join(
            f"{name}={value!r}" for name, value in self.__dict__.items() if value != getattr(type(self), name)
        )
        return f"{type(self).__name__}({given})"

    def replace(self, **changes: Any) -> Self:
        """The same settings but for `changes`, by attribute; not checked."""
        return type(self)(**{**self.__dict__, **changes})

    def text(self, name: str) -> str | None:
        """The value of a setting by Kafka's name, as text; None when it is not set."""
        setting = self.SETTINGS[name]
        return setting.format(getattr(self, setting.attribute))


@dataclass_transform(kw_only_default=True, frozen_default=True)
def settings(cls: Class) -> Class:
    """Turn a class whose lines are settings, beside those it inherits, into one whose instances hold their values."""
    found: dict[str, Setting] = dict(cls.SETTINGS)  # type: ignore[attr-defined]
    for attribute, setting in list(vars(cls).items()):
        if isinstance(setting, Setting):
            setting.name = setting.name or attribute.replace("_", ".")
            found[setting.name] = setting
            setattr(cls, attribute, setting.default)
    cls.SETTINGS = found  # type: ignore[attr-defined]
    extra = getattr(cls, "EXTRA_ATTRIBUTES", ())
    cls._ATTRIBUTES = frozenset(setting.attribute for setting in found.values()) | frozenset(extra)  # type: ignore[attr-defined]
    return cls


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like a mistyped one, if any is like it."""
    import difflib  # here, because only a mistake needs it and every start would pay for it

    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None
