"""What a benchmark is: figures it yields, what they should reach, and one run of one peer."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

Peer = TypeVar("Peer")
"""What is measured: one node, or a cluster of three."""


@dataclass(frozen=True)
class Figure:
    """One row of the table. A target is met by the statistic; `ratio` is Tidelog's value divided by Kafka's."""

    key: str
    label: str
    unit: str
    higher_is_better: bool = False
    at_most: float | None = None
    at_least: float | None = None
    ratio_at_most: float | None = None
    ratio_at_least: float | None = None
    statistic: Literal["median", "worst"] = "median"
    """What of the runs is held against the target."""

    @property
    def target(self) -> str:
        """The target in words; empty for a figure that is only shown."""
        parts = []
        if self.at_most is not None:
            parts.append(f"≤ {self.at_most:g} {self.unit}")
        if self.at_least is not None:
            parts.append(f"≥ {self.at_least:g} {self.unit}")
        if self.ratio_at_most is not None:
            parts.append(f"≤ {self.ratio_at_most:g} × Kafka")
        if self.ratio_at_least is not None:
            parts.append(f"≥ {self.ratio_at_least:g} × Kafka")
        return ", ".join(parts)

    def is_met(self, tidelog: float, kafka: float | None) -> bool:
        """Whether every part of the target is reached; a part that needs Kafka is not, without it."""
        ratio = None if not kafka else tidelog / kafka
        checks = (
            self.at_most is None or tidelog <= self.at_most,
            self.at_least is None or tidelog >= self.at_least,
            self.ratio_at_most is None or (ratio is not None and ratio <= self.ratio_at_most),
            self.ratio_at_least is None or (ratio is not None and ratio >= self.ratio_at_least),
        )
        return all(checks)


@dataclass(frozen=True)
class Scale:
    """How much of everything: `quick` only shows that the harness works."""

    quick: bool

    def choose(self, full: int, quick: int) -> int:
        """A size."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Plot:
    """How figures grow along an axis, as a picture on the page: the points are figures of the benchmark."""

    file: str
    title: str
    axis: str
    unit: str
    points: tuple[tuple[float, str], ...]
    """Place on the axis (drawn as a logarithm) and the key of the figure there."""


class Benchmark(abc.ABC, Generic[Peer]):
    """One benchmark. An object lives for a whole session of one peer; `run` is called once for each run."""

    name: ClassVar[str]
    title: ClassVar[str]
    method: ClassVar[str]
    """How it is measured, in a few sentences for the page."""
    figures: ClassVar[tuple[Figure, ...]]
    keeps_node: ClassVar[bool] = True
    """Whether one node serves all runs (it is warm then), or each run starts its own."""
    discarded_runs: ClassVar[int] = 1
    """Runs before the first that counts: they warm Kafka's JVM, and Tidelog gets the same."""
    properties: ClassVar[Mapping[str, str]] = {}
    nodes: ClassVar[int] = 1
    """One node, or a cluster of three."""
    in_table: ClassVar[bool] = True
    """Whether its figures are rows of the page; those that are only drawn are not."""
    plots: ClassVar[tuple[Plot, ...]] = ()

    def __init__(self, scale: Scale, peer: str, directory: Path) -> None:
        self.scale = scale
        self.peer = peer
        self.directory = directory

    @classmethod
    def runs_of(cls, peer: str, runs: int) -> int:
        """How many runs of a peer count, where it is not as many as asked for: some take minutes with one of them."""
        return runs

    def prepare(self, node: Peer) -> None:
        """What has to be there before the first run; `node` runs."""

    @abc.abstractmethod
    def run(self, node: Peer, number: int) -> dict[str, float]:
        """One run: a value for each figure. With `keeps_node` the node runs; otherwise it is prepared and stopped."""


AnyBenchmark = type[Benchmark[Any]]
