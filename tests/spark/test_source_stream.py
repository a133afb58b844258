"""`spark.readStream.format("tidelog")`: from checkpoint to checkpoint, whatever appears or disappears between."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.samples import Record
from tests.spark.reading import offsets, options_for, rows, stream_reader
from tests.support.nodes import Node
from tests.support.processes import wait_until
from tidelog.spark.fetching import DataLossError
from tidelog.spark.source_limits import limit_bytes, limit_offsets
from tidelog.spark.source_stream import LEADER_EPOCHS, TOPIC_IDS, StreamReader, offsets_of

ALL = ReadAllAvailable()


def produce(node: Node, topic: str, count: int, partition: int = 0, size: int = 10) -> None:
    records = [Record(None, b"%0*d" % (size, number), 1_700_000_000_000) for number in range(count)]
    confluent.produce_all(node, topic, records, partition=partition)


def read(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> dict[int, list[int]]:
    """The offsets one batch would have."""
    return offsets(rows(reader, reader.partitions(start, end)))


def test_available_now_restarts_from_its_checkpoint(
    spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path
) -> None:
    """On a real Spark: batches of limited size, a second run that reads only what is new, and the group's offsets."""
    topic = make_topic(partitions=2)
    produce(node, topic, 30, 0)
    produce(node, topic, 30, 1)
    batches: list[list[tuple[int, int]]] = []

    def take(frame: DataFrame, _: int) -> None:
        batches.append(sorted((row.partition, row.offset) for row in frame.collect()))

    def run() -> None:
        options = options_for(
            node, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="40", groupId="spark-job"
        )
        stream = spark.readStream.format("tidelog").options(**options).load()
        query = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
        started = query.trigger(availableNow=True).start()
        assert started.awaitTermination(300)

    run()
    assert [len(batch) for batch in batches] == [40, 20]
    found = sorted(place for batch in batches for place in batch)
    assert found == [(partition, offset) for partition in range(2) for offset in range(30)]
    batches.clear()
    produce(node, topic, 5, 1)
    run()
    assert batches == [[(1, offset) for offset in range(30, 35)]]
    with confluent.reading(node, [], group_id="spark-job") as consumer:
        committed = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], timeout=60)
    assert [each.offset for each in committed] == [30, 35], "any Kafka tool sees that the job has no lag"


