"""Settings of topics, brokers and all brokers: changed as a whole or not at all, and refused by name."""

from __future__ import annotations

import pytest

from tests.controller.world import World
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages import alter_configs as legacy
from tidelog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)


def ready() -> World:
    world = World((1, 2))
    world.create("t", replicas=[[1, 2]], retention_ms="5")
    return world


def test_set_and_delete() -> None:
    world = ready()
    assert world.set_config(TOPIC, "t", SET, segment_bytes="2097152", retention_ms="6").error_code == 0
    assert world.image.configs[TOPIC, "t"] == {"retention.ms": "6", "segment.bytes": "2097152"}
    assert world.set_config(TOPIC, "t", DELETE, retention_ms=None).error_code == 0
    assert world.image.configs[TOPIC, "t"] == {"segment.bytes": "2097152"}
    assert world.last_told("config-changed")["changes"] == {"retention.ms": None}


def test_append_and_subtract_work_on_lists_only() -> None:
    world = ready()
    assert world.set_config(TOPIC, "t", APPEND, cleanup_policy="compact").error_code == 0
    assert world.image.configs[TOPIC, "t"]["cleanup.policy"] == "delete,compact"
    assert world.set_config(TOPIC, "t", SUBTRACT, cleanup_policy="delete").error_code == 0
    assert world.image.configs[TOPIC, "t"]["cleanup.policy"] == "compact"
    answer = world.set_config(TOPIC, "t", APPEND, retention_ms="1")
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert "LIST" in answer.error_message


