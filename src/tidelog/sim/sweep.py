"""A failure at every step of a small workload, for one choice of settings: what is lost, and whether writes go on.

Each run is a world of its own. Six records are written, one after the other. In half of the runs the followers have a
slow spell in the middle of it, long enough for the ISR to shrink to the leader. At one step one broker fails: by a
kill, a loss of power, or the loss of its disk. It comes back; where nobody may lead any more, an unclean election is
asked for, as an operator would; then the ledger is held against the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidelog.ledger import ACKNOWLEDGED, compare
from tidelog.sim.simulated_stage import SimulatedStage
from tidelog.sim.stage import Plan

FAILURES = ("kill", "power loss", "lost disk")
RECORDS = 6
SPELL_FROM, SPELL_TO = 2, 4
"""Before which records the slow spell begins and ends."""
LEADER, FOLLOWER = 1, 2
LAG_MS = 1000
TOPIC = "events"
SETTINGS = {
    "replica.lag.time.max.ms": str(LAG_MS),
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "1000",
}
"""A power loss is noticed by silence alone; this keeps the runs short."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What all runs of one setting came to."""

    line: str
    """A row of the table."""
    verdict: str
    """The same in words that a script can expect: `kill kept, power loss kept, lost disk lost, writes go on`."""


@dataclass(frozen=True, slots=True)
class Run:
    """One history: what fails, whose, before which record, and whether the followers are slow then."""

    failure: str
    victim: int
    step: int
    has_spell: bool


def sweep(settings: Mapping[str, str], seed: int) -> Outcome:
    """Play every run for these settings: replication.factor, acks and min.insync.replicas."""
    lost = dict.fromkeys(FAILURES, 0)
    refused = 0
    count = 0
    for run in _runs(int(settings["replication.factor"])):
        count += 1
        values, goes_on = _play(run, settings, seed + count)
        lost[run.failure] += bool(values)
        refused += not goes_on and not run.has_spell and run.failure != "power loss"
    words = [f"{failure} {'lost' if lost[failure] else 'kept'}" for failure in FAILURES]
    writes = "writes refused" if refused else "writes go on"
    name = " ".join(f"{key}={value}" for key, value in settings.items())
    cells = "  ".join(
        f"{failure}: {f'lost in {lost[failure]}' if lost[failure] else 'kept':<9}" for failure in FAILURES
    )
    return Outcome(f"{name:<66}  {cells}  {writes} ({count} runs)", ", ".join([*words, writes]))


def _runs(replication_factor: int) -> Iterator[Run]:
    for failure in FAILURES:
        for has_spell in (False, True) if replication_factor > 1 else (False,):
            for step in (1, 3, 5):
                yield Run(failure, LEADER, step, has_spell)
        if replication_factor > 1:
            yield Run(failure, FOLLOWER, 3, has_spell=False)


def _play(run: Run, settings: Mapping[str, str], seed: int) -> tuple[list[str], bool]:
    """The acknowledged values that are lost, and whether a write was taken while the broker was away."""
    stage = SimulatedStage(seed)
    brokers = (1, 2, 3)
    stage.start(Plan(brokers, (9,), SETTINGS))
    replicas = list(brokers[: int(settings["replication.factor"])])
    error = stage.create_topic(TOPIC, [replicas], {"min.insync.replicas": settings["min.insync.replicas"]})
    assert not error, error
    stage.add_producer("p", {"acks": settings["acks"], "delivery.timeout.ms": "4000"})
    goes_on = True
    for number in range(RECORDS):
        if run.has_spell and number == SPELL_FROM:
            for follower in replicas[1:]:
                stage.hold(LEADER, follower, "data")
            stage.wait(2 * LAG_MS)
        if run.has_spell and number == SPELL_TO:
            stage.heal()
            stage.wait(200)
        stage.send("p", TOPIC, 0, f"r{number}")
        if number == run.step:
            goes_on = _fail(stage, run)
        stage.wait_until(lambda: stage.unsettled("p") == 0, 10_000)
    _end(stage)
    view = stage.partition(TOPIC, 0)
    values = [record.value for record in view.lane(view.leader).records]
    return [entry.value for entry in compare(stage.ledger("p"), values).lost], goes_on


def _fail(stage: SimulatedStage, run: Run) -> bool:
    """The broker fails in the middle of a write, stays away for a while, and comes back."""
    stage.wait(4)
    if run.failure == "power loss":
        stage.power_off(run.victim)
    else:
        stage.kill(run.victim)
    if run.failure == "lost disk":
        stage.wipe(run.victim)
    stage.wait(1500)
    stage.add_producer("probe", {"acks": "all", "delivery.timeout.ms": "2000"})
    stage.send("probe", TOPIC, 0, "probe")
    stage.wait_until(lambda: stage.unsettled("probe") == 0, 3000)
    stage.wait(3500)
    stage.start_node(run.victim)
    stage.wait(1000)
    return stage.ledger("probe")[0].outcome == ACKNOWLEDGED


def _end(stage: SimulatedStage) -> None:
    """The network is well, everybody is back; where nobody may lead, somebody is made to."""
    stage.heal()
    if not stage.wait_until(lambda: stage.leaders(TOPIC)[0] >= 0, 5000):
        stage.elect("unclean", TOPIC, [0])
        stage.wait_until(lambda: stage.leaders(TOPIC)[0] >= 0, 5000)
    stage.wait(1000)
