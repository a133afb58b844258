"""What becomes of a record's value on its way into a lake, on small frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import to_avro

from tests.spark.frames import records_of
from tidelog.errors import ConfigError
from tidelog.spark.pipelines import lake, land, values
from tidelog.spark.pipelines.failures import PipelineError
from tidelog.spark.pipelines.lake import Lake, check_schema
from tidelog.spark.pipelines.progress import Silent
from tidelog.spark.pipelines.values import ValueFormat

ORDERS = ValueFormat("json", "city string, cents bigint")


def test_raw_values_stay_what_they_are(spark: SparkSession) -> None:
    shaped = values.shape(records_of(spark, [("t", 0, 0, b"\xff\x00"), ("t", 0, 1, None)]), ValueFormat())
    rows = values.accepted(shaped, ValueFormat())
    assert rows.columns == [*values.PLACE, "value", "headers", "day"]
    assert [(row.value, str(row.day)) for row in rows.orderBy("offset").collect()] == [
        (b"\xff\x00", "2026-11-15"),
        (None, "2026-11-15"),
    ]
    assert values.refused(shaped, ValueFormat()).count() == 0


def test_json_that_fits_is_parsed_and_the_rest_is_kept_with_its_reason(spark: SparkSession) -> None:
    sent = {
        b'{"city": "Riga", "cents": 5}': None,
        b'{"cents": 5}': None,
        b'{"city": null, "cents": 1, "more": [1]}': None,
        b'{"city": "Riga", "cents": "five"}': "cents is STRING, not bigint",
        b'{"city": "Riga", "cents": 1.5}': "cents is DECIMAL(2,1), not bigint",
        b'{"city": "Ri': "not JSON",
        b"": "not JSON",
        b"[1, 2]": "not a JSON object",
        b"5": "not a JSON object",
        b'{"city": "\xff"}': "not valid UTF-8",
    }
    shaped = values.shape(records_of(spark, [("t", 0, number, value) for number, value in enumerate(sent)]), ORDERS)
    bad = {bytes(row.value): row.reason for row in values.refused(shaped, ORDERS).collect()}
    assert bad == {value: reason for value, reason in sent.items() if reason is not None}
    good = values.accepted(shaped, ORDERS).orderBy("offset").collect()
    assert [tuple(row.data) for row in good] == [("Riga", 5), (None, 5), (None, 1)]
    assert "value" not in values.accepted(shaped, ORDERS).columns
    assert "value" in values.accepted(shaped, ORDERS, keep_value=True).columns


def test_a_record_without_a_value_is_not_a_bad_one(spark: SparkSession) -> None:
    shaped = values.shape(records_of(spark, [("t", 0, 0, None)]), ORDERS)
    assert values.refused(shaped, ORDERS).count() == 0
    assert values.accepted(shaped, ORDERS).first().data is None


def test_avro_is_parsed_and_what_does_not_fit_is_kept(spark: SparkSession) -> None:
    schema = json.dumps(
        {
            "type": "record",
            "name": "order",
            "fields": [{"name": "city", "type": "string"}, {"name": "cents", "type": "long"}],
        }
    )
    frame = spark.createDataFrame([("Riga", 5)], "city string not null, cents bigint not null")
    encoded = bytes(frame.select(to_avro(f.struct("city", "cents"), schema).alias("value")).first().value)
    sent = [("t", 0, 0, encoded), ("t", 0, 1, b"\xff\xff\xff"), ("t", 0, 2, None)]
    avro = ValueFormat("avro", schema)
    shaped = values.shape(records_of(spark, sent), avro)
    assert [(row.offset, row.reason) for row in values.refused(shaped, avro).collect()] == [
        (1, "does not fit the Avro schema")
    ]
    good = values.accepted(shaped, avro).orderBy("offset").collect()
    assert [None if row.data is None else tuple(row.data) for row in good] == [("Riga", 5), None]


def test_a_schema_may_gain_columns_and_never_change_one(spark: SparkSession) -> None:
    before = spark.createDataFrame([], "offset bigint, data struct<city: string, cents: bigint>").schema

    def after(fields: str) -> list[str]:
        return check_schema(before, spark.createDataFrame([], f"offset bigint, data struct<{fields}>").schema)

    assert after("city: string, cents: bigint") == []
    assert after("city: string, cents: bigint, tax: double") == ["data.tax"]
    with pytest.raises(PipelineError, match=r"data\.cents is bigint in the table and string now"):
        after("city: string, cents: string")
    with pytest.raises(PipelineError, match=r"the table has data\.cents"):
        after("city: string")


def test_a_schema_that_is_none_is_said_so(tmp_path: Path) -> None:
    file = tmp_path / "schema"
    with pytest.raises(ConfigError, match="needs --schema"):
        values.read_format("json", None)
    with pytest.raises(ConfigError, match="cannot be read"):
        values.read_format("json", str(file))
    file.write_text("{")
    with pytest.raises(ConfigError, match="no Avro schema"):
        values.read_format("avro", str(file))
    with pytest.raises(ConfigError, match="the schema of the values is none"):
        values.struct_of("city strong")


def test_a_batch_that_was_begun_with_another_schema_is_landed_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver dies in a batch, its schema gains a column, and a record that was good then is bad now."""
    checkpoint = tmp_path / "_state" / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id": "stream"}')
    (checkpoint / "offsets" / "1").write_text("")
    monkeypatch.setattr(spark.sparkContext, "getLocalProperty", lambda _: "stream")
    options = land.PIPELINE.options_of(topics="t", path=str(tmp_path), optimize_every=0)
    place = Lake(str(tmp_path))

    def begin(schema: str, batch_id: int, *sent: bytes) -> None:
        known = ValueFormat("json", schema)
        rows = records_of(spark, [("t", batch_id, offset, value) for offset, value in enumerate(sent)])
        land._Job(spark, options, known, Silent())._land_batch(values.shape(rows, known), batch_id)

    def landed(batch_id: int) -> dict[str, list[int]]:
        tables = {"records": place.read(spark, place.records), "quarantine": place.read(spark, place.quarantine)}
        return {
            name: sorted(row.offset for row in table.where(f"partition = {batch_id}").collect())
            for name, table in tables.items()
            if table is not None
        }

    append_once = lake.append_once

    def dies(rows: DataFrame, table: str, *given: Any, **named: Any) -> None:
        if table == place.records:
            raise KeyboardInterrupt
        append_once(rows, table, *given, **named)

    half = (b'{"n": 1}', b"bad", b'{"n": 2, "m": "x"}')
    monkeypatch.setattr(lake, "append_once", dies)
    with pytest.raises(KeyboardInterrupt):
        begin("n bigint", 0, *half)
    monkeypatch.setattr(lake, "append_once", append_once)
    assert landed(0) == {"quarantine": [1]}
    begin("n bigint, m bigint", 0, *half)
    assert landed(0) == {"records": [0], "quarantine": [1, 2]}
    # And one that was whole: it died before Spark had noted its end.
    whole = (b'{"n": 3}', b'{"n": 4, "k": "y"}')
    begin("n bigint, m bigint", 1, *whole)
    begin("n bigint, m bigint, k bigint", 1, *whole)
    assert landed(1) == {"records": [0, 1], "quarantine": []}
