"""Every file we write is one Apache Kafka's own tools read without a word of complaint."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop import judge
from tests.interop.conftest import Filled
from tests.interop.toolbox import Toolbox


def test_every_file_of_a_stopped_node(filled: Filled, toolbox: Toolbox) -> None:
    offsets = judge.judge_everything(toolbox, filled.node.data_directory)
    for (topic, partition), records in filled.stock.records.items():
        directory = filled.node.data_directory / f"{topic}-{partition}"
        found = [offset for each in sorted(directory.glob("*.log")) for offset in offsets[str(each)]]
        first = filled.stock.first_offsets.get((topic, partition), 0)
        expected = range(first, first + len(records))
        assert [each for each in found if each >= first] == list(expected), f"{topic}-{partition}"


def test_there_was_something_to_judge(filled: Filled, toolbox: Toolbox) -> None:
    """Several segments with indexes worth the name, producers in a snapshot, snapshots of the metadata."""
    data = filled.node.data_directory
    assert len(list(data.glob("segments-0/*.log"))) >= 3
    assert max(each.stat().st_size for each in data.glob("segments-0/*.index")) > 100
    assert max(each.stat().st_size for each in data.glob("segments-0/*.timeindex")) > 100
    assert list(data.glob("segments-0/*.snapshot"))
    said = judge.dump(toolbox, sorted(data.glob("segments-0/*.snapshot")))
    assert "producerId:" in said
    snapshots = [each for each in data.glob("__cluster_metadata-0/*.checkpoint") if not each.name.startswith("0" * 20)]
    assert snapshots
    decoded = judge.dump(toolbox, snapshots, "--cluster-metadata-decoder")
    assert '"type":"PARTITION_RECORD"' in decoded
    assert "SnapshotFooter" in decoded


@pytest.fixture
def damaged(filled: Filled, scratch: Path) -> Callable[[str], Path]:
    """A copy of a partition, and the path of one of its files to damage."""
    partition = scratch / "segments-0"
    shutil.copytree(filled.node.data_directory / "segments-0", partition)

    def choose(ending: str) -> Path:
        return min(partition.glob(f"*{ending}"))

    return choose


def change(file: Path, position: int, data: bytes) -> None:
    """Overwrite some bytes."""
    content = bytearray(file.read_bytes())
    content[position : position + len(data)] = data
    file.write_bytes(content)


def test_the_judge_sees_a_flipped_bit_in_a_segment(damaged: Callable[[str], Path], toolbox: Toolbox) -> None:
    segment = damaged(".log")
    change(segment, 200, bytes([segment.read_bytes()[200] ^ 1]))
    assert judge.complaints(judge.dump(toolbox, [segment], "--deep-iteration"))


def test_the_judge_sees_a_torn_tail(damaged: Callable[[str], Path], toolbox: Toolbox) -> None:
    segment = damaged(".log")
    segment.write_bytes(segment.read_bytes()[:-20])
    assert judge.complaints(judge.dump(toolbox, [segment], "--deep-iteration"))


def test_the_judge_sees_a_wrong_offset_index(damaged: Callable[[str], Path], toolbox: Toolbox) -> None:
    index = damaged(".index")
    change(index, 3, bytes([index.read_bytes()[3] ^ 1]))
    assert judge.complaints(judge.dump(toolbox, [index], "--verify-index-only"))


def test_the_judge_sees_a_wrong_time_index(damaged: Callable[[str], Path], toolbox: Toolbox) -> None:
    index = damaged(".timeindex")
    change(index, 12, bytes(8))
    assert judge.complaints(judge.dump(toolbox, [index], "--verify-index-only"))


def test_the_judge_sees_an_index_of_the_wrong_size(damaged: Callable[[str], Path], toolbox: Toolbox) -> None:
    index = damaged(".index")
    index.write_bytes(index.read_bytes() + b"abc")
    with pytest.raises(AssertionError):  # the tool itself fails here, or complains
        judge.check(judge.dump(toolbox, [index], "--index-sanity-check"))


def test_the_judge_sees_a_damaged_producer_snapshot(damaged: Callable[[str], Path], toolbox: Toolbox) -> None:
    snapshot = damaged(".snapshot")
    change(snapshot, 4, bytes([snapshot.read_bytes()[4] ^ 1]))
    assert judge.complaints(judge.dump(toolbox, [snapshot]))


def test_the_judge_sees_a_gap_in_offsets(damaged: Callable[[str], Path], toolbox: Toolbox) -> None:
    segment = damaged(".log")
    content = segment.read_bytes()
    first_batch_bytes = 12 + int.from_bytes(content[8:12], "big")
    second_batch_bytes = 12 + int.from_bytes(content[first_batch_bytes + 8 : first_batch_bytes + 12], "big")
    segment.write_bytes(content[:first_batch_bytes] + content[first_batch_bytes + second_batch_bytes :])
    assert judge.complaints(judge.dump(toolbox, [segment], "--deep-iteration"))
