"""Bugs that can be put back: named patches of behaviour, never switches in the shipped core.

A mutant counts as found when a checker complains while it is in, the patched line was executed, and the very same seeds
are clean without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.sim.mutants.base import Hunt, Mutant
from tidelog.sim.mutants.compacting import MUTANTS as COMPACTING
from tidelog.sim.mutants.controlling import MUTANTS as CONTROLLING
from tidelog.sim.mutants.directories import MUTANTS as DIRECTORIES
from tidelog.sim.mutants.grouping import MUTANTS as GROUPING
from tidelog.sim.mutants.min_isr import MUTANTS as MIN_ISR
from tidelog.sim.mutants.reading import MUTANTS as READING
from tidelog.sim.mutants.replicating import MUTANTS as REPLICATING
from tidelog.sim.mutants.rotting import MUTANTS as ROTTING
from tidelog.sim.mutants.storing import MUTANTS as STORING
from tidelog.sim.mutants.transacting import MUTANTS as TRANSACTING
from tidelog.sim.mutants.voting import MUTANTS as VOTING
from tidelog.sim.mutants.watermarks import MUTANTS as WATERMARKS

ALL: dict[str, Mutant] = {
    one.name: one
    for one in (
        *REPLICATING,
        *WATERMARKS,
        *READING,
        *STORING,
        *CONTROLLING,
        *DIRECTORIES,
        *MIN_ISR,
        *VOTING,
        *TRANSACTING,
        *GROUPING,
        *COMPACTING,
        *ROTTING,
    )
}
"""Every mutant by its name."""
NOT_FOUND_YET: frozenset[str] = frozenset()
"""Mutants that no hunt has found; hunted only when named."""
PROVEN = tuple(name for name in ALL if name not in NOT_FOUND_YET)


def hunt(mutant: Mutant, seeds: Sequence[int]) -> Hunt:
    """Play seeds with the bug in until one is found out, then the same seeds without it."""
    from tidelog.sim import swarm

    result = Hunt()
    with mutant.put_in():
        for seed in seeds:
            result.seeds += 1
            outcome = swarm.run(seed, shape=mutant.workload(seed))
            if outcome.finding:
                result.checker, result.finding, result.found_by_seed = outcome.checker, outcome.finding, seed
                break
        result.executed = mutant.executed
    for seed in seeds[: result.seeds] if result.finding else ():
        without = swarm.run(seed, shape=mutant.workload(seed))
        if without.finding:
            result.dirty.append(seed)
    return result


__all__ = ["ALL", "NOT_FOUND_YET", "PROVEN", "Hunt", "Mutant", "hunt"]
