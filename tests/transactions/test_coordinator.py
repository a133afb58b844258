"""What the coordinator does by itself: time limits, epochs that run out, markers for partitions that are gone."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.transactions.cluster import GROUP, ID, STATE_TOPIC, TOPIC, Three
from tests.transactions.requests import V1, V2, Outcome
from tidelog.coordination.coordinator import partition_for
from tidelog.errors import ErrorCode, KafkaError
from tidelog.node.transaction_verification import Asker, Support
from tidelog.transactions import records
from tidelog.transactions.adding import add_partitions
from tidelog.transactions.initialise import initialise
from tidelog.transactions.requests import AddPartitions, Initialise
from tidelog.transactions.transaction import State
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.wire.messages.describe_transactions import DescribeTransactionsRequest
from tidelog.wire.messages.end_txn import EndTxnRequest
from tidelog.wire.messages.list_transactions import ListTransactionsRequest
from tidelog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tidelog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

PROTOCOLS = {"v1": V1, "v2": V2}


def marker(cluster: Three, producer: Outcome, coordinator_epoch: int, index: int = 0, version: int = 1) -> ErrorCode:
    """Write an abort marker, as a coordinator or a tool would."""
    one = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        coordinator_epoch=coordinator_epoch,
        topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[index])],
    )
    request = WriteTxnMarkersRequest(markers=[one])
    answer = cluster.ask(cluster.leader(TOPIC, index), ApiKey.WRITE_TXN_MARKERS, version, request)
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


# --- time limits ---


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_transaction_past_its_time_is_aborted_and_its_producer_fenced(name: str) -> None:
    versions = PROTOCOLS[name]
    cluster = Three(seed=1, transaction_abort_timed_out_transaction_cleanup_interval_ms="500")
    cluster.init()
    made = cluster.requests.init(ID, timeout_ms=3_000)
    cluster.write(made, versions, 0, b"late")
    cluster.pass_ms(2_000)
    assert cluster.wait_for_state("Ongoing")
    state = cluster.wait_for_state("CompleteAbort")
    assert state.producer_epoch == made.epoch + 1
    assert cluster.committed_values(0) == []
    assert cluster.fetch(0).last_stable_offset == 2, "readers of committed records go on"
    identity = (ID, made.producer_id, made.epoch)
    produced = cluster.requests.until_settled(lambda: cluster.requests.produce(*identity, 1, version=versions.produce))
    assert produced is ErrorCode.INVALID_PRODUCER_EPOCH
    ended = cluster.requests.end(*identity, True, version=versions.end).code
    assert ended is (ErrorCode.PRODUCER_FENCED if versions is V1 else ErrorCode.INVALID_TXN_STATE)


def test_a_transaction_that_no_coordinator_saw_end_times_out_with_the_next_one() -> None:
    cluster = Three(seed=2, transaction_abort_timed_out_transaction_cleanup_interval_ms="500")
    cluster.init()
    made = cluster.requests.init(ID, timeout_ms=20_000)
    first = cluster.coordinator()
    index = next(one for one in cluster.node_ids if one != first) - 1
    cluster.write(made, V1, index, b"late")
    cluster.world.kill(first)
    cluster.wait_for_state("CompleteAbort")
    assert cluster.coordinator() != first
    assert cluster.fetch(index).last_stable_offset == 2


def test_a_transaction_begun_by_a_coordinator_whose_clock_was_ahead_times_out_with_the_next_one() -> None:
    """It was open for the hour that the clock was ahead, and nobody read committed records behind it."""
    cluster = Three(seed=2, transaction_abort_timed_out_transaction_cleanup_interval_ms="500")
    cluster.init()
    first = cluster.coordinator()
    cluster.world.hosts[first].clock.jump(cluster.world.now_ms, 3_600_000)
    cluster.pass_ms(2_000)
    first = cluster.coordinator()
    made = cluster.requests.until_settled(lambda: cluster.requests.init(ID, timeout_ms=3_000))
    index = next(one for one in cluster.node_ids if one != first) - 1
    cluster.write(made, V1, index, b"late")
    begun = cluster.transaction()
    assert begun is not None
    assert begun.start_ms > cluster.world.now_ms + 3_000_000
    cluster.world.kill(first)
    cluster.wait_for_state("CompleteAbort")
    assert cluster.fetch(index).last_stable_offset == 2


def test_a_transactional_id_that_is_not_used_is_forgotten() -> None:
    cluster = Three(
        seed=3,
        transactional_id_expiration_ms="5000",
        transaction_remove_expired_transaction_cleanup_interval_ms="1000",
    )
    producer = cluster.init()
    cluster.write(producer, V1, 0, b"one")
    cluster.pass_ms(8_000)
    assert cluster.wait_for_state("Ongoing"), "an open one is kept"
    cluster.end(producer, V1, commit=True)
    cluster.wait_for_state("CompleteCommit")
    assert cluster.world.run_until(lambda: cluster.transaction() is None, 20_000)
    identity = (ID, producer.producer_id, producer.epoch)
    assert cluster.requests.add(*identity) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    found = cluster.ask(
        cluster.coordinator(), ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(transactional_ids=[ID])
    )
    assert found.transaction_states[0].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    fresh = cluster.requests.init(ID, producer.producer_id, producer.epoch)
    assert fresh.code is ErrorCode.NONE, "it may go on after that, with a new id"
    assert fresh.producer_id != producer.producer_id


# --- epochs that run out ---


def with_epoch(cluster: Three, producer: Outcome, epoch: int) -> Outcome:
    """The transactional id after as many epochs: a record that the coordinator reads when it starts."""
    node = cluster.process(cluster.coordinator()).node
    shard = node.transactions.coordinator.shards[partition_for(ID, 3)]
    used = cluster.transaction()
    assert used is not None
    shard.write([records.transaction_record(used._replace(producer_epoch=epoch), 2)], lambda _code: None)
    partition = shard.partition
    assert cluster.world.run_until(lambda: partition.high_watermark == partition.log.log_end_offset)
    first = cluster.coordinator()
    cluster.world.kill(first)
    cluster.world.start(first)
    cluster.wait_for_all()
    cluster.requests.until_settled(lambda: cluster.requests.add(ID, 999, 0))
    return producer._replace(epoch=epoch)


def test_a_producer_id_without_epochs_left_is_replaced_by_init() -> None:
    cluster = Three(seed=4)
    producer = with_epoch(cluster, cluster.init(), 32_766)
    cluster.write(producer, V1, 0, b"last")
    fresh = cluster.init()
    assert fresh.producer_id != producer.producer_id
    assert fresh.epoch == 0
    assert cluster.requests.add(ID, producer.producer_id, producer.epoch) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert cluster.committed_values(0) == []


def test_a_producer_id_without_epochs_left_is_replaced_by_the_end_of_a_transaction() -> None:
    cluster = Three(seed=5)
    producer = with_epoch(cluster, cluster.init(), 32_766)
    cluster.write(producer, V2, 0, b"last")
    ended = cluster.end(producer, V2, commit=True)
    assert ended.code is ErrorCode.NONE
    assert ended.producer_id not in (producer.producer_id, -1)
    assert ended.epoch == 0
    cluster.wait_for_state("CompleteCommit")
    assert cluster.end(producer, V2, commit=True) == ended, "asked again, the answer is the same"
    cluster.write(ended, V2, 0, b"first")
    cluster.end(ended, V2, commit=True)
    cluster.wait_for_state("CompleteCommit")
    assert cluster.committed_values(0) == [b"last", b"first"]


def test_the_epoch_that_is_kept_for_fencing_is_given_to_nobody() -> None:
    """There is none above it: whoever had it could neither end its transaction nor be fenced; nodes failed at that."""
    cluster = Three(seed=17, transaction_abort_timed_out_transaction_cleanup_interval_ms="500")
    producer = with_epoch(cluster, cluster.init(), 32_766)
    identity = (ID, producer.producer_id, producer.epoch)
    cluster.write(producer, V2, 0, b"lost")
    asked = cluster.requests.until_settled(lambda: cluster.requests.init(*identity, timeout_ms=1_000))
    assert (asked.code, asked.epoch) == (ErrorCode.NONE, 0), "it aborted what it had open, and goes on"
    assert asked.producer_id != producer.producer_id
    assert cluster.requests.init(*identity, timeout_ms=1_000) == asked, "asked again, the answer is the same"
    producer = with_epoch(cluster, asked, 32_766)
    cluster.write(producer, V2, 0, b"late")
    cluster.wait_for_state("CompleteAbort")
    assert cluster.end(producer, V2, commit=False).code is ErrorCode.PRODUCER_FENCED
    fresh = cluster.init()
    cluster.write(fresh, V2, 0, b"first")
    assert cluster.end(fresh, V2, commit=True).code is ErrorCode.NONE
    cluster.wait_for_state("CompleteCommit")
    assert cluster.committed_values(0) == [b"first"]


@pytest.mark.parametrize("epoch", [0, 32_766])
def test_a_producer_ahead_of_the_markers_is_told_to_wait_and_not_fenced(epoch: int) -> None:
    """Transactions v2: the answer to EndTxn has the identity of the next transaction, before this one is complete."""
    cluster = Three(seed=15)
    producer = cluster.init()
    if epoch:
        producer = with_epoch(cluster, producer, epoch)
    first = cluster.coordinator()
    far = next(one for one in cluster.node_ids if one != first) - 1
    cluster.write(producer, V2, far, b"one")
    cluster.world.kill(far + 1)
    following = cluster.end(producer, V2, commit=True)
    assert following.code is ErrorCode.NONE
    cluster.wait_for_state("PrepareCommit")
    identity = (ID, following.producer_id, following.epoch)
    busy = ErrorCode.CONCURRENT_TRANSACTIONS
    assert cluster.requests.add(*identity, first - 1) == [busy]
    assert cluster.requests.verify(*identity, first - 1) == [busy]
    assert cluster.requests.end(*identity, False, version=V2.end).code is busy
    assert cluster.requests.init(*identity).code is busy
    assert cluster.requests.end(ID, producer.producer_id, producer.epoch, True, version=V2.end).code is busy
    assert cluster.requests.end(ID, producer.producer_id, producer.epoch, False, version=V2.end).code is (
        ErrorCode.INVALID_TXN_STATE
    )
    states = list(cluster.process(cluster.coordinator()).node.transactions.states())
    assert not any(waiters for state in states for waiters in state._waiters.values()), "who gave up is forgotten"
    assert {state._answers.count for state in states} == {0}
    cluster.world.start(far + 1)
    cluster.wait_for_state("CompleteCommit")
    cluster.write(following, V2, far, b"two")
    cluster.end(following, V2, commit=True)
    cluster.wait_for_state("CompleteCommit")
    assert cluster.committed_values(far) == [b"one", b"two"]


def test_who_is_sent_away_by_a_fence_is_answered_once() -> None:
    """Though the fence, which goes on without it, is not known to be committed in the end."""
    cluster = Three(seed=18)
    producer = cluster.init()
    first = cluster.coordinator()
    cluster.write(producer, V1, first % 3, b"one")
    connection = cluster.world.connect(first)
    assert connection is not None
    ending = EndTxnRequest(
        transactional_id=ID, producer_id=producer.producer_id, producer_epoch=producer.epoch, committed=True
    )
    cluster.world.request(connection, ApiKey.END_TXN, V1.end, ending, lambda _answer: None)
    cluster.wait_for_state("PrepareCommit")
    state = cluster.process(first).node.transactions.state_of(ID)
    wanted = AddPartitions(ID, producer.producer_id, producer.epoch, frozenset({(TOPIC, 0)}))
    add_partitions(state, wanted, lambda _code: None)
    answers: list[ErrorCode] = []
    initialise(state, Initialise(ID, 60_000), lambda code, _id, _epoch: answers.append(code))
    assert cluster.world.run_until(lambda: bool(answers), 1_000)
    for other in cluster.node_ids:
        if other != first:
            cluster.world.network.cut(other, first, ("data",))
    cluster.pass_ms(state.config.request_timeout_ms + 1_000)
    assert answers == [ErrorCode.CONCURRENT_TRANSACTIONS]


# --- markers ---


def test_a_marker_of_an_older_coordinator_or_epoch_is_refused() -> None:
    cluster = Three(seed=6)
    producer = cluster.init()
    cluster.write(producer, V1, 0, b"one")
    cluster.end(producer, V1, commit=True)
    state = cluster.wait_for_state("CompleteCommit")
    epoch = cluster.process(cluster.coordinator()).node.transactions.coordinator.shards[partition_for(ID, 3)].epoch
    cluster.write(producer, V1, 0, b"two", sequence=1)
    assert marker(cluster, producer, epoch - 1) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert marker(cluster, producer._replace(epoch=state.producer_epoch - 1), epoch) is (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )
    assert cluster.fetch(0).last_stable_offset == 2, "the open transaction is still open"
    cluster.end(producer, V1, commit=True)
    cluster.wait_for_state("CompleteCommit")
    assert cluster.committed_values(0) == [b"one", b"two"]


def test_a_transaction_ends_although_one_of_its_topics_is_deleted() -> None:
    cluster = Three(seed=7)
    producer = cluster.init()
    cluster.write(producer, V1, 0, b"one")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=5_000)
    assert cluster.ask(1, ApiKey.DELETE_TOPICS, 6, request).responses[0].error_code == 0
    assert cluster.end(producer, V1, commit=True).code is ErrorCode.NONE
    cluster.wait_for_state("CompleteCommit")


def test_followers_tell_readers_of_committed_records_the_same_as_the_leader() -> None:
    cluster = Three(seed=8, replicas=[[1, 2, 3]])
    producer = cluster.init()
    for number in range(4):
        cluster.write(producer, V2, 0, b"%d" % number)
        producer = cluster.end(producer, V2, commit=number % 2 == 1)
        cluster.wait_for_state("CompleteCommit" if number % 2 else "CompleteAbort")
    cluster.write(producer, V2, 0, b"open")
    leader = cluster.leader(TOPIC, 0)

    def view(node_id: int) -> Any:
        data = cluster.fetch(0, node_id)
        aborted = sorted((one.producer_id, one.first_offset) for one in data.aborted_transactions)
        return data.last_stable_offset, aborted, [bytes(part) for part in [data.records or b""]]

    expected = view(leader)
    assert expected[0] == 8
    assert [first for _, first in expected[1]] == [0, 4]
    for follower in (one for one in cluster.node_ids if one != leader):
        assert cluster.world.run_until(
            lambda one=follower: cluster.process(one).node.replicas.partitions[TOPIC, 0].high_watermark == 9, 10_000
        )
        assert view(follower) == expected
        assert cluster.committed_values(0, follower) == [b"1", b"3"]


def test_a_marker_lost_in_an_unclean_election_is_repaired_by_hand() -> None:
    """The coordinator thinks that all is over, the new leader's log has it open: readers would wait for ever."""
    cluster = Three(seed=9, replicas=[[1, 2]], unclean_leader_election_enable="true", replica_lag_time_max_ms="1000")
    producer = cluster.init()
    cluster.write(producer, V1, 0, b"one")
    leader = cluster.leader(TOPIC, 0)
    behind = 3 - leader
    assert cluster.world.run_until(
        lambda: cluster.process(behind).node.replicas.partitions[TOPIC, 0].log.log_end_offset == 1
    )
    cluster.world.kill(behind)
    assert cluster.end(producer, V1, commit=True).code is ErrorCode.NONE
    cluster.wait_for_state("CompleteCommit")
    assert cluster.committed_values(0) == [b"one"]
    cluster.world.kill(leader)
    cluster.world.start(behind)
    assert cluster.world.run_until(lambda: cluster.leader(TOPIC, 0) == behind, 60_000)
    assert cluster.committed_values(0) == [], "the marker is gone with the only replica that had it"
    assert cluster.fetch(0).last_stable_offset == 0
    assert marker(cluster, producer, -1) is ErrorCode.NONE, "no coordinator wrote there: no epoch to be older than"
    assert cluster.fetch(0).last_stable_offset == 2


