"""A page of HTML that stands alone: a verdict, numbers, pictures, tables. No script, no other file, light and dark."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

GOOD, BAD, PLAIN = "good", "bad", "plain"


@dataclass(frozen=True)
class Card:
    """One number, large, with what it counts."""

    number: str
    label: str
    tone: str = PLAIN


@dataclass(frozen=True)
class Section:
    """A heading, a sentence about what is below it, and that."""

    heading: str
    about: str
    body: str
    """HTML: a table or a picture of this package."""


def page(title: str, verdict: str, *, ok: bool, about: str, cards: Sequence[Card], sections: Iterable[Section]) -> str:
    """The whole document."""
    numbers = "".join(
        f'<div class="card {card.tone}"><b>{escape(card.number)}</b><span>{escape(card.label)}</span></div>'
        for card in cards
    )
    parts = "".join(
        f"<section><h2>{escape(section.heading)}</h2>"
        f"{f'<p>{escape(section.about)}</p>' if section.about else ''}{section.body}</section>"
        for section in sections
    )
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<header><h1>{escape(title)}</h1><p>{escape(about)}</p></header>"
        f'<div class="verdict {GOOD if ok else BAD}">{escape(verdict)}</div>'
        f'<div class="cards">{numbers}</div>{parts}'
        f"<footer>Made by Tidelog, {made}</footer></main></body></html>\n"
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str = "none", most: int = 200) -> str:
    """Rows under headings; numbers to the right. Over `most` rows the rest is counted, not shown."""
    content = list(rows)
    if not content:
        return f'<p class="empty">{escape(empty)}</p>'
    numeric = [all(_is_number(row[column]) for row in content) for column in range(len(headings))]
    head = "".join(f"<th{_right(right)}>{escape(text)}</th>" for text, right in zip(headings, numeric, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{_right(right)}>{_cell(value)}</td>" for value, right in zip(row, numeric, strict=True))
        + "</tr>"
        for row in content[:most]
    )
    more = f'<p class="empty">and {len(content) - most:,} more</p>' if len(content) > most else ""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}'


def save(path: str, document: str) -> str:
    """Write the page as a whole or not at all; its absolute path."""
    target = os.path.abspath(path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(f"{target}.new", "w", encoding="utf-8") as file:
        file.write(document)
    os.replace(f"{target}.new", target)
    return target


def escape(text: Any) -> str:
    """Text that may hold anything, as HTML."""
    return html.escape(str(text), quote=True)


def duration(milliseconds: float | None) -> str:
    """A time for people: 740 ms, 3.2 s, 4 min 10 s."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1_000
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def clock(time_ms: int) -> str:
    """A moment in UTC, to the millisecond."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


def _right(right: bool) -> str:
    return ' class="right"' if right else ""


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = escape(value)
    return f'<span class="short">{text}</span>' if len(text) <= _SHORT_CHARACTERS else text


_SHORT_CHARACTERS = 24
"""So short a text stands on one line."""
_STYLE = """
:root{--ink:#16202c;--soft:#5d6b7a;--paper:#f6f8fa;--panel:#fff;--line:#dde3ea;--good:#0b7a53;--goodbg:#e2f5ec;
--bad:#b3261e;--badbg:#fde8e6;--grid:#e8edf2}
@media (prefers-color-scheme:dark){:root{--ink:#e4eaf1;--soft:#93a1b1;--paper:#10161d;--panel:#18212b;--line:#2a3643;
--good:#58d6a4;--goodbg:#12352a;--bad:#ff8f85;--badbg:#431d1a;--grid:#25303c}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:36px 24px 60px}
h1{font-size:27px;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:18px;margin:0 0 2px}
header p,section>p{color:var(--soft);margin:0 0 14px}
.verdict{margin:18px 0 16px;padding:14px 18px;border-radius:10px;font-size:17px;font-weight:600;border-left:6px solid}
.verdict.good{background:var(--goodbg);color:var(--good);border-color:var(--good)}
.verdict.bad{background:var(--badbg);color:var(--bad);border-color:var(--bad)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(132px,1fr));gap:12px;margin-bottom:16px}
.card{background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.card b{display:block;font-size:24px;line-height:1.2;font-variant-numeric:tabular-nums;white-space:nowrap}
.card span{color:var(--soft);font-size:13px}
.card.good b{color:var(--good)} .card.bad b{color:var(--bad)}
section{background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:18px 20px;margin-top:16px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th{color:var(--soft);font-weight:600;text-align:left;border-bottom:1px solid var(--line);padding:6px 14px 6px 0;
white-space:nowrap}
td{border-bottom:1px solid var(--grid);padding:6px 14px 6px 0;vertical-align:top}
tr:last-child td{border-bottom:0}
.right{text-align:right} .short{white-space:nowrap} .empty{color:var(--soft);margin:4px 0}
svg{display:block;width:100%;height:auto} svg text{fill:var(--ink);font-size:12px}
svg .soft{fill:var(--soft)} svg .grid{stroke:var(--grid)} svg .mark{stroke:var(--bad);stroke-dasharray:3 3}
svg .on{fill:#fff;font-weight:600}
footer{color:var(--soft);font-size:13px;margin-top:24px}
"""
