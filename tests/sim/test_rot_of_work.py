"""Rot in the topics of coordinators, transactions, groups and keys: played, met, and excused where it must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tidelog.sim import mutants, shape
from tidelog.sim.checkers import ALL, History
from tidelog.sim.disk_faults import COVERED_FROM
from tidelog.sim.faults import Faults
from tidelog.sim.mutants.coordination_workloads import rotten_coordinators, rotten_keys
from tidelog.sim.reading import whole_part_of
from tidelog.sim.shape import ROT_OF_WORK, Fault, draw
from tidelog.sim.swarm import _Run
from tidelog.sim.work_shape import LEDGER, OFFSETS, STATE, TRANSACTIONS
from tidelog.wire.batch import Record, build_batch


def played(plan: shape.Shape) -> _Run:
    run = _Run(plan, ALL)
    assert not run.play().finding
    return run


def rotten_topics(run: _Run) -> set[str]:
    return {topic for _, topic, _ in run._faults.disks.rotten}


def copied_again(run: _Run) -> set[tuple[str, int]]:
    """Partitions of which a replica was found damaged and copied again."""
    told = [one.fields for _, _, one in run._world.told if one.kind == "damaged-replica-discarded"]
    return {(str(one["topic"]), int(str(one["partition"]))) for one in told}


def test_seeds_with_groups_and_transactions_have_some_of_it_and_the_rest_of_them_is_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = {seed: draw(seed) for seed in range(100)}
    monkeypatch.setattr(shape, "draw_rot", lambda *_: ())
    kept = {seed for seed, one in drawn.items() if any(fault.kind == ROT_OF_WORK for fault in one.faults)}
    assert 5 < len(kept) < 25
    for seed, one in drawn.items():
        others = tuple(fault for fault in one.faults if fault.kind != ROT_OF_WORK)
        assert draw(seed) == replace(one, faults=others)
        assert one.work is not None or seed not in kept


def test_coordinators_meet_rot_and_another_replica_takes_over() -> None:
    run = played(rotten_coordinators(300_002))
    assert rotten_topics(run) >= {OFFSETS, TRANSACTIONS, LEDGER}
    assert {topic for topic, _ in copied_again(run)} & {OFFSETS, TRANSACTIONS}
    for topic, index in copied_again(run):  # what was copied again is looked at like what never rotted
        assert len(run._history.whole(topic, index)) == 3


def test_a_compaction_meets_rot() -> None:
    run = played(rotten_keys(300_000))
    assert rotten_topics(run) == {STATE}
    assert copied_again(run) == {(STATE, 0)}
    assert run._history.whole(STATE, 0) == [1, 2, 3]


def test_only_as_many_replicas_of_a_partition_rot_as_the_others_can_bear() -> None:
    plan = rotten_coordinators(300_000)
    run = _Run(replace(plan, faults=()), ALL)
    run._cluster.start_all()
    run._make_topics()
    run._start_clients()
    run._world.run_for(15_000)
    hit = [_rot(run._faults, node_id, amount) for node_id in (1, 2, 3) for amount in range(3)]
    # Node 1 has the only copy of a plain topic; of the others one may rot, in as many partitions as there are.
    assert hit == [False, False, False, True, True, True, False, False, False]
    assert {node_id for node_id, _, _ in run._faults.disks.rotten} == {2}
    assert len(run._faults.disks.rotten) == 3


def _rot(faults: Faults, node_id: int, amount: int) -> bool:
    before = faults.injected
    faults._begin(Fault(0, ROT_OF_WORK, (node_id,), 0, (), amount))
    return faults.injected > before


def test_a_rotten_replica_counts_as_whole_when_it_is_in_sync_and_its_checksums_are_right() -> None:
    run = played(rotten_keys(300_001))
    history: History = run._history
    disk = run._world.hosts[3].disks[0]
    history.rotten = {(3, STATE, 0)}
    assert history.whole(STATE, 0) == [1, 2, 3]
    path, _ = next(one for one in disk.flushed_files(f"{STATE}-0") if one[0].endswith(".log") and one[1])
    disk.flip_bit(path, COVERED_FROM)
    assert history.whole(STATE, 0) == [1, 2]


def test_clients_take_what_is_whole_before_a_damaged_batch() -> None:
    batches: Sequence[bytes] = [bytes(build_batch([Record(offset, 0, b"k", b"value")])) for offset in range(3)]
    data = bytearray(b"".join(batches))
    assert whole_part_of(bytes(data)) == data
    data[len(batches[0]) + 65] ^= 1
    assert whole_part_of(bytes(data)) == batches[0]


@pytest.mark.parametrize(("name", "first"), [("rot-ends-the-load", 300_002), ("rot-compacted-over", 300_001)])
def test_bugs_that_are_put_in_are_found(name: str, first: int) -> None:
    found = mutants.hunt(mutants.ALL[name], range(first, first + 3))
    assert found.is_proven, found.complaint
