"""Transactions: what readers of committed records may see, who may write, and that decisions come before markers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from tidelog.errors import DecodeError, StorageError
from tidelog.log.log import Log
from tidelog.replica.partition import Partition, Role
from tidelog.sim.checkers.base import Checker, History, Lives
from tidelog.sim.machines import Process
from tidelog.sim.reading import Reader
from tidelog.sim.transacting import ABORTED, COMMITTED, Attempt
from tidelog.sim.work import Work
from tidelog.sim.work_shape import COPY, LEDGER, OFFSETS, TRANSACTIONS
from tidelog.transactions import records
from tidelog.transactions.transaction import PREPARED
from tidelog.wire.batch import BatchHeader, ControlType, control_type, iterate_batches, iterate_records
from tidelog.wire.stored import decode_transaction_record

WRITTEN = (LEDGER, COPY, OFFSETS)
"""Topics that are written to within transactions."""


class Final(NamedTuple):
    """A partition in the end, read from its log and nothing else."""

    committed: dict[int, str]
    open_offsets: list[int]
    """Of records whose transaction has no marker."""


def final_of(data: bytes) -> Final:
    """What of a log's bytes was committed."""
    committed: dict[int, str] = {}
    undecided: dict[int, dict[int, str]] = {}
    for batch in iterate_batches(data):
        if batch.is_control:
            kind = control_type(next(iter(iterate_records(batch))).key)
            values = undecided.pop(batch.producer_id, {})
            committed.update(values if kind == ControlType.COMMIT else {})
        else:
            values = undecided.setdefault(batch.producer_id, {}) if batch.is_transactional else committed
            values.update((one.offset, (one.value or b"").decode()) for one in iterate_records(batch))
    return Final(committed, [offset for values in undecided.values() for offset in values])


class WorkChecker(Checker):
    """Looks at histories that have groups and transactions."""

    @property
    def work(self) -> Work | None:
        """The clients of those; None where there are none."""
        return self.history.work

    def at_end(self) -> None:
        if self.work is not None:
            self.look(self.work)

    def look(self, work: Work) -> None:
        """At everything, in the end."""

    def final(self, topic: str, index: int) -> Final:
        """A partition as it is in the end."""
        whole = self.history.whole(topic, index)
        return final_of(self.history.cluster.log_bytes(whole[0], topic, index)) if whole else Final({}, [])


def _attempts(work: Work) -> dict[str, Attempt]:
    """Transactions by the value of each record: those of one that transforms may be written by several in turn."""
    return {
        write.value: attempt
        for identity in work.identities.values()
        for attempt in identity.attempts
        for write in attempt.writes
        if write.topic == LEDGER
    }


def _seen(work: Work) -> Iterator[tuple[Reader, int, str, int]]:
    for reader in work.readers:
        if reader.is_committed:
            for seen in reader.seen:
                yield reader, seen.offset, seen.value, seen.at_ms


class NoAbortedRead(WorkChecker):
    """No reader of committed records is ever shown one of an aborted transaction, or, where nothing rots, damage."""

    def look(self, work: Work) -> None:
        for client in (*work.readers, *work.members, *work.transactors):
            for topic, index in client.damaged:
                if not any((one, topic, index) in self.history.rotten for one in self.history.cluster.brokers):
                    raise self.violated(f"{client.name} was sent damaged batches of {topic}-{index}")
        attempts = _attempts(work)
        finals = {(one.topic, one.index): self.final(one.topic, one.index) for one in work.readers}
        for reader, offset, value, _ in _seen(work):
            attempt = attempts.get(value)
            if attempt is not None and attempt.outcome == ABORTED:
                raise self.violated(
                    f"{reader.name} saw {value} at {reader.topic}-{reader.index} offset {offset}, of a transaction "
                    f"that was aborted"
                )
            if finals[reader.topic, reader.index].committed.get(offset) != value:
                raise self.violated(
                    f"{reader.name} saw {value} at {reader.topic}-{reader.index} offset {offset}, where nothing was "
                    f"committed in the end"
                )


