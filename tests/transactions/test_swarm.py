"""Seeds of transactional producers under faults: all of a transaction is read or nothing, and zombies are refused.

TIDELOG_TRANSACTION_SEEDS=0..500 hunts longer.
"""

from __future__ import annotations

import os

import pytest

from tests.transactions.swarm import Swarm

FIRST, _, LAST = os.environ.get("TIDELOG_TRANSACTION_SEEDS", "0..2").partition("..")


@pytest.mark.parametrize("seed", range(int(FIRST), int(LAST) + 1))
def test_transactions_are_atomic_whatever_happens(seed: int) -> None:
    swarm = Swarm(seed)
    complaints = swarm.run()
    summary = {one.name: list(one.fates.values()) for one in swarm.producers}
    assert not complaints, f"seed {seed}: {complaints[:6]}\n{summary}\n" + "\n".join(swarm.faults)
    assert sum(fates.count("committed") for fates in summary.values()) > 10, summary
