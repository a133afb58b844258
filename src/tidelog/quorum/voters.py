"""Who votes: replicas named by node id and directory id, the set of them, and how that set changed along the log.

KIP-853: a voter is a node id together with the id of the directory that holds its log. A node whose disk was lost has
another directory id, so it is no voter, cannot vote a second time in an epoch, and has to be added again. With
kraft.version 0 the set comes from `controller.quorum.voters` and has no directory ids (ZERO_UUID): ids alone match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.errors import ConfigError
from tidelog.wire.records.voters_record import Endpoint, KRaftVersionFeature, VotersRecord
from tidelog.wire.records.voters_record import Voter as WireVoter
from tidelog.wire.uuids import ZERO_UUID, to_text

Peer = tuple[int, str, int]
"""Node id, host and port: what a request is sent to."""
Address = tuple[str, int]

SUPPORTED_KRAFT_VERSIONS = (0, 1)


class ReplicaKey(NamedTuple):
    """A node and the directory its log is in; ZERO_UUID where the directory is not known."""

    id: int
    directory_id: bytes = ZERO_UUID

    def __str__(self) -> str:
        return str(self.id) if self.directory_id == ZERO_UUID else f"{self.id}@{to_text(self.directory_id)}"


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter, where it listens (by listener name) and which levels of kraft.version it supports."""

    key: ReplicaKey
    endpoints: Mapping[str, Address] = field(default_factory=dict)
    kraft_versions: tuple[int, int] = SUPPORTED_KRAFT_VERSIONS

    @property
    def id(self) -> int:
        """The node id."""
        return self.key.id


class VoterSet:
    """An immutable set of voters, at most one for a node id, in the order of their ids."""

    __slots__ = ("_voters",)

    def __init__(self, voters: Iterable[Voter] = ()) -> None:
        self._voters = {voter.id: voter for voter in sorted(voters, key=lambda voter: voter.id)}

    def __iter__(self) -> Iterator[Voter]:
        return iter(self._voters.values())

    def __len__(self) -> int:
        return len(self._voters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._voters == other._voters

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "{" + ", ".join(str(voter.key) for voter in self) + "}"

    @property
    def ids(self) -> list[int]:
        """Node ids, sorted."""
        return list(self._voters)

    @property
    def majority(self) -> int:
        """How many voters decide."""
        return len(self._voters) // 2 + 1

    def get(self, node_id: int) -> Voter | None:
        """The voter with this node id, whatever its directory."""
        return self._voters.get(node_id)

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether this very replica votes: a known directory id has to match, so a wiped disk is no voter."""
        voter = self._voters.get(key.id)
        return voter is not None and voter.key.directory_id in (ZERO_UUID, key.directory_id)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """Whether this replica alone decides."""
        return len(self._voters) == 1 and self.is_voter(key)

    def peer(self, node_id: int, listener: str) -> Peer | None:
        """Where to send a request for this voter."""
        voter = self._voters.get(node_id)
        address = voter.endpoints.get(listener) if voter is not None else None
        return None if address is None else (node_id, *address)

    def with_voter(self, voter: Voter) -> VoterSet:
        """The set with this voter added, or put in the place of the one with its node id."""
        return VoterSet([*(other for other in self if other.id != voter.id), voter])

    def without(self, key: ReplicaKey) -> VoterSet:
        """The set without this replica."""
        return VoterSet(voter for voter in self if voter.key != key)

    def to_record(self) -> VotersRecord:
        """The control record that makes this the voter set."""
        return VotersRecord(
            version=0,
            voters=[
                WireVoter(
                    voter_id=voter.id,
                    voter_directory_id=voter.key.directory_id,
                    endpoints=[
                        Endpoint(name=name, host=host, port=port) for name, (host, port) in voter.endpoints.items()
                    ],
                    kraft_version_feature=KRaftVersionFeature(
                        min_supported_version=voter.kraft_versions[0], max_supported_version=voter.kraft_versions[1]
                    ),
                )
                for voter in self
            ],
        )

    @staticmethod
    def from_record(record: VotersRecord) -> VoterSet:
        """The voter set that a control record holds."""
        return VoterSet(
            Voter(
                ReplicaKey(voter.voter_id, voter.voter_directory_id),
                {endpoint.name: (endpoint.host, endpoint.port) for endpoint in voter.endpoints},
                (voter.kraft_version_feature.min_supported_version, voter.kraft_version_feature.max_supported_version),
            )
            for voter in record.voters
        )

    @staticmethod
    def parse_static(texts: Iterable[str], listener: str) -> VoterSet:
        """The voters of `controller.quorum.voters`, each `id@host:port` (kraft.version 0)."""
        return VoterSet(_parse_static_voter(text, listener) for text in texts)


def parse_address(text: str) -> Address:
    """`host:port`, also `[::1]:port`."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise ConfigError(f"not an address of the form host:port: {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _parse_static_voter(text: str, listener: str) -> Voter:
    node_id, at, address = text.strip().partition("@")
    if not at or not node_id.isascii() or not node_id.isdigit():
        raise ConfigError(f"controller.quorum.voters: not of the form id@host:port: {text!r}")
    return Voter(ReplicaKey(int(node_id)), {listener: parse_address(address)}, (0, 0))


class VoterHistory:
    """The voter set and kraft.version as of each offset of the log, uncommitted ones too (KIP-853).

    The newest entry is in force from the moment it is appended; a truncation takes it back.
    """

    def __init__(self, static_voters: VoterSet) -> None:
        self._static_voters = static_voters
        self._voter_sets: list[tuple[int, VoterSet]] = []
        self._kraft_versions: list[tuple[int, int]] = []

    @property
    def voters(self) -> VoterSet:
        """The voter set in force."""
        return self._voter_sets[-1][1] if self._voter_sets else self._static_voters

    @property
    def voters_before(self) -> VoterSet:
        """The voter set that was in force before the newest one."""
        return self._voter_sets[-2][1] if len(self._voter_sets) > 1 else self._static_voters

    @property
    def voters_offset(self) -> int | None:
        """Where the voter set in force stands in the log; -1 for the one that format wrote; None for a static one."""
        return self._voter_sets[-1][0] if self._voter_sets else None

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version in force."""
        return self._kraft_versions[-1][1] if self._kraft_versions else 0

    def voters_at(self, offset: int) -> VoterSet:
        """The voter set as of the record at `offset`."""
        return next((value for at, value in reversed(self._voter_sets) if at <= offset), self._static_voters)

    def kraft_version_at(self, offset: int) -> int:
        """The level of kraft.version as of the record at `offset`."""
        return next((value for at, value in reversed(self._kraft_versions) if at <= offset), 0)

    def add_voters(self, offset: int, voters: VoterSet) -> None:
        """A VotersRecord stands at `offset`."""
        self._voter_sets.append((offset, voters))

    def add_kraft_version(self, offset: int, version: int) -> None:
        """A KRaftVersionRecord stands at `offset`."""
        self._kraft_versions.append((offset, version))

    def truncate_to(self, end_offset: int) -> None:
        """The log now ends at `end_offset`."""
        self._voter_sets = [entry for entry in self._voter_sets if entry[0] < end_offset]
        self._kraft_versions = [entry for entry in self._kraft_versions if entry[0] < end_offset]

    def clear(self) -> None:
        """A snapshot replaces everything before it."""
        self._voter_sets.clear()
        self._kraft_versions.clear()