# --- offsets ---


def committed_offset(cluster: Three, *, require_stable: bool = True) -> tuple[int, int]:
    """(code, offset) of the group."""
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
    target = cluster.leader("__consumer_offsets", partition_for(GROUP, 3))
    found = cluster.ask(target, ApiKey.OFFSET_FETCH, 8, request).groups[0]
    if not found.topics:
        return found.error_code, -1
    return found.topics[0].partitions[0].error_code, found.topics[0].partitions[0].committed_offset


@pytest.mark.parametrize("name", PROTOCOLS)
def test_offsets_count_when_the_transaction_is_committed(name: str) -> None:
    versions, cluster = PROTOCOLS[name], Three(seed=10)
    producer = cluster.init()
    requests = cluster.requests
    cluster.find_group()
    for offset, commit in ((5, False), (7, True)):
        identity = (ID, producer.producer_id, producer.epoch)
        if versions is V1:
            assert requests.until_settled(lambda one=identity: requests.add_offsets(*one, GROUP)) is ErrorCode.NONE
        committed = requests.until_settled(
            lambda one=identity, offset=offset: requests.commit_offset(*one, GROUP, offset, version=versions.offsets)
        )
        assert committed is ErrorCode.NONE
        assert committed_offset(cluster)[1] == -1
        ended = cluster.end(producer, versions, commit)
        assert ended.code is ErrorCode.NONE
        cluster.wait_for_state("CompleteCommit" if commit else "CompleteAbort")
        producer = ended if versions is V2 else producer
        assert committed_offset(cluster) == (0, 7 if commit else -1)


