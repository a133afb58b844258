"""Run a benchmark: peers take turns, run by run, so that a slow minute of the machine hits them alike."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.model import Benchmark, Scale
from tests.support.nodes import KafkaNode, Node, TidelogNode

RESULTS = Path(__file__).with_name("results")


def kafka(directory: Path, properties: dict[str, str]) -> Node:
    """Apache Kafka with the flags and the heap of its release."""
    return KafkaNode(directory, properties=properties, heap="1G", quick_start=False)


def tidelog(directory: Path, properties: dict[str, str]) -> Node:
    """Tidelog from this tree."""
    return TidelogNode(directory, properties=properties)


PEERS: dict[str, tuple[type[Node], Callable[[Path, dict[str, str]], Node]]] = {
    "tidelog": (TidelogNode, tidelog),
    "kafka": (KafkaNode, kafka),
}


def run_benchmark(
    kind: type[Benchmark], peers: Sequence[str], runs: int, scale: Scale
) -> dict[str, list[dict[str, float]]]:
    """The raw values of every run that counts, by peer."""
    raw: dict[str, list[dict[str, float]]] = {peer: [] for peer in peers}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch, contextlib.ExitStack() as started:
        benches: dict[str, tuple[Benchmark, Node]] = {}
        for name in peers:
            peer, make = PEERS[name]
            directory = Path(scratch) / name
            node = make(directory, dict(kind.properties))
            bench = kind(scale, peer, directory)
            node.start()
            started.callback(_end, node)
            bench.prepare(node)
            if not kind.keeps_node:
                node.stop()
            benches[name] = bench, node
        for number in range(-kind.discarded_runs, runs):
            order = list(benches) if number % 2 else list(reversed(benches))
            for name in order:
                bench, node = benches[name]
                values = bench.run(node, number + kind.discarded_runs)
                kept = "" if number >= 0 else " (not kept)"
                shown = "  ".join(f"{each.key}={values[each.key]:.4g}" for each in kind.figures)
                print(f"  {kind.name} {name:8} run {number + 1}: {shown}{kept}", file=sys.stderr, flush=True)
                if number >= 0:
                    raw[name].append(values)
    return raw


def _end(node: Node) -> None:
    if node.process is not None:
        node.process.kill()
        node.process = None


def save(
    kind: type[Benchmark],
    raw: dict[str, list[dict[str, float]]],
    machine: dict[str, str],
    command: str,
    *,
    busy: bool,
) -> Path:
    """Keep the raw values, with all that is needed to judge them later."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{kind.name}.json"
    content = {
        "benchmark": kind.name,
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "machine": machine,
        "busy": busy,
        "runs": raw,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def load() -> dict[str, dict[str, Any]]:
    """All kept results, by benchmark."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def median(raw: dict[str, list[dict[str, float]]], peer: str, key: str) -> float | None:
    """The median of a figure over a peer's runs; None when it was not measured."""
    values = [each[key] for each in raw.get(peer, []) if key in each]
    return statistics.median(values) if values else None
