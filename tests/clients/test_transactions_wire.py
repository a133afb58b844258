"""Every wrong step of a transactional producer gets Kafka's code and changes nothing; each table line also holds for
Apache Kafka (BROKER_UNDER_TEST=kafka).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest

from tests.clients.conftest import TopicMaker
from tests.clients.test_bad_input import Raw
from tests.clients.test_transactions import NODE_PROPERTIES as PROPERTIES
from tests.support.nodes import Node
from tests.transactions.requests import V1, V2, Outcome, Requests, Versions
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.describe_transactions import DescribeTransactionsRequest

NODE_PROPERTIES = PROPERTIES
FENCED, OLD_FENCED = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH
MAPPING, STATE, NONE = ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE
PROTOCOLS = {"v1": V1, "v2": V2}


class Situation(NamedTuple):
    """A transactional id of a test, and the producer that has it."""

    requests: Requests
    transactional_id: str
    producer_id: int
    epoch: int

    def describe(self) -> object:
        """The coordinator's view, to see that nothing changed."""
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        found = self.requests.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states[0]
        topics = [(one.topic, tuple(one.partitions)) for one in found.topics]
        return found.transaction_state, found.producer_id, found.producer_epoch, topics


@pytest.fixture
def requests(node: Node, make_topic: TopicMaker) -> Requests:
    topic = make_topic(3)
    requests = Requests(Raw(node).ask, topic, lambda: time.sleep(0.02))

    def found() -> ErrorCode:
        return ErrorCode.NONE if requests.find(topic) >= 0 else ErrorCode.NOT_COORDINATOR

    requests.until_settled(found)
    requests.until_settled(lambda: requests.init(topic))
    return requests


def begin(requests: Requests, versions: Versions = V1, *, is_open: bool = True) -> Situation:
    """A producer, with one record in an open transaction."""
    transactional_id = requests.topic
    made = requests.until_settled(lambda: requests.init(transactional_id))
    assert made.code is NONE
    situation = Situation(requests, transactional_id, made.producer_id, made.epoch)
    if is_open:
        write(situation, versions)
    return situation


def write(one: Situation, versions: Versions, sequence: int = 0) -> None:
    if versions is V1:
        added = one.requests.until_settled(
            lambda: one.requests.add(one.transactional_id, one.producer_id, one.epoch)[0]
        )
        assert added is NONE
    produced = one.requests.until_settled(
        lambda: one.requests.produce(
            one.transactional_id, one.producer_id, one.epoch, sequence, version=versions.produce
        )
    )
    assert produced is NONE


def settle(one: Situation, wanted: str) -> None:
    """Wait until the coordinator is done."""
    for _ in range(3_000):
        if one.describe()[0] == wanted:  # type: ignore[index]
            return
        time.sleep(0.02)
    raise AssertionError(f"never {wanted}: {one.describe()}")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_way_of_a_transaction(requests: Requests, name: str) -> None:
    versions = PROTOCOLS[name]
    one = begin(requests, versions)
    assert one.describe() == ("Ongoing", one.producer_id, one.epoch, [(requests.topic, (0,))])
    ended = requests.end(one.transactional_id, one.producer_id, one.epoch, True, version=versions.end)
    assert ended.code is NONE
    settle(one, "CompleteCommit")
    again = requests.end(one.transactional_id, one.producer_id, one.epoch, True, version=versions.end)
    if versions is V2:
        assert ended == again == Outcome(NONE, one.producer_id, one.epoch + 1)
    else:
        assert again.code is NONE
    assert one.describe() == ("CompleteCommit", one.producer_id, one.epoch + (versions is V2), [])


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("commit", [True, False])
def test_a_complete_transaction_is_ended_again(requests: Requests, name: str, committed: bool, commit: bool) -> None:
    """The table at the head of transactions/ending.py, for the epoch before (a repeat) and the present one."""
    versions = PROTOCOLS[name]
    one = begin(requests, versions)
    requests.end(one.transactional_id, one.producer_id, one.epoch, committed, version=versions.end)
    settle(one, "CompleteCommit" if committed else "CompleteAbort")
    before = one.describe()
    repeated = requests.end(one.transactional_id, one.producer_id, one.epoch, commit, version=versions.end)
    assert repeated.code is (NONE if commit == committed else STATE)
    assert one.describe() == before
    if versions is V2:
        present = requests.end(one.transactional_id, one.producer_id, one.epoch + 1, commit, version=versions.end)
        assert present == (Outcome(STATE) if commit else Outcome(NONE, one.producer_id, one.epoch + 2))


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("commit", [True, False])
def test_an_empty_transaction_is_ended(requests: Requests, name: str, commit: bool) -> None:
    one = begin(requests, is_open=False)
    ended = requests.end(one.transactional_id, one.producer_id, one.epoch, commit, version=PROTOCOLS[name].end)
    if PROTOCOLS[name] is V2 and not commit:
        assert ended == Outcome(NONE, one.producer_id, one.epoch + 1)
        settle(one, "CompleteAbort")
    else:
        assert ended.code is STATE
        assert one.describe() == ("Empty", one.producer_id, one.epoch, [])


