"""confluent-kafka as scripts use it: a producer that sends one record a request and keeps a ledger, and a consumer."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping

from tidelog.errors import TidelogError
from tidelog.ledger import ACKNOWLEDGED, FAILED, UNKNOWN, Entry
from tidelog.sim.stage import StoredRecord

try:
    from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
except ImportError:
    raise TidelogError("real processes need a real client: pip install confluent-kafka") from None

PRODUCER_DEFAULTS = {"request.timeout.ms": "5000", "delivery.timeout.ms": "60000", "retry.backoff.ms": "100"}
"""Those of the simulated producer, so that a script means the same on both stages."""
READ_PATIENCE_S = 60.0


class RealProducer:
    """Hands records to librdkafka and writes down what it was told."""

    def __init__(self, name: str, bootstrap: str, settings: Mapping[str, str]) -> None:
        chosen = {**PRODUCER_DEFAULTS, **settings}
        self.acks = chosen.get("acks", "all")
        # As Kafka's own client: idempotence is the default, unless another setting rules it out (KIP-679).
        rules_out = self.acks != "all" or chosen.get("retries") == "0"
        chosen.setdefault("enable.idempotence", "false" if rules_out else "true")
        chosen.setdefault("retry.backoff.max.ms", str(max(1000, int(chosen["retry.backoff.ms"]))))
        chosen["socket.timeout.ms"] = str(int(chosen["request.timeout.ms"]) + 1000)
        chosen["delivery.timeout.ms"] = str(max(int(chosen["delivery.timeout.ms"]), int(chosen["socket.timeout.ms"])))
        self.name = name
        self.entries: list[Entry] = []
        self.errors: Counter[str] = Counter()
        """Answers that were no acknowledgement, as they passed on the wire."""
        self.retries = 0
        self.unsettled = 0
        self._next_number = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": name,
                "linger.ms": 0,
                "batch.num.messages": 1,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.fast.interval.ms": 50,
                "statistics.interval.ms": 200,
                "stats_cb": self._counted,
                "log_level": 0,
                **chosen,
            }
        )

    def _counted(self, statistics: str) -> None:
        brokers = json.loads(statistics)["brokers"].values()
        self.retries = max(self.retries, sum(int(one.get("txretries", 0)) for one in brokers))

    def send(self, topic: str, partition: int, value: str) -> None:
        """Hand over a record."""
        number, self._next_number = self._next_number, self._next_number + 1
        self.unsettled += 1

        def delivered(error: KafkaError | None, message: Message) -> None:
            self.unsettled -= 1
            if error is None:
                outcome = UNKNOWN if self.acks == "0" else ACKNOWLEDGED
            else:
                outcome = FAILED  # told, or decided by itself after the time it had
            offset = message.offset() if error is None and outcome == ACKNOWLEDGED else None
            reason = "" if error is None else error.name()
            now_ms = int(time.time() * 1000)
            at = -1 if offset is None else offset
            self.entries.append(Entry(self.name, number, value, topic, partition, at, outcome, reason, now_ms))

        self._producer.produce(topic, value=value.encode(), partition=partition, on_delivery=delivered)
        self.poll()

    def poll(self) -> None:
        """Let it say what it knows."""
        self._producer.poll(0)

    def close(self) -> None:
        """Give up what is not settled, and go."""
        self._producer.purge()
        self._producer.flush(1)


class RealConsumer:
    """Reads one partition on from its position."""

    def __init__(self, name: str, bootstrap: str, rack: str, group: str) -> None:
        self.name = name
        self.group = group
        self.position = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": name,
                "client.rack": rack,
                "group.id": group or f"no-group-of-{name}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 100,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.fast.interval.ms": 50,
                "log_level": 0,
            }
        )

    def read_on(self, topic: str, partition: int) -> tuple[list[StoredRecord], int]:
        """Everything up to what is committed now, and the watermark."""
        where = TopicPartition(topic, partition, self.position)
        self._consumer.assign([where])
        found: list[StoredRecord] = []
        deadline = time.monotonic() + READ_PATIENCE_S
        while time.monotonic() < deadline:
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                offset, epoch = message.offset(), message.leader_epoch()
                assert offset is not None
                found.append(StoredRecord(offset, -1 if epoch is None else epoch, (message.value() or b"").decode()))
                self.position = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                _, high_watermark = self._consumer.get_watermark_offsets(where, cached=True)
                return found, high_watermark
        raise TimeoutError(f"{self.name} reads up to the end")

    def commit(self, topic: str, partition: int) -> None:
        """Commit what it has read."""
        self._consumer.commit(offsets=[TopicPartition(topic, partition, self.position)], asynchronous=False)

    def close(self) -> None:
        """Leave."""
        self._consumer.close()
