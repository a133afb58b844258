"""A history with a finding becomes a smaller one with the same, and a few words play it again."""

from __future__ import annotations

import shlex

import pytest

from tidelog.cli import main
from tidelog.sim import mutants, swarm
from tidelog.sim.shape import Shape, draw
from tidelog.sim.shrink import Cuts, parse_without, parts_of, shrink

MUTANT = mutants.ALL["epoch-end-without-epoch"]
"""It needs a fault or two: a bug that is found without any would shrink to nothing."""


@pytest.fixture(scope="module")
def failing_seed() -> int:
    with MUTANT.put_in():
        for seed in range(100_000, 100_030):
            outcome = swarm.run(seed, shape=MUTANT.workload(seed))
            if outcome.finding and outcome.faults >= 3:
                return seed
    raise AssertionError("no seed finds the bug")


def test_a_finding_survives_with_fewer_faults_and_operations(
    failing_seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with MUTANT.put_in():
        found = shrink(failing_seed, MUTANT.workload, most_plays=24)
    assert found.plays <= 24
    assert found.least.checker == found.whole.checker
    assert found.least.faults < found.whole.faults
    assert found.least.operations <= found.whole.operations / 2
    shape = MUTANT.workload(failing_seed)
    assert len(parts_of(found.cuts.applied_to(shape))) <= len(parts_of(shape)) / 2

    command = found.command(MUTANT.name)
    assert main(shlex.split(command)[1:]) == 1
    out = capsys.readouterr().out
    assert found.least.finding in out
    assert f"(trace {found.least.trace_hash})" in out


def test_the_same_seed_shrinks_to_the_same(failing_seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sim", "shrink", str(failing_seed), "--mutant", MUTANT.name, "--most-plays", "10"]
    assert [main(words), main(words)] == [1, 1]
    lines = capsys.readouterr().out.splitlines()
    first, second = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    assert first == second
    assert any("perhaps more can be left out" in line for line in first)
    assert any(f"replay: tidelog sim replay {failing_seed} --without " in line for line in first)


def test_nothing_is_shrunk_where_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "shrink", "5"]) == 0
    assert "there is nothing to shrink" in capsys.readouterr().out


def test_what_is_left_out_is_said_and_understood() -> None:
    shape = next(shape for shape in map(draw, range(1000)) if len(shape.faults) > 8 and shape.absent >= 0)
    without = frozenset({("faults", 0), ("faults", 1), ("faults", 2), ("faults", 7), ("producers", 1), ("absent", 0)})
    cuts = Cuts(without, operations=120, ends_at_ms=9_000, earlier_ms=400)
    assert cuts.words == [
        *("--without", "absent", "faults:0-2,7", "producers:1"),
        *("--operations", "120", "--ends-at", "9000", "--earlier", "400"),
    ]
    assert parse_without(cuts.words[1:4], shape) == without
    less = cuts.applied_to(shape)
    assert [one.at_ms + 400 for one in less.faults] == [one.at_ms for one in (*shape.faults[3:7], *shape.faults[8:])]
    assert less.producers == (shape.producers[0], *shape.producers[2:])
    assert (less.absent, less.most_records, less.safety_ms) == (-1, 120, 9_000)
    assert Cuts().applied_to(shape) == shape
    assert Cuts().words == []


def test_fewer_records_and_less_time_are_played() -> None:
    shape = draw(5)
    whole, less = (swarm.run(5, shape=cuts.applied_to(shape)) for cuts in (Cuts(), Cuts(frozenset(), 40, 3_000)))
    assert not whole.finding
    assert not less.finding
    assert less.operations < whole.operations / 4
    assert less.simulated_ms < whole.simulated_ms - 20_000


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["tides:1"], "has no 'tides'"),
        (["faults:99"], "has no faults:99"),
        (["faults:a"], "is not like"),
        (["faults"], "is not like"),
        (["absent:3"], "has no numbers"),
    ],
)
def test_a_mistake_in_what_is_left_out_is_told(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "replay", "5", "--without", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_every_part_can_be_left_out_by_itself() -> None:
    """A plan that lacks one thing is still a plan: everything else refers to nothing that is gone."""
    shape = draw(11)
    assert isinstance(shape, Shape)
    for name in sorted({name for name, _ in parts_of(shape)}):
        cuts = Cuts(frozenset(part for part in parts_of(shape) if part[0] == name), ends_at_ms=2_000)
        assert not swarm.run(11, shape=cuts.applied_to(shape)).finding, name
