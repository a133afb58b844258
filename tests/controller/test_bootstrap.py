"""A new cluster begins with the right feature levels, ours or those it was formatted with."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.controller.world import World
from tidelog.controller import MetadataImage, UnsupportedLevelError, format_records, records_for_empty_log
from tidelog.controller.records import FeatureLevelRecord
from tidelog.errors import ConfigError


def levels_of(records: Sequence[tuple[object, int]]) -> dict[str, int]:
    return {record.name: record.feature_level for record, _ in records if isinstance(record, FeatureLevelRecord)}


def test_the_default_levels() -> None:
    records = format_records()
    assert list(levels_of(records).items()) == [
        ("metadata.version", 30),
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("transaction.version", 2),
    ]


def test_a_lower_metadata_version_leaves_out_what_needs_a_higher() -> None:
    assert levels_of(format_records({"metadata.version": 22})) == {"metadata.version": 22, "group.version": 1}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"group.version": 2}, "must be 0 to 1"),
        ({"kraft.version": 1}, "not known"),
        ({"share.version": 1}, "not known"),
        ({"metadata.version": 20, "group.version": 1}, "needs metadata.version 22"),
    ],
)
def test_levels_that_cannot_be_are_refused(wanted: dict[str, int], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        format_records(wanted)


def test_an_unknown_metadata_version_is_refused() -> None:
    with pytest.raises(UnsupportedLevelError):
        format_records({"metadata.version": 99})


def test_the_first_records_are_one_transaction_and_write_down_min_insync_replicas() -> None:
    records = records_for_empty_log(min_insync_replicas=2)
    assert type(records[0][0]).__name__ == "BeginTransactionRecord"
    assert type(records[-1][0]).__name__ == "EndTransactionRecord"
    image = MetadataImage()
    image.apply_all(record for record, _ in records)
    assert image.features["metadata.version"] == 30
    assert image.configs == {(4, ""): {"min.insync.replicas": "2"}}
    assert image.elr_enabled


def test_old_levels_have_no_transaction_and_no_elr() -> None:
    records = records_for_empty_log([FeatureLevelRecord(name="metadata.version", feature_level=11)])
    assert [type(record).__name__ for record, _ in records] == ["FeatureLevelRecord"]


def test_bootstrap_records_without_a_level_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"metadata\.version"):
        records_for_empty_log([])


def test_the_first_controller_of_an_empty_log_writes_them() -> None:
    world = World(feature_levels={"metadata.version": 29})
    assert world.image.features == {"metadata.version": 29}
    assert not world.image.elr_enabled
