"""Groups in simulated histories: members of both protocols read everything, and bugs are found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidelog.errors import ErrorCode
from tidelog.sim import mutants
from tidelog.sim.checkers import ALL
from tidelog.sim.committing import GroupNotes
from tidelog.sim.members import Member
from tidelog.sim.mutants.coordination_workloads import sleepy_members
from tidelog.sim.scripted import Script
from tidelog.sim.sharing import COOPERATIVE, RANGE, encode_share, share, subscription_of
from tidelog.sim.swarm import _Run
from tidelog.sim.work_shape import CLASSIC, CONSUMER, LEDGER, MemberShape
from tidelog.wire.api_table import ApiKey


def members(seed: int) -> tuple[MemberShape, ...]:
    work = sleepy_members(seed).work
    assert work is not None
    return work.members


@pytest.mark.parametrize(
    ("protocol", "is_cooperative"), [(CLASSIC, False), (CLASSIC, True), (CONSUMER, False)], ids=str
)
def test_members_share_the_partitions_and_take_over_from_each_other(protocol: str, is_cooperative: bool) -> None:
    """Some of them static, under the same name from life to life."""
    seed = next(
        one
        for one in range(300_000, 300_500)
        if {(shape.protocol, shape.is_cooperative) for shape in members(one)} == {(protocol, is_cooperative)}
        and any(shape.is_static for shape in members(one))
    )
    run = _Run(sleepy_members(seed), ALL)
    assert not run.play().finding
    assert run._work is not None
    for notes in run._work.groups.values():
        assert len({generation for generation, _ in notes.owners}) >= 3
        assert len(set(notes.owners.values())) >= 2
        assert min(notes.acknowledged.values()) > 0
    static = next(one for one in run._work.members if one.shape.is_static)
    assert static._lives >= 2
    assert static.name in {who for notes in run._work.groups.values() for who in notes.owners.values()}


def test_a_member_commits_again_what_it_finds_committed_and_nobody_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 200075: the last commit was stored, its answers were lost, and whoever took over had nothing left to commit:
    the group was where it should be, and nobody had ever heard so.
    """
    seed = next(one for one in range(300_000, 300_500) if {shape.protocol for shape in members(one)} == {CONSUMER})
    run = _Run(sleepy_members(seed), ALL)
    unheard: dict[int, tuple[str, int]] = {}
    asking = Member.asking

    def losing(self: Member, node_id: int, api_key: int, version: int, body: Any, *more: Any, **others: Any) -> Script:
        """Of each partition, the one who first commits its end hears nothing of its commits while it lives."""
        answer = yield from asking(self, node_id, api_key, version, body, *more, **others)
        if api_key != ApiKey.OFFSET_COMMIT or not self.is_ending:
            return answer
        assert run._work is not None
        partition = body.topics[0].partitions[0]
        index, offset = partition.partition_index, partition.committed_offset
        is_last = all(one.is_done for one in run._work.transactors) and offset == run._work._end(LEDGER, index)
        who = (self.name, self._lives)
        if is_last and answer is not None and not answer.topics[0].partitions[0].error_code:
            unheard.setdefault(index, who)
        return None if who in unheard.values() else answer

    monkeypatch.setattr(Member, "asking", losing)
    assert not run.play().finding
    assert unheard


