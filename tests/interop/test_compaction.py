"""What we compact, Apache Kafka reads, and compacts further; and the reverse."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.clients import confluent
from tests.clients.compacted import cleaned_to, last_values, read_all, record
from tests.clients.samples import CODECS
from tests.interop import judge
from tests.interop.conftest import Filled
from tests.interop.stock import Stock
from tests.interop.toolbox import Toolbox
from tests.support.nodes import KafkaNode, Node
from tests.support.processes import wait_until

TOPIC = "state"
CLEANING = {
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "100",
    "transaction.state.log.num.partitions": "1",
}
TOPIC_CONFIG = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "40000",
    "delete.retention.ms": "600000",
}
CLEAN_S = 60.0


def write(node: Node, turn: int, expected: dict[bytes, bytes]) -> int:
    """Every codec, idempotent and not, tombstones, transactions that commit and abort; the offset behind the last."""
    end = 0
    for number, codec in enumerate(CODECS):
        records = [record(b"%s %d" % (codec.encode(), each % 9), b"%d/%d" % (turn, each) * 9) for each in range(400)]
        records += [record(b"%s %d" % (codec.encode(), turn), None)]
        written = confluent.produce_all(
            node, TOPIC, records, compression_type=codec, enable_idempotence=number % 2 == 0, batch_size=2_000
        )
        end = (written[-1].offset() or 0) + 1
        for each in records:
            assert each.key is not None
            expected.pop(each.key, None)
            if each.value is not None:
                expected[each.key] = each.value
    writer = confluent.producer(node, transactional_id=f"writer-{turn}", batch_size=2_000)
    writer.init_transactions(60)
    for commits in (True, False, True, False):
        writer.begin_transaction()
        for count in range(60):
            key, value = b"transaction %d" % (count % 5), b"%d %r" % (turn, commits) * 20
            writer.produce(TOPIC, value, key, partition=0)
            if commits:
                expected[key] = value
        (writer.commit_transaction if commits else writer.abort_transaction)(60)
    filler = [record(b"filler", b"%d" % each * 30) for each in range(2_000)]
    end = (confluent.produce_all(node, TOPIC, filler, batch_size=2_000)[-1].offset() or 0) + 1
    expected[b"filler"] = filler[-1].value or b""
    return end


def settle(node: Node, end: int) -> None:
    """Wait until all but the newest segment is clean, and what went out of use is deleted."""
    wait_until(lambda: cleaned_to(node, TOPIC) > end - 1_000, CLEAN_S, f"{node.peer} compacts up to {end}")
    directory = node.data_directory / f"{TOPIC}-0"
    wait_until(lambda: not list(directory.glob("*.deleted")), CLEAN_S, "old files are gone")


def check(node: Node, expected: dict[bytes, bytes]) -> list[tuple[int, bytes | None]]:
    """The last committed value of every key is what was written; offsets and values of all that is left."""
    messages = read_all(node, TOPIC)
    assert last_values(messages) == expected
    with confluent.reading(node, [TopicPartition(TOPIC, 0, 1)]) as consumer:  # long compacted away
        first = confluent.take(consumer, 1)[0]
    assert first.offset() == next(each.offset() for each in messages if (each.offset() or 0) >= 1)
    return [(message.offset() or 0, message.value()) for message in messages]


def judge_gaps_apart(tools: Toolbox, node: Node, *, is_all_ours: bool) -> None:
    """Kafka's own judge on every file; that offsets are not consecutive is what compaction is for.

    Of the time indexes that Kafka's cleaner writes its judge does not approve: only ours are shown to it.
    """
    directory = node.data_directory / f"{TOPIC}-0"
    said = judge.dump(tools, sorted(directory.glob("*.log")), "--deep-iteration", "--print-data-log")
    assert " is followed by " in said
    found = [line for line in judge.complaints(said) if " is followed by " not in line]
    assert not found, found[:10]
    assert "deleteHorizonMs: OptionalLong[" in said, "tombstones have their horizon"
    assert "isControl: true" in said
    indexes = sorted([*directory.glob("*.index"), *(directory.glob("*.timeindex") if is_all_ours else ())])
    for options in (("--verify-index-only",), ("--index-sanity-check",)):
        judge.check(judge.dump(tools, indexes, *options))
    for kind in ("*.txnindex", "*.snapshot"):
        files = sorted(directory.glob(kind))
        if files:
            judge.check(judge.dump(tools, files))


@pytest.mark.parametrize("order", ["ours first", "Kafka first"])
def test_a_compacted_directory_goes_from_one_to_the_other(
    order: str, successor: type[Node], scratch: Path, toolbox: Toolbox
) -> None:
    first, second = (successor, KafkaNode) if order == "ours first" else (KafkaNode, successor)
    expected: dict[bytes, bytes] = {}
    before = first(scratch / "first", properties=CLEANING)
    with before:
        confluent.create_topic(before, TOPIC, 1, TOPIC_CONFIG)
        for turn in range(2):
            end = write(before, turn, expected)
        settle(before, end)
        left = check(before, expected)
        assert len(left) < end / 3
    judge_gaps_apart(toolbox, before, is_all_ours=order == "ours first")
    after = Filled(before, Stock()).take_over(second, scratch / "second")
    after.properties.update(CLEANING)
    with after:
        assert check(after, expected)[-1] == left[-1]
        end = write(after, 2, expected)
        settle(after, end)
        check(after, expected)
    judge_gaps_apart(toolbox, after, is_all_ours=False)
