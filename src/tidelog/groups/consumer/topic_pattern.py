"""Regular expressions over topic names, matched in time proportional to the name, whatever the expression.

Kafka matches them with RE2, which has no backreferences and no looking around, and never backtracks. Python's own
matcher backtracks, and one expression could hold a node up for ever; so Python only reads the expression, and all the
ways through it are followed side by side (Thompson's construction).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from tidelog.errors import ErrorCode, KafkaError

MAX_PATTERN_LENGTH = 1_000
MAX_STATES = 5_000
"""Of an expression with its counted repeats written out."""

Test = Callable[[str], bool]


class TopicPattern:
    """A compiled expression; a name matches when all of it does."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN_LENGTH:
            raise _invalid(f"longer than {MAX_PATTERN_LENGTH} characters")
        try:
            tree = parser.parse(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise _invalid(str(error)) from None
        self._tests: list[Test | None] = []
        """Of each state: what a character must be to go on; None where one goes on without reading."""
        self._next: list[list[int]] = []
        self._start_only: set[int] = set()
        self._end_only: set[int] = set()
        self._ignores_case = bool(tree.state.flags & re.IGNORECASE)
        end = self._state(None)
        self._accept = end
        self._start = self._sequence(tree, end)

    def matches(self, name: str) -> bool:
        """Whether the whole name is one that the expression describes."""
        current = self._reach([self._start], 0, len(name))
        for position, character in enumerate(name):
            step = [
                target
                for state in current
                if (test := self._tests[state]) is not None and test(character)
                for target in self._next[state]
            ]
            current = self._reach(step, position + 1, len(name))
            if not current:
                return False
        return self._accept in current

    def _reach(self, states: Iterable[int], position: int, length: int) -> set[int]:
        """All states that can be reached without reading."""
        reached: set[int] = set()
        stack = list(states)
        while stack:
            state = stack.pop()
            if state in reached:
                continue
            if (state in self._start_only and position > 0) or (state in self._end_only and position < length):
                continue
            reached.add(state)
            if self._tests[state] is None:
                stack.extend(self._next[state])
        return reached

    # --- building, from the end to the start ---

    def _state(self, test: Test | None, *targets: int) -> int:
        if len(self._tests) >= MAX_STATES:
            raise _invalid("too large")
        self._tests.append(test)
        self._next.append(list(targets))
        return len(self._tests) - 1

    def _sequence(self, items: Any, after: int) -> int:
        for operation, argument in reversed(list(items)):
            after = self._item(operation, argument, after)
        return after

    def _item(self, operation: Any, argument: Any, after: int) -> int:
        if operation is codes.BRANCH:
            return self._state(None, *(self._sequence(branch, after) for branch in argument[1]))
        if operation is codes.SUBPATTERN:
            if argument[1] or argument[2]:
                raise _invalid("flags within a group are not supported")
            return self._sequence(argument[3], after)
        if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            low, high, content = argument
            return self._repeat(low, high, content, after)
        if operation is codes.AT:
            return self._anchor(argument, after)
        return self._state(self._test(operation, argument), after)

    def _repeat(self, low: int, high: int, content: Any, after: int) -> int:
        if high is codes.MAXREPEAT:
            loop = self._state(None)
            self._next[loop] = [self._sequence(content, loop), after]
            after = loop
        else:
            for _ in range(high - low):
                after = self._state(None, self._sequence(content, after), after)
        for _ in range(low):
            after = self._sequence(content, after)
        return after

    def _anchor(self, where: Any, after: int) -> int:
        state = self._state(None, after)
        if where in (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING):
            self._start_only.add(state)
        elif where in (codes.AT_END, codes.AT_END_STRING):
            self._end_only.add(state)
        else:
            raise _invalid("word boundaries are not supported")
        return state

    def _test(self, operation: Any, argument: Any) -> Test:
        if operation is codes.ANY:
            return lambda _character: True
        test = _character_test(operation, argument)
        if self._ignores_case:
            return lambda character: test(character.lower()) or test(character.upper())
        return test


_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


def _character_test(operation: Any, argument: Any) -> Test:
    if operation is codes.LITERAL:
        return lambda character: ord(character) == argument
    if operation is codes.NOT_LITERAL:
        return lambda character: ord(character) != argument
    if operation is codes.RANGE:
        low, high = argument
        return lambda character: low <= ord(character) <= high
    if operation is codes.CATEGORY:
        category = re.compile(_CATEGORIES[argument], re.ASCII)
        return lambda character: category.match(character) is not None
    if operation is codes.IN:
        wanted = argument[0][0] is not codes.NEGATE
        tests = [_character_test(*one) for one in argument if one[0] is not codes.NEGATE]
        return lambda character: any(test(character) for test in tests) == wanted
    raise _invalid("backreferences and looking around are not supported")


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"SubscribedTopicRegex is not valid: {reason}.")