def test_a_member_that_was_not_answered_says_everything_and_is_told_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 910142 of a hunt: an assignment is told once, its answer was lost, and the member read nothing for ever."""
    seed = next(one for one in range(300_000, 300_500) if {shape.protocol for shape in members(one)} == {CONSUMER})
    run = _Run(sleepy_members(seed), ALL)
    lost = 0
    asking = Member.asking

    def losing(self: Member, node_id: int, api_key: int, version: int, body: Any, *more: Any, **others: Any) -> Script:
        """Whoever does not say everything never hears of an assignment."""
        nonlocal lost
        answer = yield from asking(self, node_id, api_key, version, body, *more, **others)
        is_brief = api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT and body.subscribed_topic_names is None
        if is_brief and answer is not None and answer.assignment is not None:
            lost += 1
            return None
        return answer

    monkeypatch.setattr(Member, "asking", losing)
    assert not run.play().finding
    assert lost


@pytest.mark.parametrize(
    ("name", "checker"),
    [
        ("offsets-expired-too-early", "OffsetCommitsStay"),
        ("given-before-given-up", "OneOwnerAPartition"),
        ("deleted-offsets-left-behind", "DeletedGroupsStayGone"),
    ],
)
def test_a_quick_bug_of_groups_is_found(name: str, checker: str) -> None:
    hunt = mutants.hunt(mutants.ALL[name], range(300_000, 300_008))
    assert hunt.is_proven, hunt.complaint
    assert hunt.checker == checker


def test_a_cooperative_partition_moves_only_when_it_was_given_up() -> None:
    before = {"a": subscription_of([0, 1], 4), "b": subscription_of([], -1)}
    assert share(COOPERATIVE, before, 0) == {"a": [0], "b": []}
    given_up = {"a": subscription_of([0], 5), "b": subscription_of([], 5)}
    assert share(COOPERATIVE, given_up, 1) == {"a": [0], "b": [1]}
    assert share(RANGE, before, 0) == {"a": [0], "b": [1]}
    stale = {"a": subscription_of([0, 1], 4), "b": subscription_of([1], 5)}
    assert share(COOPERATIVE, stale, 0) == {"a": [0], "b": [1]}


def test_a_partition_that_is_given_while_its_owner_is_heard_of_is_noted() -> None:
    notes = GroupNotes("g")
    notes.holds(0, "a", 2_000)
    notes.takes(0, "a", 1_000)
    notes.takes(0, "b", 2_000)
    notes.takes(1, "b", 1_000)
    assert not notes.two_owners
    notes.takes(0, "b", 1_999)
    assert len(notes.two_owners) == 1
    notes.gives_up(0, "a")
    notes.takes(0, "b", 1_000)
    assert len(notes.two_owners) == 1


def test_a_partition_with_two_owners_in_a_generation_is_noted() -> None:
    notes = GroupNotes("g")
    notes.owns(1, 0, "a")
    notes.owns(2, 0, "b")
    notes.owns(1, 0, "a")
    assert not notes.two_owners
    notes.owns(2, 0, "a")
    assert notes.two_owners


@pytest.mark.parametrize(
    ("is_classic", "place_until_ms", "has_true_clocks", "is_found"),
    [
        (False, 1_500, True, True),
        (False, 0, True, False),  # it died, and its session ended: it is new, at the epoch that it had (seed 204262)
        (False, 900, True, False),
        (False, 1_500, False, False),
        (True, 0, False, True),
    ],
)
def test_a_static_members_place_is_its_own_while_it_is_kept(
    is_classic: bool, place_until_ms: int, has_true_clocks: bool, is_found: bool
) -> None:
    notes = GroupNotes("g", has_true_clocks=has_true_clocks)
    member: Any = SimpleNamespace(
        notes=notes,
        shape=SimpleNamespace(is_static=True),
        world=SimpleNamespace(now_ms=1_000),
        _is_classic=is_classic,
        _generation=14,
        _place=(14, frozenset({0})),
        _place_until_ms=place_until_ms,
        _who="m",
    )
    Member._look_at_place(member, [])
    assert bool(notes.misplaced) is is_found
    notes.misplaced.clear()
    Member._look_at_place(member, [])
    assert not notes.misplaced


@pytest.mark.parametrize(("is_cooperative", "joins"), [(True, 2), (False, 1)])
def test_a_leader_that_is_back_in_a_cooperative_generation_joins_again(is_cooperative: bool, joins: int) -> None:
    """Seed 931653 of a hunt: what was to move was nobody's in that generation, and the next was lost with its log."""
    asked: list[int] = []

    def asking(api_key: int, _version: int, _body: Any, **_more: Any) -> Script:
        asked.append(api_key)
        if api_key == ApiKey.JOIN_GROUP:
            is_back = len(asked) == 1
            joined = SimpleNamespace(member_id="m-1", generation_id=len(asked), skip_assignment=is_back)
            return ErrorCode.NONE, joined
        return ErrorCode.NONE, SimpleNamespace(assignment=encode_share([0]))
        yield

    def owning(_indexes: Any, **_more: Any) -> Script:
        return True
        yield

    member: Any = SimpleNamespace(
        shape=SimpleNamespace(is_cooperative=is_cooperative, is_static=True, group="g"),
        world=SimpleNamespace(now_ms=0),
        _member_id="",
        _instance_id="m",
        _generation=-1,
        _positions={0: 0},
        _drop=lambda: None,
        _asking=asking,
        _sync=lambda _joined: None,
        _look_at_place=lambda _given: None,
        _is_prompt=lambda _asked_ms: True,
        _owning=owning,
    )
    script = Member._joining_classic(member)
    with pytest.raises(StopIteration):
        next(script)
    assert asked.count(ApiKey.JOIN_GROUP) == joins
