"""The judge finds every kind of broken promise: a verifier that sees nothing would let everything pass."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from tidelog.errors import CorruptionError
from tidelog.ledger import ACKNOWLEDGED, FAILED, UNKNOWN, Entry
from tidelog.verify.files import stored_batches
from tidelog.verify.gaps import Gap, Gaps
from tidelog.verify.judge import Seen, StoredBatch, judge_ledger, judge_replicas, judge_seen, number_of, value_of
from tidelog.wire.batch import Record, build_batch


def entry(value: str, offset: int, outcome: str = ACKNOWLEDGED, error: str = "") -> Entry:
    producer, _, sequence = value.partition(":")
    return Entry(producer, int(sequence), value, "t", 0, offset, outcome, error, 0)


def log(*values: str) -> array[int]:
    return array("q", [number_of(value) for value in values])


def kinds(entries: list[Entry], *values: str) -> list[str]:
    return [violation.kind for violation in judge_ledger(0, entries, log(*values))]


GOOD = [entry("1:0", 0), entry("2:0", 1), entry("1:2", 2)]


def test_a_log_that_is_what_was_promised_passes() -> None:
    assert kinds(GOOD, "1:0", "2:0", "1:2") == []


def test_values_and_their_numbers_are_one_to_one() -> None:
    for value in ("1:0", "4:123456789", "255:1"):
        assert value_of(number_of(value)) == value


def test_a_lost_record_is_found() -> None:
    assert kinds(GOOD, "1:0", "2:0") == ["lost"]


def test_a_record_lost_in_the_middle_is_found_and_so_is_what_it_moved() -> None:
    assert sorted(set(kinds(GOOD, "1:0", "1:2"))) == ["lost", "moved"]


def test_a_duplicated_record_is_found() -> None:
    assert kinds(GOOD, "1:0", "2:0", "1:2", "1:2") == ["duplicated"]


def test_reordered_records_are_found() -> None:
    entries = [entry("1:0", 1), entry("1:1", 0)]
    assert kinds(entries, "1:1", "1:0") == ["reordered"]


def test_producers_are_not_ordered_among_each_other() -> None:
    entries = [entry("1:7", 0), entry("2:0", 1), entry("1:8", 2)]
    assert kinds(entries, "1:7", "2:0", "1:8") == []


def test_a_record_at_another_offset_than_told_is_found() -> None:
    assert kinds([entry("1:0", 1), entry("2:0", 0)], "1:0", "2:0") == ["moved", "moved"]


def test_a_record_nobody_sent_is_found() -> None:
    assert kinds(GOOD, "1:0", "2:0", "1:2", "9:9") == ["foreign"]


@pytest.mark.parametrize("outcome", [FAILED, UNKNOWN])
def test_a_record_without_an_acknowledgement_may_be_there_or_not_but_is_counted(outcome: str) -> None:
    entries = [entry("1:0", 0), entry("1:1", -1, outcome, "_MSG_TIMED_OUT")]
    assert kinds(entries, "1:0") == ["failed"]
    assert kinds(entries, "1:0", "1:1") == ["failed"]


def seen_kinds(seen: array[int], final: array[int], *complaints: str) -> list[str]:
    return [violation.kind for violation in judge_seen(0, Seen("consumer 1", seen, complaints), final)]


def test_a_consumer_that_saw_the_log_passes() -> None:
    assert seen_kinds(log("1:0", "1:1"), log("1:0", "1:1")) == []


def test_what_a_consumer_saw_and_is_gone_is_found() -> None:
    assert seen_kinds(log("1:0", "1:1"), log("1:0")) == ["vanished"]


def test_two_values_at_one_offset_are_found() -> None:
    assert seen_kinds(log("1:0", "1:1"), log("1:0", "2:0")) == ["conflicting"]


def test_a_consumer_that_never_got_all_is_found() -> None:
    assert seen_kinds(log("1:0"), log("1:0", "1:1")) == ["behind"]


def test_what_a_consumer_complained_of_is_told() -> None:
    assert seen_kinds(log("1:0"), log("1:0"), "offsets 0 to 3 were left out") == ["skipped"]


ONE, TWO = StoredBatch(0, 4, b"one"), StoredBatch(5, 9, b"two")


def replica_texts(replicas: dict[int, list[StoredBatch]], high_watermark: int = 10) -> list[str]:
    return [violation.text for violation in judge_replicas(0, replicas, high_watermark)]


def test_equal_replicas_pass_whatever_is_above_the_watermark() -> None:
    assert replica_texts({1: [ONE, TWO], 2: [ONE, TWO]}) == []
    assert replica_texts({1: [ONE, TWO], 2: [ONE, StoredBatch(5, 9, b"other")]}, 5) == []


def test_replicas_that_differ_or_lack_a_committed_batch_are_found() -> None:
    assert replica_texts({1: [ONE, TWO], 2: [ONE, StoredBatch(5, 9, b"other")]}) == ["nodes 1 and 2 differ at offset 5"]
    assert replica_texts({1: [ONE, TWO], 2: [ONE]}) == ["node 2 has records up to 5, the high watermark is 10"]


def test_segment_files_are_read_batch_by_batch_and_rot_is_found(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    first = build_batch([Record(0, 0, None, b"a", ()), Record(1, 0, None, b"b", ())])
    second = bytearray(build_batch([Record(0, 0, None, b"c", ())]))
    second[:8] = (2).to_bytes(8, "big")
    (directory / "00000000000000000000.log").write_bytes(first)
    (directory / "00000000000000000002.log").write_bytes(second)
    batches = stored_batches(str(tmp_path), "t", 0)
    assert [(batch.base_offset, batch.last_offset) for batch in batches] == [(0, 1), (2, 2)]
    second[-1] ^= 1
    (directory / "00000000000000000002.log").write_bytes(second)
    with pytest.raises(CorruptionError, match="checksum"):
        stored_batches(str(tmp_path), "t", 0)


def test_a_gap_belongs_to_the_fault_that_came_while_it_lasted() -> None:
    gaps = Gaps()
    for now_ms in (0, 40, 1_500, 1_600, 5_000, 9_000):
        gaps.acknowledged(0, now_ms)
    gaps.acknowledged(1, 0)
    gaps.acknowledged(1, 9_000)
    assert Gaps().longest_within([10], 20) == [None]
    gaps.acknowledged(2, 4_100)  # the last answer that was on its way when the third fault came
    gaps.acknowledged(2, 9_000)
    found = gaps.longest_within([100, 2_000, 4_000, 8_000], 9_000)
    assert found == [Gap(1, 0, 9_000), Gap(0, 1_600, 5_000), Gap(2, 4_100, 9_000), Gap(0, 5_000, 9_000)]
