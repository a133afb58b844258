"""Options of `format("tidelog")` for reading: the official source's names, checked before a broker is asked anything.

An unknown option is an error with the nearest known name, and an option that only the official source has is refused
by name: one that is silently ignored would be found out by wrong results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidelog.errors import ConfigError
from tidelog.spark.option_texts import OptionTexts

EARLIEST = -2
LATEST = -1
Offsets = dict[str, dict[int, int]]
"""Topic -> partition -> offset (or a timestamp), as the JSON of the options has it."""

DEFAULT_FETCH_BYTES = 4 * 1024 * 1024
"""Larger than a consumer's default of 1 MB: a task reads one partition, so nothing else waits behind it."""


@dataclass(frozen=True)
class Place:
    """Where to begin or to end: `latest`, `earliest`, an offset a partition, a time, or a time a partition."""

    everywhere: int | None = None
    offsets: Offsets | None = None
    timestamp_ms: int | None = None
    timestamps: Offsets | None = None


@dataclass(frozen=True)
class ClientOptions:
    """What is said to the brokers, whoever asks them."""

    bootstrap: str
    client_id: str = "tidelog-spark"
    rack: str = ""
    timeout_ms: int = 60_000
    request_timeout_ms: int = 30_000
    read_committed: bool = False
    fetch_bytes: int = DEFAULT_FETCH_BYTES
    fetch_min_bytes: int = 1
    fetch_wait_ms: int = 500
    poll_timeout_ms: int = 120_000
    """How long a task waits for records that were promised by the end of its range."""
    check_crcs: bool = True


@dataclass(frozen=True)
class SourceOptions:
    """All options of a read, with their types and defaults."""

    client: ClientOptions
    subscribe: tuple[str, ...] = ()
    subscribe_pattern: str | None = None
    assign: dict[str, tuple[int, ...]] = field(default_factory=dict)
    starting: Place | None = None
    ending: Place | None = None
    by_timestamp_or_latest: bool = False
    """A starting time after the last record means the end, not an error (`startingOffsetsByTimestampStrategy`)."""
    fail_on_data_loss: bool = True
    include_headers: bool = False
    group_id: str | None = None
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SourceOptions:
        """Check and convert; ConfigError names the option, what is wrong with it and, where it helps, another one."""
        texts = OptionTexts(given)
        texts.refuse_unknown(_NAMES, "this source", _REFUSED)
        starting = _place(texts, "starting")
        ending = _place(texts, "ending")
        options = cls(
            client=_client(texts),
            subscribe=tuple(dict.fromkeys(texts.words("subscribe"))),
            subscribe_pattern=texts.get("subscribePattern"),
            assign=_assign(texts),
            starting=starting,
            ending=ending,
            by_timestamp_or_latest=texts.choice("startingOffsetsByTimestampStrategy", ("error", "latest")) == "latest",
            fail_on_data_loss=texts.boolean("failOnDataLoss", True),
            include_headers=texts.boolean("includeHeaders", False),
            group_id=texts.get("groupId") or texts.get("kafka.group.id"),
            min_partitions=texts.whole("minPartitions", low=1),
            max_records_per_partition=texts.whole("maxRecordsPerPartition", low=1),
            max_offsets_per_trigger=texts.whole("maxOffsetsPerTrigger", low=1),
            min_offsets_per_trigger=texts.whole("minOffsetsPerTrigger", low=1),
            max_bytes_per_trigger=texts.whole("maxBytesPerTrigger", low=1),
            max_trigger_delay_ms=_duration_ms(texts, "maxTriggerDelay", 15 * 60_000),
        )
        options._check_together(texts)
        return options

    def _check_together(self, texts: OptionTexts) -> None:
        chosen = [name for name in ("subscribe", "subscribePattern", "assign") if name in texts]
        if len(chosen) != 1:
            said = f"{' and '.join(chosen)} are given" if chosen else "none is given"
            raise ConfigError(f"exactly one of subscribe, subscribePattern and assign says what to read; {said}")
        if "subscribe" in chosen and not self.subscribe:
            raise ConfigError("option subscribe names no topic")
        if self.subscribe_pattern is not None:
            try:
                re.compile(self.subscribe_pattern)
            except re.error as error:
                raise ConfigError(
                    f"option subscribePattern: {self.subscribe_pattern!r} is no pattern: {error}"
                ) from None
        low, high = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if low is not None and high is not None and low > high:
            raise ConfigError(f"option minOffsetsPerTrigger ({low}) is above maxOffsetsPerTrigger ({high})")
        if "groupId" in texts and texts.get("kafka.group.id") not in (None, texts.get("groupId")):
            raise ConfigError("options groupId and kafka.group.id are the same thing and differ")

    def for_batch(self) -> tuple[Place, Place]:
        """Where a batch begins and ends; what only a stream has is refused."""
        for value, name in (
            (self.max_offsets_per_trigger, "maxOffsetsPerTrigger"),
            (self.min_offsets_per_trigger, "minOffsetsPerTrigger"),
            (self.max_bytes_per_trigger, "maxBytesPerTrigger"),
        ):
            if value is not None:
                raise ConfigError(f"option {name} is for streams: a batch reads its whole range")
        starting = self.starting or Place(everywhere=EARLIEST)
        ending = self.ending or Place(everywhere=LATEST)
        if LATEST in _values(starting):
            raise ConfigError("option startingOffsets: a batch cannot begin at the latest offset: it would be empty")
        if EARLIEST in _values(ending):
            raise ConfigError("option endingOffsets: a batch cannot end at the earliest offset: it would be empty")
        return starting, ending

    def for_stream(self) -> Place:
        """Where a new stream begins; an end is refused."""
        if self.ending is not None:
            raise ConfigError(
                "a stream has no end: options endingOffsets, endingTimestamp and the like are for batches"
            )
        return self.starting or Place(everywhere=LATEST)


