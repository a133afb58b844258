"""What a replica must not forget about elections, and the file `quorum-state` that holds it.

Kafka's JSON: version 0 with kraft.version 0 (clusterId, appliedOffset and currentVoters are written and not read),
version 1 with kraft.version 1, which names the directory of the replica voted for. The file is durable before a vote
is answered and before a leadership is acted upon.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tidelog.errors import CorruptionError, DecodeError
from tidelog.quorum.voters import ReplicaKey
from tidelog.wire.uuids import ZERO_UUID, from_text, to_text

FILE_NAME = "quorum-state"


@dataclass(frozen=True, slots=True)
class ElectionState:
    """The epoch, and in it the leader and the replica this one voted for, as far as there are any."""

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None

    def has_voted_for(self, key: ReplicaKey) -> bool:
        """Whether the vote of this epoch went to this replica; a vote stored without a directory matches by id."""
        return self.voted is not None and self.voted.id == key.id and self.voted.directory_id in (ZERO_UUID, key[1])


def encode(state: ElectionState, kraft_version: int, voter_ids: list[int]) -> bytes:
    """The content of `quorum-state`."""
    leader_id = -1 if state.leader_id is None else state.leader_id
    voted = state.voted or ReplicaKey(-1)
    fields: dict[str, Any]
    if kraft_version == 0:
        fields = {
            "clusterId": "",
            "leaderId": leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted.id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in voter_ids],
            "data_version": 0,
        }
    else:
        fields = {
            "leaderId": leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted.id,
            "votedDirectoryId": to_text(voted.directory_id),
            "data_version": 1,
        }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode(data: bytes) -> ElectionState:
    """Read a `quorum-state`. Damage is an error and not a fresh start: a forgotten vote could be given twice."""
    try:
        fields = json.loads(data)
        if fields["data_version"] not in (0, 1):
            raise CorruptionError(f"{FILE_NAME}: data_version {fields['data_version']} is not known")
        epoch, leader_id, voted_id = (int(fields[name]) for name in ("leaderEpoch", "leaderId", "votedId"))
        directory_id = from_text(fields["votedDirectoryId"]) if fields["data_version"] == 1 else ZERO_UUID
    except (ValueError, KeyError, TypeError, DecodeError):
        raise CorruptionError(f"{FILE_NAME} is not Kafka's JSON: {bytes(data[:120])!r}") from None
    return ElectionState(
        max(epoch, 0),
        leader_id if leader_id >= 0 else None,
        ReplicaKey(voted_id, directory_id) if voted_id >= 0 else None,
    )
