"""Expressions match what Python's would, and none can hold a node up."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.errors import ErrorCode, KafkaError
from tidelog.groups.consumer.topic_pattern import TopicPattern

PATTERNS = [
    "events",
    "ev.*",
    "a|b|ab",
    "(a|b)+c?",
    "a{2,3}b*",
    "[a-c]+[^a]",
    r"\w+-\d+",
    r"[\d.]*",
    "^ab$",
    "(?:ab)*?c",
    "(?i)AB.*",
    "",
    "a??b",
    "(a|)(b|)c",
]


@given(st.sampled_from(PATTERNS), st.text("abc-12.AB", max_size=8))
def test_as_python_matches(pattern: str, name: str) -> None:
    assert TopicPattern(pattern).matches(name) == (re.fullmatch(pattern, name) is not None)


def test_an_expression_that_would_backtrack_for_ever_is_answered_at_once() -> None:
    assert not TopicPattern("(a+)+b").matches("a" * 249)
    assert TopicPattern("(.*.*.*.*.*)*x").matches("a" * 248 + "x")


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "*", r"(a)\1", "(?=a)b", "(?<!a)b", r"a\b", "(a{1000}){1000}", "x" * 2_000, "(?P<n>a)(?P=n)"]
)
def test_what_is_not_possible_is_refused(pattern: str) -> None:
    with pytest.raises(KafkaError) as refused:
        TopicPattern(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
