"""A small synchronous Kafka client on the project's own codec, for the commands, Spark and the tests.

    client = Client("127.0.0.1:9092")
    with Producer(client) as producer:
        producer.send("orders", b"hello", key=b"a")
    for record in Consumer(client, {("orders", 0): 0}).read_until({("orders", 0): 1}):
        print(record.offset, record.value)

Not safe to share between threads. Every error is a KafkaError with Kafka's code; what may be tried again was.
"""

from __future__ import annotations

from tidelog.client.client import Client
from tidelog.client.consumer import ConsumedRecord, Consumer
from tidelog.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets
from tidelog.client.producer import Delivery, Producer

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Client",
    "ConsumedRecord",
    "Consumer",
    "Delivery",
    "Producer",
    "list_offsets",
]
