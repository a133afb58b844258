"""`spark.read.format("tidelog")`: a range of each partition, planned once on the driver and read by the executors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tidelog.spark.options import SourceOptions
from tidelog.spark.source_ranges import RangesPartition, plan_tasks
from tidelog.spark.source_schema import SOURCE_COLUMNS, check_schema


class BatchReader(DataSourceReader):
    """Reads once. It travels to the executors, so it holds nothing but its options."""

    def __init__(self, options: Mapping[str, str], schema: StructType, parallelism: int) -> None:
        self.options = SourceOptions.parse(options)
        self.options.for_batch()
        check_schema(schema, SOURCE_COLUMNS)
        self.schema = schema
        self.parallelism = parallelism

    def partitions(self) -> list[InputPartition]:
        """Ask for the offsets, and split them into tasks."""
        from tidelog.spark.source_offsets import SourceCluster

        starting, ending = self.options.for_batch()
        cluster = SourceCluster(self.options)
        try:
            partitions = cluster.partitions()
            ends = cluster.resolve(ending, partitions, is_start=False)
            starts = cluster.resolve(starting, partitions, is_start=True)
            if starting.offsets or ending.offsets:
                cluster.checked(starts, ends)
            return list(
                plan_tasks(
                    cluster.ranges(starts, ends),
                    parallelism=self.parallelism,
                    min_partitions=self.options.min_partitions,
                    max_records=self.options.max_records_per_partition,
                )
            )
        finally:
            cluster.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In an executor: the records of one task."""
        return read_ranges(self.options, self.schema, partition)


def read_ranges(options: SourceOptions, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """The records of one task, range after range. Spark gives an empty read one task without a range."""
    from tidelog.spark.decode import Decoder
    from tidelog.spark.fetching import RangeFetcher, session_for
    from tidelog.spark.workers import settle

    if not isinstance(partition, RangesPartition):
        return
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    session = session_for(options.client)
    for wanted in partition.ranges:
        decoder = Decoder(
            arrow_schema,
            {"topic": wanted.topic, "partition": wanted.partition},
            expected_records=partition.share,
            read_committed=options.client.read_committed,
            check_crcs=options.client.check_crcs,
        )
        settle()
        yield from RangeFetcher(session, wanted, decoder, fail_on_data_loss=options.fail_on_data_loss).read()
