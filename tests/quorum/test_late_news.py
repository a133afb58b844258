"""What reaches a replica when something else has happened to it meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from tests.quorum.machines import CLUSTER, Node, directory_id, record
from tests.quorum.script import Script
from tests.quorum.world import World
from tidelog.effects import Effect, Flush, Reply
from tidelog.outbox import Chance
from tidelog.quorum import DIRECTORY, TOPIC, RoleName, SnapshotId
from tidelog.sim.disk import SimulatedFlush
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages import vote
from tidelog.wire.messages.fetch import FetchRequest, FetchResponse


def test_who_does_not_know_yet_that_it_votes_does_not_stand_by_a_leader_it_hears_no_more() -> None:
    """The voter that was added last has not read so: without its word the one that is left could never lead."""
    world = World(1, [1, 2])
    world.add_machine(3)
    world.start()
    assert world.run(10_000, until=lambda: world.leader() is not None)
    leader, added = world.leader(), world.nodes[3]
    assert leader is not None
    assert world.run(5_000, until=lambda: added.quorum.log_end_offset == leader.quorum.log_end_offset)
    other = next(node for node in world.nodes.values() if node not in (leader, added))
    deliver = world.reply

    def reply(responder: Node, effect: Reply) -> None:
        entry = world._waiting.get(effect.connection_id)
        if entry is None or entry[0] is not added or not isinstance(effect.body, FetchResponse):
            deliver(responder, effect)

    world.reply = reply  # type: ignore[method-assign]
    world.add_voter(leader.id, added)
    assert world.run(5_000, until=lambda: 3 in other.quorum.voters.ids)
    world.run(50)
    world.reply = deliver  # type: ignore[method-assign]
    world.kill(leader.id)
    assert added.quorum.voters.ids == [1, 2]
    assert world.run(30_000, until=lambda: world.leader() is other)
    assert world.run(5_000, until=lambda: added.quorum.voters.ids == [1, 2, 3])


def test_a_snapshot_that_goes_further_replaces_a_log_of_a_later_epoch_that_was_never_committed() -> None:
    """Figure 8 of the Raft paper, and the new leader's log begins where the old epoch ends."""
    script = Script()
    for command in """
        voters 1 2 3|start 1 2 3|campaign 1|run 100
        silence 1-2 1-3|append 1 a=1 b=1 c=1 d=1|run 20|kill 1
        campaign 2|run 5|silence 2-3|append 2 e=1|run 20|kill 2
        heal|start 1|run 2|campaign 1|run 10|campaign 1|run 100
    """.replace("\n", "|").split("|"):
        if command.strip():
            script.play(command)
    leader, late = script.world.nodes[1], script.world.nodes[2]
    assert [epoch for epoch, _ in leader.log()] == [1] * 7 + [3]
    assert leader.quorum.high_watermark == 8
    records = [record(key, "1") for key in "abcd"]
    leader.step(lambda: leader.quorum.write_snapshot(records, 7))
    script.world.run(50)
    assert leader.quorum.latest_snapshot == SnapshotId(7, 1)
    script.play("clean 1")
    late.start()
    assert [epoch for epoch, _ in late.log()] == [1] * 3 + [2] * 2
    assert script.world.run(5_000, until=lambda: late.quorum.high_watermark == 8)
    assert (late.listener.state, late.quorum.log_start_offset) == (dict.fromkeys("abcd", "1"), 7)
    late.step(lambda: None)
    script.world.kill(2)
    late.start()
    assert (late.quorum.log_start_offset, late.quorum.log_end_offset) == (7, 8)


def test_a_snapshot_that_is_ready_after_the_log_began_anew_from_a_later_one_is_not_kept() -> None:
    """A log begins with its first snapshot: with an older one there, the epoch before its first record is another."""
    script = Script()
    for command in ("voters 1 2 3", "start 1 2 3", "campaign 1", "run 100", "append 1 a=1", "run 50"):
        script.play(command)
    world, leader, slow = script.world, script.world.nodes[1], script.world.nodes[3]
    slow.flush_delay_ms = (5_000, 5_000)
    slow.step(lambda: slow.quorum.write_snapshot([record("a", "1")], 4))
    world.run(10)
    slow.flush_delay_ms = (1, 1)
    for command in ("cut 1-3", "append 1 b=1", "append 1 c=1", "run 50", "snapshot 1", "clean 1", "heal"):
        script.play(command)
    assert world.run(4_000, until=lambda: slow.quorum.log_start_offset == 6)
    world.run(6_000)
    assert slow.quorum._core.log.snapshots == [SnapshotId(6, 1)]
    assert [name for name in slow.disk.list(DIRECTORY) if name.endswith(".checkpoint")] == [SnapshotId(6, 1).file_name]
    assert slow.quorum.log_end_offset == leader.quorum.log_end_offset