class NoDirtyRead(WorkChecker):
    """Nothing of a transaction is seen before its commit was asked for: neither records nor offsets."""

    def look(self, work: Work) -> None:
        attempts = _attempts(work)
        for reader, offset, value, at_ms in _seen(work):
            attempt = attempts.get(value)
            if attempt is not None and (attempt.commit_asked_ms is None or at_ms < attempt.commit_asked_ms):
                raise self.violated(
                    f"{reader.name} saw {value} at {reader.topic}-{reader.index} offset {offset} at {at_ms}, before "
                    f"anybody had asked for its commit"
                )
        if work.auditor is not None and work.auditor.early_offsets:
            raise self.violated(work.auditor.early_offsets[0])


class AtomicVisibility(WorkChecker):
    """All of a transaction's records are committed or none, all when its commit was answered; readers miss nothing."""

    def look(self, work: Work) -> None:
        finals = {(one.topic, one.index): self.final(one.topic, one.index) for one in work.readers}
        for place, final in finals.items():
            if final.open_offsets:
                raise self.violated(f"{place[0]}-{place[1]}: nobody ended what is open at {final.open_offsets[:5]}")
        for identity in work.identities.values():
            for attempt in identity.attempts:
                told = [one for one in attempt.writes if one.offset >= 0]
                there = [one for one in told if finals[one.topic, one.index].committed.get(one.offset) == one.value]
                missing = [one.value for one in told if one not in there]
                if missing and (there or attempt.outcome == COMMITTED):
                    raise self.violated(
                        f"{attempt.name} ({attempt.outcome}): {[one.value for one in there]} are committed, {missing} "
                        f"are not"
                    )
                if there and attempt.commit_asked_ms is None:
                    raise self.violated(f"{attempt.name} is committed, and nobody asked for that")
        for reader in work.readers:
            if reader.is_committed:
                seen = {one.offset for one in reader.seen}
                missed = [one for one in finals[reader.topic, reader.index].committed if one not in seen]
                if missed:
                    raise self.violated(
                        f"{reader.name} was not shown what is committed at {reader.topic}-{reader.index} {missed[:5]}"
                    )


class ZombiesFenced(WorkChecker):
    """A producer is not heard any more once another one was given its transactional id."""

    def look(self, work: Work) -> None:
        for identity in work.identities.values():
            if identity.zombie_answers:
                raise self.violated(identity.zombie_answers[0])


class ExactlyOnceTransform(WorkChecker):
    """Every record that was read and transformed is in the output once, however often that was begun anew."""

    def look(self, work: Work) -> None:
        for one in work.transactors:
            if not one.shape.transforms or not one.shape.is_first:
                continue
            index = one.shape.partition
            wanted = [f"{offset}:{value}" for offset, value in self.final(LEDGER, index).committed.items()]
            found = list(self.final(COPY, index).committed.values())
            twice = sorted({value for value in found if found.count(value) > 1})
            if twice:
                raise self.violated(f"{one.name} wrote {twice[:3]} more than once to {COPY}-{index}")
            if set(wanted) != set(found):
                missing = sorted(set(wanted) - set(found))
                raise self.violated(
                    f"{COPY}-{index} lacks {missing[:3]}, or has {sorted(set(found) - set(wanted))[:3]}"
                )


class LastStableOffsetWaits(Checker):
    """A leader's last stable offset never passes the first record of a transaction that is open there."""

    def replica_changed(self, process: Process, partition: Partition) -> None:
        if self.history.work is None or partition.topic not in WRITTEN or partition.role is not Role.LEADER:
            return
        stable = partition.last_stable_offset
        for producer in partition.log.producers.producers.values():
            first = producer.transaction_first_offset
            if 0 <= first < stable:
                raise self.violated(
                    f"{partition}: leader {process.host.name} takes everything before {stable} for stable, and a "
                    f"transaction of producer {producer.producer_id} is open from {first} on"
                )


