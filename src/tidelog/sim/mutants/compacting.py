"""Bugs of compaction, found where somebody writes a compacted topic by key."""

from __future__ import annotations

from typing import Any

from tidelog.log import clean_job, clean_measure
from tidelog.log.clean_keys import Kept
from tidelog.log.log import Log
from tidelog.replica import cleaning
from tidelog.sim.mutants.base import Hit, Mutant, Original
from tidelog.sim.mutants.coordination_workloads import impatient_writer, laggards, lonely_leaders


def _last_value_dropped(original: Original, hit: Hit) -> Original:
    def kept_records(
        data: bytes, position: int, end: int, count: int, base_offset: int, latest: dict[bytes, int], keeps: bool
    ) -> Kept:
        right: Kept = original(data, position, end, count, base_offset, latest, keeps)
        later = {key: offset + 1 for key, offset in latest.items()}
        wrong: Kept = original(data, position, end, count, base_offset, later, keeps)
        if wrong.record_count < right.record_count:
            hit()
        return wrong

    return kept_records


def _tombstone_too_early(original: Original, hit: Hit) -> Original:
    def kept_records(*arguments: Any) -> Kept:
        right: Kept = original(*arguments)
        if right.has_tombstone:
            hit()
        wrong: Kept = original(*arguments[:-1], False)
        return wrong

    return kept_records


def _uncommitted_cleaned(original: Original, hit: Hit) -> Original:
    def measure(log: Log, cleaned_to: int | None, last_stable_offset: int, now_ms: int) -> Any:
        right = original(log, cleaned_to, last_stable_offset, now_ms)
        wrong = original(log, cleaned_to, log.log_end_offset, now_ms)
        if wrong.end_offset > right.end_offset:
            hit()
        return wrong

    return measure


def _cut_log_brought_back(original: Original, hit: Hit) -> Original:
    def is_still_true(self: Any) -> bool:
        right = bool(original(self))
        self.cut_count = self.log.cut_count
        wrong = bool(original(self))
        if wrong and not right:
            hit()
        return wrong

    return is_still_true


MUTANTS = (
    Mutant(
        "last-value-dropped",
        "a compaction drops the last value of a key",
        [(clean_job, "kept_records", _last_value_dropped)],
        laggards,
    ),
    Mutant(
        "tombstone-too-early",
        "a compaction drops tombstones before those who lag behind have seen them",
        [(clean_job, "kept_records", _tombstone_too_early)],
        laggards,
    ),
    Mutant(
        "uncommitted-cleaned",
        "a compaction lets records that are not committed yet supersede those that are",
        [(clean_measure, "measure", _uncommitted_cleaned)],
        impatient_writer,
    ),
    Mutant(
        "cut-log-brought-back",
        "a compaction's result is installed although the log was cut since it was read",
        [(cleaning._Cleaning, "is_still_true", _cut_log_brought_back)],
        lonely_leaders,
    ),
)
