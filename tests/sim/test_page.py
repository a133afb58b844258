"""A history as a page: it stands alone, shows what was recorded, and works in a browser, by keyboard, on any width."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tidelog.cli import main
from tidelog.sim import mutants, swarm
from tidelog.sim.page import page
from tidelog.sim.recording import DOWN, LEADER, UP, Recording, record
from tidelog.sim.shape import Fault, Shape, draw
from tidelog.sim.swarm import Outcome

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
MUTANT = mutants.ALL["watermark-is-maximum"]
PROBE = """<script>
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", {key}));
const seen = [document.getElementById("shown").textContent];
press("ArrowLeft"); seen.push(document.getElementById("shown").textContent);
press("ArrowRight"); seen.push(document.getElementById("shown").textContent);
location.hash = "#ms=0"; dispatchEvent(new HashChangeEvent("hashchange"));
seen.push(document.getElementById("shown").textContent);
press("ArrowRight"); seen.push(document.querySelectorAll(".trace .now").length);
location.hash = ""; dispatchEvent(new HashChangeEvent("hashchange"));
seen.push(document.documentElement.scrollWidth - innerWidth, innerWidth);
const probe = document.createElement("pre"); probe.id = "probe"; probe.textContent = JSON.stringify(seen);
document.body.append(probe);
</script>"""


@pytest.fixture(scope="module")
def played() -> tuple[Outcome, Recording, Shape]:
    """Three nodes, of which one dies and comes back."""
    drawn = next(one for one in map(draw, range(1000)) if len(one.brokers) == 3 and one.brokers == one.controllers)
    kill = Fault(1_000, "kill", (2,), 700, ("data", "control"), 1)
    shape = replace(drawn, faults=(kill,), admin=(), safety_ms=3_000, absent=-1)
    return *record(shape.seed, shape), shape


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a history with a finding, as the command writes it."""
    path = tmp_path_factory.mktemp("page") / "history.html"
    seeds = range(100_000, 100_010)
    words = ["--mutant", MUTANT.name, "--html", str(path)]
    assert any(main(["sim", "replay", str(seed), *words]) == 1 for seed in seeds)
    return path


def test_who_looks_on_changes_nothing(played: tuple[Outcome, Recording, Shape]) -> None:
    outcome, _, shape = played
    assert not outcome.finding
    assert swarm.run(shape.seed, shape=shape).trace_hash == outcome.trace_hash


def test_lives_leaders_logs_and_watermarks_are_written_down(played: tuple[Outcome, Recording, Shape]) -> None:
    outcome, recording, shape = played
    assert recording.nodes == (1, 2, 3)
    states = [state for _, state in recording.lives[2]]
    assert states[1:4] == [UP, DOWN, UP]
    down_ms = next(ms for ms, state in recording.lives[2] if state == DOWN)
    assert any("fault kill 2 " in line for line in outcome.trace)
    assert 1_000 <= down_ms <= 1_500
    assert recording.controllers
    for topic, index, replicas in [
        (one.name, place, nodes) for one in shape.topics for place, nodes in enumerate(one.assignment)
    ]:
        lanes = recording.replicas[topic, index]
        assert set(lanes) == set(replicas)
        ends = {lane[-1][1].log_end for lane in lanes.values()}
        assert len(ends) == 1, "in the end all have the same"
        assert {lane[-1][1].high_watermark for lane in lanes.values()} == ends
        assert any(state.role == LEADER and state.isr for lane in lanes.values() for _, state in lane)
        for lane in lanes.values():
            assert [ms for ms, _ in lane] == sorted(ms for ms, _ in lane)


class _Reader(HTMLParser):
    """What a page refers to, and whether every element that is opened is closed."""

    VOID = frozenset(("meta", "input", "br"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "data", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Closed where it is opened."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_stands_alone_and_trusts_nothing(played: tuple[Outcome, Recording, Shape]) -> None:
    outcome, recording, shape = played
    bad = replace(outcome, finding="Odd: </script><b>", trace=[*outcome.trace, "  9999  FOUND Odd: </script><b>"])
    document = page(bad, recording, shape, "tidelog sim replay 1 --mutant '<x>'")
    reader = _Reader()
    reader.feed(document)
    reader.close()
    assert not reader.open
    assert all(one.startswith("#ms=") for one in reader.references)
    assert not re.search(r"https?:|@import|url\(", document)
    assert "<b>Odd" not in document
    assert "</script><b>" not in document
    assert document.count('class="found"') >= 2, "the finding is marked in the trace and in the pictures"
    assert document.count("<svg") == 1 + len(recording.replicas)
    assert "title>node 2 up from" in document
    assert len(document) < 400_000


def test_a_finding_says_how_to_see_it(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(100_000, 100_010):
        if main(["sim", "replay", str(seed), "--mutant", MUTANT.name]) == 1:
            assert "--html FILE" in capsys.readouterr().out
            return
    raise AssertionError("no seed finds the bug")


@pytest.mark.parametrize("width", [1200, 500])
def test_a_browser_shows_the_moment_of_the_finding_and_others(drawn: Path, tmp_path: Path, width: int) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium in PATH: what a browser makes of the page is not looked at; its content is")
    probed = tmp_path / "probed.html"
    probed.write_text(drawn.read_text().replace("</main>", PROBE + "</main>"))
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    words += [f"--window-size={width},900", "--virtual-time-budget=3000", "--dump-dom", probed.as_uri()]
    answer = subprocess.run([browser, *words], capture_output=True, text=True, check=True, timeout=120)
    found = re.search(r'<pre id="probe">(.*?)</pre>', answer.stdout, re.DOTALL)
    assert found is not None, "the script of the page broke"
    first, earlier, again, beginning, lines_now, overflow, inner = json.loads(found[1])
    assert first.endswith("the finding")
    assert earlier != first
    assert again == first
    assert beginning == "0.000 s"
    assert lines_now == 1
    assert inner == width
    assert overflow <= 0, "nothing but the pictures scrolls sideways"
    state = re.search(r'class="wide state".*?</table>', answer.stdout, re.DOTALL)
    assert state is not None
    for expected in ("leader", "follower", ">HW<", "offset 0, epoch 0"):
        assert expected in answer.stdout, expected
