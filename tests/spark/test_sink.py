"""The sink on a real cluster, read back by librdkafka as a reader of committed records."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

import tidelog.spark
from tests.clients.conftest import TopicMaker
from tests.spark import sink_judge
from tests.spark.sink_job import ROWS, counting
from tests.support.nodes import Node
from tests.support.processes import wait_until
from tidelog.client.client import Client
from tidelog.client.transactions import describe_transaction
from tidelog.errors import ConfigError
from tidelog.spark import sink_stream
from tidelog.spark.sink import stream_writer
from tidelog.spark.sink_stream import MicroBatchSink, sink_for
from tidelog.spark.transactions import BatchWritten, CheckpointError, SinkError, ledger_group, read_ledger
from tidelog.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

NODE_PROPERTIES = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


def numbers(spark: SparkSession, count: int, tasks: int = 3) -> DataFrame:
    """Rows as the judge expects them."""
    return spark.range(0, count, 1, tasks).selectExpr("cast(id as string) key", "concat('value-', id) value")


def run_stream(start: Callable[[Callable[[BatchWritten], None]], Any], last_batch: int) -> list[BatchWritten]:
    """Run a query until a batch is done; what it said."""
    told: list[BatchWritten] = []
    done = threading.Event()

    def on_batch(written: BatchWritten) -> None:
        told.append(written)
        if written.batch_id >= last_batch:
            done.set()

    query = start(on_batch)
    try:
        while not done.wait(0.1):
            if not query.isActive:
                raise query.exception()
    finally:
        query.stop()
    return told


def test_a_stream_is_written_once_over_restarts(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic(partitions=3)

    def start(on_batch: Callable[[BatchWritten], None]) -> Any:
        return tidelog.spark.write_stream(
            counting(spark),
            bootstrap_servers=node.bootstrap,
            topic=topic,
            transactional_id=topic,
            checkpoint_location=str(tmp_path / "checkpoint"),
            on_batch=on_batch,
        )

    run_stream(start, 1)
    run_stream(start, 3)
    found = sink_judge.read_committed(node.bootstrap, topic, 3)
    assert len(found) >= 4 * ROWS
    assert len(found) % ROWS == 0
    sink_judge.require_counted_once(found, 3, len(found))
    # The same id with a new checkpoint would write everything again: it is refused, and nothing is added.
    with pytest.raises(PySparkException, match="was used with another checkpoint"):
        tidelog.spark.write_stream(
            counting(spark),
            bootstrap_servers=node.bootstrap,
            topic=topic,
            transactional_id=topic,
            checkpoint_location=str(tmp_path / "reset"),
        ).awaitTermination(300)
    assert len(sink_judge.read_committed(node.bootstrap, topic, 3)) == len(found)


@pytest.fixture
def sink(spark: SparkSession, node: Node, make_topic: TopicMaker) -> Any:
    """A sink whose batches a test numbers itself."""
    topic = make_topic(partitions=2)
    made = sink_for(numbers(spark, 1), node.bootstrap, f"id-{topic}", topic, None)
    yield made
    made.close()


def count_of(node: Node, sink: MicroBatchSink) -> int:
    assert sink.options.topic is not None
    return len(sink_judge.read_committed(node.bootstrap, sink.options.topic, 2))


def test_a_batch_that_comes_again_is_skipped_and_one_that_goes_back_is_refused(
    spark: SparkSession, node: Node, sink: MicroBatchSink
) -> None:
    rows = numbers(spark, 100)
    assert sink.write_batch(rows, 0, "q").records == 100
    sink.close()  # as after a restart
    assert sink.write_batch(rows, 0, "q").skipped
    assert sink.write_batch(rows.limit(0), 1, "q").records == 0  # an empty batch is a batch
    assert sink.write_batch(rows, 1, "q").skipped
    with pytest.raises(CheckpointError, match="older copy"):
        sink.write_batch(rows, 0, "q")
    with pytest.raises(CheckpointError, match="another checkpoint"):
        sink.write_batch(rows, 2, "other")
    assert count_of(node, sink) == 100


def test_rows_are_brought_together_by_a_shuffle_where_tasks_share_no_machine(
    spark: SparkSession, node: Node, sink: MicroBatchSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a cluster, which `make soak` has; here only the driver is told that this is one."""
    monkeypatch.setattr(sink_stream, "is_one_machine", lambda _context: False)
    written = sink.write_batch(numbers(spark, 20_000), 0, "q")
    assert (written.records, written.partitions, written.turns) == (20_000, 2, 1)
    assert sink.options.topic is not None
    sink_judge.require_counted_once(sink_judge.read_committed(node.bootstrap, sink.options.topic, 2), 2, 20_000)


