"""Messages with drawn values, for any class and version: what the tests of the codec feed it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from random import Random
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.wire import messages, records
from tidelog.wire.message import Message
from tidelog.wire.plan import FieldPlan, StructPlan, plan_message

INTEGER_BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
ERROR_CODES = [int(code) for code in ErrorCode if code <= ErrorCode.SHARE_SESSION_NOT_FOUND]
TEXTS = ("", "a", "topic-7", "ünïcödé 🌊", "x" * 126, "y" * 127, "z" * 300)


def message_classes() -> Iterator[type[Message]]:
    """Every message with versions of its own: requests, responses, headers and stored records."""
    for package in (messages, records):
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            for value in vars(module).values():
                if (
                    isinstance(value, type)
                    and issubclass(value, Message)
                    and value is not Message
                    and "VERSIONS" in vars(value)
                ):
                    yield value


def classes_and_versions() -> list[tuple[type[Message], int]]:
    pairs = []
    for cls in message_classes():
        first, last = cls.VERSIONS
        pairs += [(cls, version) for version in range(first, last + 1)]
    return pairs


def draw_message(cls: type[Message], version: int, random: Random, *, longest_list: int = 3) -> Any:
    """A message whose every field that this version has is drawn; the others keep their default."""
    return _struct(plan_message(cls, version), random, longest_list)


def _struct(plan: StructPlan, random: Random, longest_list: int) -> Any:
    message = plan.cls()
    for field in plan.fields:
        if field.present and not (field.tag >= 0 and random.random() < 0.4):
            setattr(message, field.name, _value(field, random, longest_list))
    return message


def _value(field: FieldPlan, random: Random, longest_list: int) -> Any:
    if field.nullable and random.random() < 0.25:
        return None
    if field.kind == "array":
        count = random.choice([0, 1, 1, longest_list])
        element = field.element
        if isinstance(element, StructPlan):
            return [_struct(element, random, longest_list) for _ in range(count)]
        assert element is not None
        return [_value(element, random, longest_list) for _ in range(count)]
    if field.kind == "struct":
        assert isinstance(field.element, StructPlan)
        return _struct(field.element, random, longest_list)
    if field.kind == "string":
        return random.choice(TEXTS)
    if field.kind in ("bytes", "records"):
        return random.randbytes(random.choice([0, 1, 60, 127, 128, 1000]))
    if field.name.endswith("error_code"):
        return random.choice(ERROR_CODES)
    return _fixed(field.code, random, is_time=any(part in field.name for part in ("time", "_ms", "lifetime")))


def _fixed(code: str, random: Random, *, is_time: bool = False) -> Any:
    if code == "?":
        return random.random() < 0.5
    if code == "d":
        return random.choice([0.0, 1.5, -2.25e10])
    if code == "16s":
        return random.randbytes(16)
    if code == "H":
        return random.choice([0, 9092, 65535])
    if code == "q" and is_time:  # a second codec may hold times as dates, which do not reach as far as integers
        return random.choice([-1, 0, 1, 1_700_000_000_123, random.randrange(2**42)])
    bits = INTEGER_BITS[code]
    highest = 2 ** (bits - 1) - 1
    return random.choice([0, 1, -1, highest, -highest - 1, random.randint(-highest, highest)])
