"""An hour (TIDELOG_SOAK_MINUTES) of faults every ten seconds, rolling through leaders, followers and the controller."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cluster.test_verify import verify

MINUTES = float(os.environ.get("TIDELOG_SOAK_MINUTES", "60"))


def test_faults_every_ten_seconds(tmp_path: Path) -> None:
    options = ("--minutes", str(MINUTES), "--chaos", "kill,pause,partition", "--every", "10")
    code, report, said = verify(tmp_path, *options, timeout_s=MINUTES * 60 + 900)
    assert report["details"] == [], said
    assert (code, report["passed"]) == (0, True)
    assert len(report["faults"]) >= MINUTES * 60 / 10 - 2
    assert {fault["target"] for fault in report["faults"]} <= {"leader", "follower", "controller"}


def test_total_crashes_clean_stops_and_slow_links_with_frequent_snapshots(tmp_path: Path) -> None:
    minutes = MINUTES / 6
    options = (
        *("--minutes", str(minutes), "--chaos", "kill,pause,partition,slow,stop,kill-all", "--every", "5"),
        *("--session-timeout", "1.5", "--rate", "250", "--seed", "11"),
        *("--set", "replica.lag.time.max.ms=1000", "--set", "metadata.log.max.record.bytes.between.snapshots=3000"),
    )
    code, report, said = verify(tmp_path, *options, timeout_s=minutes * 60 + 900)
    assert report["details"] == [], said
    assert (code, report["passed"]) == (0, True)
