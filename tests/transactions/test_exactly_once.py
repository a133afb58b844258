"""A minute of reading, transforming and writing on three real nodes, with kill -9 of all that takes part in it."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.support import cluster_of
from tests.transactions import exactly_once


def test_every_record_is_copied_exactly_once_whatever_is_killed(tmp_path: Path) -> None:
    with cluster_of(3, **exactly_once.SETTINGS) as cluster:
        print(exactly_once.run(cluster, tmp_path, 60, seed=1, every_s=4, rate=150))
