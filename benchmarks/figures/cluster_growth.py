"""How produce with three replicas grows with partitions, with the size of a record, and with producers."""

from __future__ import annotations

import os
from typing import ClassVar

from benchmarks import clients
from benchmarks.cluster import Cluster
from benchmarks.model import Benchmark, Figure, Plot

MEGABYTE = 1_000_000
PARTITIONS = (1, 3, 10, 30, 100, 300)
SIZES_BYTES = (10, 100, 1_000, 10_000, 100_000)
PRODUCERS = (1, 2, 4, 8)
BYTES = 300 * MEGABYTE
MOST_RECORDS = 3_000_000


class ClusterGrowth(Benchmark[Cluster]):
    """Three axes, each alone, the others as in the throughput figure."""

    name: ClassVar[str] = "cluster-growth"
    title: ClassVar[str] = "Three nodes: how produce grows"
    method: ClassVar[str] = (
        "Three replicas, acks=all, no compression, 300 MB (at most 3,000,000 records) a point. Unless it is the axis:"
        " three partitions, records of 1 kB, one producer process. The dots are medians, the bars go from the least to"
        " the most of the runs."
    )
    figures: ClassVar[tuple[Figure, ...]] = (
        *(Figure(f"partitions_{each}", f"{each} partitions", "MB/s", higher_is_better=True) for each in PARTITIONS),
        *(Figure(f"size_{each}", f"records of {each} B", "MB/s", higher_is_better=True) for each in SIZES_BYTES),
        *(Figure(f"producers_{each}", f"{each} producers", "MB/s", higher_is_better=True) for each in PRODUCERS),
    )
    nodes: ClassVar[int] = 3
    in_table: ClassVar[bool] = False
    plots: ClassVar[tuple[Plot, ...]] = (
        Plot(
            "growth-partitions.svg",
            "Produce by number of partitions",
            "partitions of the topic",
            "MB/s",
            tuple((each, f"partitions_{each}") for each in PARTITIONS),
        ),
        Plot(
            "growth-record-size.svg",
            "Produce by size of a record",
            "bytes of a record",
            "MB/s",
            tuple((each, f"size_{each}") for each in SIZES_BYTES),
        ),
        Plot(
            "growth-producers.svg",
            "Produce by number of producer processes",
            "producer processes",
            "MB/s",
            tuple((each, f"producers_{each}") for each in PRODUCERS),
        ),
    )

    @classmethod
    def runs_of(cls, peer: str, runs: int) -> int:
        """Fifteen points a run."""
        return min(runs, 3)

    def run(self, node: Cluster, number: int) -> dict[str, float]:
        """Every point once."""
        values = {}
        for each in PARTITIONS:
            values[f"partitions_{each}"] = self._point(node, f"p{each}-{number}", partitions=each)
        for each in SIZES_BYTES:
            values[f"size_{each}"] = self._point(node, f"s{each}-{number}", size=each)
        for each in PRODUCERS:
            values[f"producers_{each}"] = self._point(node, f"n{each}-{number}", producers=each)
        return values

    def _point(
        self, cluster: Cluster, topic: str, *, partitions: int = 3, size: int = 1_000, producers: int = 1
    ) -> float:
        total = self.scale.choose(BYTES, BYTES // 30)
        records = min(total // size, self.scale.choose(MOST_RECORDS, MOST_RECORDS // 30)) // producers
        cluster.create_topic(topic, partitions)
        answer = clients.produce_together(
            producers,
            bootstrap=cluster.bootstrap,
            topic=topic,
            partitions=partitions,
            records=max(records, 1),
            size=size,
        )
        cluster.delete_topic(topic)
        os.sync()
        return answer["bytes"] / answer["seconds"] / MEGABYTE
