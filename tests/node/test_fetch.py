"""What a consumer may count on: order, limits, waiting, sessions."""

from __future__ import annotations

from typing import Any

from tests.node.support import TOPIC, OneNode, partitions_of, values_of
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)


def test_offsets_outside_the_log() -> None:
    node = OneNode()
    node.produce({0: node.batch(b"a", b"b")})
    assert partitions_of(node.fetch({0: 3}))[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    end = partitions_of(node.fetch({0: 2}))[0]
    assert (end.error_code, end.high_watermark, values_of(end)) == (0, 2, [])


def test_a_batch_larger_than_the_limit_still_comes_but_only_first() -> None:
    node = OneNode()
    node.produce({0: node.batch(b"x" * 5_000), 1: node.batch(b"y" * 5_000)})
    found = partitions_of(node.fetch({0: 0, 1: 0}, max_bytes=100))
    assert len(values_of(found[0])) == 1
    assert values_of(found[1]) == [], "at least one batch, from the first partition that has any"


def test_the_whole_answer_has_a_limit_too() -> None:
    node = OneNode()
    for _ in range(5):
        node.produce({0: node.batch(b"x" * 1_000), 1: node.batch(b"y" * 1_000)})
    answer = node.ask(
        1,
        ApiKey.FETCH,
        12,
        FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=3_500,
            topics=[
                FetchTopic(
                    topic=TOPIC,
                    partitions=[
                        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in (0, 1)
                    ],
                )
            ],
        ),
    )
    found = partitions_of(answer)
    assert len(values_of(found[0])) == 3
    assert values_of(found[1]) == []


def test_a_reader_waits_until_something_comes() -> None:
    node = OneNode()
    connection = node.world.connect(1)
    assert connection is not None
    answers: list[Any] = []
    wanted = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
    request = FetchRequest(max_wait_ms=10_000, min_bytes=1, topics=[wanted])
    node.world.request(connection, ApiKey.FETCH, 12, request, answers.append)
    node.world.run_for(5_000)
    assert not answers
    node.produce({1: node.batch(b"elsewhere")})
    node.world.run_for(1_000)
    assert not answers, "another partition does not wake it"
    node.produce({0: node.batch(b"here")})
    node.world.run_for(50)
    assert values_of(partitions_of(answers[0])[0]) == [b"here"]


def test_a_reader_waits_for_as_many_bytes_as_it_wants() -> None:
    node = OneNode()
    connection = node.world.connect(1)
    assert connection is not None
    answers: list[Any] = []
    wanted = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
    request = FetchRequest(max_wait_ms=60_000, min_bytes=2_500, topics=[wanted])
    node.world.request(connection, ApiKey.FETCH, 12, request, answers.append)
    for number in range(3):
        assert not answers, f"{number} batches are not enough"
        node.produce({0: node.batch(b"x" * 900)})
        node.world.run_for(50)
    assert len(values_of(partitions_of(answers[0])[0])) == 3


def test_a_wait_ends_with_an_empty_answer() -> None:
    node = OneNode()
    before_ms = node.world.now_ms
    found = partitions_of(node.fetch({0: 0}, max_wait_ms=500))[0]
    assert (found.error_code, values_of(found)) == (0, [])
    assert 500 <= node.world.now_ms - before_ms < 600


def test_a_reader_that_goes_away_is_forgotten() -> None:
    node = OneNode()
    connection = node.world.connect(1)
    assert connection is not None
    wanted = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
    request = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=[wanted])
    node.world.request(connection, ApiKey.FETCH, 12, request, lambda _answer: None)
    node.world.run_for(100)
    core = node.process(1).node
    assert core.parked_fetches
    node.world.close(connection, None)
    node.world.run_for(100)
    assert not core.parked_fetches
    assert not core.replicas.partitions[(TOPIC, 0)].watchers


# --- sessions (KIP-227) ---


def test_an_incremental_fetch_names_only_what_changed() -> None:
    node = OneNode(partitions=3)
    opened = node.fetch({0: 0, 1: 0, 2: 0}, session_id=0, session_epoch=0)
    session = opened.session_id
    assert session > 0
    assert set(partitions_of(opened)) == {0, 1, 2}, "the first answer names everything"
    assert partitions_of(node.fetch({}, session_id=session, session_epoch=1)) == {}
    node.produce({1: node.batch(b"news")})
    found = partitions_of(node.fetch({}, session_id=session, session_epoch=2))
    assert {index: values_of(data) for index, data in found.items()} == {1: [b"news"]}
    again = partitions_of(node.fetch({}, session_id=session, session_epoch=3))
    assert values_of(again[1]) == [b"news"], "until the reader says that it has it"
    assert partitions_of(node.fetch({1: 1}, session_id=session, session_epoch=4)) == {}


