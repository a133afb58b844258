"""A driver that comes in place of another which is not dead: whatever the two do in between, each row is there once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.clients.conftest import TopicMaker
from tests.spark.reading import batch_reader, rows
from tests.support.nodes import Node
from tidelog.client.batches import BatchSender, Chunk
from tidelog.client.shared_transaction import Identity
from tidelog.spark.sink import BatchWriter, TaskWrote
from tidelog.spark.sink_options import SinkOptions
from tidelog.spark.sink_stream import MicroBatchSink
from tidelog.spark.transactions import BatchWritten, CheckpointError, Exclusive, SinkError, TaskRepeated, TransactionRun

RECORD = bytes([12, 0, 0, 0, 1, 0, 0])
"""Of no timestamp delta and no key: an empty value."""


class Driver(MicroBatchSink):
    """The driver's half of a query, real in all but the tasks: one record is written where Spark would run them."""

    def __init__(self, node: Node, topic: str, lost_tasks: int = 0) -> None:
        given = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "transactionalId": f"query-{topic}"}
        super().__init__(SinkOptions.parse(given), ["value"], gathered=True)
        self._lost_tasks = lost_tasks

    def job(self, df: Any) -> Callable[[Identity], Exclusive]:
        def run(identity: Identity) -> Exclusive:
            with self.options.client() as client:
                sender = BatchSender(client, identity, delivery_timeout_ms=30_000)
                sender.send((self.options.topic or "", 0), Chunk(RECORD, 1, 1_700_000_000_000, 1_700_000_000_000, 0))
                sender.flush()
            if self._lost_tasks:
                self._lost_tasks -= 1
                raise TaskRepeated("a task ran again")
            return Exclusive(1, 1, 1, (self.options.topic or "",))

        return run

    def batch(self, number: int) -> BatchWritten:
        return self.write_batch(None, number, "checkpoint")  # type: ignore[arg-type]


def between_two_turns(driver: Driver, act: Callable[[], Any]) -> None:
    """Let something happen when the driver has ended its first turn and not begun its second."""
    run: TransactionRun = driver.run()
    begin, begun = run.begin, 0

    def noted() -> Identity:
        nonlocal begun
        begun += 1
        if begun == 2:
            act()
        return begin()

    run.begin = noted  # type: ignore[method-assign]


def committed(node: Node, topic: str) -> int:
    return len(rows(batch_reader(node, subscribe=topic, kafka_isolation_level="read_committed")))


def test_a_driver_that_wakes_between_two_turns_finds_its_batch_written(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    paused, successor = Driver(node, topic, lost_tasks=1), Driver(node, topic)
    between_two_turns(paused, lambda: successor.batch(0))
    assert paused.batch(0).skipped
    assert committed(node, topic) == 1
    # The successor is told that the id was taken, and goes on when it starts again.
    assert not Driver(node, topic).batch(1).skipped
    assert committed(node, topic) == 2


def test_a_driver_that_wakes_when_others_went_on_writes_nothing(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    paused, successor = Driver(node, topic, lost_tasks=1), Driver(node, topic)
    between_two_turns(paused, lambda: [successor.batch(number) for number in range(3)])
    with pytest.raises(CheckpointError, match="the checkpoint is at batch 0, but batch 2 is written"):
        paused.batch(0)
    assert committed(node, topic) == 3


def test_a_lost_task_costs_a_turn_and_no_row(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    driver = Driver(node, topic, lost_tasks=2)
    assert driver.batch(0).turns == 3
    assert committed(node, topic) == 1


def test_what_a_run_wrote_that_nobody_waits_for_is_never_committed(node: Node, make_topic: TopicMaker) -> None:
    """Spark ran a stage again, and the row that one run put into partition 1 another put into partition 0."""
    topic = make_topic(2)
    writer = BatchWriter(SinkOptions.parse({"kafka.bootstrap.servers": node.bootstrap, "topic": topic}), ["value"])
    identity = writer.__getstate__()["_identity"]
    with SinkOptions.parse({"kafka.bootstrap.servers": node.bootstrap}).client() as client:
        senders = [BatchSender(client, identity, delivery_timeout_ms=30_000) for _ in range(2)]
        for partition, sender in enumerate(senders):
            sender.send((topic, partition), Chunk(RECORD, 1, 1_700_000_000_000, 1_700_000_000_000, 0))
            sender.flush()
    with pytest.raises(SinkError, match=f"something was written to {topic}-1 that no task reports"):
        writer.commit([TaskWrote(identity=identity, written=senders[0].written)])
    assert committed(node, topic) == 0
