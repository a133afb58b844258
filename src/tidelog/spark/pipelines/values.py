"""Records into rows of a lake: values as they are, or parsed by a schema, with the reason where that fails.

    orders = ValueFormat("json", "city string, cents bigint")
    shaped = shape(records, orders)
    good, bad = accepted(shaped, orders), refused(shaped, orders)

Plain functions on frames: the same for a stream and for a batch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidelog.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

RECORD_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)
"""What is taken in: the columns of the sources; headers are there when they were asked for."""
HEADERS_COLUMN = "headers array<struct<key: string, value: binary>>"
PLACE = ("topic", "partition", "offset", "timestamp", "timestampType", "key")
PROBLEM = "problem"
RAW, JSON, AVRO = "raw", "json", "avro"
_CORRUPT = "_corrupt"
_PARSER = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}


@dataclass(frozen=True)
class ValueFormat:
    """How values are to be read: `raw`, or `json` or `avro` with a schema."""

    kind: str = RAW
    schema: str = ""
    """Of JSON: Spark's DDL, or a JSON Schema as Spark writes it. Of Avro: its own JSON."""

    @property
    def is_parsed(self) -> bool:
        """Whether there is a column `data` instead of `value`, and records that do not fit."""
        return self.kind != RAW


def read_format(kind: str, schema_file: str | None) -> ValueFormat:
    """The format that options name; ConfigError when the schema is missing or none."""
    if kind == RAW:
        if schema_file:
            raise ConfigError("--schema is for --values json or avro: raw values are kept as they are")
        return ValueFormat()
    if not schema_file:
        raise ConfigError(f"--values {kind} needs --schema FILE")
    try:
        with open(schema_file, encoding="utf-8") as file:
            text = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--schema {schema_file} cannot be read: {getattr(error, 'strerror', error)}") from None
    if not text:
        raise ConfigError(f"--schema {schema_file} is empty")
    if kind == AVRO:
        try:
            json.loads(text)
        except ValueError as error:
            raise ConfigError(f"--schema {schema_file} is no Avro schema: {error}") from None
    return ValueFormat(kind, text)


def struct_of(schema: str) -> StructType:
    """A schema of JSON values, written as DDL (`city string, cents bigint`) or as Spark's own JSON."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        if schema.lstrip().startswith("{"):
            return StructType.fromJson(json.loads(schema))
        struct = StructType.fromDDL(schema)
        assert isinstance(struct, StructType)
        return struct
    except (PySparkException, ValueError, KeyError, TypeError) as error:
        first = (str(error).strip().splitlines() or ["it is empty"])[0]
        raise ConfigError(f"the schema of the values is none: {first}") from None


def shape(records: DataFrame, values: ValueFormat, *, headers: bool = True) -> DataFrame:
    """The columns of the lake, and `problem`: null for a record that fits, else why not."""
    from pyspark.sql import functions as f

    more = ["headers"] if headers else []
    day = f.to_date("timestamp").alias("day")
    taken = records.select(*PLACE, "value", *more, day)
    if values.kind == RAW:
        return taken.withColumn(PROBLEM, f.lit(None).cast("string"))
    if values.kind == JSON:
        parsed = _from_json(taken, struct_of(values.schema))
    else:
        parsed = _from_avro(taken, values.schema)
    return parsed.select(*PLACE, "data", "value", *more, "day", PROBLEM)


def accepted(shaped: DataFrame, values: ValueFormat, *, keep_value: bool = False) -> DataFrame:
    """Rows of the table `records`: what fits, without the bytes it was parsed from."""
    from pyspark.sql import functions as f

    if not values.is_parsed:
        return shaped.drop(PROBLEM)
    return shaped.where(f.col(PROBLEM).isNull()).drop(*([PROBLEM] if keep_value else [PROBLEM, "value"]))


def refused(shaped: DataFrame, values: ValueFormat) -> DataFrame:
    """Rows of the table `quarantine`: what does not fit, as it came, with the reason."""
    from pyspark.sql import functions as f

    bad = shaped.where(f.col(PROBLEM).isNotNull())
    return (bad.drop("data") if values.is_parsed else bad).withColumnRenamed(PROBLEM, "reason")


def _from_json(taken: DataFrame, schema: StructType) -> DataFrame:
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

    wanted = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
    text = f.col("value").cast("string")
    parsed = taken.withColumn("parsed", f.from_json(text, wanted, _PARSER))
    # A field of type double or string would take in bytes that are no text; so would the whole value.
    is_text = f.is_valid_utf8(text)
    fits = f.col("value").isNull() | (is_text & f.col("parsed").isNotNull() & f.col(f"parsed.{_CORRUPT}").isNull())
    reason = f.when(~is_text, f.lit("not valid UTF-8")).otherwise(_json_reason(text, schema))
    data = f.when(f.col("value").isNotNull(), f.struct(*[f.col("parsed")[name].alias(name) for name in schema.names]))
    return parsed.withColumn(PROBLEM, f.when(~fits, reason)).withColumn("data", data)


def _json_reason(text: Column, schema: StructType) -> Column:
    """Not JSON, no object, or which fields are of another type than the schema says."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

    whole = f.try_parse_json(text)
    wrong: list[Any] = []
    for column in schema.fields:
        found = f.try_variant_get(whole, '$["' + column.name.replace('"', '\\"') + '"]', "variant")
        # The parser itself is asked, one field at a time: nothing else knows exactly what it takes.
        alone = StructType([column, StructField(_CORRUPT, StringType())])
        is_wrong = f.from_json(text, alone, _PARSER)[_CORRUPT].isNotNull()
        said = f", not {column.dataType.simpleString()}"
        wrong.append(f.when(is_wrong, f.concat(f.lit(f"{column.name} is "), f.schema_of_variant(found), f.lit(said))))
    fields = f.concat_ws("; ", *wrong)
    return (
        f.when(whole.isNull(), f.lit("not JSON"))
        .when(~f.schema_of_variant(whole).startswith("OBJECT"), f.lit("not a JSON object"))
        .when(fields != "", fields)
        .otherwise(f.lit("does not fit the schema"))
    )


def _from_avro(taken: DataFrame, schema: str) -> DataFrame:
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro

    data = from_avro(f.col("value"), schema, {"mode": "PERMISSIVE"})
    parsed = taken.withColumn("data", data)
    # What cannot be read comes back as null, or as a record of nulls where the schema is one.
    empty = f.to_json("data").isin("{}", "") if _is_record(schema) else f.lit(False)
    fails = f.col("value").isNotNull() & (f.col("data").isNull() | f.coalesce(empty, f.lit(False)))
    return parsed.withColumn(PROBLEM, f.when(fails, f.lit("does not fit the Avro schema")))


def _is_record(schema: str) -> bool:
    read = json.loads(schema)
    return isinstance(read, dict) and read.get("type") == "record"
