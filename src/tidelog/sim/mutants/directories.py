"""Bugs of brokers with several log directories, of which one fails.

They are hunted where brokers have several, which is one seed of six: the others cannot find them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.controller.decide import heartbeat
from tidelog.controller.decide.heartbeat import BrokerState
from tidelog.controller.decide.partition_updates import in_sync_on
from tidelog.controller.entities import Broker
from tidelog.controller.image import MetadataImage
from tidelog.errors import StorageError
from tidelog.replica.directory_assignments import DirectoryAssignments
from tidelog.replica.former_life import FormerLife
from tidelog.replica.replicas import Replicas
from tidelog.sim.mutants.base import Hit, Mutant, Original
from tidelog.sim.shape import Shape, draw
from tidelog.storage import Storage


def several_directories(seed: int) -> Shape:
    """The swarm's drawing of a seed, and several log directories in any case."""
    return draw(seed, has_several_directories=True)


def _stays_in_sync(original: Original, hit: Hit) -> Original:
    def directories_offline(
        image: MetadataImage, broker: Broker, offline: list[bytes], context: Any, decision: Any, _state: BrokerState
    ) -> None:
        if any(one.directory_of(broker.broker_id) in offline for _, _, one in in_sync_on(image, broker.broker_id)):
            hit()
        original(image, broker, offline, context, decision, BrokerState.FENCED)  # as where it is in no ISR anyway

    return directories_offline


def _serves_on(_original: Original, hit: Hit) -> Original:
    def storage_failed(self: Replicas, storage: Storage, error: StorageError) -> None:
        directory = next(one for one in self.directories if one.storage is storage)
        if directory.fail(error.reason):
            hit()
            self.outbox.tell("log-directory-offline", "error", directory=storage.root, reason=str(error), partitions=0)
            self._directory_failed(directory)

    return storage_failed


def _vouches(_original: Original, hit: Hit) -> Original:
    def forget(self: FormerLife) -> None:
        hit()

    return forget


def _not_told(_original: Original, hit: Hit) -> Callable[..., None]:
    def assign(self: DirectoryAssignments, topic_id: bytes, index: int, directory_id: bytes) -> None:
        hit()

    return assign


MUTANTS = (
    Mutant(
        "failed-directory-in-sync",
        "a replica in a log directory that failed goes on counting as in sync (against KIP-858)",
        [(heartbeat, "_directories_offline", _stays_in_sync)],
        several_directories,
    ),
    Mutant(
        "failed-directory-serves",
        "a broker goes on leading and copying in a log directory that failed (against KIP-112)",
        [(Replicas, "storage_failed", _serves_on)],
        several_directories,
    ),
    Mutant(
        "failed-directory-vouched-for",
        "a broker that knows of a failed directory says after a kill that it has all it had",
        [(FormerLife, "forget", _vouches)],
        several_directories,
    ),
    Mutant(
        "directory-not-told",
        "the controller does not hear in which directory a replica lies, so that it stays when that fails",
        [(DirectoryAssignments, "assign", _not_told)],
        several_directories,
    ),
)
