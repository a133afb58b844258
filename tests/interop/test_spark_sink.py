"""The sink and `mirror` against Apache Kafka: the tests of tests/spark with its broker in place of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import make_topic
from tests.spark import test_sink
from tests.spark.conftest import scratch, spark
from tests.spark.sink_faults import MOMENTS, one_node, run_with_fault
from tests.spark.sink_kafka import three_kafka_nodes
from tests.spark.test_sink import *  # noqa: F403 - the very same tests
from tests.support.nodes import KafkaNode, Node, passing_node

__all__ = ["make_topic", "scratch", "spark"]


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """Apache Kafka."""
    with passing_node(KafkaNode, test_sink.NODE_PROPERTIES) as started:
        yield started


@pytest.mark.parametrize(("victim", "step", "when"), [("driver", "end", "after"), ("broker", "end", "before")])
def test_kills_under_spark_lose_and_duplicate_nothing(tmp_path: Path, victim: str, step: str, when: str) -> None:
    with one_node(KafkaNode, tmp_path / "node") as stage:
        run_with_fault(stage, tmp_path, victim, step, when)


@pytest.mark.parametrize(("step", "when"), MOMENTS)
def test_a_driver_killed_at_any_step_loses_and_duplicates_nothing(tmp_path: Path, step: str, when: str) -> None:
    """The protocol by itself, in one process in place of Spark's; most kills of brokers are with the long tests."""
    with one_node(KafkaNode, tmp_path / "node") as stage:
        run_with_fault(stage, tmp_path, "driver", step, when, program="tests.spark.sink_protocol_job")


def test_a_broker_that_comes_back_and_refuses_a_repetition_costs_a_turn(tmp_path: Path) -> None:
    """Of each producer it remembers the last batch only, and refuses those before whose answers were lost."""
    with one_node(KafkaNode, tmp_path / "node") as stage:
        run_with_fault(stage, tmp_path, "broker", "write", "after", program="tests.spark.sink_protocol_job")


def test_a_coordinator_killed_when_it_has_decided_is_followed_by_one_that_tells(tmp_path: Path) -> None:
    with three_kafka_nodes(tmp_path / "cluster") as stage:
        run_with_fault(stage, tmp_path, "broker", "end", "after", program="tests.spark.sink_protocol_job")
