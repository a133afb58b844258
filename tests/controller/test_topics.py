"""Creating, extending and deleting topics: Kafka's checks and codes, and what is sound is done."""

from __future__ import annotations

import pytest

from tests.controller.world import World
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tidelog.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tidelog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (".", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a" * 249, ErrorCode.NONE),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("ü", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("exists", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("dotted_name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("dotted.name", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("dotted-name", ErrorCode.NONE),
        ("__cluster_metadata", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("__consumer_offsets", ErrorCode.NONE),
    ],
)
def test_names(name: str, code: ErrorCode) -> None:
    world = World((1,))
    world.create("exists")
    world.create("dotted.name")
    assert world.create(name).error_code == code
    assert (name in world.image.topic_ids) == (code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS))


@pytest.mark.parametrize(
    ("partitions", "factor", "code"),
    [
        (1, 1, ErrorCode.NONE),
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 3, ErrorCode.INVALID_REPLICATION_FACTOR),
        (10_001, 1, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_counts(partitions: int, factor: int, code: ErrorCode) -> None:
    world = World((1, 2))
    assert world.create("t", partitions, factor).error_code == code


def test_minus_one_takes_the_defaults() -> None:
    world = World((1, 2, 3), num_partitions=4, default_replication_factor=2)
    result = world.create("t", -1, -1)
    assert (result.num_partitions, result.replication_factor) == (4, 2)
    assert all(len(partition.replicas) == 2 for partition in world.topic().partitions.values())


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ([[1, 2], [2, 3]], ErrorCode.NONE),
        ([[1, 2], [2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[1, 9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[4]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[4, 1]], ErrorCode.NONE),
    ],
)
def test_replicas_by_hand(replicas: list[list[int]], code: ErrorCode) -> None:
    world = World((1, 2, 3))
    world.register(4)
    assert world.create("t", replicas=replicas).error_code == code
    if code is ErrorCode.NONE:
        assert [list(each.replicas) for each in world.topic().partitions.values()] == replicas
    if replicas == [[4, 1]]:
        assert (world.partition().isr, world.partition().leader) == ((1,), 1)


@pytest.mark.parametrize(
    ("partitions", "factor", "indexes", "code"),
    [
        (1, -1, [0], ErrorCode.INVALID_REQUEST),
        (-1, 1, [0], ErrorCode.INVALID_REQUEST),
        (-1, -1, [0, 0], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [0, 2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_hand_written_replicas_leave_nothing_else_to_say(
    partitions: int, factor: int, indexes: list[int], code: ErrorCode
) -> None:
    world = World((1,))
    assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in indexes]
    topic = CreatableTopic(name="t", num_partitions=partitions, replication_factor=factor, assignments=assignments)
    answer = world.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic]), 7)
    assert answer.topics[0].error_code == code


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        ({"retention_ms": "soon"}, "whole number"),
        ({"retenton_ms": "1"}, "did you mean retention.ms"),
        ({"retention_ms": None}, "Null value"),
        ({"cleanup_policy": "keep"}, "compact, delete"),
    ],
)
def test_settings_are_checked_by_name(configs: dict[str, str | None], said: str) -> None:
    world = World((1,))
    result = world.create("t", **configs)
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert said in result.error_message
    assert "t" not in world.image.topic_ids


def test_settings_are_kept_and_answered_from_version_5() -> None:
    world = World((1,))
    result = world.create("t", retention_ms="77")
    assert world.image.configs[2, "t"] == {"retention.ms": "77"}
    answered = {each.name: (each.value, int(each.config_source)) for each in result.configs}
    assert answered["retention.ms"] == ("77", 1)
    assert answered["segment.bytes"] == ("1073741824", 5)
    assert answered["min.insync.replicas"] == ("1", 3)
    assert not world.create("u", version=4).configs


def test_validate_only_decides_and_writes_nothing() -> None:
    world = World((1,))
    before = len(world.log)
    assert world.create("t", 3, validate_only=True).num_partitions == 3
    assert world.create("t", 0, validate_only=True).error_code == ErrorCode.INVALID_PARTITIONS
    assert len(world.log) == before


