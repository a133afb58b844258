"""The columns of the sources, as Spark and as Arrow have them, and which of them a query wants."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidelog.config.setting import nearest
from tidelog.errors import ConfigError

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

SOURCE_COLUMNS: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS,
}
"""The official source's, in its order; headers are there when they are asked for."""

FORENSIC_COLUMNS: dict[str, DataType] = {
    "path": StringType(),
    "position": LongType(),
    "leader_epoch": IntegerType(),
    "producer_id": LongType(),
    "producer_epoch": ShortType(),
    "sequence": IntegerType(),
    "is_transactional": BooleanType(),
    "is_control": BooleanType(),
}
"""What only files tell: the file, where in it the record's batch begins, and what its batch says of its producer."""


def source_schema(include_headers: bool) -> StructType:
    """The schema of `format("tidelog")`."""
    names = [name for name in SOURCE_COLUMNS if include_headers or name != "headers"]
    return StructType([StructField(name, SOURCE_COLUMNS[name]) for name in names])


def segments_schema() -> StructType:
    """The schema of `format("tidelog_segments")`."""
    return StructType([StructField(name, kind) for name, kind in (SOURCE_COLUMNS | FORENSIC_COLUMNS).items()])


def check_schema(schema: StructType, known: dict[str, DataType]) -> tuple[str, ...]:
    """The columns of a schema the user gave: any of the known ones, in any order, each with its own type."""
    for column in schema.fields:
        kind = known.get(column.name)
        if kind is None:
            like = nearest(column.name, known)
            hint = f", did you mean {like}?" if like else ""
            raise ConfigError(f"the source has no column {column.name!r}{hint} It has {', '.join(known)}")
        if column.dataType.simpleString() != kind.simpleString():
            raise ConfigError(
                f"column {column.name} is {kind.simpleString()}, not {column.dataType.simpleString()}: "
                "name it with its own type and cast it in the query"
            )
    if not schema.fields:
        raise ConfigError("the schema has no columns: name at least one")
    return tuple(column.name for column in schema.fields)
