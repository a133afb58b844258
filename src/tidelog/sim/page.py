"""A history as one page of HTML that stands alone: a lane a node, what it held, who led, what went wrong.

The pictures of the whole are in the page as they are; a small script shows the replicas at any moment of it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from tidelog.sim.page_style import SCRIPT, STYLE
from tidelog.sim.recording import DOWN, LEADER, OFF, PAUSED, UP, Recording, ReplicaState
from tidelog.sim.shape import Shape
from tidelog.sim.swarm import Outcome

WIDTH, LEFT = 1000, 74
LANE, GAP, AXIS = 34, 6, 22
FAULT = re.compile(r"fault (?P<kind>.+?) (?P<places>\w+(?:-\w+)*)(?: \(the leader.*?\))? for (?P<duration>\d+) ms")
COLOURS = ("#2f6fde", "#2a9d6f", "#8a56c9", "#0f8b9d", "#5f7d0d", "#a0632f", "#c2456b", "#4f5bd5")
"""One for each epoch, in turn."""


def page(outcome: Outcome, recording: Recording, shape: Shape, command: str) -> str:
    """The whole document."""
    lines = [_line(text) for text in outcome.trace]
    end_ms = max([outcome.simulated_ms, 1])
    painter = _Painter(end_ms, [(ms, text) for ms, text in lines if ms is not None], bool(outcome.finding))
    partitions = sorted(recording.replicas)
    verdict = outcome.finding or "all is well"
    sections = "".join(
        f"<section><h2>{_escape(f'{topic}-{index}')}</h2><p>{_about(shape, topic, index)}</p>"
        f'<div class="wide">{painter.partition(recording, topic, index)}</div>'
        f'<div class="wide state" data-partition="{_escape(f"{topic}-{index}")}"></div></section>'
        for topic, index in partitions
    )
    trace = "".join(_trace_line(moment, text) for moment, text in lines)
    data = json.dumps(_data(outcome, recording, end_ms), separators=(",", ":")).replace("</", "<\\/")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Seed {outcome.seed}: {_escape(verdict[:80])}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>Seed {outcome.seed}</h1>"
        f'<p class="verdict {"bad" if outcome.finding else "good"}" role="status">{_escape(verdict)}</p>'
        f"<p>{outcome.simulated_ms / 1000:.1f} simulated seconds, {outcome.operations:,} operations, {outcome.faults} "
        f"faults. Play it again: <code>{_escape(command)}</code></p>"
        '<form id="moment" class="moment"><button type="button" data-go="-1">Earlier event</button>'
        '<button type="button" data-go="1">Later event</button>'
        f'<label>Moment <input type="range" id="at" min="0" max="{end_ms}" value="{end_ms}" step="10"></label>'
        '<output id="shown" for="at"></output></form>'
        f'<section><h2>Nodes and faults</h2><p>{KEY}</p><div class="wide">{painter.nodes(recording)}</div></section>'
        f"{sections}"
        f'<section><h2>What happened</h2><ol class="trace">{trace}</ol></section>'
        f'<script type="application/json" id="data">{data}</script><script>{SCRIPT}</script></main></body></html>\n'
    )


KEY = (
    "A bar is a node that runs: pale while it is paused, nothing while it is down. Above it, in the colour of its "
    "epoch, the time it was the active controller. Red marks are faults; a red line at the end is the finding."
)


def _about(shape: Shape, topic: str, index: int) -> str:
    known = next((one for one in shape.topics if one.name == topic), None)
    text = (
        "A filled lane leads, in the colour of its epoch; the line in a lane is its log end, the fill its watermark; "
    )
    text += "the green edge below says in sync."
    if known is None or index >= len(known.assignment):
        return text
    replicas = ", ".join(map(str, known.assignment[index]))
    later = " at first" if any(one.topic == topic for one in shape.min_isr_changes) else ""
    return f"Replicas {replicas}, min.insync.replicas {known.min_insync_replicas}{later}. {text}"


class _Painter:
    """Pictures over time, as SVG."""

    def __init__(self, end_ms: int, lines: Sequence[tuple[int, str]], has_finding: bool) -> None:
        self._end_ms = end_ms
        self._has_finding = has_finding
        self._faults = [(ms, text, found) for ms, text in lines if (found := FAULT.match(text))]

    def _x(self, ms: float) -> float:
        return round(LEFT + (WIDTH - LEFT - 8) * min(ms, self._end_ms) / self._end_ms, 1)

    def nodes(self, recording: Recording) -> str:
        """Lives, controllers, and faults at the nodes they hit."""
        parts = []
        for row, node_id in enumerate(recording.nodes):
            top = row * (LANE + GAP)
            parts.append(_name(top, f"node {node_id}"))
            for begin, end, state in self._stretches(recording.lives[node_id]):
                if state in (UP, PAUSED):
                    tip = f"node {node_id} {state} from {begin} to {end} ms"
                    parts.append(self._bar(begin, end, top + 4, 12, "life" if state == UP else "life paused", tip))
            for ms, text, found in self._faults:
                if str(node_id) in found["places"].split("-"):
                    length_ms = min(int(found["duration"]), self._end_ms - ms)
                    parts.append(self._bar(ms, ms + length_ms, top + 18, 5, "fault", text))
                    parts.append(f'<path class="fault" d="M{self._x(ms)} {top + 25}l-4 7h8z"><title>')
                    parts.append(f"{ms} ms: {_escape(text)}</title></path>")
        for (begin, node_id, epoch), end in zip(recording.controllers, self._ends(recording.controllers), strict=True):
            top = recording.nodes.index(node_id) * (LANE + GAP)
            tip = f"node {node_id} is the active controller, epoch {epoch}, from {begin} ms"
            parts.append(self._bar(begin, end, top, 4, "", tip, _colour(epoch)))
        return self._svg("Nodes and faults over time", len(recording.nodes), parts)

    def partition(self, recording: Recording, topic: str, index: int) -> str:
        """Roles, epochs, log ends, watermarks and who is in sync, a lane a node."""
        lanes = recording.replicas[topic, index]
        most = max(1, *(state.log_end for lane in lanes.values() for _, state in lane))
        in_sync = self._in_sync(lanes)
        parts = []
        for row, (node_id, lane) in enumerate(sorted(lanes.items())):
            top = row * (LANE + GAP)
            parts.append(_name(top, f"node {node_id}"))
            for begin, end, (role, epoch) in self._stretches([(ms, (one.role, one.leader_epoch)) for ms, one in lane]):
                tip = f"node {node_id}: {role or 'nothing'} in epoch {epoch}, from {begin} to {end} ms"
                parts.append(
                    self._bar(begin, end, top, LANE, "lead" if role == LEADER else "follow", tip, _colour(epoch))
                )
                if role == LEADER and self._x(end) - self._x(begin) > 60:
                    parts.append(f'<text class="on" x="{self._x(begin) + 5}" y="{top + 13}">epoch {epoch}</text>')
            points = [(self._x(ms), one) for ms, one in lane]
            parts.append(f'<path class="committed" d="{_area(points, top, most)}L{WIDTH - 8} {top + LANE}z"/>')
            parts.append(f'<path class="end" d="{_line_of(points, top, most)}"/>')
            for begin, end, members in in_sync:
                if node_id in members:
                    parts.append(self._bar(begin, end, top + LANE - 3, 3, "isr", f"in sync: {members}"))
            for begin, end, state in self._stretches(recording.lives[node_id]):
                if state in (DOWN, OFF):
                    parts.append(self._bar(begin, end, top, LANE, "away", f"node {node_id} is {state}"))
        return self._svg(f"Replicas of {topic}-{index} over time", len(lanes), parts)

    def _in_sync(self, lanes: dict[int, list[tuple[int, ReplicaState]]]) -> list[tuple[int, int, tuple[int, ...]]]:
        """Who was in sync when, as the leader of the newest epoch has it."""
        told = [(ms, one.leader_epoch, one.isr) for lane in lanes.values() for ms, one in lane if one.role == LEADER]
        changes: list[tuple[int, tuple[int, ...]]] = []
        newest = -1
        for ms, epoch, isr in sorted(told):
            if epoch >= newest and (not changes or changes[-1][1] != isr):
                changes.append((ms, isr))
            newest = max(newest, epoch)
        return self._stretches(changes)

    def _stretches(self, changes: Sequence[tuple[int, Any]]) -> list[tuple[int, int, Any]]:
        """From, to, and what was so; changes to the same are no changes."""
        kept = [one for place, one in enumerate(changes) if place == 0 or changes[place - 1][1] != one[1]]
        return [(one[0], end, one[1]) for one, end in zip(kept, self._ends(kept), strict=True)]

    def _ends(self, changes: Sequence[tuple[Any, ...]]) -> list[int]:
        return [*(one[0] for one in changes[1:]), self._end_ms] if changes else []

    def _bar(self, begin: int, end: int, top: int, height: int, kind: str, tip: str, colour: str = "") -> str:
        width = max(1.0, round(self._x(end) - self._x(begin), 1))
        fill = f' fill="{colour}"' if colour else ""
        return (
            f'<rect class="{kind}" x="{self._x(begin)}" y="{top}" width="{width}" height="{height}"{fill}>'
            f"<title>{_escape(tip)}</title></rect>"
        )

    def _svg(self, label: str, rows: int, parts: Iterable[str]) -> str:
        height = rows * (LANE + GAP) + AXIS
        seconds = self._end_ms / 1000
        step = next((one for one in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if seconds / one <= 12), 60)
        axis = "".join(
            f'<line class="grid" x1="{x}" x2="{x}" y1="0" y2="{height - AXIS}"/>'
            f'<text class="soft" x="{x}" y="{height - 6}" text-anchor="middle">{number * step:g} s</text>'
            for number in range(int(seconds / step) + 1)
            for x in [self._x(number * step * 1000)]
        )
        found = f'<line class="found" x1="{WIDTH - 8}" x2="{WIDTH - 8}" y1="0" y2="{height - AXIS}"/>'
        return (
            f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{_escape(label)}" data-left="{LEFT}" '
            f'data-right="{WIDTH - 8}">{axis}{"".join(parts)}{found if self._has_finding else ""}'
            f'<line class="cursor" x1="{LEFT}" x2="{LEFT}" y1="0" y2="{height - AXIS}"/></svg>'
        )


def _area(points: Sequence[tuple[float, ReplicaState]], top: int, most: int) -> str:
    """A path along the watermark, with steps, from the floor of the lane."""
    heights = [(x, top + LANE - (LANE - 2) * max(0, one.high_watermark) / most) for x, one in points]
    return f"M{points[0][0]} {top + LANE}" + _steps(heights)


def _line_of(points: Sequence[tuple[float, ReplicaState]], top: int, most: int) -> str:
    heights = [(x, top + LANE - (LANE - 2) * one.log_end / most) for x, one in points]
    return f"M{heights[0][0]} {heights[0][1]:.1f}" + _steps(heights)


def _steps(heights: Sequence[tuple[float, float]]) -> str:
    found, before = [], ""
    for x, y in heights:
        text = f"H{x}V{y:.1f}"
        if text != before:
            found.append(text)
        before = text
    return "".join(found) + f"H{WIDTH - 8}"


def _name(top: int, text: str) -> str:
    return f'<text x="2" y="{top + 20}">{_escape(text)}</text>'


def _line(text: str) -> tuple[int | None, str]:
    """The moment and the words of a line of the trace; lines of a traceback have no moment."""
    moment, _, words = text.strip().partition("  ")
    return (int(moment), words) if moment.isdigit() else (None, text)


def _trace_line(moment: int | None, text: str) -> str:
    if moment is None:
        return f'<li class="found"><pre>{_escape(text)}</pre></li>'
    kind = text.partition(" ")[0]
    style = {"FOUND": "found", "fault": "fault", "admin:": "quiet"}.get(kind, "")
    if ": replica-positions: " in text:
        style = "quiet"
    return (
        f'<li class="{style}" data-ms="{moment}"><a href="#ms={moment}">{moment / 1000:.3f}</a> '
        f"<span>{_escape(text)}</span></li>"
    )


def _data(outcome: Outcome, recording: Recording, end_ms: int) -> dict[str, Any]:
    """What the script draws moments from: every tuple of epochs once, and states as short lists."""
    histories: dict[tuple[tuple[int, int], ...], int] = {}
    partitions = {}
    for (topic, index), lanes in sorted(recording.replicas.items()):
        partitions[f"{topic}-{index}"] = {
            str(node_id): [
                [
                    *(ms, state.role, state.leader_epoch, state.log_start, state.log_end, state.high_watermark),
                    histories.setdefault(state.epochs, len(histories)),
                    list(state.isr),
                ]
                for ms, state in lane
            ]
            for node_id, lane in sorted(lanes.items())
        }
    return {
        "end": end_ms,
        "found": bool(outcome.finding),
        "colours": COLOURS,
        "epochs": [list(map(list, one)) for one in histories],
        "lives": {str(node_id): changes for node_id, changes in recording.lives.items()},
        "partitions": partitions,
    }


def _colour(epoch: int) -> str:
    return COLOURS[epoch % len(COLOURS)]


def _escape(text: Any) -> str:
    return html.escape(str(text), quote=True)
