"""Exactly once into a cluster: one transaction a micro-batch, with the batch's number in it.

The driver begins a transaction, which ends what an earlier run left open and shuts out its writers; reads the ledger;
lets the executors write; adds the batch's number to the same transaction as the offset of a group of its own, the
ledger; and commits. So the rows and the number appear together or not at all, and a batch that Spark runs again is
found in the ledger and skipped, or is not there and is written: never both.

What it rests on: under one transactional id a number of a batch always means the same rows (which the identity of the
checkpoint in the ledger checks), and the ledger is not deleted or expired (a gap is refused).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidelog.client.client import Client, TopicPartition
from tidelog.client.groups import Committed
from tidelog.client.shared_transaction import FENCED, Identity, Transactions, stable_offsets
from tidelog.errors import ErrorCode, KafkaError, TidelogError
from tidelog.spark.sink_options import AT_LEAST_ONCE, SinkOptions
from tidelog.spark.sink_turns import is_complete

MOST_TURNS = 4
"""How often a batch is begun anew after a task was lost, before the query gives up."""
_STAGE_PATIENCE_S = 30.0
_LEDGER_PARTITION = 0
_BEGIN_ANEW = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.TRANSACTION_ABORTABLE,
)
"""A broker that came back remembers of each producer the last batch only, so that it refuses the others of those whose
answers were lost; or it lost what it had acknowledged. Nothing is visible yet: all is written again in a new epoch."""
_LOST_TASK_WORDS = (
    "Python worker exited unexpectedly",
    "ExecutorLostFailure",
    "FetchFailed",
    "Worker is lost",
    # An executor went and took with it what it had for the others to fetch, when some of these had ended already.
    "A shuffle map stage with indeterminate output was failed and retried",
)


class SinkError(TidelogError):
    """A batch was not written; nothing of it is visible to readers of committed records."""


class CheckpointError(SinkError):
    """The ledger and the checkpoint do not belong together: going on would lose rows or write them twice."""


class LedgerEntry(NamedTuple):
    """The last batch that is in the cluster."""

    batch_id: int
    query_id: str
    topic: str = ""
    """Under which topic it is kept; a group's offset needs one that exists."""


@dataclass(frozen=True)
class BatchWritten:
    """What became of one micro-batch."""

    batch_id: int
    skipped: bool
    """Whether it was in the cluster already."""
    records: int = 0
    bytes: int = 0
    partitions: int = 0
    turns: int = 1
    seconds: float = 0.0


def ledger_group(transactional_id: str) -> str:
    """The group whose offset is the number of the last batch."""
    return f"{transactional_id}-ledger"


def read_ledger(client: Client, transactional_id: str, timeout_ms: int, topic: str | None) -> LedgerEntry | None:
    """The newest entry; None where there is none. `topic` is where all rows go, None where each row says it."""
    group = ledger_group(transactional_id)
    try:
        offsets = stable_offsets(client, group, timeout_ms)
        if not offsets:  # so would it be while the first entry is in a transaction that is not over
            names = client.refresh(None).topics if topic is None else (topic,)
            offsets = stable_offsets(client, group, timeout_ms, [(name, _LEDGER_PARTITION) for name in names])
    except KafkaError as error:
        raise SinkError(_why_no_ledger(group, error, timeout_ms)) from error
    return newest_entry(group, offsets)


def newest_entry(group: str, offsets: Mapping[TopicPartition, Committed]) -> LedgerEntry | None:
    """What a ledger's offsets say; CheckpointError when they are those of another kind of group."""
    entries = []
    for (name, _), committed in offsets.items():
        try:
            query_id = str(json.loads(committed.metadata)["query"])
        except (ValueError, KeyError, TypeError):
            raise CheckpointError(
                f"group {group!r} is not a ledger of this sink: its offset says {committed.metadata!r}; choose another "
                "transactional id"
            ) from None
        entries.append(LedgerEntry(committed.offset, query_id, name))
    return max(entries, default=None)


def _why_no_ledger(group: str, error: KafkaError, timeout_ms: int) -> str:
    if error.code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
        return f"the ledger, group {group!r}, cannot be read: {error.code.name}: {error}"
    # Our own transactions are over when the ledger is read. One of Apache Kafka's, whose markers were due while its
    # partitions had no leader, can be over for the coordinator and stay open in the partitions.
    return (
        f"the ledger, group {group!r}, is part of a transaction that did not end within {timeout_ms} ms. `tidelog "
        "transactions find-hanging` tells whether the cluster forgot to end it; committed or aborted in all its "
        "partitions alike, the query goes on where it was"
    )


