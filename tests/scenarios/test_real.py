"""The same scripts on real processes with a real client: what the simulated world shows is not its own invention.

Here are the quick ones; all of them are played by the long tests.
"""

from __future__ import annotations

import json
import sys

import pytest

from tidelog.cli import main
from tidelog.cli.scenario import known, load, text
from tidelog.realstage.stage import RealStage
from tidelog.sim.player import Player

MARKED = """
    commit-in-four-steps acks-all-duplicate acks-all-idempotent acks-one-loses old-leader-returns slow-follower
    min-insync-replicas n-minus-one unclean-election controller-fails session-timeout network-partition
    preferred-leader consumer-positions checkpoints-survive order-without-idempotence
"""
QUICK = (
    "commit-in-four-steps",
    "acks-all-duplicate",
    "acks-one-loses",
    "min-insync-replicas",
    "order-without-idempotence",
    "consumer-positions",
)


def play_for_real(name: str) -> None:
    """Play a scenario on real processes; the test fails with what was shown where it is not as it expects."""
    lines: list[str] = []
    with RealStage() as stage:
        for happened in Player(load(name), stage).play():
            lines += text(happened)
            if happened.failure:
                pytest.fail(f"tidelog scenario run {name} --real\n" + "\n".join(lines[-40:]))


def test_the_marked_ones_are_played_for_real() -> None:
    assert sorted(MARKED.split()) == [name for name in known() if load(name).is_real]


@pytest.mark.parametrize("name", QUICK)
def test_it_happens_so_on_real_processes(name: str) -> None:
    play_for_real(name)


def test_the_others_say_that_they_are_simulated_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "run", "divergence", "high-watermark", "--real"]) == 2, "nothing was played"
    assert capsys.readouterr().out.splitlines() == [
        "-      divergence: simulated only",
        "-      high-watermark: simulated only",
    ]
    assert main(["scenario", "run", "divergence", "--real", "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == {"scenario": "divergence", "skipped": "simulated only"}
    assert main(["scenario", "run", "divergence", "--real", "--seed", "3"]) == 2


def test_without_a_real_client_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("tidelog.realstage.stage", "tidelog.realstage.clients"):
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    assert main(["scenario", "run", "acks-one-loses", "--real"]) == 1
    line = "tidelog scenario run: real processes need a real client: pip install confluent-kafka\n"
    assert capsys.readouterr().err == line
