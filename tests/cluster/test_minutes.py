"""A minute of `tidelog verify`, and a minute of reading, transforming and writing with kill -9 of all that takes part.

They run side by side, each on three nodes of its own: both wait more than they work.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.support import cluster_of
from tests.cluster.test_verify import verify
from tests.transactions import exactly_once
from tidelog.ledger import Entry
from tidelog.verify.cluster import free_base_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where verify leaves its ledger."""
    return tmp_path_factory.mktemp("verify")


@pytest.fixture(scope="module")
def verifying(directory: Path) -> Iterator[Future[tuple[int, dict[str, Any], str]]]:
    """The minute of verify, which has begun: its exit code, its report and what it said besides."""
    # Drawn here, where the other cluster's ports are drawn too.
    options = (
        "--port",
        str(free_base_port(3)),
        "--producers",
        "4",
        "--consumers",
        "4",
        "--minutes",
        "1",
        "--chaos",
        "kill,pause",
    )
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(verify, directory, *options, "--every", "5", "--session-timeout", "2", timeout_s=900)


@pytest.mark.usefixtures("verifying")
def test_every_record_is_copied_exactly_once_whatever_is_killed(tmp_path: Path) -> None:
    with cluster_of(3, **exactly_once.SETTINGS) as cluster:
        print(exactly_once.run(cluster, tmp_path, 60, seed=1, every_s=4, rate=150))


def test_kills_and_pauses_under_load(verifying: Future[tuple[int, dict[str, Any], str]], directory: Path) -> None:
    code, report, said = verifying.result()
    assert report["details"] == [], said
    assert (code, report["passed"]) == (0, True)
    assert report["acknowledged"] > 5_000
    assert len(report["faults"]) >= 6
    assert {fault["kind"] for fault in report["faults"]} == {"kill", "pause"}
    ledgers = sorted((directory / "ledger").glob("*.jsonl"))
    entries = [Entry.from_line(line) for path in ledgers for line in path.read_text().splitlines()]
    assert len(entries) == report["acknowledged"], "the ledger has every record that was acknowledged"
