"""Feature levels go up when everybody can follow, and down only where nothing is lost."""

from __future__ import annotations

import pytest

from tests.controller.world import World, features
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UPGRADE, SAFE, UNSAFE = 1, 2, 3
START = {"metadata.version": 25, "group.version": 1, "eligible.leader.replicas.version": 1}


def update(world: World, *updates: tuple[str, int, int], version: int = 2, validate_only: bool = False) -> ErrorCode:
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates
        ],
        validate_only=validate_only,
    )
    return ErrorCode(world.ask(ApiKey.UPDATE_FEATURES, request, version).error_code)


@pytest.mark.parametrize(
    ("name", "level", "kind", "code"),
    [
        ("metadata.version", 30, UPGRADE, ErrorCode.NONE),
        ("metadata.version", 31, UPGRADE, ErrorCode.INVALID_UPDATE_VERSION),
        ("metadata.version", 24, SAFE, ErrorCode.NONE),
        ("metadata.version", 24, UPGRADE, ErrorCode.INVALID_UPDATE_VERSION),
        ("metadata.version", 22, SAFE, ErrorCode.INVALID_UPDATE_VERSION),
        ("metadata.version", 22, UNSAFE, ErrorCode.INVALID_UPDATE_VERSION),
        ("metadata.version", 0, SAFE, ErrorCode.INVALID_UPDATE_VERSION),
        ("transaction.version", 2, UPGRADE, ErrorCode.NONE),
        ("transaction.version", 3, UPGRADE, ErrorCode.INVALID_UPDATE_VERSION),
        ("transaction.version", 2, SAFE, ErrorCode.INVALID_UPDATE_VERSION),
        ("group.version", 0, SAFE, ErrorCode.NONE),
        ("group.version", 0, UPGRADE, ErrorCode.INVALID_UPDATE_VERSION),
        ("group.version", -1, SAFE, ErrorCode.INVALID_UPDATE_VERSION),
        ("group.version", 1, 7, ErrorCode.INVALID_UPDATE_VERSION),
        ("share.version", 1, UPGRADE, ErrorCode.INVALID_UPDATE_VERSION),
        ("kraft.version", 2, UPGRADE, ErrorCode.INVALID_UPDATE_VERSION),
        ("kraft.version", 0, SAFE, ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_updates(name: str, level: int, kind: int, code: ErrorCode) -> None:
    world = World((1,), feature_levels=START)
    assert update(world, (name, level, kind), validate_only=True) is code
    assert world.image.features == START
    assert update(world, (name, level, kind)) is code
    assert world.image.features.get(name, 0) == (level if code is ErrorCode.NONE else START.get(name, 0))
    world.check()


def test_an_upgrade_of_everything_names_the_level_that_the_quorum_has_already() -> None:
    world = World((1,), feature_levels=START)
    assert update(world, ("kraft.version", 1, UPGRADE), ("metadata.version", 30, UPGRADE)) is ErrorCode.NONE
    assert world.image.features == START | {"metadata.version": 30}


def test_all_updates_of_a_request_or_none() -> None:
    world = World((1,), feature_levels=START)
    assert update(world, ("transaction.version", 2, UPGRADE), ("group.version", 9, UPGRADE)) is (
        ErrorCode.INVALID_UPDATE_VERSION
    )
    assert world.image.features == START


def test_a_level_that_a_broker_cannot_follow_is_refused() -> None:
    world = World(feature_levels=START)
    old = [each for each in features() if each.name != "transaction.version"]
    world.start(1, features=old)
    assert update(world, ("transaction.version", 2, UPGRADE)) is ErrorCode.INVALID_UPDATE_VERSION


def test_features_that_need_each_other_go_together() -> None:
    world = World((1,), feature_levels={"metadata.version": 20})
    assert update(world, ("group.version", 1, UPGRADE)) is ErrorCode.INVALID_UPDATE_VERSION
    assert update(world, ("group.version", 1, UPGRADE), ("metadata.version", 22, UPGRADE)) is ErrorCode.NONE
    assert world.image.features == {"metadata.version": 22, "group.version": 1}


def test_version_0_says_downgrade_by_a_flag() -> None:
    world = World((1,), feature_levels=START)
    change = FeatureUpdateKey(feature="group.version", max_version_level=0, allow_downgrade=True)
    answer = world.ask(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=[change]), 0)
    assert answer.error_code == ErrorCode.NONE
    assert [each.feature for each in answer.results] == ["group.version"]


def test_turning_the_elr_on_makes_min_insync_replicas_the_clusters_and_off_forgets_the_elr() -> None:
    world = World((1, 2), feature_levels={"metadata.version": 30}, min_insync_replicas=2)
    world.set_config(4, "1", min_insync_replicas="1")
    world.create("t", replicas=[[1, 2]])
    assert update(world, ("eligible.leader.replicas.version", 1, UPGRADE)) is ErrorCode.NONE
    assert world.image.configs == {(4, ""): {"min.insync.replicas": "2"}}
    world.crash(2)
    assert world.partition().eligible_leader_replicas == (2,)
    assert update(world, ("eligible.leader.replicas.version", 0, SAFE)) is ErrorCode.NONE
    assert world.partition().eligible_leader_replicas == ()
    world.check()


def test_without_the_elr_one_that_was_eligible_stays_in_sync_where_nobody_else_is() -> None:
    world = World((1, 2, 3), min_insync_replicas=2)
    world.create("t", replicas=[[1, 2]])
    world.crash(2)
    world.crash(1)
    assert (world.partition().isr, world.partition().eligible_leader_replicas) == ((), (1, 2))
    assert update(world, ("eligible.leader.replicas.version", 0, SAFE)) is ErrorCode.NONE
    assert (world.partition().isr, world.partition().eligible_leader_replicas) == ((1,), ())
    world.check()
    world.start(2)
    assert world.partition().leader == -1
    world.start(1)
    assert world.partition().leader == 1
    world.check()


def test_the_last_in_sync_may_lead_again_although_the_elr_was_switched_on_while_it_was_away() -> None:
    world = World((1, 2), feature_levels={"metadata.version": 30})
    world.create("t", replicas=[[1]])
    world.crash(1)
    assert (world.partition().leader, world.partition().isr) == (-1, (1,))
    assert update(world, ("eligible.leader.replicas.version", 1, UPGRADE)) is ErrorCode.NONE
    world.start(1)  # after an unclean stop: neither in sync nor eligible, but the last one that led
    assert (world.partition().leader, world.partition().isr) == (1, (1,))
    assert world.partition().last_known_elr == ()
    world.check()