def is_written(
    entry: LedgerEntry | None, batch_id: int, query_id: str, transactional_id: str, *, accept_missing: bool
) -> bool:
    """Whether a batch is in the cluster already; CheckpointError where ledger and checkpoint contradict each other."""
    if entry is not None and entry.query_id != query_id:
        raise CheckpointError(
            f"transactional id {transactional_id!r} was used with another checkpoint (of query {entry.query_id}, "
            f"last batch {entry.batch_id}); this one (of query {query_id}) begins with batch {batch_id}. If the "
            "checkpoint was reset on purpose, choose a new transactional id: rows that were written stay written"
        )
    if entry is not None and batch_id <= entry.batch_id:
        if batch_id < entry.batch_id:
            raise CheckpointError(
                f"the checkpoint is at batch {batch_id}, but batch {entry.batch_id} is written under transactional id "
                f"{transactional_id!r}: an older copy of the checkpoint, or two queries on one"
            )
        return True
    before = -1 if entry is None else entry.batch_id
    if batch_id != before + 1 and not accept_missing:
        raise CheckpointError(
            f"the ledger of transactional id {transactional_id!r} ends with batch {before}, the checkpoint is at "
            f"{batch_id}: the ledger expired (offsets.retention.minutes), its topic was deleted, or the id is new to "
            f"an old checkpoint. Where batch {batch_id} is known not to be in the cluster, go on with the option "
            "missingLedger=accept"
        )
    return False


def require_current(entry: LedgerEntry | None, planned: int, query_id: str, transactional_id: str) -> None:
    """CheckpointError where a batch is written that its checkpoint has never planned.

    To be asked before a query starts: it would plan that batch anew, with other rows, and find its number written.
    """
    if entry is not None and entry.query_id == query_id and entry.batch_id > planned:
        raise CheckpointError(
            f"the checkpoint knows of batch {planned}, but batch {entry.batch_id} is written under transactional id "
            f"{transactional_id!r}: an older copy of the checkpoint; bring back the newer one"
        )


# --- one transaction ---


class TransactionRun:
    """Begins transactions under one id, lets a job write into them and ends them, once each."""

    def __init__(self, options: SinkOptions, transactional_id: str) -> None:
        self.options = options
        self.transactional_id = transactional_id
        self.client = options.client()
        self._transactions = Transactions(
            self.client,
            transactional_id,
            transaction_timeout_ms=options.transaction_timeout_ms,
            timeout_ms=options.delivery_timeout_ms,
        )
        self._begun_s = 0.0

    def close(self) -> None:
        """Close the connections; an open transaction is ended by the next run, or by its timeout."""
        self.client.close()

    def begin(self) -> Identity:
        """A new epoch; what an earlier one left open is aborted."""
        with self._explained("begin"):
            identity = self._transactions.begin()
        self._begun_s = time.monotonic()
        return identity

    def commit(self, identity: Identity, entry: LedgerEntry | None) -> None:
        """Add the ledger's entry and commit; when it raises, the next `begin` finds out what became of it."""
        with self._explained("commit"):
            if entry is not None:
                metadata = json.dumps({"query": entry.query_id})
                group = ledger_group(self.transactional_id)
                self._transactions.add_offset(
                    identity, group, (entry.topic, _LEDGER_PARTITION), entry.batch_id, metadata
                )
            self._transactions.end(identity, commit=True)

    def abort(self, identity: Identity) -> None:
        """End it without a trace for readers of committed records."""
        with self._explained("abort"):
            self._transactions.end(identity, commit=False)

    def abort_quietly(self, identity: Identity) -> None:
        """Abort where another error is on its way already."""
        with contextlib.suppress(TidelogError):
            self._transactions.end(identity, commit=False)

    @contextlib.contextmanager
    def _explained(self, step: str) -> Iterator[None]:
        try:
            yield
        except KafkaError as error:
            raise SinkError(self.explain(step, error)) from error

    def explain(self, step: str, error: KafkaError) -> str:
        """What an error of a transaction means for the user."""
        name = f"transactional id {self.transactional_id!r}"
        allowed_ms = self.options.transaction_timeout_ms
        open_ms = int((time.monotonic() - self._begun_s) * 1000)
        if error.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            return (
                f"the cluster refuses kafka.transaction.timeout.ms={allowed_ms}: its transaction.max.timeout.ms is "
                "lower; lower the one or raise the other"
            )
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            return f"{error}; exactly-once needs them (or ask for deliveryGuarantee={AT_LEAST_ONCE})"
        gone = (*FENCED, ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE)
        if step != "begin" and error.code in gone and open_ms >= allowed_ms:
            return (
                f"the transaction was open for {open_ms} ms, longer than kafka.transaction.timeout.ms={allowed_ms} "
                "allows, and the cluster aborted it: make batches smaller or the timeout longer"
            )
        if error.code in FENCED and step != "abort":
            return f"{name} was taken over by another query ({error.code.name}): it must have one query at a time"
        if step == "write" and error.code in _BEGIN_ANEW:
            return (
                f"{error}, in each of {MOST_TURNS} turns: the broker does not have what it acknowledged, or another "
                "task writes to the same partition (gathered=True is for rows that are together already)"
            )
        if step == "write":
            return str(error)
        return f"{name}: {step}: {error.code.name}: {error}"


class Exclusive(NamedTuple):
    """What a job wrote, each Kafka partition by one task that ran once."""

    records: int
    bytes: int
    partitions: int
    topics: tuple[str, ...] = ()


