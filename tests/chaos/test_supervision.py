"""Whoever started a cluster in the foreground looks after nodes that somebody else has started anew."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.conftest import tidelog
from tests.cli.conftest import SOURCE
from tests.support.processes import wait_until
from tidelog.verify.cluster import free_base_port

UP = [sys.executable, "-m", "tidelog", "up"]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    yield tmp_path / "cluster"
    tidelog("down", "--dir", tmp_path / "cluster")


def node(directory: Path) -> dict[str, Any]:
    (found,) = json.loads(tidelog("status", "--dir", directory, "--json").out)
    return dict(found)


def test_a_node_killed_and_started_by_chaos_is_stopped_with_the_others(directory: Path) -> None:
    words = ["--dir", str(directory), "--port", str(free_base_port(1)), "--chaos"]
    process = subprocess.Popen([*UP, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready bootstrap=")
    first = node(directory)["pid"]
    assert tidelog("chaos", "--dir", directory, "resume", 1) == (1, "", "tidelog chaos resume: node 1 is not paused\n")
    assert tidelog("chaos", "--dir", directory, "kill", 1).out == "killed node 1\n"
    for verb in ("kill", "stop", "pause", "resume"):
        dead = f"tidelog chaos {verb}: node 1 is dead; tidelog chaos start 1 starts it\n"
        assert tidelog("chaos", "--dir", directory, verb, 1) == (1, "", dead)
    assert node(directory)["state"] == "dead"
    assert tidelog("chaos", "--dir", directory, "start", 1).out == "started node 1\n"
    assert tidelog("chaos", "--dir", directory, "start", 1).err == "tidelog chaos start: node 1 runs already\n"
    second = node(directory)
    assert second["pid"] != first
    assert second["state"] == "running"
    links = json.loads((directory / "tidelog.json").read_text())["links"]["pid"]

    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert [line.partition(":")[0] for line in err.splitlines()] in ([], ["node 1 is dead (killed by SIGKILL)"])
    assert not (directory / "tidelog.json").exists()
    for pid in (second["pid"], links):
        wait_until(lambda pid=pid: is_gone(pid), 60, f"process {pid} ends")


def is_gone(pid: int) -> bool:
    """Also a zombie is: this very process started the second node and does not wait for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_links_of_a_cluster_that_has_none_cannot_be_cut(directory: Path) -> None:
    assert tidelog("up", "--dir", directory, "--port", free_base_port(1), "--detach").code == 0
    assert tidelog("chaos", "--dir", directory, "heal") == (
        1,
        "",
        "tidelog chaos heal: the cluster has no links that can be changed: start it with tidelog up --chaos\n",
    )
    assert tidelog("chaos", "--dir", directory, "kill", 4).err == (
        "tidelog chaos kill: there is no node 4; the cluster has 1\n"
    )
    assert tidelog("down", "--dir", directory).code == 0
    assert tidelog("chaos", "--dir", directory, "kill", 1) == (
        4,
        "",
        f"tidelog chaos kill: no cluster runs in {directory}\n",
    )
