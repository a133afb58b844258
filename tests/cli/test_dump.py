"""Stored files, readable: those Apache Kafka wrote, and damage told with the byte it begins at."""

from __future__ import annotations

import json
import os
from pathlib import Path
from struct import pack

import pytest

from tests.cli.conftest import Tidelog
from tidelog.log import checkpoints
from tidelog.log.txn_index import AbortedTransaction
from tidelog.wire.batch import ControlType, Record, build_batch, build_end_marker, control_key

HERE = Path(__file__).parent
KAFKA_FILES = HERE / "kafka_files"
"""Written by Apache Kafka 4.3.1: one partition with a batch of each codec, and what lies beside it."""
SEGMENT = "00000000000000000000.log"


def test_every_kind_of_file_that_kafka_writes(tidelog: Tidelog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(KAFKA_FILES)
    files = sorted(str(path.relative_to(KAFKA_FILES)) for path in KAFKA_FILES.rglob("*") if path.is_file())
    code, out, err = tidelog("dump", *files)
    assert (code, err) == (0, "")
    golden = HERE / "dump_of_kafka_files.txt"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(out)
    assert out == golden.read_text()


def test_the_same_for_programs(tidelog: Tidelog) -> None:
    code, out, _ = tidelog("dump", "--json", KAFKA_FILES / "orders-2" / SEGMENT)
    batches = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [batch["at"] for batch in batches] == [0, 70, 172, 278, 378, 469]
    assert [batch["compression"] for batch in batches] == ["none", "gzip", "snappy", "lz4", "zstd", "none"]
    assert batches[4]["records"] == [
        {"offset": 4, "timestamp": 1794717561637, "key": "k", "value": "v zstd", "headers": [["h", "x"], ["i", ""]]}
    ]
    metadata = KAFKA_FILES / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    documents = [json.loads(line) for line in tidelog("dump", "--json", metadata).out.splitlines()]
    records = [record for document in documents for record in document["records"]]
    assert [record["type"] for record in records] == [
        "SnapshotHeaderRecord",
        "KRaftVersionRecord",
        "VotersRecord",
        "SnapshotFooterRecord",
    ]
    assert records[2]["data"]["voters"][0]["endpoints"] == [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 23093}]


def three_batches(path: Path) -> list[int]:
    """A segment of three batches; where each begins."""
    data = [build_batch([Record(at, 1000 + at, None, b"value %d" % at)], base_offset=at) for at in range(3)]
    path.write_bytes(b"".join(data))
    return [0, len(data[0]), len(data[0]) * 2]


def test_a_batch_with_a_wrong_checksum_is_named_and_the_next_one_shown(tidelog: Tidelog, tmp_path: Path) -> None:
    path = tmp_path / SEGMENT
    starts = three_batches(path)
    content = bytearray(path.read_bytes())
    content[starts[1] + 70] ^= 1
    path.write_bytes(content)
    code, out, err = tidelog("dump", path)
    assert code == 5
    assert (
        err == f"tidelog dump: {path}: damaged at byte {starts[1]}: the batch at offset 1 does not match its checksum\n"
    )
    assert "value 0" in out
    assert "value 1" not in out
    assert "value 2" in out
    documents = [json.loads(line) for line in tidelog("dump", "--json", path).out.splitlines()]
    assert [document.get("damaged_at", "fine") for document in documents] == ["fine", starts[1], "fine"]


@pytest.mark.parametrize("kept", [1, 11, 12, 30, 61, 70])
def test_a_torn_tail_is_told_with_its_place(tidelog: Tidelog, tmp_path: Path, kept: int) -> None:
    path = tmp_path / SEGMENT
    starts = three_batches(path)
    path.write_bytes(path.read_bytes()[: starts[2] + kept])
    code, out, err = tidelog("dump", path)
    assert code == 5
    assert f"damaged at byte {starts[2]}: " in err
    assert "value 1" in out