class TaskFailed(SinkError):
    """A task could not write; the cause is Kafka's."""

    def __init__(self, cause: KafkaError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class TaskRepeated(Exception):
    """Spark ran a delivering task again, so the transaction may hold the rows of both runs."""


def run_in_transaction(
    run: TransactionRun,
    job: Callable[[Identity], Exclusive],
    entry_for: Callable[[Exclusive], LedgerEntry | None],
    identity: Identity,
    is_done: Callable[[], bool] = lambda: False,
) -> tuple[Exclusive | None, int]:
    """Let a job write and commit it; begin anew where a task was lost. Returns what was written, and in which turn.

    Between two turns nobody holds the id, and a driver that came in place of this one may have written the batch: so
    every turn but the first, before which the caller has looked, asks `is_done`. What another wrote is None.
    """
    for turn in range(1, MOST_TURNS + 1):
        if turn > 1:
            identity = run.begin()
            if is_done():
                return None, turn
        try:
            written = job(identity)
            entry = entry_for(written)
        except TaskFailed as error:
            if turn < MOST_TURNS and error.cause.code in _BEGIN_ANEW:
                run.abort(identity)
                continue
            run.abort_quietly(identity)
            raise SinkError(run.explain("write", error.cause)) from error
        except Exception as error:
            if turn < MOST_TURNS and _is_lost_task(error):
                run.abort(identity)
                continue
            run.abort_quietly(identity)
            if isinstance(error, TaskRepeated):
                raise SinkError(f"tasks were lost in each of {MOST_TURNS} turns, the last time: {error}") from error
            raise
        if entry is None and not written.records:
            run.abort(identity)
        else:
            run.commit(identity, entry)
        return written, turn
    raise AssertionError("the last turn returns or raises")


def _is_lost_task(error: Exception) -> bool:
    return isinstance(error, TaskRepeated) or any(word in str(error) for word in _LOST_TASK_WORDS)


# --- what the job's rows say ---


def judge(rows: list[Any], stage_of: Callable[[int], Mapping[str, int]], *, turns: str | None = None) -> Exclusive:
    """The sum of what the tasks report; raises unless each Kafka partition was written by one task that ran once.

    `turns` is the folder by which tasks that ran once wrote by turns; what they report must be all that was written.
    """
    from tidelog.spark import sink_tasks as tasks

    failed = [row.message for row in rows if row.outcome == tasks.FAILED]
    if failed:
        code, _, text = failed[0].partition(": ")
        if code in ErrorCode.__members__:
            raise TaskFailed(KafkaError(ErrorCode[code], text))
        raise SinkError(failed[0])
    if any(row.outcome == tasks.REPEATED for row in rows):
        raise TaskRepeated("a task ran again")
    written = [row for row in rows if row.outcome == tasks.WRITTEN]
    if turns is None:
        require_one_writer((row.topic, row.partition) for row in written)
    elif not is_complete(turns, (((row.topic, row.partition), row.records) for row in written)):
        raise TaskRepeated("tasks wrote other rows than they report")
    for stage in {row.stage for row in rows}:
        _require_first_attempt(stage, stage_of)
    return Exclusive(
        sum(row.records for row in written),
        sum(row.bytes for row in written),
        len({(row.topic, row.partition) for row in written}),
        tuple(sorted({row.topic for row in written})),
    )


def require_one_writer(written: Iterator[TopicPartition]) -> None:
    """SinkError with the way out, where two tasks wrote to one Kafka partition."""
    for (topic, partition), count in Counter(written).items():
        if count > 1:
            raise SinkError(
                f"{count} tasks wrote to {topic}-{partition}, and exactly-once allows one a Kafka partition: write "
                "with tidelog.spark.write_stream or tidelog.spark.write, which bring rows together, or do it with "
                f"tidelog.spark.by_partition(df, …); or ask for deliveryGuarantee={AT_LEAST_ONCE}"
            )


def _require_first_attempt(stage: int, stage_of: Callable[[int], Mapping[str, int]]) -> None:
    """A stage that lost its input is run again under the same task numbers: only Spark's own books tell.

    They are kept by a listener, a moment behind; a first attempt all of whose tasks are done had no second.
    """
    deadline = time.monotonic() + _STAGE_PATIENCE_S
    while True:
        info = stage_of(stage)
        if info["attempt"] > 0 or info["failed"] > 0:
            raise TaskRepeated(f"stage {stage} ran again")
        if info["tasks"] > 0 and info["completed"] >= info["tasks"]:
            return
        if time.monotonic() > deadline:
            raise TaskRepeated(f"Spark does not say how stage {stage} ended")
        time.sleep(0.005)


def stage_books(spark_context: Any) -> Callable[[int], Mapping[str, int]]:
    """What Spark has written down of a stage's latest attempt."""

    def stage_of(stage: int) -> Mapping[str, int]:
        info = spark_context.statusTracker().getStageInfo(stage)
        if info is None:
            return {"attempt": 0, "failed": 0, "tasks": 0, "completed": 0}
        return {
            "attempt": info.currentAttemptId,
            "failed": info.numFailedTasks,
            "tasks": info.numTasks,
            "completed": info.numCompletedTasks,
        }

    return stage_of