def test_one_bad_topic_does_not_hold_the_others_up() -> None:
    world = World((1,))
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in ("good", "bad name", "twice", "twice", "a.b", "a_b")
    ]
    answer = world.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=topics), 7)
    codes = {each.name: ErrorCode(each.error_code) for each in answer.topics}
    assert codes == {
        "good": ErrorCode.NONE,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "twice": ErrorCode.INVALID_REQUEST,
        "a.b": ErrorCode.NONE,
        "a_b": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert set(world.image.topic_ids) == {"good", "a.b"}


def test_no_topic_without_a_live_broker() -> None:
    world = World()
    assert world.create("t", 1, 1).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    world.register(1)
    assert world.create("t", 1, 1).error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def add_partitions(
    world: World, count: int, assignments: list[list[int]] | None = None, *, validate_only: bool = False
) -> ErrorCode:
    topic = CreatePartitionsTopic(name="t", count=count, assignments=None)
    if assignments is not None:
        topic.assignments = [CreatePartitionsAssignment(broker_ids=row) for row in assignments]
    request = CreatePartitionsRequest(topics=[topic], validate_only=validate_only)
    return ErrorCode(world.ask(ApiKey.CREATE_PARTITIONS, request, 3).results[0].error_code)


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (5, None, ErrorCode.NONE),
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (3, [[3, 1]], ErrorCode.NONE),
        (4, [[3, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[3]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (3, [[3, 9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_more_partitions(count: int, assignments: list[list[int]] | None, code: ErrorCode) -> None:
    world = World((1, 2, 3))
    world.create("t", 2, 2)
    assert add_partitions(world, count, assignments) == code
    assert len(world.topic().partitions) == (count if code is ErrorCode.NONE else 2)
    world.check()


def test_more_partitions_of_a_topic_that_is_not_there_or_only_on_trial() -> None:
    world = World((1,))
    assert add_partitions(world, 3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.create("t", 1)
    assert add_partitions(world, 3, validate_only=True) == ErrorCode.NONE
    assert len(world.topic().partitions) == 1


def test_topics_are_deleted_by_name_and_by_id() -> None:
    world = World((1,))
    for name in ("a", "b", "c"):
        world.create(name, cleanup_policy="compact")
    answer = world.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topic_names=["a", "nope"]), 5)
    assert [(each.name, each.error_code) for each in answer.responses] == [
        ("a", ErrorCode.NONE),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    topic_id = world.topic("b").topic_id
    states = [
        DeleteTopicState(name=None, topic_id=topic_id),
        DeleteTopicState(name=None, topic_id=b"x" * 16),
        DeleteTopicState(name=None),
        DeleteTopicState(name="c", topic_id=topic_id),
    ]
    answer = world.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=states), 6)
    assert [ErrorCode(each.error_code) for each in answer.responses] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert answer.responses[0].name == "b"
    assert set(world.image.topic_ids) == {"c"}
    assert set(world.image.configs) == {(4, ""), (2, "c")}
    assert world.kinds().count("topic-deleted") == 2


def test_a_topic_named_twice_is_not_deleted() -> None:
    world = World((1,))
    world.create("a")
    answer = world.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topic_names=["a", "a"]), 5)
    assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST]
    assert "a" in world.image.topic_ids


def test_deletion_can_be_disabled() -> None:
    world = World((1,), delete_topic_enable=False)
    world.create("a")
    for version, code in ((1, ErrorCode.INVALID_REQUEST), (5, ErrorCode.TOPIC_DELETION_DISABLED)):
        answer = world.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topic_names=["a"]), version)
        assert answer.responses[0].error_code == code


def test_a_topic_made_again_is_another_topic() -> None:
    world = World((1,))
    first = world.create("a").topic_id
    world.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topic_names=["a"]), 5)
    assert world.create("a").topic_id != first
