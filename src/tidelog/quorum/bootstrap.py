"""What `format` puts into a metadata directory: the snapshot 0-0 that names the first voters (KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.errors import ConfigError, DecodeError
from tidelog.quorum import snapshot
from tidelog.quorum.metadata_log import DIRECTORY
from tidelog.quorum.voters import ReplicaKey, Voter, VoterSet, parse_address
from tidelog.wire.uuids import from_text

SNAPSHOT_PATH = f"{DIRECTORY}/{snapshot.BOOTSTRAP.file_name}"
"""Where it belongs, relative to the metadata directory."""


def voters_snapshot(voters: VoterSet, now_ms: int) -> bytes:
    """The snapshot 0-0 for these voters, with kraft.version 1; the same for each of them."""
    return snapshot.write((), now_ms=now_ms, last_timestamp_ms=now_ms, kraft_version=1, voters=voters)


def initial_controllers(texts: Iterable[str], listener: str) -> VoterSet:
    """The voters of `format --initial-controllers`, each `id@host:port:directory-id`."""
    voters = []
    for text in texts:
        node_id, at, rest = text.strip().partition("@")
        address, colon, directory_id = rest.rpartition(":")
        if not at or not colon or not node_id.isascii() or not node_id.isdigit():
            raise ConfigError(f"--initial-controllers: not of the form id@host:port:directory-id: {text!r}")
        try:
            key = ReplicaKey(int(node_id), from_text(directory_id))
        except DecodeError as error:
            raise ConfigError(f"--initial-controllers: {text!r}: {error}") from None
        voters.append(Voter(key, {listener: parse_address(address)}))
    if len({voter.id for voter in voters}) != len(voters) or len({voter.key.directory_id for voter in voters}) != len(
        voters
    ):
        raise ConfigError("--initial-controllers: each node id and each directory id may occur once")
    return VoterSet(voters)