def test_pending_offsets_outlive_the_groups_coordinator() -> None:
    cluster = Three(seed=11)
    producer = cluster.init()
    requests = cluster.requests
    cluster.find_group()
    identity = (ID, producer.producer_id, producer.epoch)
    assert requests.until_settled(lambda: requests.commit_offset(*identity, GROUP, 9, version=5)) is ErrorCode.NONE
    first = cluster.leader("__consumer_offsets", partition_for(GROUP, 3))
    cluster.world.kill(first)
    cluster.world.run_until(
        lambda: cluster.leader("__consumer_offsets", partition_for(GROUP, 3)) not in (first, -1), 60_000
    )
    assert cluster.end(producer, V2, commit=True).code is ErrorCode.NONE
    cluster.wait_for_state("CompleteCommit")
    assert committed_offset(cluster) == (0, 9)


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_of_an_ended_transaction_are_what_the_groups_next_coordinator_reads(commit: bool) -> None:
    cluster = Three(seed=14)
    producer = cluster.init()
    requests = cluster.requests
    cluster.find_group()
    for offset, is_commit in ((3, True), (9, commit)):
        identity = (ID, producer.producer_id, producer.epoch)
        action = partial(requests.commit_offset, *identity, GROUP, offset, version=5)
        assert requests.until_settled(action) is ErrorCode.NONE
        producer = cluster.end(producer, V2, is_commit)
        cluster.wait_for_state("CompleteCommit" if is_commit else "CompleteAbort")
    first = cluster.leader("__consumer_offsets", partition_for(GROUP, 3))
    cluster.world.kill(first)
    cluster.world.run_until(
        lambda: cluster.leader("__consumer_offsets", partition_for(GROUP, 3)) not in (first, -1), 60_000
    )
    cluster.pass_ms(1_000)
    assert committed_offset(cluster) == (0, 9 if commit else 3)


