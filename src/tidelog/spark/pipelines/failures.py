"""What went wrong in Spark, in one line: a Java stack trace has the reason somewhere, and hides it from most people."""

from __future__ import annotations

import re

from tidelog.errors import TidelogError
from tidelog.spark.pipelines.declaration import ACCEPT_LOSS

NOTHING_LOST = "nothing is lost: start it again and it goes on where it stopped"


class PipelineError(TidelogError):
    """A pipeline cannot go on; the text says why and what to do, in one line."""


_STAYS_SO = ("CheckpointError", "DataLossError")
"""Errors of ours that a second start meets again; they say themselves what to do."""


def reason_and_advice(error: BaseException, where: str = "") -> str:
    """Why a stream ended and, where that is all it takes, that it is to be started again."""
    reason = reason_of(error).replace("failOnDataLoss=false", ACCEPT_LOSS.flag) + where
    return reason if any(name in _whole_text(error) for name in _STAYS_SO) else f"{reason}; {NOTHING_LOST}"


def reason_of(error: BaseException) -> str:
    """The innermost cause of an error of Spark, without classes and traces."""
    text = _whole_text(error)
    full = re.search(r"No space left on device|ENOSPC|Disk quota exceeded|File too large", text)
    if full:
        return "the disk is full"
    ours = re.findall(r"(?:tidelog(?:\.\w+)*\.\w*(?:Error|Failed)|\bConfigError|\bKafkaError): (.+)", text)
    if ours:
        return str(ours[-1]).strip()
    causes = re.findall(r"Caused by: ([\w.$]+): ([^\n]+)", text)
    if causes:
        kind, said = causes[-1]
        return f"{kind.rpartition('.')[2]}: {said.strip()}"
    condition = re.search(r"\[([A-Z_]+(?:\.[A-Z_]+)*)\] ([^\n]+)", text)
    if condition:
        return f"{condition[2].strip()} [{condition[1]}]"
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return lines[0] if lines else type(error).__name__


def _whole_text(error: BaseException) -> str:
    """The error's own text with the Java stack, which PySpark keeps apart."""
    parts = [str(error)]
    for name in ("_stackTrace", "_desc", "desc", "stackTrace"):
        value = getattr(error, name, None)
        if isinstance(value, str):
            parts.append(value)
    cause = getattr(error, "_cause", None) or error.__cause__
    if isinstance(cause, BaseException):
        parts.append(_whole_text(cause))
    return "\n".join(parts)
