"""Compacted topics: what is left of each key, and that a compaction brings nothing back that was cut."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tidelog.sim.checkers import compacted
from tidelog.sim.checkers.base import Checker, History
from tidelog.sim.checkers.transactions import WorkChecker
from tidelog.sim.work import Work
from tidelog.sim.work_shape import STATE
from tidelog.wire.batch import BatchHeader, iterate_batches


class LastValuesStay(WorkChecker):
    """Of each key of a compacted topic the last acknowledged value stays, and all replicas agree.

    Where unclean elections are allowed a replica may have dropped a value for one that was cut from its log later:
    there no offset may say two things, and that is all.
    """

    def look(self, work: Work) -> None:
        if work.writer is None:
            return
        whole = self.history.whole(STATE, 0)
        logs = {node_id: self.history.cluster.log_bytes(node_id, STATE, 0) for node_id in whole}
        complaint = compacted.contradiction(logs)
        if not complaint and not self.history.may_lose(STATE):
            complaint = compacted.wrong_value(logs[whole[0]], work.writer.allowed()) or compacted.disagreement(logs)
        if complaint:
            raise self.violated(complaint)


class CleanedLogsStayInOrder(Checker):
    """A log that was just compacted has its offsets in order: what was cut meanwhile did not come back."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._looked_at = 0

    def told(self) -> None:
        told = self.history.cluster.world.told
        news, self._looked_at = told[self._looked_at :], len(told)
        for _, node_id, one in news:
            if self.history.work is not None and one.kind == "log-cleaned" and one.fields.get("topic") == STATE:
                self._look(node_id)

    def at_end(self) -> None:
        if self.history.work is not None and self.history.work.writer is not None:
            for node_id in self.history.cluster.brokers:
                self._look(node_id)

    def _look(self, node_id: int) -> None:
        data = self.history.cluster.log_bytes(node_id, STATE, 0)
        batches: Iterable[BatchHeader] = iterate_batches(data, allow_partial=True)
        if (node_id, STATE, 0) in self.history.rotten:  # where a damaged batch ends, nobody can tell
            batches = filter(BatchHeader.crc_matches, batches)
        for before, after in pairwise(batches):
            if after.base_offset <= before.last_offset:
                raise self.violated(
                    f"{STATE}-0 on node {node_id}: offset {after.base_offset} comes after {before.last_offset}"
                )
