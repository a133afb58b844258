"""Transactions as a compaction meets them, batch by batch (KIP-98, KIP-534).

The records of an aborted one go. A marker stays until no record of its transaction is left, and then until its delete
horizon: a reader that was in the middle of the transaction must still find it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.log.txn_index import AbortedTransaction
from tidelog.wire.batch import BatchHeader, ControlType, control_type, iterate_records


class Transactions:
    """Which transaction of each producer is under way at the batch that was read last."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        """Aborted ones that did not begin yet, the next one last."""
        self._aborted: dict[int, AbortedTransaction] = {}
        """By producer: those under way."""
        self._with_records: set[int] = set()
        """Producers whose transaction under way had records that were read, whatever becomes of them."""
        self.still_aborted: list[AbortedTransaction] = []
        """Those whose marker was read and must stay: readers still have to skip their records."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the records of this batch were never committed."""
        if self._to_come:
            self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        self._with_records.add(header.producer_id)
        return header.producer_id in self._aborted

    def is_marker_free(self, header: BatchHeader) -> bool:
        """Whether nothing is left of the transaction that this control batch ends."""
        if self._to_come:
            self._begin_up_to(header.last_offset)
        if not header.record_count:
            return True
        kind = control_type(next(iter(iterate_records(header))).key)
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return False
        aborted = self._aborted.pop(header.producer_id, None) if kind == ControlType.ABORT else None
        if header.producer_id not in self._with_records:
            return True
        self._with_records.discard(header.producer_id)
        if aborted is not None:
            self.still_aborted.append(aborted)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._to_come and self._to_come[-1].first_offset <= offset:
            aborted = self._to_come.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)
