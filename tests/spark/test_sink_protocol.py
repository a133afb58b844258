"""The protocol of the sink, with the driver or the broker killed at every step; with Spark: test_sink_faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.sink_faults import MOMENTS, Stage, one_node, run_with_fault
from tests.support.nodes import peer_under_test

PEER = peer_under_test()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with one_node(PEER, tmp_path / "node") as started:
        yield started


@pytest.mark.parametrize(("step", "when"), MOMENTS)
@pytest.mark.parametrize("victim", ["driver", "broker"])
def test_a_kill_loses_and_duplicates_nothing(stage: Stage, tmp_path: Path, victim: str, step: str, when: str) -> None:
    text = run_with_fault(stage, tmp_path, victim, step, when, program="tests.spark.sink_protocol_job")
    found_again = "batch 1 skipped=True" in text
    assert found_again == (victim == "driver" and (step, when) == ("end", "after"))
