"""Pictures for the reports, as SVG written by hand: bars over time, and lines over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelog.spark.pipelines.report import duration, escape

WIDTH = 1040
LEFT, RIGHT = 132, 16
PALETTE = ("#2f6fde", "#d9742b", "#2a9d6f", "#8a56c9", "#c2456b", "#5f7d0d", "#0f8b9d", "#a0632f")
NONE_COLOUR = "#9aa5b1"
ROW_PX, BAR_PX, AXIS_PX, LANE_PX = 26, 18, 26, 13
_LEAST_TEXT_PX = 34
LANES = 2
"""Lines of words above a picture."""
_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)


class Bar(NamedTuple):
    """A stretch of time in a row."""

    begin_ms: float
    end_ms: float
    text: str
    colour: str
    tip: str = ""


class Mark(NamedTuple):
    """A moment worth a line through the whole picture."""

    at_ms: float
    text: str


class Scale(NamedTuple):
    """Which stretch of time the picture shows."""

    begin_ms: float
    end_ms: float

    def x(self, at_ms: float) -> float:
        """Where a moment is."""
        span = max(self.end_ms - self.begin_ms, 1)
        share = min(max((at_ms - self.begin_ms) / span, 0), 1)
        return LEFT + share * (WIDTH - LEFT - RIGHT)


def colour_of(number: int) -> str:
    """The same colour for the same broker in every picture."""
    return NONE_COLOUR if number < 0 else PALETTE[(number - 1) % len(PALETTE)]


def rows_over_time(
    rows: Mapping[str, Sequence[Bar]], scale: Scale, marks: Iterable[Mark] = (), legend: Mapping[str, str] | None = None
) -> str:
    """One row of bars for each name."""
    shown = _spread(marks, scale)
    top = (18 if legend else 0) + (4 + LANE_PX * _lanes(shown))
    height = top + len(rows) * ROW_PX + AXIS_PX
    parts = [_axis(scale, top, top + len(rows) * ROW_PX)]
    for number, (name, bars) in enumerate(rows.items()):
        y = top + number * ROW_PX + (ROW_PX - BAR_PX) / 2
        parts.append(f'<text x="{LEFT - 10}" y="{y + 13:.1f}" text-anchor="end">{escape(_short(name))}</text>')
        parts += [_bar(bar, scale, y) for bar in bars]
    parts += _marks(shown, scale, top, top + len(rows) * ROW_PX)
    return _svg(height, parts, legend)


def lines_over_time(
    series: Mapping[str, Sequence[tuple[float, float]]],
    scale: Scale,
    *,
    unit: str = "",
    marks: Iterable[Mark] = (),
    height_px: int = 220,
    as_steps: bool = False,
) -> str:
    """One line a name, from 0 up. `as_steps`: a value holds until the next one."""
    shown = _spread(marks, scale)
    top, bottom = 22.0 + LANE_PX * _lanes(shown), float(height_px)
    highest = max((value for points in series.values() for _, value in points), default=0) or 1
    step = _nice(highest / 4)
    highest = math.ceil(highest / step) * step

    def y(value: float) -> float:
        return bottom - value / highest * (bottom - top)

    parts = [_axis(scale, top, bottom)]
    for number in range(round(highest / step) + 1):
        at = y(number * step)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        label = f"{_number(number * step)}{unit}"
        parts.append(f'<text class="soft" x="{LEFT - 10}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    legend = {}
    for number, (name, points) in enumerate(series.items()):
        colour = legend[name] = PALETTE[number % len(PALETTE)]
        path = _path([(scale.x(at_ms), y(value)) for at_ms, value in points], as_steps)
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>')
    parts += _marks(shown, scale, top, bottom)
    return _svg(height_px + AXIS_PX, parts, legend)


def _path(points: Sequence[tuple[float, float]], as_steps: bool) -> str:
    parts: list[str] = []
    last_y = 0.0
    for x, y in points:
        if as_steps and parts:
            parts.append(f"L{x:.1f} {last_y:.1f}")
        parts.append(f"{'L' if parts else 'M'}{x:.1f} {y:.1f}")
        last_y = y
    return "".join(parts)


def _bar(bar: Bar, scale: Scale, y: float) -> str:
    begin = scale.x(bar.begin_ms)
    width = max(scale.x(bar.end_ms) - begin, 1.5)
    drawn = (
        f'<rect x="{begin:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR_PX}" rx="3" fill="{bar.colour}">'
        f"<title>{escape(bar.tip or bar.text)}</title></rect>"
    )
    if bar.text and width >= max(_LEAST_TEXT_PX, len(bar.text) * 7.2 + 8):
        middle = f'x="{begin + width / 2:.1f}" y="{y + 13:.1f}" text-anchor="middle"'
        drawn += f'<text class="on" {middle}>{escape(bar.text)}</text>'
    return drawn


def _axis(scale: Scale, top: float, bottom: float) -> str:
    """Seconds since the begin, at round numbers."""
    span_s = max(scale.end_ms - scale.begin_ms, 1) / 1000
    step_s = next((step for step in _STEPS_S if span_s / step <= 10), _STEPS_S[-1])
    parts = []
    for number in range(int(span_s / step_s) + 1):
        x = scale.x(scale.begin_ms + number * step_s * 1000)
        label = "0" if number == 0 else duration(number * step_s * 1000).replace(".0 s", " s")
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(f'<text class="soft" x="{x:.1f}" y="{bottom + 17:.1f}" text-anchor="middle">{label}</text>')
    return "".join(parts)


def _marks(marks: Sequence[tuple[Mark, int]], scale: Scale, top: float, bottom: float) -> list[str]:
    parts = []
    for mark, lane in marks:
        x = scale.x(mark.at_ms)
        anchor = "start" if x < WIDTH * 0.7 else "end"
        parts.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 2}" y2="{bottom}"/>')
        if mark.text:
            y = top - 5 - LANE_PX * lane
            parts.append(f'<text class="soft" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(mark.text)}</text>')
    return parts


def _spread(marks: Iterable[Mark], scale: Scale) -> list[tuple[Mark, int]]:
    """Marks with the lane of their words; those that would lie on others in every lane keep their line alone."""
    placed: list[tuple[Mark, int]] = []
    free_from = [float("-inf")] * LANES
    for mark in sorted(marks):
        if not scale.begin_ms <= mark.at_ms <= scale.end_ms:
            continue
        x = scale.x(mark.at_ms)
        begin = x if x < WIDTH * 0.7 else x - len(mark.text) * 6.6
        lane = next((number for number, edge in enumerate(free_from) if begin >= edge), None)
        if lane is None:
            placed.append((mark._replace(text=""), 0))
        else:
            placed.append((mark, lane))
            free_from[lane] = begin + len(mark.text) * 6.6 + 10
    return placed


def _lanes(marks: Sequence[tuple[Mark, int]]) -> int:
    return max((lane + 1 for _, lane in marks), default=0)


def _svg(height: float, parts: Sequence[str], legend: Mapping[str, str] | None) -> str:
    keys, x = [], float(LEFT)
    for name, colour in (legend or {}).items():
        if x > WIDTH - 120:
            break
        keys.append(f'<rect x="{x:.1f}" y="2" width="11" height="11" rx="2" fill="{colour}"/>')
        keys.append(f'<text class="soft" x="{x + 16:.1f}" y="12">{escape(_short(name, 32))}</text>')
        x += 34 + len(_short(name, 32)) * 6.8
    content = "".join([*keys, *parts])
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" xmlns="http://www.w3.org/2000/svg">{content}</svg>'


def _short(name: str, most: int = 18) -> str:
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-most // 2 :]}"


def _nice(rough: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    return float(next(power * step for step in (1, 2, 5, 10) if power * step >= rough))


def _number(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:g}"