# --- names ---

_NAMES = (
    *("subscribe", "subscribePattern", "assign"),
    *("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy"),
    *("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"),
    *("failOnDataLoss", "includeHeaders", "groupId", "minPartitions", "maxRecordsPerPartition"),
    *("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger", "maxTriggerDelay"),
    "kafkaConsumer.pollTimeoutMs",
    *("kafka.bootstrap.servers", "kafka.client.id", "kafka.client.rack", "kafka.group.id", "kafka.isolation.level"),
    *("kafka.request.timeout.ms", "kafka.default.api.timeout.ms", "kafka.check.crcs", "kafka.security.protocol"),
    *("kafka.fetch.max.bytes", "kafka.max.partition.fetch.bytes", "kafka.fetch.min.bytes", "kafka.fetch.max.wait.ms"),
)
"""Every option there is, as it is written in the documentation."""

_REFUSED = {
    "groupidprefix": "the official source makes group ids with it; here name the group with groupId",
    "fetchoffset.numretries": "what can be tried again is, until kafka.default.api.timeout.ms",
    "fetchoffset.retryintervalms": "what can be tried again is, until kafka.default.api.timeout.ms",
    "kafka.auto.offset.reset": "where to begin is said with startingOffsets",
    "kafka.enable.auto.commit": "progress is committed after each batch where groupId is given",
    "kafka.key.deserializer": "keys are binary; cast or parse the column",
    "kafka.value.deserializer": "values are binary; cast or parse the column",
    "kafka.interceptor.classes": "there is no Java client here to intercept",
    "kafka.group.instance.id": "the source assigns partitions itself and is no member of a group",
    "kafka.group.protocol": "the source assigns partitions itself and is no member of a group",
    "path": "topics are named with subscribe, subscribePattern or assign",
}


# --- groups of options ---


