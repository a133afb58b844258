"""How a node begins and ends: the marks on its disks, its registration, and what a disk that fails takes with it.

Between two lives only the disks remember. Before anything else the marks of a clean stop go, so that a crash is seen as
one; the last thing a node does is to set them again. `replica.former_life` says what can be concluded from them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tidelog.errors import StorageError
from tidelog.replica.directory import CLEAN_SHUTDOWN, LogDirectory
from tidelog.replica.former_life import FormerLife
from tidelog.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener

if TYPE_CHECKING:
    from tidelog.node.node import Node

PLAINTEXT = 0
"""The security protocol of every listener."""


class Life:
    """One life of a node, from its first step to its last."""

    def __init__(self, node: Node, former: FormerLife) -> None:
        self._node = node
        self._outbox = node.outbox
        self.former = former
        self.incarnation_id = former.unanswered_incarnation_id or node.outbox.chance.uuid()
        self.is_stopping = False

    def start(self) -> None:
        """The first step: from here on a crash must be seen as one, so the marks of a clean stop go first."""
        node, replicas = self._node, self._node.replicas
        for directory in replicas.directories:
            if not directory.online:
                replicas.tell_offline(directory, directory.offline_reason, partitions=0)
        if self._is_lost:
            self._outbox.halt(1, "none of the log directories can be read")
            return
        if node.config.is_broker:
            self._note(lambda directory: self.former.note_registering(directory, self.incarnation_id))
        self._note(LogDirectory.forget_clean_shutdown)
        marked = [one for one in replicas.directories if one.online]
        remaining = len(marked)

        def forgotten(directory: LogDirectory, error: str | None) -> None:
            nonlocal remaining
            if error is not None:
                failure = StorageError(directory.storage.root, CLEAN_SHUTDOWN, error)
                replicas.storage_failed(directory.storage, failure)
            remaining -= 1
            if remaining == 0 and not self._is_lost and not self.is_stopping:
                node.cluster.start()
                if node.config.is_broker:
                    node.lifecycle.start()

        for one in marked:
            then = partial(forgotten, one)
            self._outbox.flush(one.storage, then, files=self.former.files(one), directories=[""])

    def stop(self) -> None:
        """Begin to stop cleanly, once."""
        if self.is_stopping:
            return
        self.is_stopping = True
        node = self._node
        self._outbox.tell("stopping", node=node.node_id)
        # Stopped before it could register, it has touched nothing, and what it could say of its former life holds.
        epoch = node.lifecycle.broker_epoch if node.lifecycle.broker_epoch >= 0 else self.former.broker_epoch
        node.lifecycle.stop(lambda: node.broker.stop(epoch, self._resign))

    def _resign(self) -> None:
        cluster = self._node.cluster
        cluster.is_stopping = True

        def resigned() -> None:
            cluster.quorum.close()
            self._outbox.halt(0, "stopped")

        cluster.quorum.resign(resigned)

    def registration(self) -> BrokerRegistrationRequest:
        """What a broker tells the controller of itself."""
        node = self._node
        config = node.broker.static_config
        return BrokerRegistrationRequest(
            broker_id=node.node_id,
            cluster_id=node.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                Listener(name=one.name, host=one.host, port=one.port, security_protocol=PLAINTEXT)
                for one in config.advertised_addresses
            ],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(node.supported_features.items())
            ],
            rack=config.broker_rack,
            log_dirs=[one.directory_id for one in node.replicas.directories if one.online],
            previous_broker_epoch=self.former.broker_epoch,
        )

    def note_registered(self, broker_epoch: int) -> None:
        """Write down the epoch that the controller gave, for the next life."""
        logs_opened = self._node.replicas.is_loaded
        self._note(lambda directory: self.former.note(directory, broker_epoch, logs_opened=logs_opened))

    def _note(self, note: Callable[[LogDirectory], None]) -> None:
        replicas = self._node.replicas
        for directory in [one for one in replicas.directories if one.online]:
            try:
                note(directory)
            except StorageError as error:
                replicas.storage_failed(directory.storage, error)

    def is_caught_up(self, broker_epoch: int) -> bool:
        """Whether the metadata has this broker's registration; opens the replicas the first time it does."""
        node = self._node
        if broker_epoch < 0 or node.cluster.image_offset < broker_epoch:
            return False
        if not node.replicas.is_loaded:
            node.broker.load()
            if not self.former.lost_nothing:
                self.note_registered(broker_epoch)  # from here on whatever is missing would be
        return True

    # --- disks that fail ---

    @property
    def _is_lost(self) -> bool:
        """Whether the disks are gone without which this node can do nothing: that of the metadata, or all."""
        metadata_directory = self._node.broker.static_config.metadata_directory
        directories = self._node.replicas.directories
        return not any(one.online for one in directories) or any(
            not one.online and one.storage.root == metadata_directory for one in directories
        )

    def directory_failed(self, directory: LogDirectory) -> None:
        """Go on without a log directory, or end where that cannot be."""
        node = self._node
        self.former.forget()
        for replica in node.replicas.partitions.values():
            if replica.directory_id == directory.directory_id:
                node.broker.stop_fetching(replica)
                node.broker.role_changed(replica)
        if self._is_lost:
            self._outbox.halt(1, f"log directory {directory.storage.root} failed: {directory.offline_reason}")
        else:
            node.lifecycle.directories_changed()
