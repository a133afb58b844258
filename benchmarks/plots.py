"""Pictures for the page, written by hand as SVG: a line for each peer, bars for the range of its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks import harness
from benchmarks.model import Plot

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 46, 48
PEERS = (("tidelog", "Tidelog", "#0b7285"), ("kafka", "Apache Kafka", "#c2571a"))
GRID_LINES = 5
Runs = dict[str, list[dict[str, float]]]


def draw(plot: Plot, raw: Runs) -> str:
    """The whole picture."""
    top = _nice_top(max((value for peer, _, _ in PEERS for value in _all(plot, raw, peer)), default=1.0))
    places = [place for place, _ in plot.points]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        f' font-size="12"><title>{plot.title}</title><rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{plot.title}, {plot.unit}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{plot.axis}</text>',
    ]
    for step in range(GRID_LINES + 1):
        value = top * step / GRID_LINES
        y = _y(value, top)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{value:,.6g}</text>')
    for place in places:
        x = _x(place, places)
        parts.append(f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{place:,.6g}</text>')
    for number, (peer, name, colour) in enumerate(PEERS):
        parts += _line(plot, raw, peer, colour, top)
        x = LEFT + 140 * number
        parts.append(f'<rect x="{x}" y="28" width="14" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 20}" y="34">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _line(plot: Plot, raw: Runs, peer: str, colour: str, top: float) -> list[str]:
    """The medians joined, and a thin bar from the least to the most at each."""
    places = [place for place, _ in plot.points]
    joined, marks = [], []
    for place, key in plot.points:
        middle = harness.median(raw, peer, key)
        if middle is None:
            continue
        values = [run[key] for run in raw[peer]]
        x, y = _x(place, places), _y(middle, top)
        low, high = _y(min(values), top), _y(max(values), top)
        joined.append(f"{x},{y}")
        marks.append(f'<line x1="{x}" x2="{x}" y1="{low}" y2="{high}" stroke="{colour}" stroke-opacity="0.4"/>')
        marks.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>')
    if not joined:
        return []
    return [f'<polyline points="{" ".join(joined)}" fill="none" stroke="{colour}" stroke-width="2"/>', *marks]


def table(plot: Plot, raw: Runs) -> str:
    """The medians of a plot as Markdown, for whoever cannot see it or wants the numbers."""
    lines = [f"| {plot.axis} | Tidelog, {plot.unit} | Apache Kafka, {plot.unit} | ratio |", "|---|---|---|---|"]
    for place, key in plot.points:
        ours, theirs = harness.median(raw, "tidelog", key), harness.median(raw, "kafka", key)
        ratio = f"{ours / theirs:.2f} ×" if ours is not None and theirs else "–"
        shown = ["–" if each is None else f"{each:,.3g}" if each < 100 else f"{each:,.0f}" for each in (ours, theirs)]
        lines.append(f"| {place:,.6g} | {shown[0]} | {shown[1]} | {ratio} |")
    return "\n".join(lines) + "\n"


def _all(plot: Plot, raw: Runs, peer: str) -> list[float]:
    return [run[key] for _, key in plot.points for run in raw.get(peer, ()) if key in run]


def _x(place: float, places: Sequence[float]) -> float:
    low, high = math.log(min(places)), math.log(max(places))
    share = (math.log(place) - low) / (high - low) if high > low else 0.5
    return round(LEFT + 20 + share * (WIDTH - LEFT - RIGHT - 40), 1)


def _y(value: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM), 1)


def _nice_top(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power = float(10 ** math.floor(math.log10(max(value, 1e-9))))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value)
