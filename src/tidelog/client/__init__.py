"""A small synchronous Kafka client on the project's own codec, for the commands, Spark and the tests.

    client = Client("127.0.0.1:9092")
    with Producer(client) as producer:
        producer.send("orders", b"hello", key=b"a")
    for record in Consumer(client, {("orders", 0): 0}).read_until({("orders", 0): 1}):
        print(record.offset, record.value)

Not safe to share between threads. Every error is a KafkaError with Kafka's code; what may be tried again was.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "Client": "client",
    "ConsumedRecord": "consumer",
    "Consumer": "consumer",
    "Delivery": "producer",
    "Producer": "producer",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for and no more: a command that lists topics needs no codecs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'offsets')}"), name)
