"""Which names a topic may have."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.errors import ErrorCode, KafkaError

MAX_NAME_LENGTH = 249
METADATA_TOPIC = "__cluster_metadata"
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def check_name(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION unless the name can be a topic's, and so a directory's."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL.issuperset(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


class Collisions:
    """Names that differ only in '.' and '_' would be one in metric names, so there is only one of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {_unified(name): name for name in names if "." in name or "_" in name}

    def check(self, name: str) -> None:
        """INVALID_TOPIC_EXCEPTION when another topic has the same name but for '.' and '_'."""
        if "." not in name and "_" not in name:
            return
        other = self._names.get(_unified(name))
        if other is not None and other != name:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")

    def add(self, name: str) -> None:
        """From now on this name is taken."""
        if "." in name or "_" in name:
            self._names.setdefault(_unified(name), name)


def _unified(name: str) -> str:
    return name.replace(".", "_")