Wrong = tuple[Callable[[Situation], object], object]
WRONG: dict[str, Wrong] = {
    "init, empty id": (lambda s: s.requests.init("").code, ErrorCode.INVALID_REQUEST),
    "init, no timeout": (
        lambda s: s.requests.init(s.transactional_id, timeout_ms=0).code,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    ),
    "init, timeout too long": (
        lambda s: s.requests.init(s.transactional_id, timeout_ms=900_001).code,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    ),
    "init, an id without an epoch": (
        lambda s: s.requests.init(s.transactional_id, s.producer_id, -1).code,
        ErrorCode.INVALID_REQUEST,
    ),
    "init, another producer's id": (
        lambda s: s.requests.init(s.transactional_id, s.producer_id + 1000, s.epoch).code,
        FENCED,
    ),
    "init, the same before version 4": (
        lambda s: s.requests.init(s.transactional_id, s.producer_id + 1000, s.epoch, version=3).code,
        OLD_FENCED,
    ),
    "add, unknown transactional id": (lambda s: s.requests.add("nobody", s.producer_id, s.epoch)[0], MAPPING),
    "add, empty transactional id": (
        lambda s: s.requests.add("", s.producer_id, s.epoch)[0],
        ErrorCode.INVALID_REQUEST,
    ),
    "add, another producer id": (lambda s: s.requests.add(s.transactional_id, s.producer_id + 1, s.epoch)[0], MAPPING),
    "add, an old epoch": (lambda s: s.requests.add(s.transactional_id, s.producer_id, s.epoch - 1)[0], FENCED),
    "add, an epoch to come": (lambda s: s.requests.add(s.transactional_id, s.producer_id, s.epoch + 1)[0], FENCED),
    "add, an old epoch before version 2": (
        lambda s: s.requests.add(s.transactional_id, s.producer_id, s.epoch - 1, version=1)[0],
        OLD_FENCED,
    ),
    "add, a partition that is not there": (
        lambda s: s.requests.add(s.transactional_id, s.producer_id, s.epoch, 1, 99),
        [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ),
    "add, a topic that is not there": (
        lambda s: s.requests.add(s.transactional_id, s.producer_id, s.epoch, topic="nothing")[0],
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    "verify, not in the transaction": (
        lambda s: s.requests.verify(s.transactional_id, s.producer_id, s.epoch, 0, 1),
        [NONE, ErrorCode.TRANSACTION_ABORTABLE],
    ),
    "verify, an old epoch": (lambda s: s.requests.verify(s.transactional_id, s.producer_id, s.epoch - 1)[0], FENCED),
    "verify, unknown transactional id": (lambda s: s.requests.verify("nobody", s.producer_id, s.epoch)[0], MAPPING),
    "offsets, an old epoch": (
        lambda s: s.requests.add_offsets(s.transactional_id, s.producer_id, s.epoch - 1, "group"),
        FENCED,
    ),
    "offsets, the same before version 2": (
        lambda s: s.requests.add_offsets(s.transactional_id, s.producer_id, s.epoch - 1, "group", version=1),
        OLD_FENCED,
    ),
    "offsets, unknown transactional id": (
        lambda s: s.requests.add_offsets("nobody", s.producer_id, s.epoch, "group"),
        MAPPING,
    ),
    "end, unknown transactional id": (lambda s: s.requests.end("nobody", s.producer_id, s.epoch, True).code, MAPPING),
    "end, empty transactional id": (
        lambda s: s.requests.end("", s.producer_id, s.epoch, True).code,
        ErrorCode.INVALID_REQUEST,
    ),
    "end, another producer id": (
        lambda s: s.requests.end(s.transactional_id, s.producer_id + 1, s.epoch, True).code,
        MAPPING,
    ),
    "end, an old epoch": (
        lambda s: s.requests.end(s.transactional_id, s.producer_id, s.epoch - 1, True).code,
        FENCED,
    ),
    "end, an old epoch in v2": (
        lambda s: s.requests.end(s.transactional_id, s.producer_id, s.epoch - 1, True, version=5).code,
        FENCED,
    ),
    "end, an old epoch before version 2": (
        lambda s: s.requests.end(s.transactional_id, s.producer_id, s.epoch - 1, True, version=1).code,
        OLD_FENCED,
    ),
    "produce, an old epoch": (
        lambda s: s.requests.produce(s.transactional_id, s.producer_id, s.epoch - 1, 1),
        OLD_FENCED,
    ),
    "produce, an old epoch in v2": (
        lambda s: s.requests.produce(s.transactional_id, s.producer_id, s.epoch - 1, 1, version=12),
        OLD_FENCED,
    ),
    "produce, a partition that was not added": (
        lambda s: s.requests.produce(s.transactional_id, s.producer_id, s.epoch, index=1),
        ErrorCode.TRANSACTION_ABORTABLE,
    ),
    "produce, the same before version 11": (
        lambda s: s.requests.produce(s.transactional_id, s.producer_id, s.epoch, index=1, version=10),
        STATE,
    ),
    "produce, outside of the transaction": (
        lambda s: s.requests.produce(None, s.producer_id, s.epoch, 1, is_transactional=False),
        STATE,
    ),
    "produce, unknown transactional id": (
        lambda s: s.requests.produce("nobody", s.producer_id, s.epoch, index=1),
        MAPPING,
    ),
    "offset commit, group not added": (
        lambda s: s.requests.commit_offset(s.transactional_id, s.producer_id, s.epoch, "group", 1),
        ErrorCode.TRANSACTION_ABORTABLE,
    ),
    "offset commit, the same before version 4": (
        lambda s: s.requests.commit_offset(s.transactional_id, s.producer_id, s.epoch, "group", 1, version=3),
        STATE,
    ),
    "offset commit, an old epoch": (
        lambda s: s.requests.commit_offset(s.transactional_id, s.producer_id, s.epoch - 1, "group", 1),
        OLD_FENCED,
    ),
    "offset commit, an old epoch in v2": (
        lambda s: s.requests.commit_offset(s.transactional_id, s.producer_id, s.epoch - 1, "group", 1, version=5),
        OLD_FENCED,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_step_gets_its_code_and_changes_nothing(requests: Requests, name: str) -> None:
    requests.find("group", key_type=0)
    one = begin(requests)
    before = one.describe()
    action, expected = WRONG[name]
    assert requests.until_settled(lambda: action(one)) == expected
    assert one.describe() == before
    # And the transaction goes on as if nothing had been asked.
    assert requests.produce(one.transactional_id, one.producer_id, one.epoch, 1) is NONE
    assert requests.end(one.transactional_id, one.producer_id, one.epoch, True).code is NONE


def test_a_producer_goes_on_after_an_error_with_a_new_epoch(requests: Requests) -> None:
    """KIP-360: it names the epoch it has; asked twice the answer is the same, an older epoch is fenced."""
    one = begin(requests, is_open=False)
    name = one.transactional_id
    raised = requests.init(name, one.producer_id, one.epoch)
    assert raised == Outcome(NONE, one.producer_id, one.epoch + 1)
    assert requests.init(name, one.producer_id, one.epoch) == raised
    assert requests.init(name, one.producer_id, one.epoch - 1).code is FENCED
    fresh = requests.init(name)
    assert fresh == Outcome(NONE, one.producer_id, one.epoch + 2)
    assert requests.init(name, one.producer_id, one.epoch + 1).code is FENCED


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_write_that_comes_too_late_is_refused(requests: Requests, name: str) -> None:
    versions = PROTOCOLS[name]
    one = begin(requests, versions)
    requests.end(one.transactional_id, one.producer_id, one.epoch, True, version=versions.end)
    settle(one, "CompleteCommit")
    late = requests.until_settled(
        lambda: requests.produce(one.transactional_id, one.producer_id, one.epoch, 1, version=versions.produce)
    )
    assert late is (OLD_FENCED if versions is V2 else ErrorCode.TRANSACTION_ABORTABLE)


def test_a_producer_that_asks_again_aborts_what_it_left(requests: Requests) -> None:
    one = begin(requests)
    fresh = requests.until_settled(lambda: requests.init(one.transactional_id))
    assert fresh == Outcome(NONE, one.producer_id, one.epoch + 2), "one epoch to fence, one to go on with"
    assert requests.end(one.transactional_id, one.producer_id, one.epoch, True).code is FENCED
    assert requests.produce(one.transactional_id, one.producer_id, one.epoch, 1) is OLD_FENCED


@pytest.mark.parametrize("name", PROTOCOLS)
def test_several_connections_share_one_transaction(node: Node, requests: Requests, name: str) -> None:
    """As writers of a partition each, with a driver that ends it: the identity is what counts, not the connection."""
    versions = PROTOCOLS[name]
    one = begin(requests, versions, is_open=False)
    identity = (one.transactional_id, one.producer_id, one.epoch)
    writers = [Requests(Raw(node).ask, requests.topic, lambda: time.sleep(0.02)) for _ in range(3)]
    for index, writer in enumerate(writers):
        if versions is V1:
            assert writer.until_settled(partial(writer.add, *identity, index)) == [NONE]
        for sequence in range(3):
            action = partial(writer.produce, *identity, sequence, index=index, version=versions.produce)
            assert writer.until_settled(action) is NONE
    driver = Requests(Raw(node).ask, requests.topic, lambda: time.sleep(0.02))
    assert driver.end(*identity, True, version=versions.end).code is NONE
    settle(one, "CompleteCommit")
    assert driver.end(*identity, True, version=versions.end).code is NONE, "asked again by whoever did not hear it"
    late = writers[0].until_settled(partial(writers[0].produce, *identity, 3, version=versions.produce))
    assert late is not NONE, "a writer that comes late is refused"
