"""A log against a list of batches: whatever is done to it, in whatever order, it holds what the list holds."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.log.support import DIRECTORY, NOW, batch, batches_in, batches_of, flush, open_log, produced
from tidelog.log import Log
from tidelog.outbox import Chance
from tidelog.sim.disk import PowerCut, SimulatedDisk
from tidelog.wire.batch import BatchHeader, iterate_records


class Stored:
    """One batch of the model."""

    def __init__(self, base_offset: int, values: list[bytes | None], epoch: int) -> None:
        self.base_offset = base_offset
        self.values = values
        self.epoch = epoch

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.values)

    @property
    def identity(self) -> tuple[int, int, bytes | None]:
        return (self.base_offset, self.epoch, self.values[0])


def identity(header: BatchHeader) -> tuple[int, int, bytes | None]:
    return (header.base_offset, header.partition_leader_epoch, next(iterate_records(header)).value)


class LogMachine(RuleBasedStateMachine):
    """Appends, reads, cuts, rolls, retention, flushes, stops of every kind."""

    log: Log

    @initialize(
        segment_bytes=st.sampled_from([300, 700, 5_000]),
        index_interval_bytes=st.sampled_from([0, 100, 4_096]),
        segment_index_bytes=st.sampled_from([48, 10_000]),
    )
    def start(self, **settings: int) -> None:
        self.settings = settings
        self.disk = SimulatedDisk()
        self.log = self.open(clean=True)
        self.model: list[Stored] = []
        self.ever: set[tuple[int, int, bytes | None]] = set()
        self.start_offset = self.end_offset = self.epoch = self.number = 0
        self.promised = 0
        """As the recovery point checkpoint would have it: what a finished flush covered and no cut took back."""
        self.sequence = 0

    def open(self, *, clean: bool) -> Log:
        point = 0 if not hasattr(self, "promised") else self.promised
        start = 0 if not hasattr(self, "start_offset") else self.start_offset
        return open_log(self.disk, clean=clean, recovery_point=point, start=start, **self.settings)

    # --- writing ---

    @rule(
        count=st.integers(1, 5),
        compression=st.sampled_from([0, 0, 4]),
        is_idempotent=st.booleans(),
        later=st.integers(-3, 3),
    )
    def append(self, count: int, compression: int, is_idempotent: bool, later: int) -> None:
        self.number += 1
        values: list[bytes | None] = [b"%d-%d" % (self.number, index) for index in range(count)]
        how: dict[str, Any] = {"timestamp": NOW + later, "compression": compression}
        if is_idempotent:
            data = batch(values, producer_id=1, producer_epoch=0, base_sequence=self.sequence, **how)
            self.sequence += count
        else:
            data = batch(values, **how)
        appended = self.log.append_as_leader(data, self.epoch, NOW)
        assert appended.first_offset == self.end_offset
        self.model.append(Stored(self.end_offset, values, self.epoch))
        self.ever.add(self.model[-1].identity)
        self.end_offset += count

    @rule(count=st.integers(2, 12))
    def append_as_follower(self, count: int) -> None:
        data = b""
        for _ in range(count):
            self.number += 1
            stored = Stored(self.end_offset, [b"f%d" % self.number], self.epoch)
            sent = batch(stored.values, partition_leader_epoch=self.epoch)
            sent[:8] = stored.base_offset.to_bytes(8, "big")
            data += bytes(sent)
            self.model.append(stored)
            self.ever.add(stored.identity)
            self.end_offset += 1
        self.log.append_as_follower(memoryview(data), NOW)

    @rule()
    def repeat(self) -> None:
        """The last idempotent batch comes again."""
        known = self.log.producers.producers.get(1)
        if known is not None and known.batches:
            last = known.batches[-1]
            count = last.last_offset - last.first_offset + 1
            appended = self.log.append_as_leader(produced(1, last.first_sequence, count=count), self.epoch, NOW)
            assert appended.duplicate
            assert (appended.first_offset, appended.last_offset) == (last.first_offset, last.last_offset)

    @rule()
    def next_epoch(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW)

    # --- cutting ---

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        offset = self.start_offset + int(share * (self.end_offset - self.start_offset))
        kept = [stored for stored in self.model if stored.next_offset <= offset]
        end = self.log.truncate_to(offset, NOW)
        if offset < self.end_offset:
            assert end == (kept[-1].next_offset if kept else min(end, offset))
            self.model = kept
            self.end_offset = end
            self.start_offset = min(self.start_offset, end)
            self.promised = min(self.promised, end)
            self.epoch += 1
        self.resume_sequence()

    @rule(further=st.integers(0, 3))
    def start_anew(self, further: int) -> None:
        """What a follower does whose leader has deleted up to beyond its end."""
        self.start_offset = self.end_offset = self.end_offset + further
        self.log.truncate_fully_and_start_at(self.end_offset, NOW)
        self.model = []
        self.promised = 0
        self.epoch += 1
        self.resume_sequence()

    @rule(share=st.floats(0, 1))
    def raise_log_start(self, share: float) -> None:
        self.start_offset += int(share * (self.end_offset - self.start_offset))
        self.log.raise_log_start(self.start_offset)

    @rule()
    def delete_old_segments(self) -> None:
        for path in self.log.delete_old_segments(NOW, self.end_offset):
            self.disk.delete(path)

    # --- stopping ---

    @rule()
    def flush(self) -> None:
        self.promised = flush(self.log)
        assert self.promised == self.end_offset

    @rule()
    def restart_cleanly(self) -> None:
        self.log.close()
        self.flush()
        self.disk.kill()
        self.log = self.open(clean=True)
        assert self.log.recovered is None
        self.resume_sequence()

    @rule()
    def kill(self) -> None:
        self.disk.kill()
        self.log = self.open(clean=False)
        self.resume_sequence()

    @rule(seed=st.integers(0, 1 << 30), writes=st.integers(1, 12), count=st.integers(1, 8))
    def lose_power_in_the_middle(self, seed: int, writes: int, count: int) -> None:
        """While batches are appended, which may roll."""
        self.disk.cut_power_at_write = self.disk.writes + writes
        with suppress(PowerCut):
            for _ in range(count):
                self.number += 1
                self.ever.add((self.log.log_end_offset, self.epoch, b"%d" % self.number))
                self.log.append_as_leader(batch([b"%d" % self.number]), self.epoch, NOW)
        self.lose_power(seed)

    @precondition(lambda self: self.end_offset)
    @rule(seed=st.integers(0, 1 << 30))
    def lose_power(self, seed: int) -> None:
        """The model becomes what is left, which must be what was promised and nothing that never was."""
        self.disk.power_loss(Chance(seed))
        self.log = self.open(clean=False)
        assert self.log.log_end_offset >= self.promised
        before = {stored.base_offset: stored.identity for stored in self.model if stored.next_offset <= self.promised}
        self.model = []
        for header in batches_in(self.log):
            assert header.crc_matches()
            assert identity(header) in self.ever
            assert before.get(header.base_offset, identity(header)) == identity(header)
            values = [record.value for record in iterate_records(header)]
            self.model.append(Stored(header.base_offset, values, header.partition_leader_epoch))
        self.end_offset = self.log.log_end_offset
        self.epoch += 1
        self.resume_sequence()

    def resume_sequence(self) -> None:
        self.promised = min(self.promised, self.log.recovery_point)
        known = self.log.producers.producers.get(1)
        self.sequence = 0 if known is None else known.last_sequence + 1

    # --- reading ---

    @rule(share=st.floats(0, 1), max_bytes=st.integers(0, 1_500), bound=st.integers(0, 12), wanted=st.booleans())
    def read(self, share: float, max_bytes: int, bound: int, wanted: bool) -> None:
        offset = self.start_offset + int(share * (self.end_offset - self.start_offset))
        limit = max(0, self.end_offset - bound)
        found = self.log.read(offset, max_bytes, up_to_offset=limit, at_least_one=wanted)
        headers = batches_of(found)
        wanted_batches = [stored for stored in self.model if offset < stored.next_offset <= limit]
        assert [identity(header) for header in headers] == [
            stored.identity for stored in wanted_batches[: len(headers)]
        ]
        assert found.size <= max_bytes or (wanted and len(headers) == 1)
        if wanted and wanted_batches and offset < limit:
            assert headers
        if headers:
            assert found.next_offset == headers[-1].next_offset
            assert found.first_offset == headers[0].base_offset

    @rule(later=st.integers(-4, 4))
    def find_time(self, later: int) -> None:
        found = self.log.offset_for_timestamp(NOW + later, self.end_offset)
        at = [
            record.offset
            for header in batches_in(self.log)
            for record in iterate_records(header)
            if record.timestamp >= NOW + later and record.offset >= self.start_offset
        ]
        assert (found.offset if found else None) == (at[0] if at else None)

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        if not hasattr(self, "model"):
            return
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start_offset, self.end_offset)
        assert [identity(header) for header in batches_in(log)] == [
            stored.identity for stored in self.model if stored.next_offset > self.start_offset
        ]
        assert log.size_bytes == sum(
            self.disk.size(f"{DIRECTORY}/{name}") for name in self.disk.list(DIRECTORY) if name.endswith(".log")
        )
        for stored in self.model:
            if stored.base_offset >= self.start_offset:
                assert log.epoch_history.epoch_for_offset(stored.base_offset) == stored.epoch


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
