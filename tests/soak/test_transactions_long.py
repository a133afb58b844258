"""An hour (TIDELOG_SOAK_MINUTES) of reading, transforming and writing, with kill -9 of all that takes part in it."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.support import cluster_of
from tests.transactions import exactly_once


def test_every_record_is_copied_exactly_once(tmp_path: Path, minutes: float) -> None:
    with cluster_of(3, **exactly_once.SETTINGS) as cluster:
        print(exactly_once.run(cluster, tmp_path, minutes * 60, seed=7, every_s=6, rate=150))
