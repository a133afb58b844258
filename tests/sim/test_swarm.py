"""The swarm finds nothing in the shipped code, finds what is put in, and repeats itself to the letter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from tidelog.cli import main
from tidelog.sim import mutants, swarm
from tidelog.sim.shape import FAULT_KINDS, ROT_OF_WORK, draw
from tidelog.sim.swarm import Outcome
from tidelog.sim.tally import SIGHTS, Tally

REPEATED = range(7, 9)


def test_faulty_histories_keep_every_promise(histories: Future[list[Outcome]]) -> None:
    """A hundred and fifty of them, and they are worth playing: enough happens in each, and all that must be seen is."""
    tally = Tally()
    findings = []
    for outcome in histories.result():
        tally.add(outcome)
        if outcome.finding:
            findings.append(f"{outcome.finding}\nreplay: {outcome.replay_command}")
        assert outcome.finding or outcome.simulated_ms >= 30_000
    assert not findings, "\n".join(findings)
    assert tally.seeds == 150
    assert tally.operations / tally.seeds >= 1_000
    assert tally.faults / tally.seeds >= 5
    rare = [name for name in SIGHTS if tally.saw[name] * 100 < tally.seeds]
    assert not rare, f"seen in less than one history of a hundred: {rare}"


def test_a_seed_has_one_history_whatever_the_process() -> None:
    """Other processes with other hash seeds play the same traces, byte for byte."""
    hashes = {" ".join(swarm.run(seed).trace_hash for seed in REPEATED)}
    for hash_seed in ("1", "2"):
        hashes.add(trace_hashes(REPEATED, hash_seed))
    assert len(hashes) == 1, hashes


def trace_hashes(seeds: range, hash_seed: str) -> str:
    """The hashes of traces, played in a process of their own."""
    played = f"(swarm.run(seed).trace_hash for seed in range({seeds.start}, {seeds.stop}))"
    program = f"from tidelog.sim import swarm\nprint(*{played})"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def test_messages_through_bytes_make_no_difference() -> None:
    """Most seeds hand messages over as they are: that must not let a node see what no wire would carry."""
    for seed in (3, 5):
        shape = draw(seed)
        direct, encoded = (swarm.run(seed, shape=replace(shape, through_bytes=bytes_)) for bytes_ in (False, True))
        assert direct.trace[1:] == encoded.trace[1:]


def test_seeds_differ() -> None:
    shapes = [draw(seed) for seed in range(300)]
    assert len({shape.describe() for shape in shapes}) > 290
    assert {len(shape.brokers) for shape in shapes} == {1, 2, 3, 4, 5, 6, 7}
    assert any(set(shape.brokers).isdisjoint(shape.controllers) for shape in shapes)
    assert {fault.kind for shape in shapes for fault in shape.faults} == {*FAULT_KINDS, ROT_OF_WORK}
    assert any(shape.racks for shape in shapes)
    assert any(topic.may_lose for shape in shapes for topic in shape.topics)
    assert 0 < sum(shape.is_beyond_budget for shape in shapes) <= len(shapes) / 10
    assert len(shapes) / 20 < sum(shape.through_bytes for shape in shapes) < len(shapes) / 5


def test_a_seed_beyond_the_budget_says_so() -> None:
    shape = next(shape for shape in map(draw, range(1000)) if shape.is_beyond_budget)
    assert "BEYOND THE BUDGET" in swarm.run(shape.seed).trace[0]


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


def test_clean_ranges_of_the_same_core_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "runs.jsonl"
    assert main(["sim", "run", "--seeds", "5..6", "--log", str(log)]) == 0
    first = json.loads(log.read_text())
    other_simulator = {**first, "code": "of another day"}
    with log.open("a") as file:
        file.write(json.dumps(other_simulator) + "\n")
        file.write(json.dumps({**other_simulator, "core": "of another day"}) + "\n")
        file.write(json.dumps({**first, "findings": 1}) + "\n")
    assert main(["sim", "run", "--seeds", "6..7", "--log", str(log)]) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["range"] for line in lines] == ["5..6"] * 4 + ["6..7"]
    assert f"3 clean seeds of this core in {log}, 2 of them with this simulator" in capsys.readouterr().out


def test_a_replay_can_be_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "replay", "5", "--trace", "--until", "100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("seed 5: all is well")
    assert all(int(line.split()[0]) < 100 for line in lines[:-1])


def test_the_race_tells_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    """A history that a finding cuts short is no fast one."""
    assert main(["sim", "speed", "--seeds", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seeds"] == 1
    assert told["simulated_seconds"] >= 30
    assert told["cpu_seconds"] > 0
    assert told["findings"] == 0
    with mutants.ALL["watermark-is-maximum"].put_in():
        assert main(["sim", "speed", "--seeds", "2", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"] > 0
