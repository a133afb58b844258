"""Bugs in how rot is met, found where the topics of groups, transactions and keys rot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidelog.coordination.shard import Shard, ShardStatus
from tidelog.log import clean_job
from tidelog.sim.mutants.base import Hit, Mutant, Original
from tidelog.sim.mutants.coordination_workloads import rotten_coordinators, rotten_keys
from tidelog.wire.batch import BatchHeader
from tidelog.wire.batch_header import read_header
from tidelog.wire.crc import crc32c

CRC_AT, COVERED_FROM = 17, 21
"""In a batch: where its checksum is, and where that begins to look."""


def _loaded_short(original: Original, hit: Hit) -> Original:
    def load(self: Shard) -> None:
        replicas = self._replicas
        on_damage, damaged = replicas.on_damage, []
        replicas.on_damage = lambda _, reason: damaged.append(reason)
        try:
            original(self)
        finally:
            replicas.on_damage = on_damage
        if damaged:
            hit()
            self.status = ShardStatus.ACTIVE
            self.state.loaded()

    return load


def _compacted_over(original: Original, hit: Hit) -> Original:
    def whole_batches(*arguments: Any) -> Iterator[tuple[int, BatchHeader]]:
        for position, header in original(*arguments):
            if header.crc_matches():
                yield position, header
                continue
            hit()
            data = bytearray(header.data)
            data[CRC_AT:COVERED_FROM] = crc32c(data[COVERED_FROM:], 0).to_bytes(4, "big")
            yield position, read_header(bytes(data))

    return whole_batches


MUTANTS = (
    Mutant(
        "rot-ends-the-load",
        "a coordinator that meets rot in its log goes on with what it had read before it",
        [(Shard, "load", _loaded_short)],
        rotten_coordinators,
    ),
    Mutant(
        "rot-compacted-over",
        "a compaction takes what rot has made of a record, and gives it a checksum that is right",
        [(clean_job, "_whole_batches", _compacted_over)],
        rotten_keys,
    ),
)
