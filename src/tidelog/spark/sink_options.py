"""Options of `format("tidelog")` for writing, and the columns it takes: checked before anything is sent to a broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from tidelog.client.client import Client, parse_bootstrap
from tidelog.config.setting import nearest
from tidelog.errors import ConfigError
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
_SECURITY = ("kafka.ssl.", "kafka.sasl.")
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
        texts = {name.lower(): value for name, value in given.items()}
        _refuse_unknown(texts)
        bootstrap = texts.get("kafka.bootstrap.servers", "")
        if not bootstrap.strip():
            raise ConfigError("option kafka.bootstrap.servers is missing: HOST:PORT of a broker or several")
        parse_bootstrap(bootstrap)
        _only(texts, "kafka.acks", ("all", "-1"), "what is acknowledged by fewer replicas can be lost")
        _only(texts, "kafka.enable.idempotence", ("true",), "without it a retry would duplicate")
        _only(texts, "kafka.security.protocol", ("plaintext",), "this sink speaks PLAINTEXT only")
        transactional_id = texts.get("transactionalid") or texts.get("kafka.transactional.id") or None
        guarantee = _choice(texts, "deliveryGuarantee", (EXACTLY_ONCE, AT_LEAST_ONCE))
        if guarantee == AT_LEAST_ONCE and transactional_id:
            raise ConfigError("option transactionalId is for exactly-once: at-least-once uses no transactions")
        kinds = tuple(kind.name.lower() for kind in Compression)
        return cls(
            bootstrap=bootstrap,
            topic=texts.get("topic") or None,
            transactional_id=transactional_id,
            exactly_once=guarantee == EXACTLY_ONCE,
            accept_missing_ledger=_choice(texts, "missingLedger", ("refuse", "accept")) == "accept",
            include_timestamp=_choice(texts, "includeTimestamp", ("false", "true")) == "true",
            compression=Compression[_choice(texts, "kafka.compression.type", kinds).upper()],
            batch_bytes=_whole(texts, "kafka.batch.size", cls.batch_bytes, low=_SMALLEST_BATCH_BYTES),
            client_id=texts.get("kafka.client.id") or cls.client_id,
            transaction_timeout_ms=_whole(texts, "kafka.transaction.timeout.ms", cls.transaction_timeout_ms, low=1_000),
            request_timeout_ms=_whole(texts, "kafka.request.timeout.ms", cls.request_timeout_ms, low=1),
            delivery_timeout_ms=_whole(texts, "kafka.delivery.timeout.ms", cls.delivery_timeout_ms, low=1),
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


def _refuse_unknown(texts: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in _NAMES}
    for name in texts:
        if name in known:
            continue
        if name in _REFUSED:
            raise ConfigError(f"option {name} is not for this sink: {_REFUSED[name]}")
        if name.startswith(_SECURITY):
            raise ConfigError(f"option {name} is not supported: this sink speaks PLAINTEXT only")
        like = nearest(name, known)
        hint = f", did you mean {known[like]}?" if like else f"; known are {', '.join(_NAMES)}"
        raise ConfigError(f"there is no option {name}{hint}")


def _choice(texts: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    text = texts.get(name.lower(), choices[0]).strip().lower()
    if text not in choices:
        raise ConfigError(f"option {name}: {text!r} is not one of {', '.join(choices)}")
    return text


def _only(texts: Mapping[str, str], name: str, allowed: tuple[str, ...], reason: str) -> None:
    if name in texts and texts[name].strip().lower() not in allowed:
        raise ConfigError(f"option {name}: only {allowed[0]} is possible: {reason}")


def _whole(texts: Mapping[str, str], name: str, default: int, *, low: int) -> int:
    text = texts.get(name.lower())
    if text is None:
        return default
    try:
        number = int(text.strip())
    except ValueError:
        raise ConfigError(f"option {name}: {text!r} is no whole number") from None
    if number < low:
        raise ConfigError(f"option {name}: {number} is below {low}")
    return number
