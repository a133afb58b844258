"""Groups: committed offsets stay, deleted ones do not, partitions have one owner, and nothing is passed over."""

from __future__ import annotations

from tidelog.sim.checkers.transactions import WorkChecker
from tidelog.sim.work import Work
from tidelog.sim.work_shape import LEDGER, LEDGER_PARTITIONS


class OffsetCommitsStay(WorkChecker):
    """An offset whose commit was answered is what the group has, until a later one takes its place."""

    def look(self, work: Work) -> None:
        idle = [] if work.idle is None else [work.idle.notes]
        for notes in (*work.groups.values(), *idle):
            if notes.lost:
                raise self.violated(notes.lost[0])


class OneOwnerAPartition(WorkChecker):
    """In a generation of a group, or at a member epoch, no partition is given to two members; and it is given to one
    only when whoever had it has given it up, or was not heard of for a session.
    """

    def look(self, work: Work) -> None:
        for notes in work.groups.values():
            if notes.two_owners:
                raise self.violated(notes.two_owners[0])


class StaticMembersKeepTheirPlace(WorkChecker):
    """A static member that is back in the same generation has what it had, and whoever has its former id is fenced."""

    def look(self, work: Work) -> None:
        for notes in work.groups.values():
            if notes.misplaced:
                raise self.violated(notes.misplaced[0])


class DeletedGroupsStayGone(WorkChecker):
    """The offsets of a group that was deleted do not come back."""

    def look(self, work: Work) -> None:
        if work.forgetful is not None and work.forgetful.returned:
            raise self.violated(work.forgetful.returned[0])


class GroupsPassNothingOver(WorkChecker):
    """Every committed record before a group's offset was read by one of its members."""

    def look(self, work: Work) -> None:
        for notes in work.groups.values():
            for index in range(LEDGER_PARTITIONS):
                read = notes.consumed.get(index, set())
                end = notes.acknowledged.get(index, 0)
                missed = [one for one in self.final(LEDGER, index).committed if one < end and one not in read]
                if missed:
                    raise self.violated(f"{notes.name} is at {end} of {LEDGER}-{index}, and nobody read {missed[:5]}")
