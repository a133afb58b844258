"""The formats Spark sees. What a query does not use is not imported: a reader never loads the sink."""

from __future__ import annotations

from typing import Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType


class TidelogDataSource(DataSource):
    """`format("tidelog")`: topics of a cluster, read and written, in batches and streams."""

    parallelism: ClassVar[int] = 0
    """Tasks that run at once where the query runs; 0 when nobody said."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "tidelog"

    def schema(self) -> StructType:
        """The official source's columns; headers where they are asked for."""
        from tidelog.spark.options import SourceOptions
        from tidelog.spark.source_schema import source_schema

        return source_schema(SourceOptions.parse(self.options).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        from tidelog.spark.source import BatchReader

        return BatchReader(dict(self.options), schema, self.parallelism)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """For `spark.readStream`."""
        from tidelog.spark.source_stream import StreamReader

        return StreamReader(dict(self.options), schema, self.parallelism)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """For `df.write`."""
        from tidelog.spark.sink import batch_writer

        return batch_writer(dict(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802 - Spark's name
        """For `df.writeStream`."""
        from tidelog.spark.sink import stream_writer

        return stream_writer(dict(self.options), schema, overwrite)


class SegmentsDataSource(DataSource):
    """`format("tidelog_segments")`: log directories as files, without a broker."""

    parallelism: ClassVar[int] = 0

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "tidelog_segments"

    def schema(self) -> StructType:
        """The source's columns, and what only files tell."""
        from tidelog.spark.source_schema import segments_schema

        return segments_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`; files are no stream."""
        from tidelog.spark.segments import SegmentsReader

        return SegmentsReader(dict(self.options), schema, self.parallelism)


def sources_for(parallelism: int) -> list[type[DataSource]]:
    """The formats, knowing how many tasks run at once: the process that plans a read cannot ask Spark."""
    return [
        type(source.__name__, (source,), {"parallelism": parallelism})
        for source in (TidelogDataSource, SegmentsDataSource)
    ]
