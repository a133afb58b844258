"""TidelogQuery: what Kafka's protocol has no words for, asked of one node. Not advertised in ApiVersions.

A question is a name with arguments in JSON, an answer
is JSON, so that tools of another version can still read what they know.
"""

from __future__ import annotations

from typing import ClassVar

from tidelog.wire.apis import PRIVATE_QUERY
from tidelog.wire.message import Field, Message


class TidelogQueryRequest(Message):
    """One question."""

    __slots__ = ("arguments", "question")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = PRIVATE_QUERY
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("question", "string", "0+", "", -1, "", "", None),
        ("arguments", "string", "0+", "", -1, "", "{}", None),
    )

    def __init__(self, *, question: str = "", arguments: str = "{}") -> None:
        self.question = question
        self.arguments = arguments


class TidelogQueryResponse(Message):
    """Its answer."""

    __slots__ = ("answer", "error_code", "error_message")
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_VERSIONS: ClassVar[str] = "0+"
    API_KEY: ClassVar[int] = PRIVATE_QUERY
    FIELDS: ClassVar[tuple[Field, ...]] = (
        ("error_code", "int16", "0+", "", -1, "", 0, None),
        ("error_message", "string", "0+", "0+", -1, "", None, None),
        ("answer", "string", "0+", "", -1, "", "{}", None),
    )

    def __init__(self, *, error_code: int = 0, error_message: str | None = None, answer: str = "{}") -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.answer = answer