def test_garbage_zeros_and_offsets_that_fall(tidelog: Tidelog, tmp_path: Path) -> None:
    path = tmp_path / SEGMENT
    starts = three_batches(path)
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(1000))
    assert tidelog("dump", path).out.endswith(f"  @{len(whole)}  1000 unused bytes\n")
    path.write_bytes(whole[starts[1] : starts[2]] + whole[: starts[1]])
    assert f"damaged at byte {starts[1]}: offset 0 comes after offset 1" in tidelog("dump", path).err
    path.write_bytes(b"\x01" * 200)
    assert "damaged at byte 0: " in tidelog("dump", path).err
    path.write_bytes(b"")
    assert tidelog("dump", path) == (0, f"{path}  (segment, 0 bytes)\n", "")


def test_records_that_do_not_parse_are_damage_of_their_batch(tidelog: Tidelog, tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    path = directory / SEGMENT
    path.write_bytes(build_batch([Record(0, 1, None, b"\x01\x63\x00")]))
    code, _, err = tidelog("dump", path)
    assert code == 5
    assert "damaged at byte 0: a metadata record of the unknown type 99" in err


def test_markers_of_transactions_and_records_of_coordinators(tidelog: Tidelog, tmp_path: Path) -> None:
    from tidelog.wire.records.transaction_log import TransactionLogKey, TransactionLogValue
    from tidelog.wire.stored import encode_coordinator_key, encode_versioned

    path = tmp_path / SEGMENT
    marker = {"coordinator_epoch": 3, "producer_id": 5, "producer_epoch": 1, "timestamp": 1}
    unknown = build_batch([Record(2, 1, control_key(99), b"")], is_control=True)
    path.write_bytes(
        build_end_marker(commit=False, **marker) + build_end_marker(commit=True, base_offset=1, **marker) + unknown
    )
    out = tidelog("dump", path).out
    assert "ABORT by the coordinator's epoch 3" in out
    assert "COMMIT by the coordinator's epoch 3" in out
    assert "control record of unknown type 99" in out
    assert ControlType.COMMIT == 1

    directory = tmp_path / "__transaction_state-7"
    directory.mkdir()
    key = encode_coordinator_key(TransactionLogKey(transactional_id="pay"))
    value = encode_versioned(TransactionLogValue(producer_id=9, transaction_status=0), 0)
    (directory / SEGMENT).write_bytes(build_batch([Record(0, 1, key, value), Record(1, 1, key, None)]))
    lines = tidelog("dump", directory / SEGMENT).out.splitlines()
    assert "TransactionLogKey transactional_id=pay TransactionLogValue producer_id=9" in lines[2]
    assert lines[3].endswith("TransactionLogKey transactional_id=pay null")


def test_indexes_are_held_against_their_segment(tidelog: Tidelog, tmp_path: Path) -> None:
    starts = three_batches(tmp_path / SEGMENT)
    index = tmp_path / "00000000000000000000.index"
    times = tmp_path / "00000000000000000000.timeindex"
    index.write_bytes(pack(">iiii", 1, starts[1], 2, starts[2]))
    times.write_bytes(pack(">qiqi", 1001, 1, 1002, 2))
    code, out, err = tidelog("dump", index, times)
    assert (code, err) == (0, "")
    assert out.splitlines()[1] == f"  @0  offset 1  position {starts[1]}"
    assert out.splitlines()[-1] == "  @12  1970-01-01T00:00:01.002Z  offset 2"

    index.write_bytes(pack(">iiiiiii", 1, starts[1] + 1, 5, starts[2], 4, starts[2] + 9, 7))
    times.write_bytes(pack(">qiqiqi", 1009, 1, 1010, 9, 5, 9))
    err = tidelog("dump", index, times).err
    assert [line.partition("damaged at ")[2] for line in err.splitlines()] == [
        f"byte 0: no batch begins at position {starts[1] + 1} of the segment",
        f"byte 8: the batch at {starts[2]} ends with offset 2, not 5",
        f"byte 16: offset 4 at {starts[2] + 9} comes after offset 5 at {starts[2]}",
        "byte 24: 4 bytes are left of an entry of 8",
        "byte 0: the batch with offset 1 has the time 1001",
        "byte 12: offset 9 is not in the segment",
        "byte 24: time 5 at offset 9 comes after 1010 at 9",
    ]


def test_an_index_of_its_full_size_is_no_damage(tidelog: Tidelog, tmp_path: Path) -> None:
    index = tmp_path / "00000000000000000000.index"
    index.write_bytes(pack(">ii", 3, 70) + bytes(4096))
    assert tidelog("dump", index).out.splitlines()[1:] == ["  @0  offset 3  position 70", "  @8  4096 unused bytes"]
    index.write_bytes(bytes(4096))
    assert tidelog("dump", index).out.splitlines()[1:] == ["  @0  4096 unused bytes"]
    index.write_bytes(pack(">iiiiii", 3, 70, 0, 0, 9, 90))
    assert "damaged at byte 8: an entry of zeros, with others behind it" in tidelog("dump", index).err


def test_aborted_transactions(tidelog: Tidelog, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.txnindex"
    path.write_bytes(AbortedTransaction(5, 10, 20, 15).to_bytes() + b"xx")
    code, out, err = tidelog("dump", path)
    assert out.splitlines()[1] == "  @0  producer 5  aborted offsets 10-20  stable to 15"
    assert (code, "damaged at byte 34: 2 bytes are left of an entry of 34" in err) == (5, True)


def test_producer_snapshots(tidelog: Tidelog, tmp_path: Path) -> None:
    content = bytearray((KAFKA_FILES / "orders-2" / "00000000000000000006.snapshot").read_bytes())
    path = tmp_path / "00000000000000000006.snapshot"
    path.write_bytes(content[:-50])
    assert [line.partition("damaged at ")[2] for line in tidelog("dump", path).err.splitlines()] == [
        "byte 2: the content does not match its checksum",
        "byte 148: 5 producers are announced and 3 are there",
    ]
    path.write_bytes(b"\0")
    assert "damaged at byte 0: 1 bytes are too few for a producer snapshot" in tidelog("dump", path).err
    content[1] = 9
    path.write_bytes(content)
    assert "damaged at byte 0: a producer snapshot of version 9" in tidelog("dump", path).err


def test_checkpoints(tidelog: Tidelog, tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_bytes(checkpoints.to_bytes({("orders", 0): 12, ("orders", 1): 3}))
    assert tidelog("dump", path).out.splitlines()[1:] == ["  orders-0  12", "  orders-1  3"]
    cases = {
        b"": "byte 0: the file is empty",
        b"7\n0\n": "byte 0: version '7' is not 0",
        b"0\n": "byte 2: the number of entries is missing",
        b"0\n2\na 0 1\n": "byte 2: 2 entries are announced and 1 are there",
        b"0\n1\na 0\n": "byte 4: 'a 0' is not topic, partition, offset",
    }
    for content, told in cases.items():
        path.write_bytes(content)
        code, _, err = tidelog("dump", path)
        assert (code, err) == (5, f"tidelog dump: {path}: damaged at {told}\n")
    epochs = tmp_path / "leader-epoch-checkpoint"
    epochs.write_bytes(b"0\n2\n4 10\n3 20\n")
    assert "damaged at byte 9: epoch 3 from 20 comes after epoch 4 from 10" in tidelog("dump", epochs).err
    state = tmp_path / "quorum-state"
    state.write_bytes(b'{"leaderId": 1,}')
    assert "damaged at byte 15: not JSON: " in tidelog("dump", state).err
    properties = tmp_path / "meta.properties"
    properties.write_bytes(b"version=1\nnonsense\n")
    assert "damaged at byte 10: 'nonsense' is not name=value" in tidelog("dump", properties).err


def test_a_name_that_does_not_tell(tidelog: Tidelog, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    three_batches(path)
    assert tidelog("dump", path) == (
        2,
        "",
        f"tidelog dump: {path}: its name does not tell what it is; say it with --kind\n",
    )
    assert "value 2" in tidelog("dump", "--kind", "segment", path).out
    assert tidelog("dump", tmp_path).err == f"tidelog dump: {tmp_path} is a directory; name the files in it\n"
    path.rename(tmp_path / (SEGMENT + ".deleted"))
    assert "value 2" in tidelog("dump", tmp_path / (SEGMENT + ".deleted")).out
