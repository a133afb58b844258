"""A leader that wrote nothing in its epoch follows the next one as if it had never led."""

from __future__ import annotations

import pytest

from tests.sim.test_three_nodes import started
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions


@pytest.mark.parametrize("seed", range(3))
def test_a_leader_that_wrote_nothing_copies_from_the_next(seed: int) -> None:
    """It knows of an epoch that no other log has; fetching with it must not go on forever without a record."""
    cluster = started(seed)
    cluster.produce(b"first")
    first = cluster.leader()
    cluster.world.kill(first)
    assert cluster.world.run_until(lambda: cluster.leader() not in (-1, first))
    idle = cluster.leader()
    cluster.world.start(first)
    assert cluster.world.run_until(lambda: cluster.isr() == {1, 2, 3})
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="events", partitions=[0])], timeout_ms=5000)
    cluster.ask(idle, ApiKey.ELECT_LEADERS, 2, request)
    assert cluster.world.run_until(lambda: cluster.leader() == first)
    steps = cluster.world.steps
    assert cluster.produce(b"second") == 1
    cluster.world.run_for(2_000)
    assert cluster.isr() == {1, 2, 3}
    assert cluster.log_of(1) == cluster.log_of(2) == cluster.log_of(3)
    assert cluster.world.steps - steps < 500, "nobody asks without end"
