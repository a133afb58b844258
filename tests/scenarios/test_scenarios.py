"""Every story of replication happens as it is told, whatever the delays are, and the same way in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tidelog.cli import main
from tidelog.cli.scenario import known, load, text
from tidelog.sim.player import COMMANDS, Player
from tidelog.sim.script import ScriptError, parse
from tidelog.sim.simulated_stage import SimulatedStage
from tools import generate_replication_page

ROOT = Path(__file__).resolve().parent.parent.parent
SCENARIOS = """
    high-watermark commit-in-four-steps acks-all-duplicate acks-all-idempotent acks-one-loses old-leader-returns
    divergence stale-high-watermark slow-follower lag-by-count-flaps min-insync-replicas visible-only-when-safe
    n-minus-one unclean-election controller-fails session-timeout network-partition follower-reads preferred-leader
    checkpoints-survive safe-settings order-without-idempotence fetch-offset-is-the-ack
    consumer-positions
"""
SLOW = "safe-settings"


@cache
def play(name: str, seed: int) -> str:
    """What a scenario shows, made like the page's; the test fails where it is not as it expects."""
    lines: list[str] = []
    for happened in Player(load(name), SimulatedStage(seed)).play():
        lines += text(happened)
        if happened.failure:
            pytest.fail(f"tidelog scenario run {name} --seed {seed}\n" + "\n".join(lines[-25:]))
    return "\n".join(lines).strip("\n")


def test_every_story_has_a_script() -> None:
    assert sorted(SCENARIOS.split()) == known()


@pytest.mark.parametrize("name", known())
def test_it_happens_as_it_is_told(name: str) -> None:
    play(name, load(name).seed)


@pytest.mark.parametrize("name", [name for name in known() if name != SLOW])
def test_other_delays_change_nothing(name: str) -> None:
    play(name, 1000 + len(name))


def test_the_page_shows_what_happens_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate_replication_page, "played", lambda name: play(name, load(name).seed))
    shown = generate_replication_page.PAGE.read_text(encoding="utf-8")
    assert shown == generate_replication_page.page(), "docs/replication.md is not current: run make docs"


PROGRAM = """
import hashlib, sys
from tidelog.cli.scenario import load, text
from tidelog.sim.player import Player
from tidelog.sim.simulated_stage import SimulatedStage

digest = hashlib.sha256()
for name in ("controller-fails", "divergence", "unclean-election"):
    stage = SimulatedStage(5)
    for happened in Player(load(name), stage).play():
        digest.update("\\n".join(text(happened)).encode())
    world = stage.cluster.world
    digest.update(repr([(at, node, tell) for at, node, tell in world.told]).encode())
    digest.update(f"{world.now_ms} {world.steps} {world.chance.bits64()}".encode())
    for host in world.hosts.values():
        for directory in host.disks[0].list(""):
            if directory.startswith("events-"):
                digest.update(stage.log_bytes(host.name, "events", 0))
print(digest.hexdigest())
"""


def test_a_seed_has_one_history_in_every_process() -> None:
    found = set()
    for hash_seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", PROGRAM]
        answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert answer.returncode == 0, answer.stderr
        found.add(answer.stdout)
    assert len(found) == 1


# --- the language ---


def test_a_script_can_act_but_cannot_set_anything() -> None:
    """Every command is one that a person with a real cluster could carry out; a new one is to be thought about here."""
    assert " ".join(sorted(COMMANDS)) == (
        "alter answer call clock cluster commit consume consumer create cut describe elect fetch heal hold kill let"
        " load mark mend offsets partition pause power-off produce producer release resume send settle show slow start"
        " stop sweep wait wipe"
    )


SMALL = """\
title A small one
cluster brokers 1
create events replicas 1
producer p acks=all
produce p M0
expect hw 1 {wanted}
expect values 1 M0
"""


def test_the_first_thing_that_is_not_as_expected_ends_it() -> None:
    happened = list(Player(parse("small", SMALL.format(wanted=2)), SimulatedStage(1)).play())
    assert (happened[-1].line, happened[-1].command, happened[-1].failure) == (6, "expect hw 1 2", "HW 1")


def test_a_line_that_is_no_command_is_named() -> None:
    with pytest.raises(ScriptError, match=r"small, line 6: hw 1 2: 'hw' is no command"):
        list(Player(parse("small", SMALL.replace("expect hw", "hw").format(wanted=2)), SimulatedStage(1)).play())


# --- the command ---


def test_the_command_lists_and_plays(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "list"]) == 0
    assert "acks-one-loses" in capsys.readouterr().out
    assert main(["scenario", "run", "acks-one-loses"]) == 0
    shown = capsys.readouterr().out
    assert "ok  lost M4" in shown
    assert "HW 2 (committed through 1)" in shown


def test_the_command_prints_a_line_of_json_for_every_line_of_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "run", "fetch-offset-is-the-ack", "--json"]) == 0
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(document["ok"] for document in documents)
    lanes = [document["lanes"] for document in documents if document["lanes"]][-1]
    assert lanes["leader"] == 1
    assert [replica["high_watermark"] for replica in lanes["replicas"]] == [3, 3, 3]


def test_the_command_fails_with_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.txt").write_text(SMALL.format(wanted=2), encoding="utf-8")
    monkeypatch.setattr("tidelog.cli.scenario.folder", lambda: tmp_path)
    assert main(["scenario", "run", "small"]) == 1
    shown = capsys.readouterr()
    assert "but it is: HW 1" in shown.out
    assert shown.err == "tidelog scenario run: small, line 6: expect hw 1 2: it is HW 1\n"
    assert main(["scenario", "run", "smal"]) == 2
    assert "did you mean 'small'" in capsys.readouterr().err
