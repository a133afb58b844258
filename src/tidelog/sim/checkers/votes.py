"""Whether whoever leads the quorum was voted for, by those who may, on their disks."""

from __future__ import annotations

from tidelog.quorum import election_state
from tidelog.quorum.core import STATE_PATH
from tidelog.quorum.election_state import ElectionState
from tidelog.quorum.voters import Voter
from tidelog.replica.directory import META_PROPERTIES
from tidelog.sim.checkers.base import Checker, History
from tidelog.sim.machines import Host, Process
from tidelog.wire.uuids import to_text


class VotesAreDurable(Checker):
    """When somebody begins to lead the quorum, a majority of the voters has its vote on the medium.

    A vote that only a page cache knows can be given twice, and so can one of a voter that lost its disk (KIP-853).
    """

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._known: set[tuple[int, int]] = set()

    def metadata_changed(self, process: Process) -> None:
        quorum = process.node.cluster.quorum
        leader = process.host.name
        if not quorum.is_leader or (quorum.epoch, leader) in self._known:
            return
        self._known.add((quorum.epoch, leader))
        hosts = self.history.cluster.world.hosts
        for_it = 0
        against = []
        for voter in quorum.voters:
            host = hosts[voter.id]
            state = _on_medium(host)
            is_same = _is_same_replica(host, voter)
            says_so = state.epoch == quorum.epoch and state.voted is not None and state.voted.id == leader
            if says_so and not is_same:
                raise self.violated(
                    f"node {voter.id} voted for node {leader} in epoch {quorum.epoch} of the quorum, though it is not "
                    "the voter that it was: its disk is another one"
                )
            # One that lost its disk meanwhile may have voted before; one in a later epoch no longer says.
            if voter.id == leader or not is_same or state.epoch > quorum.epoch or says_so or state.leader_id == leader:
                for_it += 1
            else:
                against.append((voter.id, state.epoch))
        if for_it < quorum.voters.majority:
            raise self.violated(
                f"node {leader} leads the quorum in epoch {quorum.epoch}, but on their disks the voters {against} "
                "(with the epoch each has there) have not voted for it"
            )


def _on_medium(host: Host) -> ElectionState:
    data = host.disks[0].durable_file(STATE_PATH)
    return ElectionState() if data is None else election_state.decode(data)


def _is_same_replica(host: Host, voter: Voter) -> bool:
    data = host.disks[0].durable_file(META_PROPERTIES)
    return data is not None and f"directory.id={to_text(voter.key.directory_id)}" in data.decode()
