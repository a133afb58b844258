"""Kill -9 again and again while an idempotent producer writes: nothing acknowledged is lost, repeated or reordered."""

from __future__ import annotations

import random
import time

import pytest

from tests.clients import confluent
from tests.clients.test_crash import PARTITIONS, Writer, own_node, read_all

SHARE = 0.25
"""Of the minutes of a soak, for each way to flush."""


@pytest.mark.parametrize("flush_every", ["1", None], ids=["flushed", "page-cache"])
def test_kills_without_end(minutes: float, flush_every: str | None) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    properties = {} if flush_every is None else {"log_flush_interval_messages": flush_every}
    deadline_s = time.monotonic() + minutes * 60 * SHARE
    kills = 0
    with own_node(**properties) as node:
        confluent.create_topic(node, "kept", PARTITIONS, {"segment.bytes": "1048576", "retention.ms": "-1"})
        writer = Writer(node, "kept", idempotent=True, pause_s=0.02)
        try:
            while time.monotonic() < deadline_s or not kills:
                time.sleep(chance.uniform(0.05, 3.0))
                if chance.random() < 0.8:
                    node.kill()
                else:
                    node.stop()
                node.start()
                kills += 1
                assert not writer.failures, f"seed {seed}, kill {kills}: {writer.failures[0]}"
        finally:
            writer.stop()
        assert not writer.failures, f"seed {seed}: {writer.failures[0]}"
        for partition in range(PARTITIONS):
            found = read_all(node, "kept", partition)
            assert [offset for offset, _ in found] == list(range(len(found)))
            assert [number for _, number in found] == list(range(writer.sent)), f"seed {seed}"
            assert {number: offset for offset, number in found} == writer.acknowledged[partition]
    print(f"{kills} ends of the process, {writer.sent * PARTITIONS} records")