@pytest.mark.parametrize(
    ("kind", "resource", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_REQUEST),
        (BROKER, "9", ErrorCode.BROKER_ID_NOT_REGISTERED),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", ErrorCode.INVALID_REQUEST),
        (16, "x", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_are_not_there(kind: int, resource: str, code: ErrorCode) -> None:
    world = ready()
    before = len(world.log)
    assert world.set_config(kind, resource, SET, retention_ms="1").error_code == code
    assert len(world.log) == before


@pytest.mark.parametrize(
    ("kind", "resource", "configs", "said"),
    [
        (TOPIC, "t", {"retention_ms": "x", "segment_ms": "5"}, "retention.ms"),
        (TOPIC, "t", {"retentionms": "1"}, "did you mean retention.ms"),
        (TOPIC, "t", {"min_compaction_lag_ms": "9", "max_compaction_lag_ms": "8"}, "max.compaction.lag.ms"),
        (BROKER, "1", {"node_id": "2"}, "fixed when the node starts"),
        (BROKER, "", {"log_retention_ms": "x"}, "log.retention.ms"),
        (BROKER, "1", {"min_insync_replicas": "2"}, "ELR"),
    ],
)
def test_a_bad_setting_is_refused_and_nothing_is_half_applied(
    kind: int, resource: str, configs: dict[str, str], said: str
) -> None:
    world = ready()
    before = len(world.log)
    answer = world.set_config(kind, resource, SET, **configs)
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert said in answer.error_message
    assert len(world.log) == before


def test_a_brokers_setting_is_written_again_so_that_it_reads_files_anew() -> None:
    world = ready()
    for _ in range(2):
        before = len(world.log)
        assert world.set_config(BROKER, "1", SET, log_retention_ms="7").error_code == 0
        assert len(world.log) == before + 1
    before = len(world.log)
    assert world.set_config(TOPIC, "t", SET, retention_ms="5").error_code == 0
    assert len(world.log) == before


def test_min_insync_replicas_of_the_cluster_cannot_be_removed_while_it_carries_the_elr() -> None:
    world = ready()
    assert world.set_config(BROKER, "", DELETE, min_insync_replicas=None).error_code == ErrorCode.INVALID_CONFIG
    assert world.set_config(BROKER, "", SET, min_insync_replicas="2").error_code == 0


@pytest.mark.parametrize("resource", [(TOPIC, "t"), (BROKER, "")])
def test_changing_min_insync_replicas_forgets_the_elr_that_rests_on_it(resource: tuple[int, str]) -> None:
    world = World((1, 2))
    world.set_config(BROKER, "", SET, min_insync_replicas="2")
    world.create("t", replicas=[[1, 2]])
    world.crash(2)
    assert world.partition().eligible_leader_replicas == (2,)
    world.set_config(*resource, SET, min_insync_replicas="1")
    assert world.partition().eligible_leader_replicas == ()
    world.check()


@pytest.mark.parametrize("resource", [(TOPIC, "t"), (BROKER, "")])
def test_who_may_lead_is_not_forgotten_where_nobody_is_in_sync(resource: tuple[int, str]) -> None:
    world = World((1, 2, 3))
    world.set_config(BROKER, "", SET, min_insync_replicas="2")
    world.create("t", replicas=[[1, 2]])
    world.crash(2)
    world.crash(1)
    assert (world.partition().eligible_leader_replicas, world.partition().last_known_elr) == ((1, 2), (1,))
    world.set_config(*resource, SET, min_insync_replicas="1")
    assert (world.partition().eligible_leader_replicas, world.partition().last_known_elr) == ((1, 2), (1,))
    world.check()
    world.start(2, clean=True)
    assert (world.partition().leader, world.partition().isr) == (2, (2,))
    assert world.partition().eligible_leader_replicas == (), "2 commits alone now, what 1 does not have"
    world.check()


@pytest.mark.parametrize("resource", [(TOPIC, "t"), (BROKER, "")])
@pytest.mark.parametrize(("before", "after"), [("3", "2"), ("2", "3")])
def test_who_is_eligible_stays_so_where_too_few_are_in_sync_by_the_new_setting(
    before: str, after: str, resource: tuple[int, str]
) -> None:
    """The leader commits nothing alone, by either: when it loses what it has, only they have what was committed."""
    world = World((1, 2, 3))
    world.set_config(BROKER, "", SET, min_insync_replicas=before)
    world.create("t", replicas=[[1, 2, 3]])
    world.crash(3)
    world.crash(2)
    eligible = world.partition().eligible_leader_replicas
    assert 2 in eligible
    world.set_config(*resource, SET, min_insync_replicas=after)
    assert (world.partition().leader, world.partition().eligible_leader_replicas) == (1, eligible)
    world.check()
    world.crash(1)
    world.start(1)
    assert world.partition().leader == -1, "it came back after an unclean stop"
    world.start(2, clean=True)
    assert (world.partition().leader, world.partition().leader_recovery_state) == (2, 0)


def test_of_several_settings_in_a_request_all_decide_who_stays_eligible() -> None:
    world = World((1, 2, 3))
    world.create("t", replicas=[[1, 2, 3]], min_insync_replicas="2")
    world.crash(3)
    world.crash(2)
    assert world.partition().eligible_leader_replicas == (2,)
    lower = AlterableConfig(name="min.insync.replicas", config_operation=SET, value="1")
    other = AlterableConfig(name="min.insync.replicas", config_operation=SET, value="3")
    resources = [
        AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[lower]),
        AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[other]),
    ]
    world.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=resources), 1)
    assert world.image.configs[BROKER, ""]["min.insync.replicas"] == "3"
    assert world.partition().eligible_leader_replicas == (), "1 commits alone now"
    world.check()


def test_a_resource_or_a_name_given_twice_is_refused() -> None:
    world = ready()
    change = AlterableConfig(name="retention.ms", config_operation=SET, value="1")
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource, resource])
    answer = world.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
    assert {each.error_code for each in answer.responses} == {ErrorCode.INVALID_REQUEST}
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[change, change])]
    )
    answer = world.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1)
    assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST
    assert world.image.configs[TOPIC, "t"] == {"retention.ms": "5"}


def replace_all(world: World, *, validate_only: bool = False, **configs: str) -> ErrorCode:
    changes = [legacy.AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    resource = legacy.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=changes)
    request = legacy.AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return ErrorCode(world.ask(ApiKey.ALTER_CONFIGS, request, 2).responses[0].error_code)


def test_the_old_request_replaces_everything() -> None:
    world = ready()
    assert replace_all(world, validate_only=True, segment_ms="9") is ErrorCode.NONE
    assert world.image.configs[TOPIC, "t"] == {"retention.ms": "5"}
    assert replace_all(world, segment_ms="9") is ErrorCode.NONE
    assert world.image.configs[TOPIC, "t"] == {"segment.ms": "9"}
    assert replace_all(world, segment_ms="x") is ErrorCode.INVALID_CONFIG
    assert replace_all(world) is ErrorCode.NONE
    assert (TOPIC, "t") not in world.image.configs