# --- what a leader asks ---


def test_a_marker_between_question_and_answer_voids_the_answer() -> None:
    """Without that the late record would open a transaction that nobody ends."""
    cluster = Three(seed=12)
    producer = cluster.init()
    identity = (ID, producer.producer_id, producer.epoch)
    assert cluster.requests.until_settled(lambda: cluster.requests.add(*identity, 0)) == [ErrorCode.NONE]
    node = cluster.process(cluster.leader(TOPIC, 0)).node
    heard: list[KafkaError | None] = []
    again: list[int] = []
    asker = Asker(*identity, Support.ABORTABLE)
    partition = node.replicas.partitions[TOPIC, 0]
    node.verification.ask(partition, asker, heard.append, lambda: again.append(1))
    node.verification.ask(partition, asker, heard.append, lambda: again.append(2))
    assert marker(cluster, producer, 0) is ErrorCode.NONE
    assert cluster.world.run_until(lambda: bool(heard))
    assert heard[0] is not None
    assert heard[0].code is ErrorCode.INVALID_TXN_STATE
    assert again == [2], "what waited behind it begins anew"


def test_the_marker_of_the_transaction_before_voids_nothing() -> None:
    """Transactions v2: it carries the epoch of the next one, whose producer may be ahead of it."""
    cluster = Three(seed=16)
    producer = cluster.init()
    first = cluster.coordinator()
    far = next(one for one in cluster.node_ids if one != first)
    cluster.write(producer, V2, far - 1, b"one")
    connection = cluster.world.connect(first)
    assert connection is not None
    ending = EndTxnRequest(
        transactional_id=ID, producer_id=producer.producer_id, producer_epoch=producer.epoch, committed=True
    )
    cluster.world.request(connection, ApiKey.END_TXN, V2.end, ending, lambda _answer: None)
    cluster.wait_for_state("PrepareCommit")
    assert not cluster.has_marker(far - 1)
    cluster.world.network.hold(first, far, ("data",))
    node = cluster.process(far).node
    heard: list[KafkaError | None] = []
    asker = Asker(ID, producer.producer_id, producer.epoch + 1, Support.ADDS)
    node.verification.ask(node.replicas.partitions[TOPIC, far - 1], asker, heard.append, lambda: None)
    cluster.pass_ms(20)
    cluster.world.network.release(first, far, ("data",))
    assert cluster.world.run_until(lambda: bool(heard))
    assert heard == [None]


