"""A figure that misses its target must not read as one that meets it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from benchmarks import harness, plots, report
from benchmarks.catalogue import BENCHMARKS
from benchmarks.clients import quantile
from benchmarks.model import Figure, Plot

SECONDS = Figure("seconds", "start", "s", at_most=0.7, ratio_at_most=0.2)
RATE = Figure("rate", "produce", "MB/s", higher_is_better=True, ratio_at_least=2)


def test_every_part_of_a_target_counts() -> None:
    assert SECONDS.is_met(0.5, 3.0)
    assert not SECONDS.is_met(0.8, 10.0), "fast enough against Kafka, too slow by itself"
    assert not SECONDS.is_met(0.5, 2.0), "fast enough by itself, too slow against Kafka"
    assert not SECONDS.is_met(0.5, None), "nothing to compare with is not a target met"
    assert RATE.is_met(200, 100)
    assert not RATE.is_met(199, 100)


def test_a_row_shows_medians_with_their_range_and_the_verdict() -> None:
    raw = {
        "tidelog": [{"seconds": 0.3}, {"seconds": 0.5}, {"seconds": 0.4}],
        "kafka": [{"seconds": 4.0}, {"seconds": 3.0}, {"seconds": 5.0}],
    }
    assert report.row(raw, SECONDS) == [
        "start",
        "0.4 s (0.3–0.5)",
        "4 s (3–5)",
        "0.10 ×",
        "≤ 0.7 s, ≤ 0.2 × Kafka",
        "yes",
    ]
    raw["tidelog"][2]["seconds"] = raw["tidelog"][0]["seconds"] = 0.9
    assert report.row(raw, SECONDS)[-1] == "**no**"


def test_the_page_says_how_and_on_what_each_was_measured() -> None:
    kind = BENCHMARKS[0]
    values = {figure.key: 1.0 for figure in kind.figures}
    result = {
        "date": "2030-01-02 03:04 UTC",
        "command": "make bench ARGS='--only x'",
        "machine": {"processor": "abacus"},
        "runs": {"tidelog": [values] * 5, "kafka": [values] * 5},
    }
    text = report.page({kind.name: result}, BENCHMARKS)
    for expected in (kind.title, kind.method, "2030-01-02", "make bench ARGS", "processor: abacus", "5 runs of each"):
        assert expected in text
    assert BENCHMARKS[1].title not in text, "what was not measured is not shown"


def test_a_busy_machine_is_owned_up_to() -> None:
    kind = BENCHMARKS[0]
    values = {figure.key: 1.0 for figure in kind.figures}
    runs = {"tidelog": [values], "kafka": [values]}
    quiet = {"date": "d", "command": "c", "machine": {}, "runs": runs, "busy": False}
    assert report.BUSY not in report.page({kind.name: quiet}, BENCHMARKS)
    assert report.BUSY in report.page({kind.name: quiet | {"busy": True}}, BENCHMARKS)


def test_names_are_unique_and_every_figure_is_explained() -> None:
    assert len({kind.name for kind in BENCHMARKS}) == len(BENCHMARKS)
    for kind in BENCHMARKS:
        assert kind.figures
        assert len(kind.method) > 50


def test_quantiles_of_few_and_many_values() -> None:
    assert quantile([7.0], 0.99) == 7.0
    assert quantile([float(each) for each in range(100)], 0.99) == 99.0
    assert quantile([float(each) for each in range(100)], 0.5) == 50.0


def test_the_worst_run_is_what_a_worst_figure_shows() -> None:
    worst = Figure("seconds", "the same, worst", "s", at_most=1, statistic="worst")
    raw = {"tidelog": [{"seconds": 0.3}, {"seconds": 1.2}, {"seconds": 0.4}], "kafka": [{"seconds": 10.0}]}
    assert report.row(raw, worst) == ["the same, worst", "1.2 s", "10 s", "0.12 ×", "≤ 1 s", "**no**"]
    rate = Figure("seconds", "rate", "1/s", higher_is_better=True, statistic="worst")
    assert report.row(raw, rate)[1] == "0.3 1/s"


def test_peers_take_turns_and_a_slow_one_has_its_few_runs_spread() -> None:
    class Slow(BENCHMARKS[0]):  # type: ignore[misc]
        discarded_runs = 1

        @classmethod
        def runs_of(cls, peer: str, runs: int) -> int:
            return runs if peer == "tidelog" else 2

    turns = harness.turns(Slow, ("tidelog", "kafka"), 6)
    assert [number for number, peer in turns if peer == "tidelog"] == [-1, 0, 1, 2, 3, 4, 5]
    assert [number for number, peer in turns if peer == "kafka"] == [-1, 0, 1]
    places = [place for place, (_, peer) in enumerate(turns) if peer == "kafka"]
    assert places[-1] - places[-2] > 2, "not all of a peer's runs in one slow minute"


def test_a_plot_has_a_point_for_each_median_of_each_peer() -> None:
    plot = Plot("p.svg", "Growth", "partitions", "MB/s", ((1, "a"), (10, "b"), (100, "c")))
    raw = {
        "tidelog": [{"a": 10.0, "b": 20.0, "c": 30.0}, {"a": 12.0, "b": 22.0, "c": 32.0}],
        "kafka": [{"a": 5.0, "b": 6.0}],
    }
    picture = ET.fromstring(plots.draw(plot, raw))
    circles = [each for each in picture.iter() if each.tag.endswith("circle")]
    assert len(circles) == 5
    heights = [float(each.attrib["cy"]) for each in circles[:3]]
    assert heights == sorted(heights, reverse=True), "more is higher up"
    assert "| 10 | 21 | 6 | 3.50 × |" in plots.table(plot, raw)
    assert "| 100 | 31 | – | – |" in plots.table(plot, raw)


def test_the_page_shows_what_is_drawn_beside_its_numbers_and_not_in_the_table() -> None:
    (kind,) = [each for each in BENCHMARKS if each.plots]
    values = {figure.key: 7.0 for figure in kind.figures}
    runs = {"tidelog": [values] * 3, "kafka": [values] * 2}
    result = {"date": "d", "command": "c", "machine": {}, "runs": runs, "busy": False}
    text = report.page({kind.name: result}, BENCHMARKS)
    for plot in kind.plots:
        assert f"![{plot.title}]({plot.file})" in text
    assert "3 runs of Tidelog, 2 of Apache Kafka" in text
    assert f"| {kind.figures[0].label} |" not in text


def test_every_point_of_a_plot_is_measured() -> None:
    for kind in BENCHMARKS:
        keys = {figure.key for figure in kind.figures}
        for plot in kind.plots:
            assert {key for _, key in plot.points} <= keys