def test_a_forgotten_partition_is_not_sent() -> None:
    node = OneNode()
    session = node.fetch({0: 0, 1: 0}, session_id=0, session_epoch=0).session_id
    forgotten = [ForgottenTopic(topic=TOPIC, partitions=[0])]
    node.fetch({}, session_id=session, session_epoch=1, forgotten_topics_data=forgotten)
    node.produce({0: node.batch(b"a"), 1: node.batch(b"b")})
    assert set(partitions_of(node.fetch({}, session_id=session, session_epoch=2))) == {1}


def test_wrong_sessions_are_told() -> None:
    node = OneNode()
    session = node.fetch({0: 0}, session_id=0, session_epoch=0).session_id
    assert node.fetch({}, session_id=session, session_epoch=7).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert node.fetch({}, session_id=12345, session_epoch=1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    node.fetch({0: 0}, session_id=session, session_epoch=-1)
    assert node.fetch({}, session_id=session, session_epoch=1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_without_room_there_is_no_session_and_everything_works() -> None:
    node = OneNode(max_incremental_fetch_session_cache_slots="1")
    assert node.fetch({0: 0}, session_id=0, session_epoch=0).session_id > 0
    node.produce({0: node.batch(b"a")})
    answer = node.fetch({0: 0}, session_id=0, session_epoch=0)
    assert answer.session_id == 0
    assert values_of(partitions_of(answer)[0]) == [b"a"]


def test_an_unknown_partition_of_a_session_is_told_and_served_once_it_is_there() -> None:
    node = OneNode()
    opened = node.fetch({0: 0}, topic="later", session_id=0, session_epoch=0)
    assert partitions_of(opened)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.create("later")
    node.produce({0: node.batch(b"now")}, topic="later")
    found = partitions_of(node.fetch({}, session_id=opened.session_id, session_epoch=1))
    assert values_of(found[0]) == [b"now"]


def test_by_topic_id() -> None:
    node = OneNode()
    node.produce({0: node.batch(b"a")})
    answer = node.fetch({0: 0}, version=13)
    assert answer.responses[0].topic_id == node.topic_id(TOPIC)
    assert values_of(partitions_of(answer)[0]) == [b"a"]
    unknown = node.fetch({0: 0}, version=13, topic="never")
    assert partitions_of(unknown)[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_many_readers_one_writer_each_gets_all_of_it() -> None:
    node = OneNode()
    sessions = [node.fetch({0: 0}, session_id=0, session_epoch=0).session_id for _ in range(20)]
    node.produce({0: node.batch(b"a")})
    for session in sessions:
        assert values_of(partitions_of(node.fetch({}, session_id=session, session_epoch=1))[0]) == [b"a"]


def test_a_session_goes_on_with_a_replica_that_is_back() -> None:
    """A damaged one is given up, and leads again where nobody else can: its readers never heard of a new record."""
    node = OneNode()
    partition = node.process(1).node.replicas.partitions[TOPIC, 0]
    opened = node.fetch({0: 0}, session_epoch=0)
    assert opened.session_id
    partition.go_offline()
    more = {"session_id": opened.session_id}
    assert partitions_of(node.fetch({}, session_epoch=1, **more))[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    partition.become_leader(9, 9, [1], [1])
    for epoch in (2, 3):
        assert not values_of(partitions_of(node.fetch({}, session_epoch=epoch, **more)).get(0, PartitionData()))
    assert node.produce({0: node.batch(b"new")})[0].error_code == 0
    assert values_of(partitions_of(node.fetch({}, session_epoch=4, **more))[0]) == [b"new"]


def test_a_follower_hears_the_watermark_with_every_fetch_that_names_its_partition() -> None:
    """With two fetches under way it takes nothing from the first of a partition that it names anew with the second: the
    watermark was told with the first one only, and the follower never heard of it, as long as nothing was written.
    """
    node = OneNode(1, 1, replication_events_enable="false")
    partition = node.process(1).node.replicas.partitions[TOPIC, 0]
    partition.become_leader(partition.leader_epoch + 1, 99, [1, 2], [1, 2])
    assert node.produce({0: node.batch(b"0")}, acks=1)[0].error_code == 0
    connection = node.world.connect(1, source="follower")
    assert connection is not None
    answers: list[Any] = []

    def fetch(session_id: int, session_epoch: int, offset: int, max_wait_ms: int) -> None:
        wanted = FetchPartition(
            partition=0,
            fetch_offset=offset,
            current_leader_epoch=partition.leader_epoch,
            last_fetched_epoch=-1,
            partition_max_bytes=1 << 20,
        )
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=2, replica_epoch=1),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=[FetchTopic(topic_id=node.topic_id(TOPIC), partitions=[wanted])],
        )
        node.world.request(connection, ApiKey.FETCH, 17, request, answers.append, None)

    fetch(0, 0, 0, 0)
    assert node.world.run_until(lambda: len(answers) == 1, 10_000)
    fetch(answers[0].session_id, 1, 1, 5_000)
    fetch(answers[0].session_id, 2, 1, 0)
    assert node.world.run_until(lambda: len(answers) == 3, 10_000)
    assert [partitions_of(one)[0].high_watermark for one in answers] == [0, 1, 1]