def test_rows_come_to_tasks_in_small_pieces_unless_the_user_chose_their_size(spark: SparkSession) -> None:
    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"size": [batch.nbytes]})

    def largest() -> int:
        rows = spark.range(0, 8_000, 1, 1).select(f.repeat(f.lit("x"), 1_000).alias("value"))
        with sink_stream.small_arrow_batches(spark):
            return max(row.size for row in rows.mapInArrow(sizes, "size long").collect())

    assert 1_000_000 < largest() < 3_000_000
    assert spark.conf.get(sink_stream.ARROW_BYTES, None) is None
    spark.conf.set(sink_stream.ARROW_BYTES, "64m")
    try:
        assert largest() > 7_000_000
    finally:
        spark.conf.unset(sink_stream.ARROW_BYTES)


def test_a_failed_batch_leaves_nothing_and_the_next_try_writes_it(
    spark: SparkSession, node: Node, sink: MicroBatchSink
) -> None:
    bad = numbers(spark, 100).withColumn("partition", f.when(f.col("key") == "57", f.lit(9)).cast("int"))
    sink.columns = ["key", "value", "partition"]
    with pytest.raises(Exception, match="a row is for partition 9"):
        sink.write_batch(bad, 0, "q")
    big = numbers(spark, 3).withColumn("value", f.repeat(f.lit("x"), 2_000_000))
    with pytest.raises(Exception, match=r"max\.message\.bytes"):
        sink.write_batch(big, 0, "q")
    assert count_of(node, sink) == 0
    assert sink.write_batch(numbers(spark, 100), 0, "q").records == 100
    assert count_of(node, sink) == 100


def test_the_second_of_two_queries_with_one_id_takes_it_and_the_first_is_told(
    spark: SparkSession, node: Node, sink: MicroBatchSink
) -> None:
    sink.write_batch(numbers(spark, 10), 0, "q")
    other = sink_for(numbers(spark, 1), node.bootstrap, f"id-{sink.options.topic}", sink.options.topic, None)
    other.write_batch(numbers(spark, 10), 1, "q")
    with pytest.raises(SinkError, match="taken over by another query"):
        sink.write_batch(numbers(spark, 10), 1, "q")
    other.write_batch(numbers(spark, 10), 2, "q")
    other.close()
    assert count_of(node, sink) == 30


def test_a_transaction_that_takes_too_long_is_explained(spark: SparkSession, node: Node, sink: MicroBatchSink) -> None:
    quick = {"kafka.transaction.timeout.ms": "1000"}
    hasty = sink_for(numbers(spark, 1), node.bootstrap, "hasty", sink.options.topic, quick)
    job = hasty.job(numbers(spark, 4))

    def late(identity: Any) -> Any:
        written = job(identity)
        with Client(node.bootstrap) as client:
            wait_until(
                lambda: describe_transaction(client, "hasty").state == "CompleteAbort", 60, "the cluster gives it up"
            )
        return written

    hasty.job = lambda _: late  # type: ignore[method-assign]
    with pytest.raises(SinkError, match=r"longer than kafka\.transaction\.timeout\.ms=1000"):
        hasty.write_batch(numbers(spark, 4), 0, "q")
    hasty.close()
    assert count_of(node, sink) == 0
    refused = sink_for(
        numbers(spark, 1), node.bootstrap, "patient", sink.options.topic, {"kafka.transaction.timeout.ms": "99999999"}
    )
    with pytest.raises(SinkError, match=r"transaction\.max\.timeout\.ms is lower"):
        refused.write_batch(numbers(spark, 4), 0, "q")
    refused.close()


