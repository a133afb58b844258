"""`replicas`: the same bytes are found to be the same, and one flipped bit is found, named and shown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.clients import confluent
from tests.clients.samples import Record
from tests.support.nodes import TidelogNode
from tidelog.errors import ConfigError
from tidelog.spark.pipelines import replicas
from tidelog.spark.pipelines.declaration import Outcome
from tidelog.spark.pipelines.progress import Silent
from tidelog.spark.pipelines.replicas import Replica
from tidelog.wire.batch import Record as Stored
from tidelog.wire.batch import build_batch, iterate_batches

COUNT = 300


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node's data directory after a clean stop: its high watermarks are written down."""
    directory = tmp_path_factory.mktemp("original")
    with TidelogNode(directory) as node:
        for topic in ("orders", "profiles"):
            confluent.create_topic(node, topic, 1)
        confluent.produce_all(
            node, "orders", [Record(b"k", b"value %d" % each, 1) for each in range(COUNT)], batch_size=2_000
        )
        confluent.produce_all(node, "profiles", [Record(b"%d" % (each % 3), b"%d" % each, 1) for each in range(30)])
        node.stop()
    return node.data_directory


@pytest.fixture
def cluster(original: Path, tmp_path: Path) -> Path:
    """The directory as three nodes of a local cluster would have it."""
    for node in (1, 2, 3):
        shutil.copytree(original, tmp_path / f"node-{node}" / "data")
    return tmp_path


def segment(cluster: Path, node: int, topic: str) -> Path:
    return next((cluster / f"node-{node}" / "data" / f"{topic}-0").glob("*.log"))


def compare(spark: SparkSession, cluster: Path, **options: str) -> Outcome:
    return replicas.run(spark, replicas.PIPELINE.options_of(dir=str(cluster), **options), Silent())


def test_identical_replicas_and_one_that_lost_a_bit_and_one_that_was_forged(spark: SparkSession, cluster: Path) -> None:
    report = cluster / "report.html"
    (cluster / "node-4" / "data").mkdir(parents=True)  # has no replica of anything
    outcome = compare(spark, cluster, report=str(report))
    assert outcome.ok
    assert outcome.lines[-1] == f"4 pairs of replicas, {2 * COUNT + 2 * 30} committed offsets: identical"

    damaged = segment(cluster, 2, "orders")
    data = bytearray(damaged.read_bytes())
    batches = list(iterate_batches(memoryview(bytes(data))))
    middle = batches[len(batches) // 2]
    position = bytes(data).index(bytes(middle.data))
    data[position + len(middle.data) - 3] ^= 1
    damaged.write_bytes(data)

    forged = segment(cluster, 3, "orders")
    content = forged.read_bytes()
    last = list(iterate_batches(memoryview(content)))[-1]
    count = last.last_offset - last.base_offset + 1
    records = [Stored(each, 1, b"k", b"forged") for each in range(count)]
    batch = bytearray(build_batch(records))
    batch[0:8] = last.base_offset.to_bytes(8, "big")
    forged.write_bytes(content[: -len(last.data)] + bytes(batch))

    outcome = compare(spark, cluster, topics="orders", report=str(report))
    assert not outcome.ok
    lost, other = outcome.details["differences"]
    assert (lost["node"], lost["offset"], lost["here"]) == (2, middle.base_offset, "no sound record")
    assert lost["records"] == middle.last_offset - middle.base_offset + 1
    assert f"value value {middle.base_offset}" in lost["there"]
    assert str(damaged) in lost["damage"]
    assert (other["node"], other["offset"], other["damage"]) == (3, last.base_offset, "")
    assert "value forged" in other["here"]
    assert f"value value {last.base_offset}" in other["there"]
    assert "2 pairs DIFFER" in report.read_text()


def test_of_compacted_topics_the_last_value_of_each_key_counts(spark: SparkSession, cluster: Path) -> None:
    """Node 2 has cleaned its log, the others have not; node 3 has another last value."""

    def rewrite(node: int, values: dict[int, tuple[bytes, bytes | None]]) -> None:
        records = [Stored(offset, 1, key, value) for offset, (key, value) in values.items()]
        segment(cluster, node, "profiles").write_bytes(build_batch(records))

    rewrite(2, {27: (b"0", b"27"), 28: (b"1", b"28"), 29: (b"2", b"29")})
    assert not compare(spark, cluster, topics="profiles").ok
    outcome = compare(spark, cluster, topics="profiles", compacted="profiles")
    assert outcome.ok, outcome.lines
    rewrite(3, {27: (b"0", b"27"), 28: (b"1", None), 29: (b"2", b"29")})
    outcome = compare(spark, cluster, topics="profiles", compacted="profiles")
    (found,) = outcome.details["differences"]
    assert (found["node"], found["offset"], found["records"], found["here"]) == (3, 28, 1, "no sound record")


def test_which_offsets_are_compared() -> None:
    """Below what both know to be committed, and not what retention took on one side already."""
    found = [
        Replica(1, "t", 0, "a", start=0, high_watermark=100),
        Replica(2, "t", 0, "b", start=20, high_watermark=120),
        Replica(3, "t", 0, "c", start=0, high_watermark=0),
        Replica(3, "alone", 0, "d", start=0, high_watermark=5),
    ]
    assert replicas.bounds_of(found) == [(1, "t", 0, 2, 20, 100), (3, "t", 0, 2, 20, 20)]


def test_directories_that_are_none(tmp_path: Path) -> None:
    options = replicas.PIPELINE.options_of
    with pytest.raises(ConfigError, match="name one of them"):
        replicas.directories_of(options())
    with pytest.raises(ConfigError, match="no directory of a local cluster"):
        replicas.directories_of(options(dir=str(tmp_path)))
    with pytest.raises(ConfigError, match="is not NODE=DIRECTORY"):
        replicas.directories_of(options(replicas="1=/nowhere"))
    with pytest.raises(ConfigError, match="no node has a replica of orders"):
        replicas.find_replicas({1: [str(tmp_path)]}, ["orders"])