def test_a_follower_asks_the_next_leader_when_the_snapshot_of_the_former_one_is_in_place() -> None:
    """What it was told before is about a log that is no more: where to cut it would be below what is committed."""
    script = Script()
    for command in """
        voters 1 2 3|start 1 2 3|campaign 3|run 100
        silence 3-1 3-2|append 3 x=1 y=1|run 20|kill 3|heal
        campaign 1|run 100|append 1 a=1|append 1 b=1|run 50|snapshot 1|clean 1
    """.replace("\n", "|").split("|"):
        if command.strip():
            script.play(command)
    world, late = script.world, script.world.nodes[3]
    assert (late.quorum.log_end_offset, world.nodes[1].quorum.log_start_offset) == (5, 6)
    late.start()
    assert world.run(1_000, until=lambda: any("quorum-snapshot-download" in line for line in world.lines))
    late.flush_delay_ms = (900, 900)
    world.run(1_000)  # its second flush, of the snapshot's name, is under way
    late.flush_delay_ms = (1, 1)
    world.delay_ms = (250, 250)
    script.play("campaign 2")
    assert late.quorum.log_start_offset == 0
    assert world.run(10_000, until=lambda: late.halted is not None or late.quorum.high_watermark == 7)
    assert late.halted is None
    assert late.listener.state == {"a": "1", "b": "1"}
    assert late.quorum.log_start_offset == 6


def test_who_learns_from_a_snapshot_that_it_votes_no_more_looks_for_a_leader() -> None:
    """Removed while it was away, it waited for an election of its own when the snapshot that says so was in place."""
    script = Script()
    for command in """
        voters 1 2 3|start 1 2 3|campaign 1|run 100|kill 3
        remove 1 3|append 1 a=1|append 1 b=1|run 50|snapshot 1|clean 1
    """.replace("\n", "|").split("|"):
        if command.strip():
            script.play(command)
    world, removed = script.world, script.world.nodes[3]
    removed.start()
    assert world.run(1_000, until=lambda: any("quorum-snapshot-download" in line for line in world.lines))
    removed.flush_delay_ms = (700, 700)
    world.run(800)  # the second flush, of the snapshot's name, is under way
    removed.flush_delay_ms = (1, 1)
    for command in ("kill 1", "campaign 2", "lost 3"):
        script.play(command)
    assert world.run(600, until=lambda: removed.quorum.role is RoleName.UNATTACHED)
    assert world.run(600, until=lambda: removed.quorum.voters.ids == [1, 2])
    assert removed.quorum.role is RoleName.UNATTACHED
    script.play("start 1")
    assert world.run(10_000, until=lambda: world.leader() is not None)
    assert world.run(10_000, until=lambda: removed.quorum.role is RoleName.FOLLOWER)


@pytest.mark.parametrize("seed", range(1, 8))
def test_a_follower_fetches_nothing_before_its_epoch_is_on_the_medium(seed: int) -> None:
    """What it had of that epoch was counted and committed; after a power loss it took it for damage, for it knew only
    of an epoch long before, and voted for one that had nothing of it."""
    script = Script()
    for command in ("voters 1 2 3", "start 1 2 3", "campaign 3", "run 100"):
        script.play(command)
    world, slow = script.world, script.world.nodes[1]
    queue: list[tuple[Flush, SimulatedFlush]] = []
    carry_out = slow._carry_out

    def hold_flushes(effect: Effect) -> None:
        if isinstance(effect, Flush):
            queue.append((effect, slow.disk.start_flush(effect)))
        else:
            carry_out(effect)

    def finish_flush() -> None:
        effect, flush = queue.pop(0)
        error = flush.finish()
        slow.step(lambda: slow.outbox.resume(effect.token, error))
        world.run(5)

    slow._carry_out = hold_flushes  # type: ignore[method-assign]
    for command in ("append 3 a=1", "run 5", "silence 1-2 1-3", "campaign 2", "run 20", "campaign 3", "run 20"):
        script.play(command)
    script.play("campaign 2")
    script.play("run 20")
    world.heal()
    asked = vote.VoteRequestPartitionData(
        replica_epoch=2, replica_id=2, replica_directory_id=directory_id(2), last_offset_epoch=1, last_offset=4
    )
    topic = vote.VoteRequestTopicData(topic_name=TOPIC, partitions=[asked])
    world.request(1, ApiKey.VOTE, 2, vote.VoteRequest(cluster_id=CLUSTER, voter_id=1, topics=[topic]))  # late
    world.run(2)
    assert world.run(1_100, until=lambda: slow.quorum.epoch == 4)
    world.cut_link(2, 3, silently=True)
    script.play("append 2 r=1")
    leader = world.nodes[2]
    while leader.quorum.high_watermark < leader.quorum.log_end_offset:
        finish_flush()
    slow.stop()
    slow.disk.power_loss(Chance(seed))
    world._fail_connections(lambda one, other: slow in (one, other))
    slow._carry_out = carry_out  # type: ignore[method-assign]
    world.kill(2)
    world.heal()
    slow.start()
    assert world.run(20_000, until=lambda: world.leader() is not None)
    elected = world.leader()
    assert elected is not None
    assert world.run(5_000, until=lambda: elected.listener.state == {"a": "1", "r": "1"})


def test_who_looks_for_a_leader_says_nothing_of_its_log() -> None:
    """Whoever it asks may lead, and would count on what may not be flushed there yet."""
    world = World(1, [1, 2, 3])
    world.add_machine(4)
    world.start()
    asked: list[FetchRequest] = []
    observer = world.nodes[4]
    send = observer.outbox.send

    def noting(peer: Any, channel: str, key: int, version: int, body: Any, timeout_ms: int, then: Any) -> None:
        if isinstance(body, FetchRequest) and body.max_wait_ms == 0:
            asked.append(body)
        send(peer, channel, key, version, body, timeout_ms, then)

    observer.outbox.send = noting  # type: ignore[method-assign, assignment]
    assert world.run(10_000, until=lambda: observer.quorum.leader_id is not None)
    assert asked
    for request in asked:
        assert request.replica_state is not None
        assert request.replica_state.replica_id == request.replica_id == -1
