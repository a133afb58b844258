"""A transaction outlives its coordinator, whatever state it was in: the next one reads the log and goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.transactions.cluster import ID, STATE_TOPIC, TOPIC, Three
from tests.transactions.requests import V1, V2, Outcome
from tidelog.coordination import shard
from tidelog.coordination.coordinator import partition_for
from tidelog.coordination.shard import ShardStatus
from tidelog.errors import ErrorCode
from tidelog.events import Request
from tidelog.replica.partition import Partition
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.end_txn import EndTxnRequest

PROTOCOLS = {"v1": V1, "v2": V2}


def other_than(cluster: Three, *node_ids: int) -> int:
    return next(one for one in cluster.node_ids if one not in node_ids)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_open_transaction_is_committed_by_the_next_coordinator(name: str) -> None:
    versions, cluster = PROTOCOLS[name], Three(seed=3)
    producer = cluster.init()
    first = cluster.coordinator()
    index = other_than(cluster, first) - 1
    cluster.write(producer, versions, index, b"before")
    ongoing = cluster.wait_for_state("Ongoing")
    assert ongoing.client_version == (2 if name == "v2" else 0)
    cluster.world.kill(first)
    cluster.write(producer, versions, index, b"after", sequence=1)
    assert cluster.committed_values(index) == []
    assert cluster.end(producer, versions, commit=True).code is ErrorCode.NONE
    cluster.wait_for_state("CompleteCommit")
    assert cluster.coordinator() != first
    assert cluster.committed_values(index) == [b"before", b"after"]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_decided_transaction_gets_its_markers_from_the_next_coordinator(name: str, commit: bool) -> None:
    versions, cluster = PROTOCOLS[name], Three(seed=5)
    producer = cluster.init()
    first = cluster.coordinator()
    near, far = first - 1, other_than(cluster, first) - 1
    # The partition of the coordinator itself can have its marker at once, the other's leader is away.
    cluster.write(producer, versions, near, b"near")
    cluster.write(producer, versions, far, b"far")
    cluster.world.kill(far + 1)
    ended = cluster.end(producer, versions, commit)
    assert ended.code is ErrorCode.NONE
    prepared = "PrepareCommit" if commit else "PrepareAbort"
    cluster.wait_for_state(prepared)
    assert cluster.requests.verify(ID, producer.producer_id, ended.epoch if name == "v2" else producer.epoch) == [
        ErrorCode.CONCURRENT_TRANSACTIONS
    ]
    cluster.world.kill(first)
    cluster.world.start(far + 1)
    assert cluster.world.run_until(lambda: cluster.coordinator() not in (first, -1), 60_000)
    cluster.wait_for_state(prepared)
    cluster.world.start(first)
    state = cluster.wait_for_state("CompleteCommit" if commit else "CompleteAbort")
    assert (state.producer_id, state.producer_epoch) == (producer.producer_id, ended.epoch if name == "v2" else 0)
    cluster.wait_for_all()
    for index, value in ((near, b"near"), (far, b"far")):
        assert cluster.committed_values(index) == ([value] if commit else [])
        assert cluster.fetch(index).last_stable_offset == cluster.fetch(index).high_watermark
    # Asked again, it says what was decided and nothing else.
    assert cluster.end(producer, versions, commit).code is ErrorCode.NONE
    assert cluster.end(producer, versions, not commit).code is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_complete_transaction_is_known_to_the_next_coordinator(name: str) -> None:
    versions, cluster = PROTOCOLS[name], Three(seed=7)
    producer = cluster.init()
    first = cluster.coordinator()
    index = other_than(cluster, first) - 1
    cluster.write(producer, versions, index, b"one")
    ended = cluster.end(producer, versions, commit=True)
    cluster.wait_for_state("CompleteCommit")
    cluster.world.kill(first)
    assert cluster.end(producer, versions, commit=True) == ended
    following = ended if name == "v2" else producer
    cluster.write(following, versions, index, b"two", sequence=0 if name == "v2" else 1)
    assert cluster.end(following, versions, commit=False).code is ErrorCode.NONE
    cluster.wait_for_state("CompleteAbort")
    assert cluster.committed_values(index) == [b"one"]


def test_an_epoch_that_was_given_out_is_never_given_out_again() -> None:
    cluster = Three(seed=9)
    seen: list[Outcome] = []
    for _ in range(3):
        seen.append(cluster.init())
        killed = cluster.coordinator()
        cluster.world.kill(killed)
        assert cluster.world.run_until(lambda killed=killed: cluster.coordinator() not in (killed, -1), 30_000)
        cluster.world.start(killed)
        cluster.wait_for_all()
    assert len({(one.producer_id, one.epoch) for one in seen}) == 3
    assert sorted(seen, key=lambda one: one.epoch) == seen


def test_no_marker_is_written_before_the_decision_is_safe() -> None:
    """The decision is in the coordinator's log and nowhere else: lost with it, some partitions would have been told."""
    cluster = Three(seed=11)
    producer = cluster.init()
    first = cluster.coordinator()
    near = first - 1
    cluster.write(producer, V2, near, b"one")
    others = [one for one in cluster.node_ids if one != first]
    for one in others:
        cluster.world.network.hold(one, first)
        cluster.world.network.hold(first, one)
    request = EndTxnRequest(
        transactional_id=ID, producer_id=producer.producer_id, producer_epoch=producer.epoch, committed=True
    )
    answers: list[object] = []
    connection = cluster.world.connect(first)
    assert connection is not None
    cluster.world.request(connection, ApiKey.END_TXN, 5, request, answers.append)
    cluster.pass_ms(1_000)
    log = cluster.process(first).node.replicas.partitions[STATE_TOPIC, partition_for(ID, 3)]
    assert log.log.log_end_offset > log.high_watermark, "the decision is written and not committed"
    assert not answers
    assert not cluster.has_marker(near)
    for one in others:
        cluster.world.network.release(one, first)
        cluster.world.network.release(first, one)
    cluster.wait_for_all()
    assert cluster.end(producer, V2, commit=True).code is ErrorCode.NONE
    cluster.wait_for_state("CompleteCommit")
    assert cluster.committed_values(near) == [b"one"]


