"""The sink's parts without Spark and brokers: rows to records, options, and what the ledger allows."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tests.client.fake_cluster import running
from tests.client.test_batches import chunk
from tidelog.client import Client
from tidelog.client.batches import BatchSender
from tidelog.client.shared_transaction import PROTOCOL_2, Identity
from tidelog.errors import ConfigError, ErrorCode, KafkaError
from tidelog.spark import sink_tasks, writing, writing_fallback, writing_kernels
from tidelog.spark.pipelines.failures import reason_of
from tidelog.spark.sink import require_in_log
from tidelog.spark.sink_options import SinkOptions, check_columns
from tidelog.spark.sink_stream import MicroBatchSink
from tidelog.spark.sink_tasks import in_order, spread_evenly, writer_of
from tidelog.spark.transactions import (
    MOST_TURNS,
    CheckpointError,
    Exclusive,
    LedgerEntry,
    SinkError,
    TaskFailed,
    TaskRepeated,
    TransactionRun,
    is_written,
    judge,
    require_one_writer,
    run_in_transaction,
)
from tidelog.wire.batch import Compression, iterate_records, read_header
from tidelog.wire.batch_header import pack_header
from tidelog.wire.murmur2 import partition_for_key

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, int]

sometimes_bytes = st.none() | st.binary(max_size=300)
rows_of_every_shape = st.lists(
    st.tuples(
        sometimes_bytes,
        sometimes_bytes,
        st.none() | st.lists(st.tuples(st.text(max_size=5), sometimes_bytes), max_size=3),
        st.integers(min_value=0, max_value=2**41),
    ),
    min_size=1,
    max_size=40,
)


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    keys, values, headers, stamps = zip(*rows, strict=True)
    structs = [None if each is None else [{"key": k, "value": v} for k, v in each] for each in headers]
    return pa.record_batch(
        [
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(structs, HEADERS),
            pa.array(stamps, pa.timestamp("ms", "UTC")),
        ],
        names=["key", "value", "headers", "timestamp"],
    )


def encoded(
    batch: pa.RecordBatch, kernels: ModuleType, compression: int, batch_bytes: int, partitions: int
) -> list[tuple[int, bytes]]:
    """Whole batches as they would be sent, by partition."""
    found = []
    plan = writing.Plan("t", compression, batch_bytes, True)
    before, writing.kernels = writing.kernels, kernels
    try:
        limits = writing.TopicPlan(partitions, 1_000_000)
        for _, partition, chunk in writing.encode(batch, plan, lambda _: limits, lambda *_: np.int64(0)):
            data = pack_header(
                base_offset=0,
                partition_leader_epoch=-1,
                attributes=chunk.compression,
                last_offset_delta=chunk.record_count - 1,
                base_timestamp=chunk.base_timestamp,
                max_timestamp=chunk.max_timestamp,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                record_count=chunk.record_count,
                payload=chunk.payload,
            )
            found.append((partition, data))
    finally:
        writing.kernels = before
    return found


@given(rows_of_every_shape, st.sampled_from(list(Compression)), st.integers(60, 2_000), st.integers(1, 5))
@settings(max_examples=60)
def test_rows_come_back_as_they_were_and_where_the_java_client_puts_them(
    rows: list[Row], compression: Compression, batch_bytes: int, partitions: int
) -> None:
    # A slice, because Spark's batches may be one: offsets do not begin at 0 then.
    batch = batch_of([(b"x", b"y", [("z", b"")], 1), *rows]).slice(1)
    compiled = encoded(batch, writing_kernels, compression, batch_bytes, partitions)
    assert compiled == encoded(batch, writing_fallback, compression, batch_bytes, partitions)
    found: dict[int, list[Row]] = {}
    for partition, data in compiled:
        header = read_header(data)
        records = list(iterate_records(header))
        assert header.max_timestamp == max(record.timestamp for record in records)
        found.setdefault(partition, []).extend(
            (record.key, record.value, [(str(name), value) for name, value in record.headers], record.timestamp)
            for record in records
        )
    wanted: dict[int, list[Row]] = {}
    for key, value, headers, stamp in rows:
        partition = 0 if key is None else partition_for_key(key, partitions)
        wanted.setdefault(partition, []).append((key, value, headers or [], stamp))
    assert found == wanted


def test_chunks_stay_below_the_size_that_was_asked_for() -> None:
    rows: list[Row] = [(b"k", bytes(100), None, 1_000 + number) for number in range(1_000)]
    for _, data in encoded(batch_of(rows), writing_kernels, 0, 5_000, 2):
        assert len(data) <= 5_000 + 61


def test_a_record_over_the_topics_limit_is_refused_before_anything_is_sent() -> None:
    batch = batch_of([(b"k", bytes(2_000), None, 1)])
    plan = writing.Plan("t", 0, 500_000, False)
    with pytest.raises(KafkaError, match=r"a record of 2\d\d\d bytes for t-0 .*max\.message\.bytes \(1000\)"):
        list(writing.encode(batch, plan, lambda _: writing.TopicPlan(1, 1_000), lambda *_: np.int64(0)))


def test_rows_without_a_key_go_to_all_partitions_in_long_runs() -> None:
    spread = spread_evenly(0)
    places = spread("t", 3, 900)
    assert sorted(np.bincount(places).tolist()) == [300, 300, 300]
    assert np.count_nonzero(np.diff(places)) == 2


def test_a_kafka_partition_has_one_delivering_task() -> None:
    assert {writer_of("a", partition, 4) for partition in range(8)} == set(range(4))


# --- a shuffle ---


def chunk_rows(*numbers: int) -> pa.RecordBatch:
    count = len(numbers)
    ints = pa.int32()
    return pa.record_batch(
        [
            pa.array([0] * count, ints),
            pa.array([7] * count, ints),
            pa.array(numbers, ints),
            pa.array(["t"] * count),
            pa.array([1] * count, ints),
            pa.array([1] * count, ints),
            pa.array([0] * count, pa.int64()),
            pa.array([0] * count, pa.int64()),
            pa.array([b"%d" % number for number in numbers], pa.binary()),
        ],
        names=["writer", "source", "number", "topic", "partition", "records", "base", "max", "payload"],
    )


def test_chunks_that_a_shuffle_disordered_are_sent_in_order() -> None:
    found = [bytes(chunk.payload) for _, chunk in in_order([chunk_rows(2, 0), chunk_rows(1, 3)], 0)]
    assert found == [b"0", b"1", b"2", b"3"]


def test_a_chunk_that_a_shuffle_lost_is_noticed() -> None:
    with pytest.raises(Exception, match="a shuffle lost rows of task 7 for t-1"):
        list(in_order([chunk_rows(0, 2)], 0))


# --- the ledger ---


def allowed(entry: LedgerEntry | None, batch_id: int, query: str = "q", *, accept: bool = False) -> bool:
    return is_written(entry, batch_id, query, "id", accept_missing=accept)


def test_the_ledger_says_what_to_write_and_what_to_skip() -> None:
    assert not allowed(None, 0)
    assert allowed(LedgerEntry(0, "q"), 0)
    assert not allowed(LedgerEntry(0, "q"), 1)
    assert not allowed(None, 5, accept=True)


@pytest.mark.parametrize(
    ("entry", "batch_id", "words"),
    [
        (LedgerEntry(7, "other"), 0, "another checkpoint"),
        (LedgerEntry(7, "other"), 7, "another checkpoint"),
        (LedgerEntry(7, "q"), 6, "older copy of the checkpoint"),
        (None, 3, "missingLedger=accept"),
        (LedgerEntry(2, "q"), 4, "missingLedger=accept"),
    ],
)
def test_a_checkpoint_that_does_not_belong_to_the_ledger_is_refused(
    entry: LedgerEntry | None, batch_id: int, words: str
) -> None:
    with pytest.raises(CheckpointError, match=words):
        allowed(entry, batch_id)


# --- what tasks report ---


class Reported:
    def __init__(self, outcome: str, topic: str = "", partition: int = -1, records: int = 0, message: str = "") -> None:
        self.outcome, self.topic, self.partition, self.records = outcome, topic, partition, records
        self.message, self.stage, self.task, self.bytes = message, 3, 0, 10


def books(**changed: int) -> Any:
    return lambda _stage: {"attempt": 0, "failed": 0, "tasks": 1, "completed": 1} | changed


def test_one_run_of_each_task_is_taken() -> None:
    written = judge([Reported("written", "t", 0, 5), Reported("written", "t", 1, 6), Reported("ran")], books())
    assert (written.records, written.partitions, written.topics) == (11, 2, ("t",))


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([Reported("repeated")], books()),
        ([Reported("written", "t", 0, 5), Reported("ran")], books(attempt=1)),
        ([Reported("written", "t", 0, 5), Reported("ran")], books(failed=1)),
    ],
)
def test_a_second_run_of_a_task_is_not_taken(rows: list[Reported], found: Any) -> None:
    with pytest.raises(TaskRepeated):
        judge(rows, found)


def test_two_writers_of_a_partition_are_refused_with_the_way_out() -> None:
    with pytest.raises(SinkError, match=r"2 tasks wrote to t-0.*write_stream.*at-least-once"):
        require_one_writer(iter([("t", 0), ("t", 1), ("t", 0)]))


def test_what_a_task_failed_with_is_what_the_user_reads() -> None:
    with pytest.raises(SinkError, match="there is no topic 'x'"):
        judge([Reported("failed", message="there is no topic 'x'"), Reported("repeated")], books())


def test_what_the_sink_says_is_what_a_pipeline_says() -> None:
    trace = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: py4j.Py4JException: An exception was raised\n"
        "tidelog.spark.transactions.CheckpointError: the checkpoint is at batch 3\n"
        "\tat org.apache.spark.Main\nCaused by: java.lang.RuntimeException: py4j says no more\n"
    )
    assert reason_of(RuntimeError(trace)) == "the checkpoint is at batch 3"


# --- turns ---


class Turns:
    """In place of a cluster's transactions: who began, and how each ended."""

    def __init__(self) -> None:
        self.epoch = 0
        self.ended: list[tuple[int, str]] = []
        self.explain = TransactionRun(SinkOptions.parse({"kafka.bootstrap.servers": "127.0.0.1:1"}), "id").explain

    def begin(self) -> Identity:
        self.epoch += 1
        return Identity("id", 7, self.epoch, PROTOCOL_2)

    def commit(self, identity: Identity, _entry: LedgerEntry | None) -> None:
        self.ended.append((identity.epoch, "commit"))

    def abort(self, identity: Identity) -> None:
        self.ended.append((identity.epoch, "abort"))

    abort_quietly = abort


