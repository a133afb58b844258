"""Whether what the nodes tell people is what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelog.sim.checkers.base import Checker, History
from tidelog.sim.checkers.replay import Change

LEADER_KINDS = ("leader-elected", "leader-lost")
ISR_KIND = "isr-changed"


class EventsTellWhatHappened(Checker):
    """Elections and ISR changes that are told were committed, unclean ones are called so, and none is left out.

    A controller that dies takes with it what it has not told yet: of each epoch of the quorum a first part is told, and
    of the last epoch everything.
    """

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._looked_to = 0
        self._known_to = 0
        self._changes: dict[tuple[str, int, int], list[Change]] = {}
        """By topic, partition and partition epoch; several where a topic was made again under its name."""
        self._early: list[tuple[int, str, Mapping[str, Any]]] = []
        """Told by a controller that died in the same step, before anybody could look at what it had committed."""
        self._told: set[tuple[str, str, int, int]] = set()
        """Kind, topic, partition and partition epoch."""

    def told(self) -> None:
        self._read_on(is_end=False)

    def _read_on(self, *, is_end: bool) -> None:
        told = self.history.cluster.world.told
        changes = self.history.replay.changes
        for change in changes[self._known_to :]:
            self._changes.setdefault((change.topic, change.number, change.after.partition_epoch), []).append(change)
        self._known_to = len(changes)
        early, self._early = self._early, []
        for node_id, kind, fields in early:
            self._look(node_id, kind, fields, may_be_early=not is_end)
        for _, node_id, one in told[self._looked_to :]:
            if one.kind in LEADER_KINDS or one.kind == ISR_KIND:
                process = self.history.cluster.world.hosts[node_id].process
                self._look(node_id, one.kind, one.fields, may_be_early=process is None or not process.alive)
        self._looked_to = len(told)

    def _look(self, node_id: int, kind: str, fields: Mapping[str, Any], *, may_be_early: bool) -> None:
        key = (fields["topic"], fields["partition"], fields["partition_epoch"])
        said = (fields["leader"], fields["leader_epoch"], sorted(fields["isr"]))
        happened = [change for change in self._changes.get(key, ()) if _state(change) == said]
        if not happened and may_be_early:
            self._early.append((node_id, kind, fields))
            return
        if not happened:
            raise self.violated(f"node {node_id} told {kind} {dict(fields)}, which is not what was committed")
        if kind == LEADER_KINDS[0] and all(change.is_unclean != fields["unclean"] for change in happened):
            raise self.violated(f"node {node_id} told {kind} {dict(fields)}: whether that was unclean is told wrongly")
        self._told.add((ISR_KIND if kind == ISR_KIND else LEADER_KINDS[0], *key))

    def at_end(self) -> None:
        self._read_on(is_end=True)
        last: dict[tuple[int, str, int], Change] = {}
        for change in self.history.replay.changes:
            if change.before is not None and not change.is_cleared:
                last[change.batch_offset, change.topic, change.number] = change
        epochs: dict[int, list[Change]] = {}
        for change in last.values():
            if _what_is_to_tell(change):
                epochs.setdefault(change.quorum_epoch, []).append(change)
        final = max((one.quorum_epoch for one in self.history.replay.changes), default=0)
        newest = max(
            self.history.cluster.process(one).node.cluster.quorum.epoch for one in self.history.cluster.node_ids
        )
        for epoch, changes in epochs.items():
            untold = [change for change in changes if not self._is_told(change)]
            told_after = [one for one in changes if untold and one.batch_offset > untold[0].batch_offset]
            if untold and (epoch == final == newest or any(self._is_surely_told(one) for one in told_after)):
                one = untold[0]
                raise self.violated(
                    f"nobody told {one.name} changed to {_state(one)} in partition epoch {one.after.partition_epoch}"
                )

    def _is_surely_told(self, change: Change) -> bool:
        """What was told may be of another topic with the same name: only where there was none is it this change."""
        key = (change.topic, change.number, change.after.partition_epoch)
        return self._is_told(change) and len(self._changes[key]) == 1

    def _is_told(self, change: Change) -> bool:
        key = (change.topic, change.number, change.after.partition_epoch)
        return all((kind, *key) in self._told for kind in _what_is_to_tell(change))


def _state(change: Change) -> tuple[int, int, list[int]]:
    return change.after.leader, change.after.leader_epoch, sorted(change.after.isr)


def _what_is_to_tell(change: Change) -> list[str]:
    before, after = change.before, change.after
    assert before is not None
    kinds = [LEADER_KINDS[0]] if after.leader != before.leader else []
    if set(after.isr) != set(before.isr) or after.eligible_leader_replicas != before.eligible_leader_replicas:
        kinds.append(ISR_KIND)
    return kinds