def test_a_coordinator_that_still_reads_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Three(seed=13)
    producer = cluster.init()
    for _ in range(50):
        cluster.write(producer, V2, 1, b"x")
        producer = cluster.end(producer, V2, commit=True)
        cluster.wait_for_state("CompleteCommit")
    monkeypatch.setattr(shard, "LOAD_BYTES", 1)
    first = cluster.coordinator()
    assert cluster.leader(TOPIC, 1) != first, "its partition is there when the coordinator is not"
    cluster.world.kill(first)
    index = partition_for(ID, 3)

    def is_reading() -> bool:
        now = cluster.coordinator()
        found = cluster.process(now).node.transactions.coordinator.shards.get(index) if now not in (first, -1) else None
        return found is not None and found.status is ShardStatus.LOADING

    assert cluster.world.run_until(is_reading, 60_000)
    process = cluster.process(cluster.coordinator())
    connection = cluster.world.connect(process.host.name)
    assert connection is not None
    answers: list[Any] = []
    connection.answered[0] = (ApiKey.END_TXN, 5, answers.append)
    request = EndTxnRequest(
        transactional_id=ID, producer_id=producer.producer_id, producer_epoch=producer.epoch, committed=True
    )
    cluster.world.step(process, Request(connection.connection_id, 0, ApiKey.END_TXN, 5, "sim", request))
    assert cluster.world.run_until(lambda: bool(answers))
    assert answers[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert cluster.end(producer, V2, commit=False).code is ErrorCode.NONE, "and a moment later it knows"


def test_nodes_that_do_not_look_after_an_id_say_so() -> None:
    cluster = Three(seed=17)
    producer = cluster.init()
    request = EndTxnRequest(transactional_id=ID, producer_id=producer.producer_id, producer_epoch=0, committed=True)
    codes = {one: cluster.ask(one, ApiKey.END_TXN, 4, request).error_code for one in cluster.node_ids}
    coordinator = cluster.coordinator()
    assert codes.pop(coordinator) == ErrorCode.INVALID_TXN_STATE
    assert set(codes.values()) == {ErrorCode.NOT_COORDINATOR}
    assert TOPIC in cluster.newest_image().topic_ids


def test_a_coordinator_whose_disk_fails_behind_its_last_record_of_a_transaction_takes_nothing_with_it() -> None:
    """The transaction's ending was gone with its shard, and looked for: the node ended, for one of its directories."""
    cluster = Three(seed=6)
    producer = cluster.init()
    first = cluster.coordinator()
    cluster.write(producer, V2, first % 3, b"one")
    core = cluster.process(first).node
    state = core.transactions.state_of(ID)
    own, appended = state._shard().partition, core.replicas.appended

    def failing(partition: Partition, new_bytes: int) -> None:
        if partition is own and ID in state._endings:
            partition.go_offline()
            core.broker.role_changed(partition)
        else:
            appended(partition, new_bytes)

    core.replicas.appended = failing  # type: ignore[method-assign]
    cluster.end(producer, V2, commit=True)
    cluster.pass_ms(2_000)
    assert ID not in state._endings
    assert cluster.living() == cluster.node_ids
