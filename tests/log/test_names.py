"""Kafka must find its directories and files under the names it gives them."""

from __future__ import annotations

import pytest

from tidelog.log import names

UNIQUE = bytes(range(16))


@pytest.mark.parametrize(("topic", "partition"), [("orders", 0), ("a-b-3", 17), ("__consumer_offsets", 49)])
def test_a_directory_is_named_after_its_partition(topic: str, partition: int) -> None:
    name = names.directory_name(topic, partition)
    assert name == f"{topic}-{partition}"
    assert names.parse_directory_name(name) == (topic, partition)


@pytest.mark.parametrize("name", ["", "orders", "-1", "orders-", "orders-x", "orders-²", "meta.properties"])
def test_other_names_are_no_partition(name: str) -> None:
    assert names.parse_directory_name(name) is None


def test_a_deleted_directory_is_never_served_again() -> None:
    name = names.deleted_directory_name("orders", 3, UNIQUE)
    assert name == "orders-3.000102030405060708090a0b0c0d0e0f-delete"
    assert names.is_deleted_directory(name)
    assert names.parse_directory_name(name) is None
    assert not names.is_deleted_directory("to-delete")  # a topic may be called so
    assert names.parse_directory_name(names.stray_directory_name("orders", 3, UNIQUE)) is None


def test_the_longest_topic_can_be_deleted() -> None:
    assert len(names.deleted_directory_name("t" * 249, 123_456, UNIQUE)) == 255


def test_files_are_named_by_offset() -> None:
    assert names.file_name(42, names.LOG_SUFFIX) == "00000000000000000042.log"
    assert names.parse_file_name("00000000000000000042.log.swap") == (42, ".log.swap")
    for other in ("00000000000000000000-0000000000.checkpoint", "leader-epoch-checkpoint", "42.log", "quorum-state"):
        assert names.parse_file_name(other) is None
