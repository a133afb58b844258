"""Options of `format("tidelog")` for writing, and the columns it takes: checked before anything is sent to a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from tidelog.client.client import Client
from tidelog.errors import ConfigError
from tidelog.spark.option_texts import OptionTexts
from tidelog.spark.writing import Plan
from tidelog.wire.compression import Compression

EXACTLY_ONCE = "exactly-once"
AT_LEAST_ONCE = "at-least-once"

_NAMES = (
    *("topic", "transactionalId", "deliveryGuarantee", "missingLedger", "includeTimestamp", "checkpointLocation"),
    *("kafka.bootstrap.servers", "kafka.client.id", "kafka.compression.type", "kafka.batch.size", "kafka.acks"),
    *("kafka.transaction.timeout.ms", "kafka.request.timeout.ms", "kafka.delivery.timeout.ms"),
    *("kafka.transactional.id", "kafka.enable.idempotence", "kafka.security.protocol"),
)
"""Every option there is, as it is written in the documentation."""
_REFUSED = {
    "kafka.linger.ms": "a task sends full batches and what is left at its end",
    "kafka.retries": "sending is tried again until kafka.delivery.timeout.ms",
    "kafka.max.in.flight.requests.per.connection": "five at most, as idempotence wants it",
    "kafka.buffer.memory": "a task holds a few batches only",
    "kafka.key.serializer": "key is a string or binary column",
    "kafka.value.serializer": "value is a string or binary column",
    "kafka.partitioner.class": "rows go where the Java client's default partitioner puts them; give a column partition",
    "kafka.max.request.size": "the topic's max.message.bytes is the bound",
    "includeheaders": "headers are written where there is a column headers",
}
_SMALLEST_BATCH_BYTES = 1_000


@dataclass(frozen=True)
class SinkOptions:
    """All options of a write, with their types and defaults."""

    bootstrap: str
    topic: str | None = None
    transactional_id: str | None = None
    exactly_once: bool = True
    accept_missing_ledger: bool = False
    """Go on where the cluster does not know the batch before: whoever says so vouches for it."""
    include_timestamp: bool = False
    compression: Compression = Compression.NONE
    batch_bytes: int = 500_000
    client_id: str = "tidelog-spark"
    transaction_timeout_ms: int = 900_000
    """What a coordinator allows at most, unless its transaction.max.timeout.ms says otherwise."""
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SinkOptions:
        """Check and convert; ConfigError names the option, what is wrong with it and, where it helps, another one."""
        texts = OptionTexts(given)
        texts.refuse_unknown(_NAMES, "this sink", _REFUSED)
        bootstrap = texts.bootstrap()
        texts.only("kafka.acks", ("all", "-1"), "what is acknowledged by fewer replicas can be lost")
        texts.only("kafka.enable.idempotence", ("true",), "without it a retry would duplicate")
        transactional_id = texts.get("transactionalId") or texts.get("kafka.transactional.id") or None
        guarantee = texts.choice("deliveryGuarantee", (EXACTLY_ONCE, AT_LEAST_ONCE))
        if guarantee == AT_LEAST_ONCE and transactional_id:
            raise ConfigError("option transactionalId is for exactly-once: at-least-once uses no transactions")
        kinds = tuple(kind.name.lower() for kind in Compression)
        timeout_ms = cls.transaction_timeout_ms
        return cls(
            bootstrap=bootstrap,
            topic=texts.get("topic") or None,
            transactional_id=transactional_id,
            exactly_once=guarantee == EXACTLY_ONCE,
            accept_missing_ledger=texts.choice("missingLedger", ("refuse", "accept")) == "accept",
            include_timestamp=texts.boolean("includeTimestamp", False),
            compression=Compression[texts.choice("kafka.compression.type", kinds).upper()],
            batch_bytes=texts.whole("kafka.batch.size", cls.batch_bytes, low=_SMALLEST_BATCH_BYTES),
            client_id=texts.get("kafka.client.id") or cls.client_id,
            transaction_timeout_ms=texts.whole("kafka.transaction.timeout.ms", timeout_ms, low=1_000),
            request_timeout_ms=texts.whole("kafka.request.timeout.ms", cls.request_timeout_ms, low=1),
            delivery_timeout_ms=texts.whole("kafka.delivery.timeout.ms", cls.delivery_timeout_ms, low=1),
        )

    def client(self) -> Client:
        """A client of one's own; brokers that are not there yet are waited for, a little."""
        return Client(
            self.bootstrap,
            client_id=self.client_id,
            timeout_ms=self.request_timeout_ms,
            bootstrap_timeout_ms=min(10_000, self.request_timeout_ms),
        )

    def plan(self) -> Plan:
        """What the encoder has to know."""
        return Plan(self.topic, int(self.compression), self.batch_bytes, self.include_timestamp)

    def require_transactional_id(self) -> str:
        """The name under which the cluster knows this query; ConfigError when there is none."""
        if self.transactional_id is None:
            raise ConfigError(
                "exactly-once needs the option transactionalId: a name of this query alone that stays the same over "
                f"restarts (or ask for deliveryGuarantee={AT_LEAST_ONCE})"
            )
        return self.transactional_id


_TYPES = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}


def check_columns(schema: StructType, options: SinkOptions) -> list[str]:
    """The columns that are written, in one order; the official sink's, other columns are left out as it does.

    `timestamp` counts only with includeTimestamp: the official sink does not write it.
    """
    found = {column.name.lower(): column for column in schema.fields}
    types = _TYPES | ({"timestamp": ("timestamp",)} if options.include_timestamp else {})
    if "value" not in found:
        raise ConfigError("there is no column value: " + _columns_text(schema))
    if options.topic is None and "topic" not in found:
        raise ConfigError("no topic: name one with the option topic, or give a column topic; " + _columns_text(schema))
    chosen = []
    for name, allowed in types.items():
        column = found.get(name)
        if column is None or (name == "topic" and options.topic is not None):
            continue
        kind = column.dataType.simpleString()
        if kind not in allowed:
            raise ConfigError(f"column {column.name} is {kind}; it must be {' or '.join(allowed)}")
        chosen.append(column.name)
    return chosen


def _columns_text(schema: StructType) -> str:
    return f"the rows have {', '.join(schema.fieldNames()) or 'no columns'}"
