"""The client side, one process a measurement: confluent-kafka with the same settings for every peer.

    python -m benchmarks.clients produce --bootstrap 127.0.0.1:9092 --topic t --records 1000000 --size 1000

Prints one line of JSON. Records are handed over in lists (`produce_batch`) and taken in lists (`consume`), so that the
interpreter is not what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from benchmarks.apart import Failed, measure_apart, options

PRODUCER_SETTINGS: dict[str, Any] = {
    "acks": "all",
    "linger.ms": 5,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 1_048_576,
    "delivery.report.only.error": True,  # a callback for each of a million records would be what is measured
}
CONSUMER_SETTINGS: dict[str, Any] = {
    "group.id": "benchmark",  # librdkafka wants one; partitions are assigned by hand
    "enable.auto.commit": False,
    "enable.partition.eof": False,
    "auto.offset.reset": "error",
    # librdkafka stops fetching for this long when its queue is full: with its default of a second a faster broker
    # scores lower.
    "fetch.queue.backoff.ms": 10,
    "queued.max.messages.kbytes": 262_144,
}
LIST_SIZE = 2_000


def call(command: str, **arguments: object) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    return measure_apart("benchmarks.clients", command, *options(**arguments))


def produce(arguments: argparse.Namespace) -> dict[str, float]:
    """Write records to all partitions in turn; time from the first record until the last acknowledgement."""
    failures = 0

    def delivered(error: KafkaError | None, _message: Message) -> None:
        nonlocal failures
        failures += error is not None

    producer = Producer({"bootstrap.servers": arguments.bootstrap} | PRODUCER_SETTINGS)
    producer.list_topics(arguments.topic, timeout=30)
    value = os.urandom(arguments.size)
    messages = [{"value": value} for _ in range(LIST_SIZE)]
    started_s = time.perf_counter()
    began_at_s = time.time()
    left = arguments.records
    turn = 0
    while left:
        group = messages[: min(left, LIST_SIZE)]
        accepted = 0
        while accepted < len(group):
            try:
                accepted += producer.produce_batch(
                    arguments.topic,
                    group[accepted:],
                    partition=turn % arguments.partitions,
                    on_delivery=delivered,
                )
            except BufferError:
                producer.poll(0.01)
            producer.poll(0)
        left -= len(group)
        turn += 1
    if producer.flush(600):
        raise Failed("not everything was acknowledged")
    seconds = time.perf_counter() - started_s
    if failures:
        raise Failed(f"{failures} records were not stored")
    return {
        "seconds": seconds,
        "records": arguments.records,
        "bytes": arguments.records * arguments.size,
        "began_at_s": began_at_s,
        "ended_at_s": began_at_s + seconds,
    }


def produce_together(count: int, **arguments: object) -> dict[str, float]:
    """Several producer processes at once; time from the first one's first record to the last one's last."""
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(lambda _: call("produce", **arguments), range(count)))
    seconds = max(each["ended_at_s"] for each in answers) - min(each["began_at_s"] for each in answers)
    return {"seconds": seconds, "bytes": sum(each["bytes"] for each in answers)}


def paced(arguments: argparse.Namespace) -> dict[str, Any]:
    """So many records a second, whatever becomes of them, linger 0; from when each was due until its acknowledgement.

    An open loop: a record that has to wait for its turn because others are late is late by that wait, too.
    """
    taken_ms: list[float] = []
    failures = 0
    left = arguments.records + arguments.warm_up

    def send(number: int, due_s: float) -> None:
        def delivered(error: KafkaError | None, _message: Message) -> None:
            nonlocal failures, left
            failures += error is not None
            left -= 1
            if number >= arguments.warm_up:
                taken_ms.append((time.perf_counter() - due_s) * 1000)

        producer.produce(arguments.topic, value=value, partition=number % arguments.partitions, on_delivery=delivered)

    settings = PRODUCER_SETTINGS | {"linger.ms": 0, "delivery.report.only.error": False}
    producer = Producer({"bootstrap.servers": arguments.bootstrap} | settings)
    producer.list_topics(arguments.topic, timeout=30)
    value = os.urandom(arguments.size)
    began_s = time.perf_counter() + 0.1
    for number in range(arguments.records + arguments.warm_up):
        due_s = began_s + number / arguments.rate
        while (wait_s := due_s - time.perf_counter()) > 0:
            producer.poll(wait_s)
        send(number, due_s)
        producer.poll(0)
    deadline_s = time.perf_counter() + 120
    while left and time.perf_counter() < deadline_s:
        producer.poll(0.1)
    if left or failures:
        raise Failed(f"{left} records were not answered, {failures} were not stored")
    taken_ms.sort()
    return {"p50_ms": quantile(taken_ms, 0.50), "p99_ms": quantile(taken_ms, 0.99), "worst_ms": taken_ms[-1]}


def consume(arguments: argparse.Namespace) -> dict[str, float]:
    """Read so many records from the start of all partitions; time from the assignment until the last record."""
    consumer = Consumer({"bootstrap.servers": arguments.bootstrap} | CONSUMER_SETTINGS)
    consumer.list_topics(arguments.topic, timeout=30)
    started_s = time.perf_counter()
    consumer.assign([TopicPartition(arguments.topic, each, 0) for each in range(arguments.partitions)])
    left = arguments.records
    size = 0
    while left:
        messages = consumer.consume(min(left, 20_000), 30)
        if not messages:
            raise Failed(f"{left} records did not come")
        error = messages[0].error()
        if error is not None:
            raise KafkaException(error)
        left -= len(messages)
        size += len(messages[0]) * len(messages)
    seconds = time.perf_counter() - started_s
    consumer.close()
    return {"seconds": seconds, "records": arguments.records, "bytes": size}


def round_trips(arguments: argparse.Namespace) -> dict[str, Any]:
    """One record at a time, written with linger 0 and acks=all, until the same process has read it."""
    producer = Producer({"bootstrap.servers": arguments.bootstrap} | PRODUCER_SETTINGS | {"linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": arguments.bootstrap} | CONSUMER_SETTINGS)
    _, end = consumer.get_watermark_offsets(TopicPartition(arguments.topic, 0), 30)
    consumer.assign([TopicPartition(arguments.topic, 0, end)])
    taken_ms = []
    for number in range(arguments.records + arguments.warm_up):
        value = b"%d" % number
        started_s = time.perf_counter()
        producer.produce(arguments.topic, value=value, partition=0)
        message = consumer.poll(30)
        if message is None or message.value() != value:
            raise Failed(f"record {number} did not come back")
        if number >= arguments.warm_up:
            taken_ms.append((time.perf_counter() - started_s) * 1000)
        producer.poll(0)
    producer.flush(30)
    consumer.close()
    taken_ms.sort()
    return {"p50_ms": quantile(taken_ms, 0.50), "p99_ms": quantile(taken_ms, 0.99), "worst_ms": taken_ms[-1]}


def quantile(ordered: list[float], share: float) -> float:
    """The value below which this share of the values lies."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


COMMANDS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "produce": produce,
    "consume": consume,
    "round-trips": round_trips,
    "paced": paced,
}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="One measurement of a client.")
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--size", type=int, default=1_000)
    parser.add_argument("--warm-up", type=int, default=0)
    parser.add_argument("--rate", type=int, default=500)
    arguments = parser.parse_args()
    print(json.dumps(COMMANDS[arguments.command](arguments)))


if __name__ == "__main__":
    main()
