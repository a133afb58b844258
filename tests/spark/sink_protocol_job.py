"""The sink's protocol without Spark: batches of numbers, a checkpoint in a file, one process that can be killed.

python -m tests.spark.sink_protocol_job BOOTSTRAP TOPIC CHECKPOINT TRANSACTIONAL_ID UNTIL
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tests.spark.sink_job import ROWS, is_enough
from tidelog.client.batches import BatchSender, Chunk
from tidelog.client.shared_transaction import Identity
from tidelog.errors import KafkaError
from tidelog.spark.sink_options import SinkOptions
from tidelog.spark.transactions import (
    Exclusive,
    LedgerEntry,
    TaskFailed,
    TransactionRun,
    is_written,
    read_ledger,
    run_in_transaction,
)
from tidelog.wire.batch import Record
from tidelog.wire.batch_records import encode_record
from tidelog.wire.murmur2 import partition_for_key

QUERY = "query"
RECORDS_A_BATCH = 50


def main() -> int:
    bootstrap, topic, checkpoint_text, transactional_id, until = sys.argv[1:]
    checkpoint = Path(checkpoint_text)
    options = SinkOptions.parse(
        {"kafka.bootstrap.servers": bootstrap, "topic": topic, "transactionalId": transactional_id}
    )
    run = TransactionRun(options, transactional_id)
    batch_id = int(checkpoint.read_text()) if checkpoint.exists() else 0
    while True:
        identity = run.begin()
        entry = read_ledger(run.client, transactional_id, options.delivery_timeout_ms, topic)
        skipped = is_written(entry, batch_id, QUERY, transactional_id, accept_missing=False)
        if not skipped:
            job = _job(options, topic, batch_id)
            ledger = LedgerEntry(batch_id, QUERY, topic)
            run_in_transaction(run, job, lambda _, ledger=ledger: ledger, identity)  # type: ignore[misc]
        print(f"batch {batch_id} skipped={skipped}", flush=True)
        written = checkpoint.with_suffix(".new")
        written.write_text(str(batch_id + 1))
        os.replace(written, checkpoint)
        if is_enough(until, batch_id):
            run.close()
            return 0
        batch_id += 1


def _job(options: SinkOptions, topic: str, batch_id: int):  # type: ignore[no-untyped-def]
    def write(identity: Identity) -> Exclusive:
        try:
            return _write(options, topic, batch_id, identity)
        except KafkaError as error:  # what a task of Spark tells the driver in a row
            raise TaskFailed(error) from error

    return write


def _write(options: SinkOptions, topic: str, batch_id: int, identity: Identity) -> Exclusive:
    with options.client() as client:
        count = len(client.topic(topic).partitions)
        rows: dict[int, list[bytes]] = {}
        for number in range(batch_id * ROWS, (batch_id + 1) * ROWS):
            key = b"%d" % number
            rows.setdefault(partition_for_key(key, count), []).append(key)
        sender = BatchSender(client, identity, delivery_timeout_ms=options.delivery_timeout_ms)
        now_ms = time.time_ns() // 1_000_000  # a record of long ago would be deleted by a slow run's retention
        for partition, keys in rows.items():
            for start in range(0, len(keys), RECORDS_A_BATCH):
                some = keys[start : start + RECORDS_A_BATCH]
                records = [Record(each, now_ms, key, b"value-" + key) for each, key in enumerate(some)]
                payload = b"".join(encode_record(record, 0, now_ms) for record in records)
                sender.send((topic, partition), Chunk(payload, len(some), now_ms, now_ms, 0))
        sender.flush()
    return Exclusive(ROWS, 0, len(rows), (topic,))


if __name__ == "__main__":
    sys.exit(main())
