"""Every benchmark, in the order of the page."""

from __future__ import annotations

from benchmarks.figures.idle_partitions import IdlePartitions
from benchmarks.figures.latency import Latency
from benchmarks.figures.memory import Memory
from benchmarks.figures.start_up import StartUp
from benchmarks.figures.throughput import Throughput
from benchmarks.model import Benchmark

BENCHMARKS: tuple[type[Benchmark], ...] = (StartUp, Memory, Throughput, Latency, IdlePartitions)
