"""Tasks on one machine that write to the same Kafka partitions by turns."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.fake_cluster import Cluster, running
from tests.client.test_batches import chunk
from tests.client.test_producer import refusal
from tests.spark.test_sink_rules import Reported, books
from tidelog.client import Client
from tidelog.client.batches import BatchSender
from tidelog.client.shared_transaction import PROTOCOL_2, Identity
from tidelog.errors import ErrorCode, KafkaError, TidelogError
from tidelog.spark.sink_turns import Turns, is_complete
from tidelog.spark.transactions import TaskRepeated, judge
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import iterate_batches, iterate_records

ONE = Identity("", 7, 0, PROTOCOL_2)
FIRST, SECOND = ("t", 0), ("t", 1)
PATIENCE_S = 120


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running(partitions=2) as started:
        yield started


def sender_of(client: Client) -> BatchSender:
    return BatchSender(client, ONE, delivery_timeout_ms=60_000)


def stored(cluster: Cluster, partition: int) -> tuple[list[bytes], list[int]]:
    """The values of a partition, and the sequences of its batches."""
    batches = [next(iter(iterate_batches(data))) for data in cluster.partitions[partition].batches]
    values = [bytes(record.value or b"") for batch in batches for record in iterate_records(batch)]
    return values, [batch.base_sequence for batch in batches]


def test_one_goes_on_where_the_other_ended(cluster: Cluster, tmp_path: Path) -> None:
    folder = str(tmp_path)
    with Client(cluster.bootstrap) as client:
        one, other = sender_of(client), sender_of(client)
        with Turns(folder, one, 0) as first, Turns(folder, other, 1) as second:
            first.send({FIRST: [chunk(b"a", b"b"), chunk(b"c")], SECOND: [chunk(b"x")]})
            second.send({FIRST: [chunk(b"d")]})
            first.send({FIRST: [chunk(b"e", b"f")]})
        reported = [(where, each.records) for sender in (one, other) for where, each in sender.written.items()]
    assert stored(cluster, 0) == ([b"a", b"b", b"c", b"d", b"e", b"f"], [0, 2, 3, 4])
    assert stored(cluster, 1) == ([b"x"], [0])
    assert is_complete(folder, reported)
    assert not is_complete(folder, reported[:-1])  # a task whose result nobody has
    assert not is_complete(folder, [*reported, (SECOND, 1)])
    assert not is_complete(folder, [*reported, (("t", 2), 1)])


def test_tasks_that_meet_at_every_partition_wait_for_each_other_and_not_for_ever(
    cluster: Cluster, tmp_path: Path
) -> None:
    tasks, rounds = 3, 25
    failures: list[BaseException] = []

    def write(task: int) -> None:
        try:
            with Client(cluster.bootstrap) as client, Turns(str(tmp_path), sender_of(client), task) as turns:
                for number in range(rounds):
                    chunks = [chunk(b"%d-%d-%d" % (task, number, part)) for part in range(3)]
                    turns.send({FIRST: chunks, SECOND: chunks})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(task,), daemon=True) for task in range(tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []
    for partition in range(2):
        values, sequences = stored(cluster, partition)
        assert sequences == list(range(tasks * rounds * 3))
        for task in range(tasks):  # the rows of each task in their order
            own = [value for value in values if value.startswith(b"%d-" % task)]
            assert own == [b"%d-%d-%d" % (task, number, part) for number in range(rounds) for part in range(3)]
    assert is_complete(str(tmp_path), [(FIRST, tasks * rounds * 3), (SECOND, tasks * rounds * 3)])


def test_a_retry_is_of_the_one_whose_turn_it_is(cluster: Cluster, tmp_path: Path) -> None:
    cluster.fail(ApiKey.PRODUCE, refusal(ErrorCode.NOT_ENOUGH_REPLICAS), refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    with Client(cluster.bootstrap) as client:
        for task in range(2):
            with Turns(str(tmp_path), sender_of(client), task) as turns:
                turns.send({FIRST: [chunk(b"%d" % task)]})
    assert stored(cluster, 0) == ([b"0", b"1"], [0, 1])


def test_nobody_writes_where_a_task_was_lost(cluster: Cluster, tmp_path: Path) -> None:
    """What it sent last may be in the log: other bytes under the same sequences would be taken for a repetition."""
    with Client(cluster.bootstrap) as client:
        with pytest.raises(MemoryError), Turns(str(tmp_path), sender_of(client), 0) as turns:
            turns.send({FIRST: _dying()})  # type: ignore[dict-item]
        other = sender_of(client)
        with Turns(str(tmp_path), other, 0) as turns:
            turns.send({SECOND: [chunk(b"elsewhere")]})
            with pytest.raises(KafkaError, match="a task was lost while it wrote to t-0") as failure:
                turns.send({FIRST: [chunk(b"x")]})
    assert failure.value.code == ErrorCode.TRANSACTION_ABORTABLE  # the driver begins anew
    assert FIRST not in other.written
    assert not is_complete(str(tmp_path), [(SECOND, 1), (FIRST, 1)])


def _dying() -> Iterator[object]:
    yield chunk(b"sent")
    raise MemoryError


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "a record: 9 bytes"), TidelogError("why")])
def test_what_ended_a_turn_is_what_the_next_one_says(cluster: Cluster, tmp_path: Path, error: TidelogError) -> None:
    """Else the user would read, of the first task that reports, that another one failed."""
    with Client(cluster.bootstrap) as client:
        for _ in range(3):
            with pytest.raises(type(error)) as failure, Turns(str(tmp_path), sender_of(client), 0) as turns:
                turns.send({FIRST: _refused(error)})  # type: ignore[dict-item]
            assert str(failure.value) == str(error)
            assert type(failure.value) is type(error)
    assert stored(cluster, 0) == ([], [])


def _refused(error: TidelogError) -> Iterator[object]:
    yield from ()
    raise error


def test_what_tasks_report_must_be_all_that_was_written(cluster: Cluster, tmp_path: Path) -> None:
    with Client(cluster.bootstrap) as client, Turns(str(tmp_path), sender_of(client), 0) as turns:
        turns.send({FIRST: [chunk(b"a", b"b", b"c")]})
    rows = [Reported("written", "t", 0, 1), Reported("written", "t", 0, 2), Reported("ran")]
    written = judge(rows, books(), turns=str(tmp_path))
    assert (written.records, written.partitions) == (3, 1)
    with pytest.raises(TaskRepeated, match="other rows than they report"):
        judge(rows[1:], books(), turns=str(tmp_path))
