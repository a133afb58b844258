"""Links that can be cut must not hide that a node died: leader and active controller in one, killed behind them."""

from __future__ import annotations

import tempfile

from tests.cluster.support import create_topic, wait_until
from tidelog.verify.cluster import LocalCluster

SESSION_MS = 120_000
"""Longer than this test waits: whoever is fenced within it was not fenced for silence."""


def test_a_node_that_led_and_controlled_is_fenced_for_its_death_not_for_its_silence() -> None:
    settings = {"broker.session.timeout.ms": str(SESSION_MS)}
    with (
        tempfile.TemporaryDirectory(prefix="tidelog-cluster-") as directory,
        LocalCluster(directory, 5, settings=settings, with_links=True) as cluster,
    ):
        cluster.start()
        cluster.wait_ready()
        create_topic(cluster, "events", partitions=10)
        wait_until(lambda: cluster.why_not_in_step("events", 10) is None, "the topic is on its nodes")
        doomed = cluster.controller()
        assert doomed is not None
        led = [index for index in range(10) if cluster.leader("events", index) == doomed]
        assert led, "ten partitions over five nodes: each leads some"
        cluster.kill(doomed)
        wait_until(lambda: cluster.controller() not in (None, doomed), "another controls")
        for index in led:
            wait_until(
                lambda index=index: cluster.leader("events", index) not in (None, doomed),  # type: ignore[misc]
                f"another leads events-{index}",
            )
        cluster.start(doomed)
        wait_until(lambda: cluster.why_not_in_step("events", 10) is None, "it is back in sync")