class MarkersFollowDecisions(Checker):
    """No marker is committed before its transaction's decision is: a coordinator that comes after must know of it."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._places = Lives()
        self._epochs: dict[tuple[int, bool], int] = {}
        """The highest epoch of those."""

    def replica_changed(self, process: Process, partition: Partition) -> None:
        if self.history.work is None:
            return
        if partition.topic == TRANSACTIONS:
            if partition.role is Role.LEADER:
                for batch in self._new_batches(process, partition, partition.log):
                    self._note(batch)
            elif partition.role is Role.OFFLINE:
                self._note_last_words(process, partition)
        elif partition.topic in WRITTEN and partition.role is Role.LEADER:
            for batch in self._new_batches(process, partition, partition.log):
                if batch.is_control:
                    self._look(process, partition, batch)

    def ended(self, process: Process) -> None:
        if self.history.work is None:
            return
        for partition in process.node.replicas.partitions.values():
            if partition.topic == TRANSACTIONS and partition.role is not Role.FOLLOWER:
                self._note_last_words(process, partition)

    def _note_last_words(self, process: Process, partition: Partition) -> None:
        """What a leader committed in the very step that took its directory, or all of it: markers may have been sent
        in that step, and its followers have the decision.
        """
        cluster = self.history.cluster
        for node_id in cluster.living():
            copy = cluster.process(node_id).node.replicas.partitions.get((partition.topic, partition.index))
            if copy is None or (node_id, partition.topic, partition.index) in self.history.rotten:
                continue
            if copy.role is Role.OFFLINE or copy.log.log_end_offset < partition.high_watermark:
                continue
            with suppress(StorageError):
                for batch in self._new_batches(process, partition, copy.log):
                    self._note(batch)
                return

    def _new_batches(self, process: Process, partition: Partition, log: Log) -> list[BatchHeader]:
        """What was committed since it was last looked at, as this log has it."""
        places = self._places.of(process)
        start = max(places.get(partition, 0), log.log_start_offset)
        batches: list[BatchHeader] = []
        while start < partition.high_watermark:
            found = log.read(start, 1 << 20, up_to_offset=partition.high_watermark)
            read = [one for part in found.parts for one in iterate_batches(part.read())]
            if (process.host.name, partition.topic, partition.index) in self.history.rotten:
                read = [whole for one in read if (whole := self._whole_batch(partition, one)) is not None]
            batches += [one for one in read if one.last_offset >= start]
            if found.next_offset <= start:
                break
            start = found.next_offset
        places[partition] = start
        return batches

    def _whole_batch(self, partition: Partition, batch: BatchHeader) -> BatchHeader | None:
        """A batch that rot may have hit, as a replica that it has not hit has it; None where it is gone there."""
        if batch.crc_matches():
            return batch
        cluster = self.history.cluster
        for node_id in cluster.living():
            copy = cluster.process(node_id).node.replicas.partitions.get((partition.topic, partition.index))
            if copy is None or (node_id, partition.topic, partition.index) in self.history.rotten:
                continue
            if copy.log.log_start_offset <= batch.base_offset < copy.log.log_end_offset:
                found = copy.log.read(batch.base_offset, 1, up_to_offset=copy.log.log_end_offset, at_least_one=True)
                whole = next((one for part in found.parts for one in iterate_batches(part.read())), None)
                if whole is not None and whole.base_offset == batch.base_offset:
                    return whole
        return None

    def _note(self, batch: BatchHeader) -> None:
        for record in iterate_records(batch):
            if record.key is None or record.value is None:
                continue
            try:
                decoded = decode_transaction_record(record.key, record.value)
            except DecodeError:
                continue
            if decoded is None:
                continue
            known = records.from_value(decoded[0].transactional_id, decoded[1])
            if known.state in PREPARED:
                key = (known.producer_id, known.is_commit)
                self._epochs[key] = max(known.producer_epoch, self._epochs.get(key, -1))

    def _is_decided(self, batch: BatchHeader, is_commit: bool) -> bool:
        return self._epochs.get((batch.producer_id, is_commit), -1) >= batch.producer_epoch

    def _read_decisions(self) -> None:
        cluster = self.history.cluster
        for node_id in cluster.living():
            process = cluster.process(node_id)
            for partition in process.node.replicas.partitions.values():
                if partition.topic == TRANSACTIONS and partition.role is Role.LEADER:
                    for batch in self._new_batches(process, partition, partition.log):
                        self._note(batch)

    def _look(self, process: Process, partition: Partition, batch: BatchHeader) -> None:
        kind = control_type(next(iter(iterate_records(batch))).key)
        if kind not in (ControlType.COMMIT, ControlType.ABORT):
            return
        is_commit = kind == ControlType.COMMIT
        if not self._is_decided(batch, is_commit):
            self._read_decisions()  # of the very step that is looked at
        if not self._is_decided(batch, is_commit):
            raise self.violated(
                f"{partition} of leader {process.host.name} has committed a marker at {batch.base_offset} "
                f"({'commit' if is_commit else 'abort'}, producer {batch.producer_id} epoch {batch.producer_epoch}) "
                f"before the decision was committed"
            )
