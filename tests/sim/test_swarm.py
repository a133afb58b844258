"""The swarm finds nothing in the shipped code, finds what is put in, and repeats itself to the letter."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tidelog.cli import main
from tidelog.sim import mutants, swarm
from tidelog.sim.shape import draw

SEEDS = range(14)
REPEATED = 7


@pytest.mark.parametrize("seed", SEEDS)
def test_a_faulty_history_keeps_every_promise(seed: int) -> None:
    outcome = swarm.run(seed)
    assert not outcome.finding, f"{outcome.finding}\nreplay: {outcome.replay_command}"
    assert outcome.simulated_ms >= 30_000
    assert outcome.faults > 0
    assert outcome.operations > 200


def test_a_seed_has_one_history_whatever_the_process() -> None:
    """Another process with another hash seed plays the same trace, byte for byte."""
    program = f"from tidelog.sim import swarm; print(swarm.run({REPEATED}).trace_hash)"
    hashes = [swarm.run(REPEATED).trace_hash]
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        answer = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        hashes.append(answer.stdout.strip())
    assert len(set(hashes)) == 1, hashes


def test_seeds_differ() -> None:
    shapes = [draw(seed) for seed in range(200)]
    assert len({shape.describe() for shape in shapes}) > 190
    assert {len(shape.brokers) for shape in shapes} == {1, 2, 3, 4, 5, 6, 7}
    assert any(set(shape.brokers).isdisjoint(shape.controllers) for shape in shapes)
    assert {fault.kind for shape in shapes for fault in shape.faults} >= {"kill", "power loss", "pause", "one-way cut"}


@pytest.mark.parametrize("name", ["watermark-is-maximum", "acks-all-at-append", "truncate-to-watermark"])
def test_a_bug_that_is_put_in_is_found(name: str) -> None:
    hunt = mutants.hunt(mutants.ALL[name], range(100_000, 100_006))
    assert hunt.is_proven, hunt.complaint


def test_a_mutant_leaves_nothing_behind() -> None:
    mutant = mutants.ALL["acks-all-at-append"]
    place, name, _ = mutant.patches[0]
    original = getattr(place, name)
    with mutant.put_in():
        assert getattr(place, name) is not original
    assert getattr(place, name) is original


def test_a_finding_names_the_command_that_shows_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    with mutants.ALL["watermark-is-maximum"].put_in():
        assert main(["sim", "run", "--seeds", "100000..100002"]) == 1
    out = capsys.readouterr().out
    assert "replay: tidelog sim replay 10000" in out
    assert "--trace" in out
