"""An application that reads, transforms and writes with its offsets in the transaction; made to be killed.

    python -m tests.transactions.copier BOOTSTRAP NUMBER

Every record of `in` becomes one record of `out` that names where it was read. Now and then a transaction is aborted on
purpose, with records that say so. After an error that cannot be helped the application ends with code 3, and whoever
watches over it starts it again.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tidelog.verify.workload import RETRY_SETTINGS

SOURCE, TARGET, GROUP = "in", "out", "copiers"
PARTITIONS = 3
WAIT_S = 30.0
ABORTED = "aborted"
FAILED = 3


class Copier:
    """One member of the group, with a transactional id of its own."""

    def __init__(self, bootstrap: str, number: int) -> None:
        self._chance = random.Random(number)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": f"copier-{number}",
                "transaction.timeout.ms": 10_000,
                "linger.ms": 1,
                **RETRY_SETTINGS,
            }
        )
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 50,
                "partition.assignment.strategy": "cooperative-sticky",
                **RETRY_SETTINGS,
            }
        )

    def run(self) -> None:
        """Go on until killed; raises what cannot be helped."""
        self._producer.init_transactions(WAIT_S)
        self._consumer.subscribe([SOURCE])
        while True:
            messages = [one for one in self._consumer.consume(50, 0.1) if one.error() is None]
            if messages:
                self._copy(messages)

    def _copy(self, messages: Sequence[Message]) -> None:
        fate = ABORTED if self._chance.random() < 0.1 else "committed"
        self._producer.begin_transaction()
        try:
            ends: dict[int, int] = {}
            for message in messages:
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                ends[partition] = max(ends.get(partition, -1), offset + 1)
                self._producer.produce(
                    TARGET, f"{partition} {offset} {fate}".encode(), partition=(partition + offset) % PARTITIONS
                )
            offsets = [TopicPartition(SOURCE, partition, offset) for partition, offset in ends.items()]
            self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), WAIT_S)
            if fate == ABORTED:
                self._abort(messages)
                return
            self._commit()
        except KafkaException as caught:
            error: KafkaError = caught.args[0]
            if error.fatal() or not error.txn_requires_abort():
                raise
            self._abort(messages)

    def _commit(self) -> None:
        while True:
            try:
                self._producer.commit_transaction(WAIT_S)
                return
            except KafkaException as caught:
                if not caught.args[0].retriable():
                    raise

    def _abort(self, messages: Sequence[Message]) -> None:
        """Undo, and read again what was read."""
        self._producer.abort_transaction(WAIT_S)
        assigned = {(one.topic, one.partition) for one in self._consumer.assignment()}
        firsts: dict[int, int] = {}
        for message in messages:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            firsts[partition] = min(firsts.get(partition, offset), offset)
        for partition, offset in firsts.items():
            if (SOURCE, partition) in assigned:
                self._consumer.seek(TopicPartition(SOURCE, partition, offset))


def main() -> int:
    """Run one copier."""
    try:
        Copier(sys.argv[1], int(sys.argv[2])).run()
    except KafkaException as error:
        print(f"copier {sys.argv[2]} gives up: {error}", file=sys.stderr, flush=True)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
