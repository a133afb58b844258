"""A follower keeps what the voter set says of it right, by asking the leader.

A voter that listens elsewhere than the voter set says has it corrected (UpdateRaftVoter, KIP-853). With
`controller.quorum.auto.join.enable` a controller that is no voter asks to become one, after having had the voter that
it was before it lost its disk removed (KIP-1186).
"""

from __future__ import annotations

from typing import Any

from tidelog.quorum.core import Core
from tidelog.quorum.requests import CONTROL_CHANNEL, leader_told
from tidelog.quorum.roles import Follower, RoleName
from tidelog.quorum.voters import ReplicaKey
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages import add_raft_voter, remove_raft_voter, update_raft_voter


class Joining:
    """Looks once a fetch timeout."""

    def __init__(self, core: Core) -> None:
        self._core = core
        core.on_enter[RoleName.FOLLOWER].append(self._look_later)

    def _look_later(self, role: Follower) -> None:
        delay_ms = max(self._core.settings.controller_quorum_fetch_timeout_ms, 1)
        self._core.after(role, delay_ms, lambda: self._look(role))

    def _look(self, role: Follower) -> None:
        core = self._core
        known = core.voters.get(core.identity.node_id)
        if role.has_fetched and core.identity.endpoints is not None and core.log.history.kraft_version >= 1:
            if core.is_voter:
                if known != core.local_voter:
                    self._update(role)
            elif core.settings.controller_quorum_auto_join_enable and not core.stopping:
                if known is None:
                    self._add(role)
                else:
                    self._remove(role, known.key)
        self._look_later(role)

    def _update(self, role: Follower) -> None:
        core = self._core
        low, high = core.local_voter.kraft_versions
        body = update_raft_voter.UpdateRaftVoterRequest(
            cluster_id=core.identity.cluster_id,
            current_leader_epoch=core.epoch,
            voter_id=core.identity.node_id,
            voter_directory_id=core.identity.directory_id,
            listeners=[
                update_raft_voter.Listener(name=name, host=host, port=port)
                for name, (host, port) in (core.identity.endpoints or {}).items()
            ],
            kraft_version_feature=update_raft_voter.KRaftVersionFeature(
                min_supported_version=low, max_supported_version=high
            ),
        )

        def answered(answer: update_raft_voter.UpdateRaftVoterResponse | None, error: str | None) -> None:
            if answer is not None and answer.current_leader is not None:
                told = answer.current_leader
                core.learn(told.leader_epoch, leader_told(told.leader_id, [])[0], None)

        self._ask(role, ApiKey.UPDATE_RAFT_VOTER, 0, body, answered)

    def _add(self, role: Follower) -> None:
        core = self._core
        body = add_raft_voter.AddRaftVoterRequest(
            cluster_id=core.identity.cluster_id,
            timeout_ms=core.settings.controller_quorum_request_timeout_ms,
            voter_id=core.identity.node_id,
            voter_directory_id=core.identity.directory_id,
            listeners=[
                add_raft_voter.Listener(name=name, host=host, port=port)
                for name, (host, port) in (core.identity.endpoints or {}).items()
            ],
            ack_when_committed=False,
        )
        self._ask(role, ApiKey.ADD_RAFT_VOTER, 1, body, lambda answer, error: None)

    def _remove(self, role: Follower, key: ReplicaKey) -> None:
        body = remove_raft_voter.RemoveRaftVoterRequest(
            cluster_id=self._core.identity.cluster_id, voter_id=key.id, voter_directory_id=key.directory_id
        )
        self._ask(role, ApiKey.REMOVE_RAFT_VOTER, 0, body, lambda answer, error: None)

    def _ask(self, role: Follower, api_key: int, version: int, body: Any, then: Any) -> None:
        self._core.send(role, role.leader, CONTROL_CHANNEL, api_key, version, body, then)