def test_transactions_are_listed_by_every_filter() -> None:
    cluster = Three(seed=13)
    producer = cluster.init()
    cluster.write(producer, V1, 0, b"x")
    cluster.pass_ms(2_000)

    def listed(version: int = 2, **filters: Any) -> list[str]:
        request = ListTransactionsRequest(**filters)
        answer = cluster.ask(cluster.coordinator(), ApiKey.LIST_TRANSACTIONS, version, request)
        assert answer.error_code == 0
        return [one.transactional_id for one in answer.transaction_states]

    assert listed() == [ID]
    assert listed(state_filters=["Ongoing"]) == [ID]
    assert listed(state_filters=["Empty", "CompleteAbort"]) == []
    assert listed(producer_id_filters=[producer.producer_id]) == [ID]
    assert listed(producer_id_filters=[producer.producer_id + 1]) == []
    assert listed(duration_filter=1_000) == [ID]
    assert listed(duration_filter=60_000) == []
    assert listed(transactional_id_pattern="pay.*") == [ID]
    assert listed(transactional_id_pattern="pay") == []
    request = ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"])
    answer = cluster.ask(cluster.coordinator(), ApiKey.LIST_TRANSACTIONS, 0, request)
    assert answer.unknown_state_filters == ["Nonsense"]
    assert [one.transaction_state for one in answer.transaction_states] == [State.ONGOING.public_name]
    bad = ListTransactionsRequest(transactional_id_pattern="(")
    assert cluster.ask(cluster.coordinator(), ApiKey.LIST_TRANSACTIONS, 2, bad).error_code == (
        ErrorCode.INVALID_REGULAR_EXPRESSION
    )
    assert STATE_TOPIC in cluster.newest_image().topic_ids