def test_an_offset_is_the_official_sources_and_the_topics_id(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(partitions=2)
    produce(node, topic, 3, 1)
    reader = stream_reader(node, subscribe=topic)
    start = reader.initialOffset()
    assert start[topic] == {"0": 0, "1": 3}, "a new query begins at the end"
    assert list(start) == [topic, TOPIC_IDS]
    assert reader.latestOffset(start, ALL) == start, "nothing new is said by the same offset"
    produce(node, topic, 2, 0)
    end = reader.latestOffset(start, ALL)
    assert end[topic] == {"0": 2, "1": 3}
    assert list(end[LEADER_EPOCHS][topic]) == ["0"], "of what was read"
    assert reader.latestOffset(end, ALL) == end
    assert read(reader, start, end) == {0: [0, 1]}
    assert json.dumps(reader.reportLatestOffset()) == json.dumps(end)


def test_partitions_and_topics_that_appear_later_are_read_from_their_first_record(
    node: Node, make_topic: TopicMaker
) -> None:
    topic = make_topic()
    produce(node, topic, 3)
    reader = stream_reader(node, subscribePattern=f"{topic}(-1)?", startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert read(reader, start, end) == {0: [0, 1, 2]}
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(60)
    wait_until(lambda: len(admin.list_topics(topic, timeout=60).topics[topic].partitions) == 2, 60, "it has grown")
    produce(node, topic, 4, partition=1)
    other = make_topic()
    produce(node, other, 2)
    later = reader.latestOffset(end, ALL)
    assert offsets_of(later) == {(topic, 0): 3, (topic, 1): 4, (other, 0): 2}
    found = rows(reader, reader.partitions(end, later))
    assert [(row["topic"], row["partition"], row["offset"]) for row in found] == [
        *((topic, 1, number) for number in range(4)),
        *((other, 0, number) for number in range(2)),
    ]


def test_a_batch_planned_again_after_a_restart_is_the_same(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(node, topic, 10)
    before = stream_reader(node, subscribe=topic, startingOffsets="earliest")
    start = before.initialOffset()
    end = before.latestOffset(start, ALL)
    produce(node, topic, 10)
    again = stream_reader(node, subscribe=topic, startingOffsets="earliest")
    assert read(again, start, end) == {0: list(range(10))}


def test_a_batch_planned_again_tells_what_its_new_partitions_lost_since(node: Node, make_topic: TopicMaker) -> None:
    """A driver dies when it has written down where a batch ends; where its new partitions began is nowhere."""
    topic, later = make_topic(), make_topic()
    given = {"subscribePattern": f"{topic}|{later}", "startingOffsets": "earliest"}
    before = stream_reader(node, **given)
    end = before.latestOffset(before.initialOffset(), ALL)
    start = {topic: end[topic], TOPIC_IDS: {topic: end[TOPIC_IDS][topic]}}
    produce(node, later, 10)
    end = before.latestOffset(start, ALL)
    assert offsets_of(end) == {(topic, 0): 0, (later, 0): 10}
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.delete_records([TopicPartition(later, 0, 4)])[TopicPartition(later, 0)].result(60)
    strict, easy = stream_reader(node, **given), stream_reader(node, **given, failOnDataLoss="false")
    with pytest.raises(DataLossError, match=f"{later}-0 is new and begins at 4: its first records are deleted"):
        strict.partitions(start, end)
    assert read(easy, start, end) == {0: list(range(4, 10))}
    admin.delete_topics([later])[later].result(60)
    wait_until(lambda: later not in admin.list_topics(timeout=60).topics, 60, "the topic is gone")
    strict, easy = stream_reader(node, **given), stream_reader(node, **given, failOnDataLoss="false")
    with pytest.raises(DataLossError, match=f"{later}-0 was new and is not there any more"):
        strict.partitions(start, end)
    assert easy.partitions(start, end) == []


def test_available_now_ends_where_the_log_ended(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(node, topic, 10)
    reader = stream_reader(node, subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger="100")
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    produce(node, topic, 10)
    limit = reader.getDefaultReadLimit()
    end = reader.latestOffset(start, limit)
    assert offsets_of(end) == {(topic, 0): 10}, "the minimum would never be reached, and what came later is not read"
    assert reader.latestOffset(end, limit) == end


def test_limits_of_a_batch(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(node, topic, 1000, size=1000)
    reader = stream_reader(node, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="7")
    start = reader.initialOffset()
    assert offsets_of(reader.latestOffset(start, ReadMaxRows(7))) == {(topic, 0): 7}
    assert offsets_of(reader.latestOffset(start, ALL)) == {(topic, 0): 1000}, "Spark may ask for all"

    reader = stream_reader(node, subscribe=topic, startingOffsets="earliest", maxBytesPerTrigger="100000")
    ends = offsets_of(reader.latestOffset(start, reader.getDefaultReadLimit()))
    assert 60 <= ends[topic, 0] <= 100, "about 100 kB of records of a little more than 1 kB"

    reader = stream_reader(
        node, subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger="50", maxTriggerDelay="1h"
    )
    limit = reader.getDefaultReadLimit()
    end = reader.latestOffset(start, limit)
    assert offsets_of(end) == {(topic, 0): 1000}
    produce(node, topic, 49)
    assert reader.latestOffset(end, limit) == end, "too little, and the last batch was just now"
    produce(node, topic, 1)
    assert offsets_of(reader.latestOffset(end, limit)) == {(topic, 0): 1050}


def test_limits_are_shared_by_what_each_partition_has() -> None:
    starts = {("t", 0): 10, ("t", 1): 0, ("t", 2): 5}
    ends = {("t", 0): 310, ("t", 1): 100, ("t", 2): 5}
    assert limit_offsets(starts, ends, 40) == {("t", 0): 40, ("t", 1): 10, ("t", 2): 5}
    assert limit_offsets(starts, ends, 1) == {("t", 0): 11, ("t", 1): 0, ("t", 2): 5}
    assert limit_offsets(starts, ends, 400) == ends
    assert limit_bytes(starts, ends, {("t", 0): 10.0, ("t", 1): 10.0, ("t", 2): 0.0}, 400) == {
        ("t", 0): 40,
        ("t", 1): 10,
        ("t", 2): 5,
    }
    assert sum(limit_bytes(starts, ends, dict.fromkeys(ends, 1e9), 5).values()) == sum(starts.values()) + 1


def test_a_topic_made_again_is_data_loss_or_begins_anew(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic()
    produce(node, topic, 30)
    strict = stream_reader(node, subscribe=topic, startingOffsets="earliest")
    end = strict.latestOffset(strict.initialOffset(), ALL)
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.delete_topics([topic])[topic].result(60)
    wait_until(lambda: topic not in admin.list_topics(timeout=60).topics, 60, "the topic is gone")
    with pytest.raises(DataLossError, match=f"{topic}-0 was read up to offset 30 and is not there any more"):
        strict.latestOffset(end, ALL)
    confluent.create_topic(node, topic)
    produce(node, topic, 40)
    with pytest.raises(DataLossError, match="was deleted and created again under the same name"):
        strict.latestOffset(end, ALL)
    easy = stream_reader(node, subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    later = easy.latestOffset(end, ALL)
    assert read(easy, end, later) == {0: list(range(40))}, "not from 30 on: those are other records"


def test_a_batch_of_a_topic_made_again_has_nothing_of_the_new_one(node: Node, make_topic: TopicMaker) -> None:
    """Planned before, read after: small partitions share a task, and the first of them learns of the new topic."""
    topic = make_topic(2)
    for partition in range(2):
        produce(node, topic, 10, partition)
    easy = stream_reader(node, subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    start = easy.initialOffset()
    end = easy.latestOffset(start, ALL)
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.delete_topics([topic])[topic].result(60)
    wait_until(lambda: topic not in admin.list_topics(timeout=60).topics, 60, "the topic is gone")
    confluent.create_topic(node, topic, 2)
    for partition in range(2):
        produce(node, topic, 10, partition)
    again = stream_reader(node, subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    (task,) = again.partitions(start, end)
    assert rows(again, [task]) == [], "they come with the batches of the new topic, and would come twice"
    later = again.latestOffset(end, ALL)
    assert read(again, end, later) == {0: list(range(10)), 1: list(range(10))}


def test_a_leader_that_knows_less_is_no_data_loss(node: Node, make_topic: TopicMaker) -> None:
    """After an election the high watermark may be behind what was read: the query waits at its place."""
    topic = make_topic()
    produce(node, topic, 10)
    reader = stream_reader(node, subscribe=topic, startingOffsets="earliest")
    ahead = reader.initialOffset()
    ahead[topic]["0"] = 15
    assert reader.latestOffset(ahead, ALL) == ahead
    produce(node, topic, 10)
    end = reader.latestOffset(ahead, ALL)
    assert read(reader, ahead, end) == {0: list(range(15, 20))}


def test_a_log_that_was_cut_below_what_was_read_is_data_loss_though_it_grew_again(
    node: Node, make_topic: TopicMaker
) -> None:
    """A loss of power takes what was read and not yet on disk; new records then stand below the reader."""
    topic = make_topic()
    produce(node, topic, 20)
    strict = stream_reader(node, subscribe=topic, startingOffsets="earliest")
    segment = node.data_directory / f"{topic}-0" / f"{0:020}.log"
    flushed = segment.stat().st_size
    produce(node, topic, 10)
    start = strict.initialOffset()
    end = strict.latestOffset(start, ALL)
    assert read(strict, start, end) == {0: list(range(30))}
    node.kill()
    os.truncate(segment, flushed)
    node.start()
    for count, size in ((0, 20), (5, 25), (20, 45)):
        produce(node, topic, count)
        cut = rf"data loss: {topic}-0 was cut back to offset 20 when it had been read up to 30"
        for reader in (strict, stream_reader(node, subscribe=topic)):
            with pytest.raises(DataLossError, match=cut):
                reader.latestOffset(end, ALL)
        with pytest.raises(DataLossError, match=cut):  # the same batch, planned again by a driver that died in it
            stream_reader(node, subscribe=topic).partitions(start, end)
        easy = stream_reader(node, subscribe=topic, failOnDataLoss="false")
        later = easy.latestOffset(end, ALL)
        assert offsets_of(later) == {(topic, 0): size}
        assert read(easy, end, later).get(0, []) == list(range(20, size))
    assert easy.latestOffset(later, ALL) == later
    assert strict.latestOffset(later, ALL) == later, "once it is accepted nothing more is lost"


def test_a_log_that_is_cut_and_grows_again_while_a_batch_is_read_is_data_loss(
    node: Node, make_topic: TopicMaker, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stands there now comes with the next batch, which begins where the log was cut: once, not twice."""
    topic = make_topic()
    produce(node, topic, 20)
    strict = stream_reader(node, subscribe=topic, startingOffsets="earliest")
    easy = stream_reader(node, subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    segment = node.data_directory / f"{topic}-0" / f"{0:020}.log"
    flushed = segment.stat().st_size
    produce(node, topic, 10)
    start = strict.initialOffset()
    end = strict.latestOffset(start, ALL)
    tasks = [reader.partitions(start, end) for reader in (strict, easy)]
    node.kill()
    os.truncate(segment, flushed)
    node.start()
    produce(node, topic, 20)
    cut = f"{topic}-0: data loss: the log was cut back to offset 20 and grew again while it was read"
    with pytest.raises(DataLossError, match=cut):
        rows(strict, tasks[0])
    assert offsets(rows(easy, tasks[1])) == {0: list(range(20))}
    assert cut in capsys.readouterr().err
    later = easy.latestOffset(end, ALL)
    assert read(easy, end, later) == {0: list(range(20, 40))}
