"""min.insync.replicas changes while histories play: who is eligible and what is committed follow it (KIP-966)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tidelog.sim import mutants, swarm
from tidelog.sim.checkers.replay import MIN_ISR
from tidelog.sim.shape import draw

SEEDS = range(300_000, 300_600)


def test_in_one_seed_of_four_it_changes() -> None:
    changing = [seed for seed in SEEDS if draw(seed).min_isr_changes]
    assert 110 <= len(changing) <= 190


def test_the_rest_of_a_seed_is_as_it_was() -> None:
    for seed in SEEDS[:100]:
        assert replace(draw(seed, has_min_isr_changes=True), min_isr_changes=()) == replace(
            draw(seed), min_isr_changes=()
        )


def test_it_is_raised_and_lowered_within_the_replicas_that_a_topic_has() -> None:
    raised = lowered = within_budget = 0
    for seed in SEEDS[:100]:
        shape = draw(seed, has_min_isr_changes=True)
        for topic in shape.every_topic:
            values = [topic.min_insync_replicas]
            values += [one.value for one in shape.min_isr_changes if one.topic == topic.name]
            assert 1 <= min(values) <= max(values) <= min(map(len, topic.assignment))
            assert shape.least_min_isr(topic) == min(values)
            steps = list(pairwise(values))
            assert all(before != after for before, after in steps)
            raised += any(before < after for before, after in steps)
            lowered += any(before > after for before, after in steps)
            within_budget += len(values) > 1 and min(values) > 1
    assert min(raised, lowered) > 100
    assert within_budget > 20, "bytes may be lost where it is never less than 2"


def test_the_admin_changes_it_in_the_cluster() -> None:
    seed = next(one for one in SEEDS if len(draw(one, has_min_isr_changes=True).min_isr_changes) > 2)
    shape = draw(seed, has_min_isr_changes=True)
    outcome = swarm.run(seed, shape=shape)
    assert outcome.finding == ""
    asked = [line for line in outcome.trace if f"admin: {MIN_ISR} of" in line]
    assert asked
    assert outcome.seen["min ISR change"]


@pytest.mark.parametrize(
    ("name", "checker"),
    [("eligible-kept", "EligibleHaveWhatIsCommitted"), ("min-isr-not-heard", "WatermarkWaitsForMinIsr")],
)
def test_who_does_not_follow_the_setting_is_found(name: str, checker: str) -> None:
    hunt = mutants.hunt(mutants.ALL[name], range(510_000, 510_010))
    assert hunt.is_proven, hunt.complaint
    assert hunt.checker == checker