def _client(texts: OptionTexts) -> ClientOptions:
    default = ClientOptions(texts.bootstrap())
    largest = texts.whole("kafka.fetch.max.bytes", default.fetch_bytes, low=1)
    isolation = texts.choice("kafka.isolation.level", ("read_uncommitted", "read_committed"))
    return ClientOptions(
        bootstrap=default.bootstrap,
        client_id=texts.get("kafka.client.id") or default.client_id,
        rack=texts.get("kafka.client.rack") or "",
        timeout_ms=texts.whole("kafka.default.api.timeout.ms", default.timeout_ms, low=1),
        request_timeout_ms=texts.whole("kafka.request.timeout.ms", default.request_timeout_ms, low=1),
        read_committed=isolation == "read_committed",
        fetch_bytes=min(texts.whole("kafka.max.partition.fetch.bytes", largest, low=1), largest),
        fetch_min_bytes=texts.whole("kafka.fetch.min.bytes", default.fetch_min_bytes, low=1),
        fetch_wait_ms=texts.whole("kafka.fetch.max.wait.ms", default.fetch_wait_ms, low=0),
        poll_timeout_ms=texts.whole("kafkaConsumer.pollTimeoutMs", default.poll_timeout_ms, low=1),
        check_crcs=texts.boolean("kafka.check.crcs", True),
    )


def _place(texts: OptionTexts, side: str) -> Place | None:
    """The official precedence: one time, then a time a partition, then offsets."""
    timestamp_ms = texts.whole(f"{side}Timestamp", low=0)
    if timestamp_ms is not None:
        return Place(timestamp_ms=timestamp_ms)
    name = f"{side}OffsetsByTimestamp"
    by_timestamp = texts.get(name)
    if by_timestamp is not None:
        return Place(timestamps=_offsets(name, by_timestamp, lowest=0))
    name = f"{side}Offsets"
    text = (texts.get(name) or "").strip()
    if not text:
        return None
    if text.lower() in ("earliest", "latest"):
        return Place(everywhere=EARLIEST if text.lower() == "earliest" else LATEST)
    return Place(offsets=_offsets(name, text, lowest=EARLIEST))


def _values(place: Place) -> set[int]:
    if place.everywhere is not None:
        return {place.everywhere}
    return {offset for partitions in (place.offsets or {}).values() for offset in partitions.values()}


def _offsets(name: str, text: str, *, lowest: int) -> Offsets:
    wanted = 'like {"topic": {"0": 23, "1": -2}}' if lowest < 0 else 'like {"topic": {"0": 1700000000000}}'
    read = _json(name, text, wanted)
    found: Offsets = {}
    for topic, partitions in read.items():
        if not isinstance(partitions, dict):
            raise ConfigError(f"option {name}: topic {topic!r} has no partitions; wanted is JSON {wanted}")
        found[topic] = {}
        for partition, offset in partitions.items():
            number = isinstance(offset, int) and not isinstance(offset, bool)
            if not number or offset < lowest or not partition.isdigit():
                raise ConfigError(f"option {name}: {topic}-{partition}: {offset!r}; wanted is JSON {wanted}")
            found[topic][int(partition)] = offset
    return found


def _assign(texts: OptionTexts) -> dict[str, tuple[int, ...]]:
    text = texts.get("assign")
    if text is None:
        return {}
    wanted = 'like {"topic": [0, 1]}'
    found = {}
    for topic, partitions in _json("assign", text, wanted).items():
        fits = isinstance(partitions, list) and all(isinstance(each, int) and each >= 0 for each in partitions)
        if not fits:
            raise ConfigError(f"option assign: {topic!r}: {partitions!r}; wanted is JSON {wanted}")
        found[topic] = tuple(sorted(set(partitions)))
    if not any(found.values()):
        raise ConfigError(f"option assign names no partition; wanted is JSON {wanted}")
    return found


# --- single values ---


def _json(name: str, text: str, wanted: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"option {name}: {text!r} is no JSON ({error}); wanted is {wanted}") from None
    if not isinstance(read, dict):
        raise ConfigError(f"option {name}: {text!r}; wanted is JSON {wanted}")
    return read


_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "": 1}


def _duration_ms(texts: OptionTexts, name: str, default: int) -> int:
    """A time as Spark writes it: 500ms, 10s, 15m, 1h."""
    text = texts.get(name)
    if text is None:
        return default
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if match is None or match.group(2) not in _UNITS_MS:
        raise ConfigError(f"option {name}: {text!r} is no time like 500ms, 10s, 15m or 1h")
    return int(match.group(1)) * _UNITS_MS[match.group(2)]