def test_every_column_is_written(spark: SparkSession, node: Node, make_topic: TopicMaker) -> None:
    first, second = make_topic(partitions=2), make_topic(partitions=2)
    header = [("trace", b"\x00\xff"), ("empty", None)]
    rows = [
        (first, 1, b"", b"empty key", None),
        (first, None, b"key", None, header),
        (first, 0, None, b"no key", []),
        (second, None, None, b"\x00\x01", None),
    ]
    kind = "topic string, partition int, key binary, value binary, headers array<struct<key:string,value:binary>>"
    written = tidelog.spark.write(
        spark.createDataFrame(rows, kind),
        bootstrap_servers=node.bootstrap,
        options={"kafka.compression.type": "zstd"},
    )
    assert written.records == 4
    found = sink_judge.read_committed(node.bootstrap, first, 2)
    by_value = {one.value: one for one in found}
    assert by_value[b"empty key"].partition == 1
    assert by_value[b"empty key"].key == b""
    assert by_value[None].headers == header
    assert by_value[b"no key"].key is None
    assert by_value[b"no key"].partition == 0
    assert [one.value for one in sink_judge.read_committed(node.bootstrap, second, 2)] == [b"\x00\x01"]


def test_protocol_1_does_the_same(spark: SparkSession, make_topic: TopicMaker, node: Node) -> None:
    """Clusters older than 4.0, or whose transaction.version was never raised."""
    topic = make_topic(partitions=2)
    with Client(node.bootstrap) as client:
        set_transaction_version(client, 1)
        try:
            made = sink_for(numbers(spark, 1), node.bootstrap, "old-protocol", topic, None)
            for batch_id in range(2):
                assert made.write_batch(numbers(spark, 50), batch_id, "q").records == 50
            assert made.write_batch(numbers(spark, 50), 1, "q").skipped
            made.close()
        finally:
            set_transaction_version(client, 2)
    assert len(sink_judge.read_committed(node.bootstrap, topic, 2)) == 100


def set_transaction_version(client: Client, level: int) -> None:
    """As kafka-features does it; then wait until the broker tells its clients so."""
    request = UpdateFeaturesRequest(
        timeout_ms=10_000,
        feature_updates=[
            FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=1 + (level < 2))
        ],
    )
    answer = client.ask(request)
    assert not answer.error_code, answer

    def is_told() -> bool:
        with Client(next(f"{one.host}:{one.port}" for one in client.refresh().brokers.values())) as other:
            other.refresh()
            return next(iter(other._connections.values())).features.get("transaction.version") == level

    wait_until(is_told, 60, f"transaction.version is {level}")


# --- format("tidelog") ---


def test_a_batch_write_is_all_or_nothing(spark: SparkSession, node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic}
    rows = numbers(spark, 1_000)
    # Three tasks with keys of both partitions: no partition has one writer.
    with pytest.raises(PySparkException, match=r"another task writes there too|tasks wrote to"):
        rows.write.format("tidelog").options(**options).mode("append").save()
    assert sink_judge.read_committed(node.bootstrap, topic, 2) == []
    together = tidelog.spark.by_partition(rows, bootstrap_servers=node.bootstrap, topic=topic)
    together.write.format("tidelog").options(**options).mode("append").save()
    found = sink_judge.read_committed(node.bootstrap, topic, 2)
    assert len(found) == 1_000
    sink_judge.require_counted_once(found, 2, 1_000)


def test_at_least_once_is_there_for_who_asks_by_name(spark: SparkSession, node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "deliveryGuarantee": "at-least-once"}
    numbers(spark, 1_000).write.format("tidelog").options(**options).mode("append").save()
    sink_judge.require_counted_once(sink_judge.read_committed(node.bootstrap, topic, 2), 2, 1_000)


