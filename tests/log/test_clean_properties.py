"""Any log, any cleaning, any number of them, stopped anywhere: whoever reads it all knows the same in the end."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.log.cleaning import (
    append_all,
    clean,
    committed_records,
    keyed,
    last_values,
    open_compacted,
    records_in,
)
from tests.log.support import DAY_MS, DIRECTORY, NOW, append, batches_in, flush, marker
from tidelog.errors import DecodeError
from tidelog.log import Log, names
from tidelog.log.clean_keys import kept_records, newest_offsets
from tidelog.outbox import Chance
from tidelog.sim.disk import PowerCut, SimulatedDisk
from tidelog.wire.batch import HEADER_SIZE, Record, build_batch

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"long" * 20, b""])
VALUES = st.one_of(st.none(), st.binary(max_size=40))
BATCHES = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6)


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """A life of a log: batches of all kinds, transactions, rolls, time, cleanings."""
    return draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("append"), BATCHES, st.integers(0, 4)),
                st.tuples(st.just("produce"), BATCHES, st.integers(1, 2)),
                st.tuples(st.just("transaction"), BATCHES, st.integers(3, 4)),
                st.tuples(st.just("end"), st.booleans(), st.integers(3, 4)),
                st.tuples(st.just("roll")),
                st.tuples(st.just("wait"), st.integers(1, DAY_MS)),
                st.tuples(st.just("clean"), st.sampled_from([1, 2, 5, 1000])),
                st.tuples(st.just("restart"), st.booleans()),
            ),
            max_size=40,
        )
    )


class _Life:
    """A log beside the list of all that was committed to it."""

    def __init__(self, **config: Any) -> None:
        self.disk = SimulatedDisk()
        self.config = config
        self.log = open_compacted(self.disk, **config)
        self.now_ms = NOW
        self.written: list[Record] = []
        """What was written and not aborted, at its offset."""
        self.open: dict[int, list[Record]] = {}
        self.sequences: dict[int, int] = {}
        self.cleaned_to = 0

    def append(self, pairs: list[tuple[bytes, bytes | None]], **how: Any) -> list[Record]:
        data = keyed(*pairs, timestamp=self.now_ms, **how)
        first = self.log.append_as_leader(data, 0, self.now_ms).first_offset
        return [Record(first + n, self.now_ms, key, value) for n, (key, value) in enumerate(pairs)]

    def play(self, what: str, *details: Any) -> None:
        if what == "append":
            self.written += self.append(details[0], compression=details[1])
        elif what in ("produce", "transaction"):
            producer, is_transactional = details[1], what == "transaction"
            sequence = self.sequences.get(producer, 0)
            written = self.append(
                details[0],
                producer_id=producer,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=is_transactional,
            )
            self.sequences[producer] = sequence + len(details[0])
            if is_transactional:
                self.open.setdefault(producer, []).extend(written)
            else:
                self.written += written
        elif what == "end" and details[1] in self.open:
            append(self.log, marker(details[1], commit=details[0]), is_internal=True)
            records = self.open.pop(details[1])
            if details[0]:
                self.written = sorted([*self.written, *records], key=lambda one: one.offset)
        elif what == "roll":
            self.log.roll(self.now_ms)
        elif what == "wait":
            self.now_ms += details[0]
        elif what == "clean":
            self.cleaned_to = clean(self.log, self.cleaned_to, now_ms=self.now_ms, max_keys=details[0]).clean_to
        elif what == "restart":
            self.restart(is_clean=details[0])

    def restart(self, *, is_clean: bool) -> None:
        if is_clean:
            self.log.close()
            flush(self.log)
        self.disk.kill()
        self.log = open_compacted(self.disk, clean=is_clean, **self.config)

    def check(self) -> None:
        log = self.log
        everything = records_in(log)
        originals = {record.offset: record for record in self.written}
        seen = [one for one in committed_records(log) if one.offset in originals]
        assert [one.offset for one in seen] == sorted({one.offset for one in seen})
        for record in seen:
            assert record == originals[record.offset], "what is there is what was written, where it was written"
        assert last_values(seen) == last_values(self.written)
        undecided = {one.offset for records in self.open.values() for one in records}
        assert undecided <= {one.offset for one in everything}, "an open transaction is not touched"
        for header in batches_in(log):
            assert header.crc_matches()
        for producer, sequence in self.sequences.items():
            known = log.producers.producers.get(producer)
            if known is not None:
                assert known.last_sequence == sequence - 1


@settings(max_examples=300, deadline=None)
@given(life=steps(), segment_bytes=st.sampled_from([900, 2_000, 10_000]), interval=st.sampled_from([0, 200, 4096]))
def test_any_cleaning_of_any_log_leaves_readers_with_the_same(
    life: list[tuple[Any, ...]], segment_bytes: int, interval: int
) -> None:
    state = _Life(segment_bytes=segment_bytes, index_interval_bytes=interval, delete_retention_ms=1_000)
    for step in [*life, ("roll",), ("clean", 1000), ("restart", False)]:
        state.play(*step)
        state.check()


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=120), count=st.integers(0, 10))
def test_garbage_is_refused_not_misread(data: bytes, count: int) -> None:
    """Whatever the bytes, either of the two errors that the job expects, or as many records as were asked for."""
    with suppress(DecodeError, IndexError):
        assert len(newest_offsets(data, 0, len(data), count, 0)) <= count
    with suppress(DecodeError, IndexError):
        assert kept_records(data, 0, len(data), count, 0, {}, True).record_count <= count


@settings(max_examples=200, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.one_of(st.none(), st.binary(max_size=200)), VALUES), min_size=1, max_size=300),
    latest=st.booleans(),
)
def test_keys_are_read_as_the_full_reader_reads_them(
    pairs: list[tuple[bytes | None, bytes | None]], latest: bool
) -> None:
    records = [Record(n, NOW + n * 7, key, value, [("h", b"x")] * (n % 3)) for n, (key, value) in enumerate(pairs)]
    data = build_batch(records)
    newest = newest_offsets(data, HEADER_SIZE, len(data), len(records), 0)
    expected = {key: n for n, (key, _) in enumerate(pairs) if key is not None}
    assert sorted(newest.values()) == sorted(expected.values())
    kept = kept_records(data, HEADER_SIZE, len(data), len(records), 0, newest, latest)
    stay = [
        record
        for record in records
        if record.key is not None and expected[record.key] == record.offset and (latest or record.value is not None)
    ]
    assert kept.record_count == len(stay)
    assert kept.has_tombstone == any(one.value is None for one in stay)
    assert sum(end - start for start, end in kept.pieces) == sum(
        len(build_batch([one], base_offset=0)) - HEADER_SIZE
        if one.offset == 0
        else len(build_batch([records[0], one])) - len(build_batch([records[0]]))
        for one in stay
    )
    if stay:
        assert kept.newest_delta == max(one.timestamp for one in stay) - NOW


# --- power loss at every write ---

CONFIG: dict[str, Any] = {"segment_bytes": 700, "index_interval_bytes": 100, "delete_retention_ms": 1_000}


def _write(disk: SimulatedDisk) -> Log:
    """A log with everything in it that a cleaning treats in its own way, flushed."""
    log = open_compacted(disk, **CONFIG)
    append_all(log, [(b"k%d" % (number % 6), b"%d" % number) for number in range(24)])
    for number in range(3):
        how = {"producer_id": 5 + number, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        append(log, keyed((b"t%d" % number, b"x"), (b"k0", b"t%d" % number), **how))
        append(log, marker(5 + number, commit=number != 1), is_internal=True)
    append_all(log, [(b"k1", None), (b"k2", b"z"), (b"k3", None)])
    log.roll(NOW)
    append_all(log, [(b"k4", b"active")])
    flush(log)
    return log


def _clean_twice(log: Log) -> None:
    first = clean(log, 0)
    append_all(log, [(b"k5", b"more"), (b"k1", b"again")])
    log.roll(NOW)
    flush(log)
    clean(log, first.clean_to, now_ms=NOW + 5_000)


def test_power_loss_at_every_write_of_a_cleaning() -> None:
    """Whatever the medium kept, whoever reads the log afterwards knows what was known before, and cleaning goes on."""
    whole = SimulatedDisk()
    log = _write(whole)
    begun, end = whole.writes, log.log_end_offset
    written = committed_records(log)
    written += [Record(end, NOW, b"k5", b"more"), Record(end + 1, NOW, b"k1", b"again")]
    _clean_twice(log)
    assert last_values(committed_records(log)) == last_values(written)
    total = whole.writes
    assert total - begun > 60
    chance = Chance(5)
    sizes = set()
    for number in range(begun + 1, total + 1):
        for _ in range(2):
            disk = SimulatedDisk()
            log = _write(disk)
            disk.cut_power_at_write = number
            with pytest.raises(PowerCut):
                _clean_twice(log)
            disk.power_loss(chance)
            again = open_compacted(disk, clean=False, recovery_point=end, **CONFIG)
            assert not [one for one in disk.list(DIRECTORY) if one.endswith((names.CLEANED_SUFFIX, names.SWAP_SUFFIX))]
            assert again.log_end_offset >= end
            expected = last_values([one for one in written if one.offset < again.log_end_offset])
            assert last_values(committed_records(again)) == expected
            assert all(header.crc_matches() for header in batches_in(again))
            sizes.add(again.size_bytes)
            again.roll(NOW)
            flush(again)
            clean(again, None, now_ms=NOW + 10_000)
            assert last_values(committed_records(again)) == expected
            again.close()
            flush(again)
            assert last_values(committed_records(open_compacted(disk, **CONFIG))) == expected
    assert len(sizes) > 3, "the cleaning was stopped at different places"
