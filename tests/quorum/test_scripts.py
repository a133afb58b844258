"""The protocol as stories one can read: tests/scripts/quorum/*.txt. `REWRITE_SCRIPTS=1` rewrites what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quorum.script import REWRITE, play_file

SCRIPTS = sorted((Path(__file__).parents[1] / "scripts" / "quorum").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    before, now = play_file(path)
    if REWRITE:
        path.write_text(now)
    else:
        assert now == before, f"REWRITE_SCRIPTS=1 pytest {Path(__file__).name} writes down what happens now"
