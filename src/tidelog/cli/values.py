"""What words of a command may stand for: numbers with the room that Kafka's protocol has for them, times, settings."""

from __future__ import annotations

import argparse

INT16_MAX, INT32_MAX, INT64_MAX = 2**15 - 1, 2**31 - 1, 2**63 - 1
_MOST_DIGITS = 40
"""A longer number is too large for anything, and costly to read."""


def positive_integer(text: str) -> int:
    """An argument that counts something, and fits in the 32 bits that Kafka's protocol has for it."""
    return _number(text, 1, INT32_MAX)


def positive_long(text: str) -> int:
    """An argument that counts something of which there may be very many, such as bytes."""
    return _number(text, 1, INT64_MAX)


def replication_factor(text: str) -> int:
    """A number of replicas; the protocol has 16 bits for it."""
    return _number(text, 1, INT16_MAX)


def whole_number(text: str) -> int:
    """An argument that numbers something from 0, such as offsets."""
    return _number(text, 0, INT64_MAX)


def identifier(text: str) -> int:
    """The number of a node or a partition."""
    return _number(text, 0, INT32_MAX)


def _number(text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:_MOST_DIGITS]) < low:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low} up")
    if len(text) > _MOST_DIGITS or int(text) > high:
        raise argparse.ArgumentTypeError(f"{text[:_MOST_DIGITS]!r} is too large: the most is {high}")
    return int(text)


def port_number(text: str) -> int:
    """A TCP port."""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def seconds_as_ms(text: str) -> int:
    """A time in seconds, fractions allowed, as milliseconds."""
    try:
        milliseconds = int(float(text) * 1000)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if milliseconds < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time above 0")
    if milliseconds > INT32_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is too long: the most is {INT32_MAX // 1000} seconds")
    return milliseconds


def name_and_value(text: str) -> tuple[str, str]:
    """A setting given as `name=value`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    return name.strip(), value.strip()
