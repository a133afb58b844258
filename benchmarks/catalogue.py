"""Every benchmark, in the order of the page."""

from __future__ import annotations

from benchmarks.figures.cluster_failover import Failover, FailoverWithController
from benchmarks.figures.cluster_growth import ClusterGrowth
from benchmarks.figures.cluster_latency import ClusterLatency
from benchmarks.figures.cluster_partitions import ClusterPartitions
from benchmarks.figures.cluster_start_up import ClusterStartUp
from benchmarks.figures.cluster_throughput import ClusterMemory, ClusterThroughput
from benchmarks.figures.compaction import Compaction
from benchmarks.figures.groups import GroupRead, Rebalance
from benchmarks.figures.idle_partitions import IdlePartitions
from benchmarks.figures.latency import Latency
from benchmarks.figures.memory import Memory
from benchmarks.figures.spark_land import SparkLand
from benchmarks.figures.spark_sink import SparkSink
from benchmarks.figures.spark_source import SparkSource
from benchmarks.figures.start_up import StartUp
from benchmarks.figures.throughput import Throughput
from benchmarks.figures.transactions import Transactions
from benchmarks.model import AnyBenchmark

BENCHMARKS: tuple[AnyBenchmark, ...] = (
    StartUp,
    Memory,
    Throughput,
    Latency,
    IdlePartitions,
    Failover,
    FailoverWithController,
    ClusterStartUp,
    ClusterMemory,
    ClusterThroughput,
    ClusterLatency,
    Transactions,
    Rebalance,
    GroupRead,
    Compaction,
    ClusterPartitions,
    ClusterGrowth,
    SparkSource,
    SparkSink,
    SparkLand,
)
