"""What reaches a replica when something else has happened to it meanwhile."""

from __future__ import annotations

from tests.quorum.machines import Node
from tests.quorum.world import World
from tidelog.effects import Reply
from tidelog.wire.messages.fetch import FetchResponse


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
