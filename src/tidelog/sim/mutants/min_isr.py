"""Bugs of leaders and controllers when min.insync.replicas changes.

They are hunted where it does, which is one seed of four: the others cannot find them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidelog.controller.decide import configs
from tidelog.errors import ErrorCode
from tidelog.replica.isr_changes import IsrChanges
from tidelog.replica.replicas import Replicas
from tidelog.sim.mutants.base import Hit, Mutant, Original
from tidelog.sim.shape import Shape, draw


def changing_min_isr(seed: int) -> Shape:
    """The swarm's drawing of a seed, and min.insync.replicas that changes in any case."""
    return draw(seed, has_min_isr_changes=True)


def always_late(seed: int) -> Shape:
    """The same, and leaders hear late of every change."""
    shape = changing_min_isr(seed)
    return replace(shape, min_isr_changes=tuple(replace(one, is_late=True) for one in shape.min_isr_changes))


def _shrunk_by_the_answer(original: Original, hit: Hit) -> Original:
    def answered(self: IsrChanges, response: Any, error: str | None) -> None:
        asked = dict(self._in_flight)
        original(self, response, error)
        found = [] if error is not None else [(topic, one) for topic in response.topics for one in topic.partitions]
        for topic, one in found:
            for partition in asked:
                leadership = partition.leadership
                if (
                    (partition.topic_id, partition.index) == (topic.topic_id, one.partition_index)
                    and one.error_code == ErrorCode.NONE
                    and leadership is not None
                    and one.leader_epoch == leadership.epoch
                    and one.partition_epoch > leadership.partition_epoch
                    and set(one.isr) < set(leadership.isr)
                ):
                    hit()
                    now_ms = self._outbox.now_ms
                    leadership.update(leadership.replicas, one.isr, one.partition_epoch, now_ms)
                    partition.advance_high_watermark()

    return answered


def _eligible_forgotten(_original: Original, hit: Hit) -> Original:
    def clear_eligible(image: Any, decision: Any, topic_name: str, context: Any, changed: Any) -> None:
        begin = len(decision.records)
        _original(image, decision, topic_name, context, changed)
        if decision.records[begin + 1 :]:
            hit()
            del decision.records[begin + 1 :]

    return clear_eligible


def _eligible_kept(_original: Original, hit: Hit) -> Original:
    def clear_eligible(image: Any, decision: Any, topic_name: str, *more: Any) -> None:
        topics = [one for one in image.topics.values() if topic_name in ("", one.name)]
        if any(one.eligible_leader_replicas for topic in topics for one in topic.partitions.values()):
            hit()

    return clear_eligible


def _setting_ignored(_original: Original, hit: Hit) -> Original:
    def configure(self: Replicas, _configs: Any) -> None:
        hit()

    return configure


MUTANTS = (
    Mutant(
        "isr-shrunk-by-answer",
        "a leader takes a smaller ISR from the answer, before the setting by which that was decided (against KIP-966)",
        [(IsrChanges, "_answered", _shrunk_by_the_answer)],
        always_late,
    ),
    Mutant(
        "eligible-forgotten",
        "with a changed min.insync.replicas all ELRs are forgotten, also where too few are in sync",
        [(configs, "_clear_eligible", _eligible_forgotten)],
        changing_min_isr,
    ),
    Mutant(
        "eligible-kept",
        "with a changed min.insync.replicas no ELR is forgotten, and a leader commits without them (against KIP-966)",
        [(configs, "_clear_eligible", _eligible_kept)],
        changing_min_isr,
    ),
    Mutant(
        "min-isr-not-heard",
        "a leader goes on with the min.insync.replicas that it began with",
        [(Replicas, "configure", _setting_ignored)],
        changing_min_isr,
    ),
)
