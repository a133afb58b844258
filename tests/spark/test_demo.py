"""What a newcomer sees first: the demo tells its story to the end, and its verdict is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tidelog.ledger import Entry

ROOT = Path(__file__).resolve().parents[2]


def play(out: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "examples.demo", "--out", str(out), "--rate", "100", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stderr == "", "neither Spark nor librdkafka is heard"
    return done.returncode, done.stdout


@pytest.mark.slow
def test_with_acks_all_a_killed_leader_costs_time_and_no_record(tmp_path: Path) -> None:
    code, said = play(tmp_path / "demo")
    numbers = re.search(
        r"acknowledged ([\d,]+) · in the log ([\d,]+) · landed ([\d,]+) · lost 0 · duplicated 0 ·", said
    )
    assert code == 0, f"exit code {code}\n{said}"
    assert re.search(r"unavailable for [\d,]+ ms", said), said
    assert numbers is not None, said
    acknowledged, in_log, landed = (int(each.replace(",", "")) for each in numbers.groups())
    written = [
        Entry.from_line(line)
        for file in (tmp_path / "demo" / "ledger").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert acknowledged == sum(entry.outcome == "acknowledged" for entry in written) > 100
    assert in_log == landed >= acknowledged
    assert f"producers are done: {acknowledged:,} acknowledged" in said
    assert re.search(r"kill -9 of node \d, which leads orders-\d", said)
    assert "all replicas are in sync again" in said
    for page in ("audit.html", "timeline.html"):
        assert str(tmp_path / "demo" / page) in said
        assert "<svg" in (tmp_path / "demo" / page).read_text()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    command = [sys.executable, "-m", "examples.demo", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "is not empty and not of an earlier demo" in done.stderr
    assert (tmp_path / "precious").exists()
