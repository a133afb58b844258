"""Run a benchmark: peers take turns, run by run, so that a slow minute of the machine hits them alike."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cluster import Cluster
from benchmarks.model import AnyBenchmark, Benchmark, Figure, Scale
from tests.support.nodes import KafkaNode, Node, TidelogNode

RESULTS = Path(__file__).with_name("results")
PEERS = ("tidelog", "kafka")


def make(kind: AnyBenchmark, peer: str, directory: Path) -> Node | Cluster:
    """What a benchmark measures: one node or three, Apache Kafka with the flags and the heap of its release."""
    properties: Mapping[str, str] = kind.properties
    if kind.nodes > 1:
        return Cluster(peer, directory, properties)
    if peer == "kafka":
        return KafkaNode(directory, properties=properties, heap="1G", quick_start=False)
    return TidelogNode(directory, properties=properties)


def turns(kind: AnyBenchmark, peers: Sequence[str], runs: int) -> list[tuple[int, str]]:
    """Who runs when: numbers below 0 do not count. A peer with fewer runs has them spread over the session."""
    order: list[tuple[float, int, str]] = []
    for place, peer in enumerate(peers):
        counted = kind.runs_of(peer, runs)
        most = max(kind.runs_of(each, runs) for each in peers)
        for number in range(-kind.discarded_runs, counted):
            moment = float(number) if number < 0 else number * most / counted
            order.append((moment, place if number % 2 else -place, peer))
    order.sort()
    seen = dict.fromkeys(peers, -kind.discarded_runs)
    result = []
    for _, _, peer in order:
        result.append((seen[peer], peer))
        seen[peer] += 1
    return result


def run_benchmark(
    kind: AnyBenchmark, peers: Sequence[str], runs: int, scale: Scale
) -> dict[str, list[dict[str, float]]]:
    """The raw values of every run that counts, by peer."""
    raw: dict[str, list[dict[str, float]]] = {peer: [] for peer in peers}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch, contextlib.ExitStack() as started:
        benches: dict[str, tuple[Benchmark[Any], Node | Cluster]] = {}
        for name in peers:
            directory = Path(scratch) / name
            node = make(kind, name, directory)
            bench = kind(scale, name, directory)
            started.callback(_end, node)
            node.start()
            bench.prepare(node)
            if not kind.keeps_node:
                node.stop()
            benches[name] = bench, node
        for number, name in turns(kind, peers, runs):
            bench, node = benches[name]
            values = bench.run(node, number + kind.discarded_runs)
            kept = "" if number >= 0 else " (not kept)"
            shown = "  ".join(f"{key}={values[key]:.4g}" for key in dict.fromkeys(each.key for each in kind.figures))
            print(f"  {kind.name} {name:8} run {number + 1}: {shown}{kept}", file=sys.stderr, flush=True)
            if number >= 0:
                raw[name].append(values)
    return raw


def _end(node: Node | Cluster) -> None:
    if isinstance(node, Cluster):
        node.end()
    elif node.process is not None:
        node.process.kill()
        node.process = None


def save(
    kind: AnyBenchmark,
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
    values = [run[key] for run in raw.get(peer, ()) if key in run]
    return statistics.median(values) if values else None


def value(raw: dict[str, list[dict[str, float]]], peer: str, figure: Figure) -> float | None:
    """What of a peer's runs is held against the target."""
    if figure.statistic == "median":
        return median(raw, peer, figure.key)
    values = [run[figure.key] for run in raw.get(peer, ()) if figure.key in run]
    worst = min if figure.higher_is_better else max
    return worst(values) if values else None
