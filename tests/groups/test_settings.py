"""Settings of single groups, and of the topic their offsets are in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.groups.support import GROUP, ConsumerMember, GroupNode, beat_until_settled
from tests.node.support import TOPIC
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import iterate_batches
from tidelog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

GROUP_TYPE = 32
SET, DELETE, APPEND = 0, 1, 2
FROM_GROUP, FROM_BROKER, FROM_DEFAULT = 8, 4, 5


def alter(node: GroupNode, group: str, configs: dict[str, str | None], operation: int = SET) -> tuple[ErrorCode, str]:
    resource = AlterConfigsResource(
        resource_type=GROUP_TYPE,
        resource_name=group,
        configs=[AlterableConfig(name=n, config_operation=operation, value=value) for n, value in configs.items()],
    )
    answer = node.ask(1, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[resource]))
    return ErrorCode(answer.responses[0].error_code), answer.responses[0].error_message or ""


def described(node: GroupNode, group: str) -> dict[str, tuple[str | None, int]]:
    resource = DescribeConfigsResource(resource_type=GROUP_TYPE, resource_name=group, configuration_keys=None)
    answer: Any = node.ask(1, ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource])).results[0]
    assert answer.error_code == 0, answer
    return {one.name: (one.value, one.config_source) for one in answer.configs}


@pytest.fixture
def node() -> GroupNode:
    return GroupNode(
        group_consumer_session_timeout_ms="10000",
        group_consumer_min_session_timeout_ms="2000",
        group_consumer_heartbeat_interval_ms="1000",
        group_consumer_min_heartbeat_interval_ms="200",
    )


def test_a_groups_own_settings_count_at_once_and_survive(node: GroupNode) -> None:
    member, other = ConsumerMember(node, "a"), ConsumerMember(node, "b", group="others")
    beat_until_settled([member], 2)
    beat_until_settled([other], 2)
    node.pass_ms(2_000)
    assert member.beat().heartbeat_interval_ms == 1000
    settings: dict[str, str | None] = {"consumer.session.timeout.ms": "3000", "consumer.heartbeat.interval.ms": "400"}
    assert alter(node, GROUP, settings) == (ErrorCode.NONE, "")
    assert member.beat().heartbeat_interval_ms == 400
    assert other.beat().heartbeat_interval_ms == 1000
    assert described(node, GROUP) == {
        "consumer.session.timeout.ms": ("3000", FROM_GROUP),
        "consumer.heartbeat.interval.ms": ("400", FROM_GROUP),
        "consumer.assignment.interval.ms": ("1000", FROM_DEFAULT),
    }
    assert described(node, "others")["consumer.session.timeout.ms"] == ("10000", FROM_BROKER)
    node.pass_ms(4_000)
    assert "a" not in node.state().groups[GROUP].members, "its own session was over"
    assert "b" in node.state("others").groups["others"].members
    node.restart()
    assert described(node, GROUP)["consumer.session.timeout.ms"] == ("3000", FROM_GROUP)
    assert alter(node, GROUP, {"consumer.session.timeout.ms": None}, DELETE)[0] is ErrorCode.NONE
    assert described(node, GROUP)["consumer.session.timeout.ms"] == ("10000", FROM_BROKER)


@pytest.mark.parametrize(
    ("configs", "code", "said"),
    [
        ({"consumer.session.timeout.ms": "1999"}, ErrorCode.INVALID_CONFIG, "group.consumer.min.session.timeout.ms"),
        ({"consumer.session.timeout.ms": "60001"}, ErrorCode.INVALID_CONFIG, "group.consumer.max.session.timeout.ms"),
        ({"consumer.heartbeat.interval.ms": "199"}, ErrorCode.INVALID_CONFIG, "min.heartbeat.interval.ms"),
        (
            {"consumer.session.timeout.ms": "2000", "consumer.heartbeat.interval.ms": "2000"},
            ErrorCode.INVALID_CONFIG,
            "must be greater than consumer.heartbeat.interval.ms",
        ),
        ({"consumer.session.timeout.ms": "soon"}, ErrorCode.INVALID_CONFIG, "consumer.session.timeout.ms"),
        ({"share.session.timeout.ms": "45000"}, ErrorCode.INVALID_CONFIG, "no such groups"),
        ({"consumer.session.timeout": "45000"}, ErrorCode.INVALID_CONFIG, "consumer.session.timeout.ms"),
    ],
)
def test_what_the_coordinator_does_not_allow_is_refused_whole(
    node: GroupNode, configs: dict[str, str | None], code: ErrorCode, said: str
) -> None:
    before = described(node, GROUP)
    found, message = alter(node, GROUP, {"consumer.assignment.interval.ms": "5000", **configs})
    assert found is code
    assert said in message
    assert described(node, GROUP) == before


def test_a_group_without_a_name_and_lists_that_are_none(node: GroupNode) -> None:
    assert alter(node, "", {"consumer.session.timeout.ms": "3000"})[0] is ErrorCode.INVALID_REQUEST
    assert alter(node, GROUP, {"consumer.session.timeout.ms": "3000"}, APPEND)[0] is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("codec", range(5))
def test_the_offsets_topic_is_compressed_as_the_settings_say(codec: int) -> None:
    node = GroupNode(offsets_topic_compression_codec=str(codec), offsets_topic_num_partitions="1")
    for turn in range(3):
        assert node.commit(dict.fromkeys(range(4), turn), metadata="x" * 100) == dict.fromkeys(range(4), 0)
    member = ConsumerMember(node, "a")
    beat_until_settled([member], 2)
    log = node.process(1).node.replicas.partitions[("__consumer_offsets", 0)].log
    read = log.read(0, 1 << 20, up_to_offset=log.log_end_offset)
    found = {batch.compression for part in read.parts for batch in iterate_batches(part.read())}
    assert found == {codec}
    node.restart()
    node.find(GROUP)
    assert node.committed(topic=TOPIC) == dict.fromkeys(range(4), 2)
