"""`spark.read.format("tidelog_segments")`: log directories without a broker, whole, damaged, and half written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.clients import confluent, samples
from tests.clients.samples import CODECS, Record
from tests.support.nodes import TidelogNode
from tidelog.errors import ConfigError, CorruptionError
from tidelog.spark import segments_files, segments_reading
from tidelog.spark.segments import SegmentsReader
from tidelog.spark.source_schema import segments_schema
from tidelog.wire.batch import Record as WireRecord
from tidelog.wire.batch import build_batch, build_end_marker

TOPIC = "orders"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a node that has stopped: every codec, and several segments."""
    directory = tmp_path_factory.mktemp("segments")
    with TidelogNode(directory) as node:
        confluent.create_topic(node, TOPIC, len(CODECS), {"segment.ms": "50", "index.interval.bytes": "10"})
        for partition, codec in enumerate(CODECS):
            settings = {"compression_type": codec, "batch_num_messages": 20}
            confluent.produce_all(node, TOPIC, samples.every_shape(), partition=partition, **settings)
    return node.data_directory


@pytest.fixture
def copied(stopped: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(stopped, tmp_path / "data"))


def rows(path: Path | str, **given: str) -> list[dict[str, Any]]:
    """All rows, read in this process."""
    reader = SegmentsReader({"path": str(path)} | given, segments_schema(), 2)
    found = [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def test_files_hold_what_was_written(spark: SparkSession, stopped: Path) -> None:
    """On a real Spark, by partition and codec."""
    found: dict[int, list[Record]] = {}
    frame = spark.read.format("tidelog_segments").load(str(stopped))
    for row in sorted(frame.collect(), key=lambda each: (each.partition, each.offset)):
        assert row.offset == len(found.setdefault(row.partition, []))
        assert Path(row.path).parent == stopped / f"{TOPIC}-{row.partition}"
        headers = tuple((each.key, None if each.value is None else bytes(each.value)) for each in row.headers or ())
        key = None if row.key is None else bytes(row.key)
        value = None if row.value is None else bytes(row.value)
        found[row.partition].append(Record(key, value, round(row.timestamp.timestamp() * 1000), headers))
    assert found == {partition: samples.every_shape() for partition in range(len(CODECS))}


def test_directories_partitions_files_and_patterns(stopped: Path) -> None:
    everything = rows(stopped)
    assert len({row["path"] for row in everything}) > len(CODECS), "several segments a partition"
    assert rows(f"{stopped}/{TOPIC}-*") == everything
    one = rows(stopped / f"{TOPIC}-2")
    assert one == [row for row in everything if row["partition"] == 2]
    first = min((stopped / f"{TOPIC}-0").glob("*.log"))
    assert rows(first) == [row for row in everything if row["path"] == str(first)]
    assert rows(stopped, subscribe=TOPIC) == everything
    with pytest.raises(ConfigError, match="no partition's log"):
        rows(stopped, subscribePattern="o")
    with pytest.raises(ConfigError, match="there is no such file or directory"):
        rows(stopped / "nowhere")


def test_large_segments_are_split_where_batches_begin(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows(stopped)
    monkeypatch.setattr(segments_files, "SMALLEST_PIECE_BYTES", 1)
    monkeypatch.setattr(segments_files, "TASKS_A_CORE", 50)
    monkeypatch.setattr("tidelog.spark.segments.SMALLEST_PIECE_BYTES", 1)
    monkeypatch.setattr("tidelog.spark.segments.TASKS_A_CORE", 50)
    monkeypatch.setattr(segments_reading, "CHUNK_BYTES", 200)
    reader = SegmentsReader({"path": str(stopped)}, segments_schema(), 2)
    tasks = reader.partitions()
    assert any(task.piece.start for task in tasks)  # type: ignore[attr-defined]
    assert rows(stopped) == whole, "and a batch larger than what is read at once is read"


def test_what_is_not_committed_is_read_only_when_asked_for(copied: Path) -> None:
    checkpoint = copied / "replication-offset-checkpoint"
    lines = [line if f"{TOPIC} 0 " not in line else f"{TOPIC} 0 17" for line in checkpoint.read_text().splitlines()]
    checkpoint.write_text("\n".join(lines) + "\n")
    folder = copied / f"{TOPIC}-0"
    assert [row["offset"] for row in rows(folder)] == list(range(17))
    assert len(rows(folder, upTo="logEnd")) == len(samples.every_shape())
    checkpoint.unlink()
    with pytest.raises(ConfigError, match="nobody knows how far orders-0 is committed; upTo=logEnd"):
        rows(folder)


def test_damage_is_named_by_file_and_position_or_skipped(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = copied / f"{TOPIC}-0"
    good = rows(folder)
    victim = next(row for row in good if row["position"] > 0)
    path = Path(victim["path"])
    data = bytearray(path.read_bytes())
    data[victim["position"] + 70] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CorruptionError, match=rf"{path}: byte {victim['position']}: .*its checksum is wrong"):
        rows(folder)
    left = rows(folder, onCorruption="skip")
    same_batch = [row for row in good if (row["path"], row["position"]) == (str(path), victim["position"])]
    assert left == [row for row in good if row not in same_batch]
    assert f"{path}: byte {victim['position']}" in capsys.readouterr().err


def test_a_torn_end_is_an_error_below_the_watermark_and_the_last_append_above_it(copied: Path) -> None:
    folder = copied / f"{TOPIC}-0"
    good = rows(folder)
    last = max(path for path in folder.glob("*.log") if path.stat().st_size)
    whole = last.read_bytes()
    last.write_bytes(whole + whole[:30])
    assert rows(folder) == good, "what is behind the watermark is nobody's concern"
    assert rows(folder, upTo="logEnd") == good
    last.write_bytes(whole[:-5])
    with pytest.raises(CorruptionError, match=rf"{last}: byte \d+: a record batch is torn"):
        rows(folder)
    last.write_bytes(b"")
    with pytest.raises(CorruptionError, match=r"the log ends with offset \d+, before the high watermark 210"):
        rows(folder)
    last.write_bytes(b"garbage!" * 20)
    with pytest.raises(CorruptionError, match=f"{last}: byte 0: there is no record batch"):
        rows(folder)


def test_transactions(tmp_path: Path) -> None:
    """Committed, aborted and open ones; markers when they are asked for."""

    def batch(offset: int, producer: int, value: bytes) -> bytes:
        record = WireRecord(offset, 1, None, value)
        return build_batch([record], producer_id=producer, producer_epoch=0, base_sequence=0, is_transactional=True)

    def marker(offset: int, producer: int, commit: bool) -> bytes:
        return build_end_marker(
            commit=commit, coordinator_epoch=0, producer_id=producer, producer_epoch=0, timestamp=1, base_offset=offset
        )

    folder = tmp_path / "paid-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(
        batch(0, 7, b"aborted") + batch(1, 8, b"committed") + marker(2, 7, False)
    )
    (folder / "00000000000000000003.log").write_bytes(
        marker(3, 8, True) + batch(4, 7, b"open") + build_batch([WireRecord(5, 1, None, b"behind an open one")])
    )

    def values(**given: str) -> list[bytes]:
        return [row["value"] for row in rows(folder, upTo="logEnd", **given)]

    assert values() == [b"aborted", b"committed", b"open", b"behind an open one"]
    assert values(**{"kafka.isolation.level": "read_committed"}) == [b"committed"]
    kept = rows(folder, upTo="logEnd", includeControl="true")
    assert [(row["offset"], row["is_control"]) for row in kept] == [
        (0, False),
        (1, False),
        (2, True),
        (3, True),
        (4, False),
        (5, False),
    ]
