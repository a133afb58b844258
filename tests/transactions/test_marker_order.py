"""A node does the same again from the same seed: nothing depends on the order in which a set happens to be walked."""

from __future__ import annotations

from typing import Any

from tidelog.outbox import Outbox
from tidelog.transactions.markers import Ending, MarkerSender
from tidelog.transactions.transaction import State, Transaction

TOPICS = "abcdefghij"


def test_markers_of_a_transaction_leave_in_the_order_of_its_partitions() -> None:
    asked: list[int] = []

    def ask(leader: int, _request: Any, _continuation: Any) -> None:
        asked.append(leader)

    sender = MarkerSender(Outbox(1), ask, lambda topic, _index: TOPICS.index(topic))
    partitions = frozenset((topic, 0) for topic in TOPICS)
    transaction = Transaction("id", 1, 0, 60_000, State.PREPARE_COMMIT, partitions)
    sender.start(Ending(transaction, 0, lambda: None))
    sender._send()
    assert asked == list(range(len(TOPICS)))