def write_with(failures: list[ErrorCode] | list[Exception]) -> tuple[Turns, int]:
    """A job whose first runs meet these, one each: codes of brokers, or errors of Spark."""
    turns = Turns()
    left = iter(failures)

    def job(_identity: Identity) -> Exclusive:
        met = next(left, None)
        if isinstance(met, Exception):
            raise met
        if met is not None:
            raise TaskFailed(KafkaError(met, f"partition t-0: {met.name}"))
        return Exclusive(1, 1, 1, ("t",))

    _, turn = run_in_transaction(turns, job, lambda _: LedgerEntry(0, "q", "t"), turns.begin())  # type: ignore[arg-type]
    return turns, turn


@pytest.mark.parametrize("code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.TRANSACTION_ABORTABLE])
def test_a_broker_that_forgot_what_it_had_costs_a_turn(code: ErrorCode) -> None:
    """Kafka's brokers come back with the last batch of each producer: a repetition of the one before is refused."""
    turns, turn = write_with([code])
    assert (turn, turns.ended) == (2, [(1, "abort"), (2, "commit")])


@pytest.mark.parametrize(
    "said",
    [
        "Lost task 0.0: SparkException: Python worker exited unexpectedly (crashed)",
        "Task 3 in stage 7.0 failed 4 times: ExecutorLostFailure (executor 2 exited caused by a running task)",
        "ResultStage 9 has failed the maximum allowable number of times: 4. FetchFailed(null, shuffleId=0)",
        "A shuffle map stage with indeterminate output was failed and retried. However, Spark cannot rollback the "
        "ResultStage 20 to re-process the input data, and has to fail this job.",
    ],
)
def test_an_executor_that_died_costs_a_turn_whatever_spark_calls_it(said: str) -> None:
    turns, turn = write_with([RuntimeError(f"Job aborted due to stage failure: {said}")])
    assert (turn, turns.ended) == (2, [(1, "abort"), (2, "commit")])


def test_a_broker_that_goes_on_forgetting_ends_the_batch_and_says_what_it_may_be() -> None:
    with pytest.raises(SinkError, match=r"partition t-0: OUT_OF_ORDER.* in each of 4 turns.*gathered=True"):
        write_with([ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * MOST_TURNS)


def test_what_another_turn_cannot_mend_is_not_tried_again() -> None:
    with pytest.raises(SinkError, match="MESSAGE_TOO_LARGE"):
        write_with([ErrorCode.MESSAGE_TOO_LARGE])


# --- options ---

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"transactionlId": "x"}, "did you mean transactionalId"),
        ({"kafka.compresion.type": "zstd"}, r"did you mean kafka\.compression\.type"),
        ({"kafka.compression.type": "brotli"}, "none, gzip, snappy, lz4, zstd"),
        ({"kafka.acks": "1"}, r"option kafka\.acks: '1': only all"),
        ({"kafka.enable.idempotence": "false"}, "a retry would duplicate"),
        ({"kafka.linger.ms": "5"}, r"kafka\.linger\.ms is not for this sink"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "PLAINTEXT only"),
        ({"deliveryGuarantee": "at-most-once"}, "neither exactly-once nor at-least-once"),
        ({"deliveryGuarantee": "at-least-once", "transactionalId": "x"}, "uses no transactions"),
        ({"kafka.batch.size": "12"}, "below 1000"),
        ({"kafka.bootstrap.servers": "nonsense"}, "not HOST:PORT"),
        ({"kafka.bootstrap.servers": ""}, r"kafka\.bootstrap\.servers is missing"),
    ],
)
def test_a_bad_option_is_refused_by_name(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SinkOptions.parse(BROKER | given)


TEXT, BYTES, NUMBER = StringType(), BinaryType(), IntegerType()


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (schema(key=TEXT), {"topic": "t"}, "no column value"),
        (schema(value=TEXT), {}, "no topic"),
        (schema(value=NUMBER), {"topic": "t"}, "column value is int; it must be string or binary"),
        (schema(value=TEXT, key=MapType(TEXT, TEXT)), {"topic": "t"}, "column key is map<string,string>"),
        (schema(value=TEXT, partition=LongType()), {"topic": "t"}, "column partition is bigint; it must be int"),
        (schema(value=TEXT, headers=ArrayType(TEXT)), {"topic": "t"}, "column headers is"),
    ],
)
def test_a_column_of_another_kind_is_refused_by_name(columns: StructType, options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_columns(columns, SinkOptions.parse(BROKER | options))


def test_columns_that_the_official_sink_ignores_are_ignored() -> None:
    columns = schema(key=BYTES, value=BYTES, topic=TEXT, partition=NUMBER, offset=LongType(), timestamp=TimestampType())
    options = SinkOptions.parse(BROKER | {"topic": "t"})
    assert check_columns(columns, options) == ["key", "value", "partition"]
    kept = SinkOptions.parse(BROKER | {"includeTimestamp": "true"})
    assert check_columns(columns, kept) == ["key", "value", "topic", "partition", "timestamp"]


def test_a_cluster_without_transactions_is_refused_with_the_other_way() -> None:
    with running() as cluster:
        options = SinkOptions.parse(
            {"kafka.bootstrap.servers": cluster.bootstrap, "topic": "t", "transactionalId": "x"}
        )
        sink = MicroBatchSink(options, ["value"], gathered=False)
        with pytest.raises(SinkError, match=r"has no transactions.*deliveryGuarantee=at-least-once"):
            sink.check_cluster()


def test_a_second_attempt_of_a_task_writes_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_tasks, "here", lambda: sink_tasks.Where(0, 3, 1))
    options = SinkOptions.parse({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"})
    identity = Identity("id", 7, 0, PROTOCOL_2)
    for task in (
        sink_tasks.deliver(options, identity, False),
        sink_tasks.write_directly(options, identity, False, 1),
        sink_tasks.write_by_turns(options, identity, False, "/nowhere"),
    ):
        (result,) = task([])  # there is no broker at that address: whoever asked one would fail
        assert result.column(0).to_pylist() == ["repeated"]


def test_what_is_in_the_log_is_held_against_what_tasks_report() -> None:
    """`format("tidelog")` cannot see that Spark ran a stage again; the log can."""
    with running() as cluster, Client(cluster.bootstrap) as client:
        identity = Identity("", 7, 0, PROTOCOL_2)
        sender = BatchSender(client, identity, delivery_timeout_ms=5_000)
        for text in (b"a", b"b", b"c"):
            sender.send(("t", 0), chunk(text))
        sender.flush()
        require_in_log(client, identity, sender.written)
        sender.written["t", 0].checksums[1] += 1  # as when another run of the task had put other rows there
        with pytest.raises(SinkError, match="t-0 does not hold what its task reports"):
            require_in_log(client, identity, sender.written)
        sender.written["t", 0].checksums[1] -= 1
        BatchSender.send(sender, ("t", 0), chunk(b"late"))
        late = sender.written["t", 0].checksums.copy()
        sender.flush()
        sender.written["t", 0].checksums = late  # as when it came from a run that nobody waits for
        with pytest.raises(SinkError, match="does not hold"):
            require_in_log(client, identity, sender.written)
