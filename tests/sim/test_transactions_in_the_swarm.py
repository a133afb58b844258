"""Transactions in simulated histories: they are drawn, the clients do what they should, and bugs are found."""

from __future__ import annotations

import pytest

from tidelog.sim import mutants, swarm
from tidelog.sim.checkers import ALL
from tidelog.sim.checkers.transactions import final_of
from tidelog.sim.mutants.coordination_workloads import rivals
from tidelog.sim.shape import draw
from tidelog.sim.swarm import _Run
from tidelog.wire.batch import Record, build_batch, build_end_marker


def test_one_seed_of_three_has_groups_or_transactions() -> None:
    shapes = [draw(seed) for seed in range(600)]
    assert 150 <= sum(one.work is not None for one in shapes) <= 250
    assert all(one.work is None for one in shapes if one.is_beyond_budget)
    kinds = {(bool(one.work.members), len(one.work.transactors) > 1) for one in shapes if one.work is not None}
    assert kinds == {(True, True), (True, False), (False, True)}
    transactors = [one for shape in shapes if shape.work is not None for one in shape.work.transactors]
    assert len({(one.is_v2, one.transforms, one.has_rival) for one in transactors}) == 8


def test_a_seed_with_transactions_is_one_history() -> None:
    outcomes = [swarm.run(300_000, shape=rivals(300_000)) for _ in range(2)]
    assert outcomes[0].trace_hash == outcomes[1].trace_hash


def test_a_named_workload_is_clean_and_transactions_end_in_every_way() -> None:
    run = _Run(rivals(300_001), ALL)
    assert not run.play().finding
    assert run._work is not None
    attempts = [one for identity in run._work.identities.values() for one in identity.attempts]
    assert {one.outcome for one in attempts} >= {"committed", "aborted"}
    assert sum(len(one.seen) for one in run._work.readers if one.is_committed) > 20


@pytest.mark.parametrize("name", ["marker-before-decision", "stable-offset-is-watermark"])
def test_a_quick_bug_of_transactions_is_found(name: str) -> None:
    hunt = mutants.hunt(mutants.ALL[name], range(300_000, 300_006))
    assert hunt.is_proven, hunt.complaint


def test_a_decision_counts_that_was_committed_in_the_step_that_took_its_directory() -> None:
    """Seed 251024: the disk was full for the first marker, on the coordinator's own node; the others were written."""
    assert not swarm.run(251_024).finding


def test_what_is_committed_is_read_from_the_log_alone() -> None:
    def batch(offset: int, producer_id: int, value: bytes) -> bytes:
        return build_batch(
            [Record(offset, 0, None, value)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )

    def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
        return build_end_marker(
            commit=commit,
            coordinator_epoch=0,
            producer_id=producer_id,
            producer_epoch=0,
            timestamp=0,
            base_offset=offset,
        )

    log = batch(0, 1, b"kept") + batch(1, 2, b"dropped") + batch(2, 3, b"open")
    final = final_of(log + marker(3, 1, commit=True) + marker(4, 2, commit=False))
    assert final.committed == {0: "kept"}
    assert final.open_offsets == [2]
