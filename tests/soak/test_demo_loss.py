"""`make demo ACKS=1` loses what acks=1 allows to be lost, and says so."""

from __future__ import annotations

import re
from pathlib import Path

from tests.spark.test_demo import play


def test_with_acks_1_what_only_the_dead_leader_had_is_gone(tmp_path: Path) -> None:
    code, said = play(tmp_path / "demo", "--acks", "1")
    lost = re.search(r"lost ([\d,]+) ·", said)
    assert code == 0, said
    assert lost is not None
    assert int(lost[1].replace(",", "")) > 0
    assert "acknowledged records are gone" in said
