"""Prepare log directories: whose they are, the cluster's first records, and who votes first.

    meta.properties                                                  cluster, node and directory id; every directory
    bootstrap.checkpoint                                             the feature levels to begin with; every directory
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint  the first voters (KIP-853); the metadata directory

`meta.properties` is written last: a directory without it was never formatted, and can be formatted again.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tidelog.config import NodeConfig, format_properties
from tidelog.errors import ConfigError, DirectoryError
from tidelog.runtime.cluster_plan import HOST, UNFINISHED, ClusterPlan, node_directories
from tidelog.wire.uuids import to_text

if TYPE_CHECKING:
    from tidelog.quorum.voters import VoterSet
    from tidelog.replica.directory import MetaProperties

# The rooms that know what is in the files are imported where they are needed: a cluster is formatted once, and started
# many times.

META_PROPERTIES = "meta.properties"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"


class FormattedDirectory(NamedTuple):
    """What became of one directory."""

    path: str
    directory_id: bytes
    is_new: bool
    """False: it was formatted before, for this cluster and node, and was left alone."""


def new_uuid() -> bytes:
    """A fresh id for a cluster or a directory."""
    from tidelog.outbox import Chance

    return Chance(secrets.randbits(64)).uuid()


def standalone_voters(config: NodeConfig) -> VoterSet:
    """This node as the only voter, with a fresh directory id."""
    from tidelog.quorum.voters import ReplicaKey, Voter, VoterSet

    if not config.is_controller:
        raise ConfigError("process.roles: a node that is no controller cannot be the only voter")
    endpoints = {entry.name: (entry.host or HOST, entry.port) for entry in config.controller_addresses[:1]}
    return VoterSet([Voter(ReplicaKey(config.node_id, new_uuid()), endpoints)])


def format_node(
    config: NodeConfig,
    cluster_id: str,
    voters: VoterSet | None,
    *,
    features: Mapping[str, int] | None = None,
    ignore_formatted: bool = False,
) -> list[FormattedDirectory]:
    """Format every log directory of a node, or refuse before anything is written.

    `voters` is None where they are named in the properties file (kraft.version 0) or will be learnt from others.
    """
    from tidelog.controller.bootstrap import format_records
    from tidelog.quorum import bootstrap, snapshot
    from tidelog.replica.directory import MetaProperties

    paths = list(dict.fromkeys((config.metadata_directory, *config.log_dirs)))
    before = {path: read_meta_properties(path) for path in paths}
    for path, meta in before.items():
        if meta is not None and meta.node_id != config.node_id:
            raise DirectoryError(f"{path} belongs to node {meta.node_id}, not to node {config.node_id}")
        if meta is not None and meta.cluster_id != cluster_id:
            raise DirectoryError(f"{path} belongs to cluster {meta.cluster_id}, not to {cluster_id}")
    for path, meta in before.items():
        if meta is not None and not ignore_formatted:
            raise DirectoryError(f"{path} is formatted already (--ignore-formatted formats only those that are not)")
    records = format_records(features)
    now_ms = int(time.time() * 1000)
    formatted = []
    for path, meta in before.items():
        if meta is not None:
            formatted.append(FormattedDirectory(path, meta.directory_id, is_new=False))
            continue
        voter = voters.get(config.node_id) if voters is not None and path == config.metadata_directory else None
        directory_id = new_uuid() if voter is None else voter.key.directory_id
        files = {BOOTSTRAP_CHECKPOINT: snapshot.write(records, now_ms=now_ms)}
        if voters is not None and path == config.metadata_directory:
            files[bootstrap.SNAPSHOT_PATH] = bootstrap.voters_snapshot(voters, now_ms)
        files[META_PROPERTIES] = MetaProperties(cluster_id, config.node_id, directory_id).to_bytes()
        for name, content in files.items():
            _write_durably(os.path.join(path, name), content)
        formatted.append(FormattedDirectory(path, directory_id, is_new=True))
    return formatted


def read_meta_properties(path: str) -> MetaProperties | None:
    """Whose a directory is; None when it is nobody's yet."""
    if not is_formatted(path):
        return None
    from tidelog.replica.directory import MetaProperties
    from tidelog.runtime.files import DirectoryStorage

    return MetaProperties.read(DirectoryStorage(path))


def is_formatted(path: str) -> bool:
    """Whether a directory is somebody's."""
    return os.path.exists(os.path.join(path, META_PROPERTIES))


def check_cluster(plan: ClusterPlan, settings: Mapping[str, str]) -> list[NodeConfig]:
    """The settings of every node of a plan, or ConfigError before anything is touched."""
    return [NodeConfig.from_properties(plan.properties(node, settings)) for node in plan.nodes]


def prepare_cluster(
    plan: ClusterPlan, configs: list[NodeConfig], peer_addresses: Mapping[int, str] | None = None
) -> None:
    """Write every node's properties file, and format the directories when they are new.

    `peer_addresses` is what each node is given as peer.address.overrides.
    """
    unfinished = os.path.join(plan.directory, UNFINISHED)
    if os.path.exists(unfinished):
        _forget_unfinished(plan.directory)
    missing = [node.data_directory for node in plan.nodes if not is_formatted(node.data_directory)]
    if missing and len(missing) < len(plan.nodes):
        raise DirectoryError(f"{missing[0]} is not formatted although other nodes' directories are")
    if missing:
        _write_durably(unfinished, b"")
    for node, config in zip(plan.nodes, configs, strict=True):
        os.makedirs(node.data_directory, exist_ok=True)
        properties = dict(config.given)
        if peer_addresses is not None:
            properties["peer.address.overrides"] = peer_addresses[node.node_id]
        _write_durably(node.properties_path, format_properties(properties).encode())
    if missing:
        _format_cluster(plan, configs)
        os.unlink(unfinished)
        _flush_directory(plan.directory)  # before a node runs: what it keeps must never be taken for unfinished


def _forget_unfinished(directory: str) -> None:
    """What a first start wrote before it was interrupted: no node has run on it, and it has no shape yet."""
    for path in node_directories(directory):
        for name in ("server.properties", os.path.join("data", META_PROPERTIES)):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(path, name))


def _format_cluster(plan: ClusterPlan, configs: list[NodeConfig]) -> None:
    from tidelog.quorum.voters import ReplicaKey, Voter, VoterSet

    voters = VoterSet(
        Voter(ReplicaKey(node.node_id, new_uuid()), {"CONTROLLER": (HOST, node.controller_port)})
        for node in plan.nodes
        if node.controller_port is not None
    )
    cluster_id = to_text(new_uuid())
    for config in configs:
        format_node(config, cluster_id, voters)


def _write_durably(path: str, content: bytes) -> None:
    """Old or new after a power loss, never half."""
    from tidelog.runtime.files import write_whole

    directory = os.path.dirname(path)
    os.makedirs(directory, exist_ok=True)
    write_whole(path + ".tmp", content, flush=True)
    os.replace(path + ".tmp", path)
    _flush_directory(directory)


def _flush_directory(directory: str) -> None:
    entries = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(entries)
    finally:
        os.close(entries)
