"""Offsets of a transaction count after its marker, and never before."""

from __future__ import annotations

import pytest

from tests.groups.support import GROUP, GroupNode
from tests.node.support import TOPIC
from tidelog.errors import ErrorCode
from tidelog.groups.commits import Commit, Committer, commit_in_transaction
from tidelog.groups.offsets import CommittedOffset, Offsets

PRODUCER = 42


def offset(number: int) -> CommittedOffset:
    return CommittedOffset(number, -1, "", 0)


@pytest.fixture
def offsets() -> Offsets:
    return Offsets()


def test_the_marker_decides(offsets: Offsets) -> None:
    offsets.commit("g", "t", 0, offset(1))
    for is_commit, expected in ((False, 1), (True, 2)):
        offsets.commit_pending(PRODUCER, "g", "t", 0, offset(2))
        assert offsets.get("g", "t", 0) == offset(1)
        assert offsets.has_pending("g", "t", 0)
        offsets.end_transaction(PRODUCER, is_commit)
        assert offsets.get("g", "t", 0) == offset(expected)
        assert not offsets.has_pending("g", "t", 0)
        assert not offsets.has_any_pending("g")


def test_a_later_plain_commit_is_not_undone_by_the_marker(offsets: Offsets) -> None:
    offsets.commit_pending(PRODUCER, "g", "t", 0, offset(2))
    offsets.commit("g", "t", 0, offset(9))
    offsets.end_transaction(PRODUCER, True)
    assert offsets.get("g", "t", 0) == offset(9)


def test_two_producers_wait_for_two_markers(offsets: Offsets) -> None:
    for producer_id in (1, 2):
        offsets.commit_pending(producer_id, "g", "t", 0, offset(producer_id))
    offsets.end_transaction(1, True)
    assert offsets.has_pending("g", "t", 0)
    offsets.end_transaction(2, True)
    assert offsets.get("g", "t", 0) == offset(2)


def test_a_tombstone_takes_pending_offsets_with_it(offsets: Offsets) -> None:
    offsets.commit("g", "t", 0, offset(1))
    offsets.commit_pending(PRODUCER, "g", "t", 0, offset(2))
    offsets.delete("g", "t", 0)
    assert not offsets.knows("g")
    offsets.end_transaction(PRODUCER, True)
    assert offsets.get("g", "t", 0) is None


def test_a_reader_that_wants_stable_offsets_is_told_to_wait() -> None:
    node = GroupNode(offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000")
    node.commit({0: 1, 1: 1})
    answers: list[list[ErrorCode]] = []
    committer = Committer(GROUP, "", None, -1, 5)
    commit_in_transaction(node.state(), committer, (PRODUCER, 0), [Commit(TOPIC, 0, 5, -1, "")], answers.append)
    node.restart()

    def fetched(require_stable: bool) -> list[tuple[int, int]]:
        (topic,) = node.fetch_offsets([0, 1], require_stable=require_stable).topics
        return [(one.committed_offset, one.error_code) for one in topic.partitions]

    assert answers == [[ErrorCode.NONE]]
    assert fetched(False) == [(1, 0), (1, 0)]
    assert fetched(True) == [(-1, ErrorCode.UNSTABLE_OFFSET_COMMIT), (1, 0)]
    node.pass_ms(90_000)
    assert fetched(False) == [(1, 0), (-1, 0)], "what a transaction is about to change does not expire"
    node.state().replay_end_marker(PRODUCER, 0, True)
    assert fetched(True) == [(5, 0), (-1, 0)]