def test_the_format_itself_streams_exactly_once_where_rows_are_together(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    options = {
        "kafka.bootstrap.servers": node.bootstrap,
        "topic": topic,
        "transactionalId": topic,
        "checkpointLocation": str(tmp_path / "checkpoint"),
    }
    rows = tidelog.spark.by_partition(counting(spark), bootstrap_servers=node.bootstrap, topic=topic)
    for turn in (1, 2):
        query = rows.writeStream.format("tidelog").options(**options).start()
        while query.isActive and (query.lastProgress is None or query.lastProgress["batchId"] < turn):
            query.awaitTermination(0.2)
        query.stop()
        assert query.exception() is None
    found = sink_judge.read_committed(node.bootstrap, topic, 2)
    assert len(found) >= 3 * ROWS
    assert len(found) % ROWS == 0
    sink_judge.require_counted_once(found, 2, len(found))
    apart = options | {"transactionalId": "apart", "checkpointLocation": str(tmp_path / "apart")}
    refused = r"another task writes there too|tasks wrote to|by another task that failed"
    with pytest.raises(PySparkException, match=refused):
        counting(spark).writeStream.format("tidelog").options(**apart).start().awaitTermination(300)
    assert len(sink_judge.read_committed(node.bootstrap, topic, 2)) == len(found)


def test_a_task_that_fails_ends_the_transaction_that_nobody_else_may_know_of(
    node: Node, make_topic: TopicMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark asks another process to abort, which knows what tasks told: where all failed, nothing."""
    topic = make_topic()
    context = SimpleNamespace(
        getLocalProperty={"streaming.sql.batchId": "0", "sql.streaming.queryId": "q"}.get,
        partitionId=lambda: 0,
        stageId=lambda: 0,
        attemptNumber=lambda: 0,
    )
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "transactionalId": topic}
    writer, elsewhere = (stream_writer(options, StructType().add("value", "string"), overwrite=False) for _ in "ab")
    writer.__getstate__()  # as when Spark sends it to the executors
    rows = [pa.record_batch([pa.array(["x"] * count)], names=["value"]) for count in (3, 5)]
    writer.write(iter(rows[:1]))
    with pytest.raises(SinkError, match="another task writes there too"):
        writer.write(iter(rows[1:]))
    elsewhere.abort([None, None], 0)
    assert sink_judge.read_committed(node.bootstrap, topic, 1, timeout_s=60) == []
    with pytest.raises(SinkError, match="by another task that failed"):
        writer.write(iter(rows[:1]))


def test_a_ledger_that_a_transaction_holds_is_waited_for_and_then_explained(node: Node, make_topic: TopicMaker) -> None:
    """As when a coordinator forgot to end one: nothing is guessed, and when it is over the query goes on."""
    topic = make_topic()
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "forgotten"})
    producer.init_transactions(60)
    producer.begin_transaction()
    reader = Consumer({"bootstrap.servers": node.bootstrap, "group.id": ledger_group("held")})
    entry = TopicPartition(topic, 0, 3, '{"query": "q"}')
    producer.send_offsets_to_transaction([entry], reader.consumer_group_metadata(), 30)
    reader.close()
    with Client(node.bootstrap) as client:
        for where in (topic, None):
            with pytest.raises(SinkError, match=r"did not end within 1500 ms.*find-hanging"):
                read_ledger(client, "held", 1_500, where)
        producer.abort_transaction(30)
        assert read_ledger(client, "held", 30_000, topic) is None


# --- bad input ---


def test_bad_input_is_refused_before_anything_starts(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    topic = make_topic()
    rows = numbers(spark, 1)

    def write(**changed: Any) -> None:
        given: dict[str, Any] = {"bootstrap_servers": node.bootstrap, "topic": topic}
        tidelog.spark.write(rows, **(given | changed))

    with pytest.raises(ConfigError, match=rf"has no topic '{topic}x', did you mean '{topic}'"):
        write(topic=f"{topic}x")
    with pytest.raises(ConfigError, match=r"did you mean kafka\.compression\.type"):
        write(options={"kafka.compression.typ": "zstd"})
    with pytest.raises(SinkError, match=r"no broker answers: 127\.0\.0\.1:1: connection refused \(\d+ ms\)"):
        write(bootstrap_servers="127.0.0.1:1", options={"kafka.request.timeout.ms": "300"})
    nameless = rows.withColumn("topic", f.lit(None).cast("string"))
    with pytest.raises(Exception, match="null topic"):
        tidelog.spark.write(nameless, bootstrap_servers=node.bootstrap)
    with pytest.raises(PySparkException, match="transactionalId"):
        counting(spark).writeStream.format("tidelog").options(
            **{"kafka.bootstrap.servers": node.bootstrap, "topic": topic}
        ).option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(300)


def test_the_ledger_is_an_ordinary_group(spark: SparkSession, node: Node, sink: MicroBatchSink) -> None:
    """So that its progress is seen with Kafka's own tools, and known to whoever cleans up groups."""
    from tidelog.client.groups import committed_offsets

    for batch_id in range(2):
        sink.write_batch(numbers(spark, 5), batch_id, "query-7")
    with Client(node.bootstrap) as client:
        ((where, committed),) = committed_offsets(client, ledger_group(f"id-{sink.options.topic}")).items()
    assert where == (sink.options.topic, 0)
    assert committed.offset == 1
    assert "query-7" in committed.metadata
