"""docs/benchmarks.md, made from the kept results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness, plots
from benchmarks.model import AnyBenchmark, Figure

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
HEAD = """\
# Figures, side by side with Apache Kafka

Made by `make bench`; the raw values are in `benchmarks/results/`. Both peers run on the same machine in the same run
with the same client and settings. Each value is the median of the runs, with the least and the most of them in
brackets; peers take turns, run by run, and a first run of each is discarded where it says so. What counts is the ratio:
the absolute values are this machine's.

"""

BUSY = (
    "**Measured on a busy machine.** The peer that needs more CPU suffers more from company, so these ratios flatter"
    " the lighter one: they are no result."
)


def number(value: float) -> str:
    """Three digits that matter."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value < 0.1 else f"{value:.3g}"


def cell(raw: dict[str, list[dict[str, float]]], peer: str, figure: Figure) -> str:
    """Median with its range, or the worst of the runs."""
    value = harness.value(raw, peer, figure)
    if value is None:
        return "–"
    if figure.statistic == "worst":
        return f"{number(value)} {figure.unit}"
    values = [each[figure.key] for each in raw[peer]]
    return f"{number(value)} {figure.unit} ({number(min(values))}–{number(max(values))})"


def row(raw: dict[str, list[dict[str, float]]], figure: Figure) -> list[str]:
    """One figure: both peers, the ratio, the target and whether it is met."""
    ours = harness.value(raw, "tidelog", figure)
    theirs = harness.value(raw, "kafka", figure)
    ratio = f"{ours / theirs:.2f} ×" if ours is not None and theirs else "–"
    met = "" if not figure.target or ours is None else ("yes" if figure.is_met(ours, theirs) else "**no**")
    return [figure.label, cell(raw, "tidelog", figure), cell(raw, "kafka", figure), ratio, figure.target, met]


def table(rows: Iterable[list[str]]) -> str:
    """A Markdown table of figures."""
    lines = ["| figure | Tidelog | Apache Kafka | ratio | target | met |", "|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(each)} |" for each in rows]
    return "\n".join(lines) + "\n"


def page(results: dict[str, dict[str, Any]], kinds: Iterable[AnyBenchmark]) -> str:
    """The whole page."""
    measured = [kind for kind in kinds if kind.name in results]
    text = HEAD
    shown = [kind for kind in measured if kind.in_table]
    text += table(row(results[kind.name]["runs"], figure) for kind in shown for figure in kind.figures)
    drawn = [(kind, plot) for kind in measured for plot in kind.plots]
    if drawn:
        text += "\n## How they grow\n"
    for kind, plot in drawn:
        text += f"\n![{plot.title}]({plot.file})\n\n{plots.table(plot, results[kind.name]['runs'])}"
    text += "\n## How each is measured\n"
    for kind in measured:
        result = results[kind.name]
        text += f"\n### {kind.title}\n\n{kind.method}\n\n"
        discarded = "no run discarded" if not kind.discarded_runs else f"{kind.discarded_runs} run discarded before"
        text += f"{count_of_runs(result['runs'])}, {discarded}. `{result['command']}`, {result['date']}.\n"
        if result.get("busy"):
            text += f"\n{BUSY}\n"
    text += "\n## Machine and versions\n\n"
    machines = {tuple(results[kind.name]["machine"].items()) for kind in measured}
    for machine in sorted(machines):
        names = ", ".join(kind.name for kind in measured if tuple(results[kind.name]["machine"].items()) == machine)
        text += f"{names}:\n\n" + "".join(f"- {name}: {value}\n" for name, value in machine) + "\n"
    return text.rstrip() + "\n"


def count_of_runs(raw: dict[str, list[dict[str, float]]]) -> str:
    """How many runs there were, in words."""
    ours, theirs = len(raw.get("tidelog", ())), len(raw.get("kafka", ()))
    return f"{ours} runs of each peer" if ours == theirs else f"{ours} runs of Tidelog, {theirs} of Apache Kafka"


def write(kinds: Sequence[AnyBenchmark]) -> Path:
    """Make the page from everything that was kept."""
    PAGE.parent.mkdir(exist_ok=True)
    results = harness.load()
    for kind in kinds:
        for plot in kind.plots if kind.name in results else ():
            (PAGE.parent / plot.file).write_text(plots.draw(plot, results[kind.name]["runs"]))
    PAGE.write_text(page(results, kinds))
    return PAGE
