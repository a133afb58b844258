"""Offsets in a transaction are committed for a member in its generation, as all others are: a reader that was replaced
cannot bring them in by way of its producer (KIP-447).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.groups.support import GROUP, ClassicMember, ConsumerMember, GroupNode, beat_until_settled, settle
from tests.node.support import TOPIC
from tests.transactions.requests import Outcome, Requests
from tidelog.errors import ErrorCode

ID = "copier"


@pytest.fixture
def node() -> GroupNode:
    return GroupNode(1, 4, transaction_state_log_num_partitions="1", group_consumer_assignment_interval_ms="0")


def begin(node: GroupNode) -> tuple[Requests, Outcome]:
    requests = Requests(lambda *request: node.ask(1, *request), TOPIC, lambda: node.pass_ms(100))
    requests.find(ID)
    assert node.world.run_until(lambda: requests.init(ID).code is ErrorCode.NONE)
    return requests, requests.init(ID)


def check(node: GroupNode, own: dict[str, Any], wrong: dict[str, tuple[dict[str, Any], ErrorCode]]) -> None:
    """Every wrong commit gets its code, and leaves nothing that would wait for the end of the transaction."""
    requests, producer = begin(node)
    ids = (ID, producer.producer_id, producer.epoch)
    for name, (who, expected) in wrong.items():
        assert requests.commit_offset(*ids, GROUP, 9, version=5, **{**own, **who}) is expected, name
    (topic,) = node.fetch_offsets([0], require_stable=True).topics
    assert (topic.partitions[0].error_code, topic.partitions[0].committed_offset) == (0, -1)
    assert requests.commit_offset(*ids, GROUP, 5, version=5, **own) is ErrorCode.NONE
    assert requests.end(*ids, True, version=5).code is ErrorCode.NONE
    assert node.world.run_until(lambda: node.committed() == {0: 5})


def test_only_a_member_of_this_generation_commits(node: GroupNode) -> None:
    first, static = ClassicMember(node), ClassicMember(node, instance_id="one")
    settle([first])
    settle([first, static])
    check(
        node,
        {"member_id": first.member_id, "generation_id": first.generation},
        {
            "a stale generation": ({"generation_id": first.generation - 1}, ErrorCode.ILLEGAL_GENERATION),
            "one to come": ({"generation_id": first.generation + 1}, ErrorCode.ILLEGAL_GENERATION),
            "nobody": ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
            "another instance": ({"group_instance_id": "one"}, ErrorCode.FENCED_INSTANCE_ID),
            "an unknown instance": ({"group_instance_id": "two"}, ErrorCode.UNKNOWN_MEMBER_ID),
        },
    )


def test_only_a_member_at_its_epoch_commits(node: GroupNode) -> None:
    first, second = ConsumerMember(node, "a"), ConsumerMember(node, "b")
    beat_until_settled([first, second])
    check(
        node,
        {"member_id": "a", "generation_id": first.epoch},
        {
            "a stale epoch": ({"generation_id": first.epoch - 1}, ErrorCode.ILLEGAL_GENERATION),
            "one to come": ({"generation_id": first.epoch + 1}, ErrorCode.ILLEGAL_GENERATION),
            "nobody": ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        },
    )
