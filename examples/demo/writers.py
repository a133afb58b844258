"""The producers of the demo: confluent-kafka, a rate, and a ledger of what each record's fate was.

    python -m examples.demo.writers --bootstrap HOST:PORT --topic orders --partitions 3 --acks all --ledger DIR

One line of JSON on standard output every tenth of a second says how far they are. They end when standard input does:
then what is on its way is waited for, and the ledger is complete.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

from confluent_kafka import Producer

from tidelog.ledger import ACKNOWLEDGED, FAILED, Entry, offset_told

CITIES = ("Bergen", "Cork", "Kiel", "Lisbon", "Porto", "Riga")
TELL_EVERY_S = 0.1
FLUSH_S = 60.0
IMPATIENT = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "linger.ms": 5,
    "message.timeout.ms": 60_000,
    "log_level": 0,
}
"""Clients that come back soon, so that what is seen is how soon the cluster does."""


class Writer:
    """One producer: numbered orders to all partitions in turn, each outcome written down."""

    def __init__(self, name: str, bootstrap: str, topic: str, partitions: int, acks: str, ledger: TextIO) -> None:
        self.acknowledged = self.failed = self.sent = 0
        self.last_acknowledged_s = [time.monotonic()] * partitions
        self._name = name
        self._topic = topic
        self._partitions = partitions
        self._ledger = ledger
        self._chance = random.Random(name)
        safe = {"acks": "all", "enable.idempotence": True} if acks == "all" else {"acks": acks}
        self._producer = Producer({"bootstrap.servers": bootstrap, "client.id": f"demo-{name}", **safe, **IMPATIENT})

    def send_until(self, due: int) -> None:
        """Hand over orders until so many were; less when the buffer is full: what is due stays due."""
        while self.sent < due:
            sequence, partition = self.sent, self.sent % self._partitions
            city, cents = self._chance.choice(CITIES), self._chance.randrange(100, 50_000)
            order = {"order": f"{self._name}-{sequence}", "city": city, "cents": cents}
            value = json.dumps(order, separators=(",", ":"))

            def delivered(error: Any, message: Any, sequence: int = sequence, value: str = value) -> None:
                self._note(error, message, sequence, value)

            try:
                self._producer.produce(self._topic, value, key=city, partition=partition, on_delivery=delivered)
            except BufferError:
                break
            self.sent += 1
        self._producer.poll(0)

    def _note(self, error: Any, message: Any, sequence: int, value: str) -> None:
        partition = message.partition()
        outcome, offset, said = (
            (ACKNOWLEDGED, offset_told(message.offset()), "") if error is None else (FAILED, -1, error.name())
        )
        if error is None:
            self.acknowledged += 1
            self.last_acknowledged_s[partition] = time.monotonic()
        else:
            self.failed += 1
        now_ms = int(time.time() * 1000)
        entry = Entry(self._name, sequence, value, self._topic, partition, offset, outcome, said, now_ms)
        self._ledger.write(entry.to_line() + "\n")

    def finish(self) -> int:
        """Wait for every outcome; how many stay unknown."""
        return self._producer.flush(FLUSH_S)


def main() -> int:
    """Write until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--producers", type=int, default=2)
    parser.add_argument("--rate", type=int, default=1_000, help="records a second of each producer")
    parser.add_argument("--acks", choices=("all", "1"), default="all")
    parser.add_argument("--ledger", type=Path, required=True)
    words = parser.parse_args()
    over = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    words.ledger.mkdir(parents=True, exist_ok=True)
    files = [(words.ledger / f"producer-{number}.jsonl").open("w") for number in range(1, words.producers + 1)]
    writers = [
        Writer(str(number), words.bootstrap, words.topic, words.partitions, words.acks, file)
        for number, file in enumerate(files, start=1)
    ]
    started_s = told_s = time.monotonic()
    while not over.is_set():
        now_s = time.monotonic()
        for writer in writers:
            writer.send_until(int((now_s - started_s) * words.rate))
        if now_s - told_s >= TELL_EVERY_S:
            _tell(writers, now_s)
            told_s = now_s
        time.sleep(0.005)
    unknown = sum(writer.finish() for writer in writers)
    for file in files:
        file.close()
    _tell(writers, time.monotonic())
    return 1 if unknown else 0


def _tell(writers: list[Writer], now_s: float) -> None:
    last = [max(moments) for moments in zip(*(writer.last_acknowledged_s for writer in writers), strict=True)]
    told = {
        "acknowledged": sum(writer.acknowledged for writer in writers),
        "failed": sum(writer.failed for writer in writers),
        "silent_ms": [round((now_s - each) * 1000) for each in last],
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    sys.exit(main())
