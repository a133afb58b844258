"""Options are checked by name and together, before anything is asked of a broker."""

from __future__ import annotations

import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from tidelog.errors import ConfigError
from tidelog.spark.options import EARLIEST, LATEST, Place, SourceOptions
from tidelog.spark.segments import SegmentsOptions
from tidelog.spark.source_schema import SOURCE_COLUMNS, check_schema

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "exactly one of subscribe, subscribePattern and assign says what to read; none is given"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "subscribe and assign are given"),
        ({"subscribe": " , "}, "names no topic"),
        ({"subscribePattern": "("}, "is no pattern"),
        ({"assign": "[1]"}, 'wanted is JSON like {"topic": [0, 1]}'),
        ({"assign": '{"a": [-1]}'}, 'wanted is JSON like {"topic": [0, 1]}'),
        ({"assign": '{"a": []}'}, "names no partition"),
        (
            {"subscribe": "a", "startingOfsets": "latest"},
            "unknown option startingofsets, did you mean startingOffsets?",
        ),
        ({"subscribe": "a", "kafka.fetch.maxbytes": "1"}, "did you mean kafka.fetch.max.bytes?"),
        ({"subscribe": "a", "something": "1"}, "unknown option something; known are subscribe,"),
        ({"subscribe": "a", "kafka.sasl.jaas.config": "x"}, "speaks PLAINTEXT only"),
        ({"subscribe": "a", "kafka.security.protocol": "SASL_SSL"}, "only PLAINTEXT is possible"),
        ({"subscribe": "a", "kafka.auto.offset.reset": "latest"}, "said with startingOffsets"),
        ({"subscribe": "a", "groupIdPrefix": "x"}, "name the group with groupId"),
        ({"subscribe": "a", "startingOffsets": "first"}, "option startingOffsets: 'first' is no JSON"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"0":-3}}'}, "a-0: -3"),
        ({"subscribe": "a", "startingOffsets": '{"a":{"x":3}}'}, "a-x: 3"),
        ({"subscribe": "a", "startingOffsets": '{"a":5}'}, "has no partitions"),
        ({"subscribe": "a", "startingOffsetsByTimestamp": '{"a":{"0":-1}}'}, "a-0: -1"),
        ({"subscribe": "a", "startingTimestamp": "yesterday"}, "is no whole number"),
        ({"subscribe": "a", "minPartitions": "0"}, "minPartitions: 0 is below 1"),
        ({"subscribe": "a", "failOnDataLoss": "maybe"}, "neither true nor false"),
        ({"subscribe": "a", "kafka.isolation.level": "serializable"}, "neither read_uncommitted nor read_committed"),
        ({"subscribe": "a", "maxTriggerDelay": "soon"}, "no time like 500ms"),
        ({"subscribe": "a", "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "is above maxOffsetsPerTrigger"),
        ({"subscribe": "a", "groupId": "x", "kafka.group.id": "y"}, "are the same thing and differ"),
        ({"subscribe": "a", "kafka.bootstrap.servers": "broker"}, "'broker' is not HOST:PORT"),
        ({"subscribe": "a", "kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"subscribe": "a", "path": "/x"}, "topics are named with subscribe"),
    ],
)
def test_a_mistake_is_named(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SourceOptions.parse(BROKER | given)
    assert complaint in str(caught.value)


def test_what_is_for_streams_or_batches_only() -> None:
    for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger"):
        with pytest.raises(ConfigError, match=f"{name} is for streams"):
            SourceOptions.parse(BROKER | {"subscribe": "a", name: "5"}).for_batch()
    with pytest.raises(ConfigError, match="a stream has no end"):
        SourceOptions.parse(BROKER | {"subscribe": "a", "endingTimestamp": "5"}).for_stream()
    for name, text in (("startingOffsets", "latest"), ("endingOffsets", '{"a":{"0":-2}}')):
        with pytest.raises(ConfigError, match=f"{name}: a batch cannot"):
            SourceOptions.parse(BROKER | {"subscribe": "a", name: text}).for_batch()


def test_the_official_names_are_understood_whatever_their_case() -> None:
    options = SourceOptions.parse(
        BROKER
        | {"SUBSCRIBE": "b, a,b", "maxtriggerdelay": "2m", "includeHeaders": "TRUE", "kafka.group.id": "g"}
        | {"kafka.fetch.max.bytes": "1000", "kafka.max.partition.fetch.bytes": "5000", "kafka.client.rack": "r1"}
    )
    assert options.subscribe == ("b", "a")
    assert (options.max_trigger_delay_ms, options.include_headers, options.group_id) == (120_000, True, "g")
    assert (options.client.fetch_bytes, options.client.rack) == (1000, "r1")
    assert SourceOptions.parse(BROKER | {"subscribe": "a", "kafka.fetch.max.wait.ms": "0"}).client.fetch_wait_ms == 0
    assert options.for_batch() == (Place(everywhere=EARLIEST), Place(everywhere=LATEST))
    assert options.for_stream() == Place(everywhere=LATEST)


def test_a_time_goes_before_offsets_as_in_the_official_source() -> None:
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"a":{"0":7}}'}
    options = SourceOptions.parse(BROKER | {"subscribe": "a"} | given)
    assert options.starting == Place(timestamps={"a": {0: 7}})
    assert SourceOptions.parse(BROKER | {"subscribe": "a", "startingTimestamp": "9"} | given).starting == Place(
        timestamp_ms=9
    )


def test_a_schema_of_the_users_own_names_columns_with_their_types() -> None:
    assert check_schema(StructType().add("offset", LongType()).add("value", BinaryType()), SOURCE_COLUMNS) == (
        "offset",
        "value",
    )
    with pytest.raises(ConfigError, match="no column 'val', did you mean value"):
        check_schema(StructType().add("val", BinaryType()), SOURCE_COLUMNS)
    with pytest.raises(ConfigError, match="value is binary, not string: name it with its own type and cast it"):
        check_schema(StructType().add("value", StringType()), SOURCE_COLUMNS)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "say which log directories to read"),
        ({"path": "x", "upTo": "hw"}, "option upTo: 'hw' is neither highWatermark nor logEnd"),
        ({"path": "x", "onCorupt": "skip"}, "unknown option oncorupt, did you mean onCorruption?"),
    ],
)
def test_a_mistake_in_reading_files_is_named(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SegmentsOptions.parse(given)
    assert complaint in str(caught.value)
