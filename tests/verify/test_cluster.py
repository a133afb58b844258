"""Clusters of the verifier: what they call a clean stop."""

from __future__ import annotations

from pathlib import Path

from tidelog.verify.cluster import LocalCluster


def test_a_process_that_has_only_begun_stops_cleanly(tmp_path: Path) -> None:
    """Nothing runs yet that could take the signal; on a busy machine that lasts for seconds."""
    with LocalCluster(str(tmp_path), 1) as cluster:
        cluster.start(1)
        assert cluster.stop(1) == 0
        cluster.start(1)
        cluster.wait_ready(30)
        assert cluster.stop(1) == 0
