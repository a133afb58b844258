"""The cluster as this node knows it: the quorum's log applied to an image, and the controller while it is ours.

Committed records reach the image first, then the broker, then the answers that waited for them: whoever is told that a
topic exists can write to it at once.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.config import NodeConfig
from tidelog.controller.controller import Controller
from tidelog.controller.delta import ImageDelta
from tidelog.controller.image import MetadataImage, records_for_snapshot
from tidelog.events import Request
from tidelog.outbox import Outbox
from tidelog.quorum import CommittedBatch, LoadedSnapshot, Quorum
from tidelog.wire.api_table import ApiKey
from tidelog.wire.message import Message

_QUORUM_APIS = frozenset((ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER))
"""Forwarded by brokers like what the controller decides, but decided by the quorum."""


class Cluster:
    """Listens to the quorum."""

    def __init__(
        self,
        config: NodeConfig,
        outbox: Outbox,
        changed: Callable[[ImageDelta], None],
        activated: Callable[[], None],
    ) -> None:
        self._activated = activated
        self._node_id = config.node_id
        self._config = config
        self._outbox = outbox
        self._bytes_since_snapshot = 0
        self.image = MetadataImage()
        self.image_offset = -1
        """The last offset of the metadata log that the image has."""
        self.is_stopping = False
        self.leader_id: int | None = None
        self.leader_epoch = 0
        self.quorum: Quorum
        self.controller: Controller | None = None
        self.bootstrap_records: list[Message] | None = None
        """What a new cluster begins with, from the format of this node's directory."""
        self._changed = changed

    def handle_locally(self, request: Request) -> bool:
        """Give a request to this node's controller; False when it is not the active one."""
        if self.controller is None or not self.controller.active:
            return False
        if request.api_key in _QUORUM_APIS:
            self.quorum.handle(request)
        else:
            self.controller.handle(request)
        return True

    def active_controller(self) -> tuple[int, str, int] | None:
        """Where the active controller listens, when it is another node."""
        peer = self.quorum.leader_peer
        return None if peer is None or peer[0] == self._node_id else peer

    # --- what the quorum tells ---

    def on_committed(self, batch: CommittedBatch) -> None:
        """Records are committed: apply them, act on them, then release who waited."""
        delta = ImageDelta()
        for record in batch.records:
            self.image.apply(record, delta)
        self.image_offset = batch.last_offset
        if batch.records:
            self._changed(delta)
        if self.controller is not None:
            self.controller.committed(batch.last_offset)
        self._bytes_since_snapshot += batch.size_bytes
        if self._bytes_since_snapshot >= self._config.metadata_log_max_record_bytes_between_snapshots:
            self._take_snapshot()

    def start(self) -> None:
        """Begin with what the quorum knows, and take snapshots of it now and then."""
        self.quorum.start()
        self._schedule_snapshot()

    def _schedule_snapshot(self) -> None:
        interval_ms = self._config.metadata_log_max_snapshot_interval_ms

        def due() -> None:
            if self._bytes_since_snapshot:
                self._take_snapshot()
            self._schedule_snapshot()

        if interval_ms > 0:
            self._outbox.after(interval_ms, due)

    def _take_snapshot(self) -> None:
        """Let the log begin later. The quorum writes it over several steps, so it gets an image of its own."""
        if self.image.transaction is None:
            self._bytes_since_snapshot = 0
            self.quorum.write_snapshot(records_for_snapshot(self.image.copy()), self.image_offset + 1)

    def on_snapshot_loaded(self, snapshot: LoadedSnapshot) -> None:
        """Begin again from a snapshot: what differs from before is a change like any other."""
        image = MetadataImage()
        image.apply_all(snapshot.records)
        delta = ImageDelta.between(self.image, image)
        self.image = image
        self.image_offset = snapshot.end_offset - 1
        self._changed(delta)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Another controller, or none."""
        self.leader_id = leader_id
        self.leader_epoch = epoch

    def on_activated(self, epoch: int) -> None:
        """This node is the active controller."""
        if self.controller is not None:
            self.controller.activate(self.image.copy(), epoch, self.bootstrap_records)
            self._activated()

    def on_resigned(self) -> None:
        """This node is no longer the active controller."""
        if self.controller is not None:
            if self.is_stopping:
                self.controller.deactivate("this node is stopping")
            else:
                self.controller.deactivate()
