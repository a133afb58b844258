"""The node: one door in, one door out.

    effects = node.step(event, now_ms)

A step takes one event, lets the rooms decide, runs the timers that are due, and hands back what is to be done. Nothing
outside a step changes a node; nothing in a step waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tidelog.config import NodeConfig
from tidelog.controller.controller import Controller
from tidelog.controller.delta import ImageDelta
from tidelog.controller.image import GROUP_RESOURCE, MetadataImage
from tidelog.controller.levels import SUPPORTED_FEATURES
from tidelog.effects import Effect
from tidelog.errors import CorruptionError, ErrorCode, KafkaError, StorageError
from tidelog.events import (
    ConnectionClosed,
    Event,
    FlushDone,
    PeerAnswered,
    PeerFailed,
    Request,
    StopRequested,
    WorkDone,
)
from tidelog.groups.service import TOPIC as OFFSETS_TOPIC
from tidelog.groups.service import Groups
from tidelog.node import apis
from tidelog.node.broker import Broker
from tidelog.node.broker_watch import BrokerWatch
from tidelog.node.cluster import Cluster
from tidelog.node.controller_link import ControllerLink
from tidelog.node.group_topics import GroupTopics
from tidelog.node.internal_topics import InternalTopics
from tidelog.node.life import Life
from tidelog.node.lifecycle import BrokerLifecycle, State
from tidelog.node.producer_ids import ProducerIds
from tidelog.node.replication_events import TOPIC as EVENTS_TOPIC
from tidelog.node.replication_events import ReplicationEvents
from tidelog.node.transaction_links import TransactionLinks, make_transactions
from tidelog.node.transaction_verification import Verification
from tidelog.outbox import Outbox
from tidelog.quorum import Identity, Quorum, QuorumSettings, VoterSet
from tidelog.quorum import snapshot as metadata_snapshot
from tidelog.replica.directory import LogDirectory, check_directories
from tidelog.replica.directory_assignments import DirectoryAssignments
from tidelog.replica.fetch_sessions import FetchSessions
from tidelog.replica.former_life import FormerLife
from tidelog.replica.isr_changes import IsrChanges
from tidelog.replica.replicas import Replicas
from tidelog.storage import Storage
from tidelog.transactions.service import TOPIC as TRANSACTIONS_TOPIC
from tidelog.wire.apis import api_name, response_class
from tidelog.wire.message import Message

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"


class Node:
    """One node of the cluster: a broker, a controller, or both."""

    def __init__(
        self, config: NodeConfig, storages: Sequence[Storage], seed: int, now_ms: int, boot_id: str | None = None
    ) -> None:
        self.node_id = config.node_id
        self.outbox = Outbox(seed)
        self.outbox.now_ms = now_ms
        directories = [LogDirectory(storage) for storage in storages]
        self.cluster_id = check_directories(config.node_id, directories, config.metadata_directory)
        # A metadata.log.dir of its own holds the metadata log and no replicas.
        hosting = [one for one in directories if one.storage.root in config.log_dirs] or directories
        self.life = Life(self, FormerLife(hosting, boot_id))
        self.broker_watch = BrokerWatch(self)
        self.cluster = Cluster(config, self.outbox, self._metadata_changed, self.broker_watch.look_for_unheard)
        self.replicas = Replicas(
            config.node_id, config, hosting, self.outbox, self.life.directory_failed, self._is_isr_eligible
        )
        self.replicas.lost_nothing = self.life.former.lost_nothing
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots, self.outbox.chance)
        self.parked_fetches: dict[int, dict[Any, None]] = {}
        """Fetches that wait for bytes, by connection."""
        self.woken_fetches: dict[Any, None] = {}
        """Those that may have enough now: looked at once each, at the end of the step."""
        self.metadata_askers: set[int] = set()
        """Connections on which Metadata was asked for before."""
        self.waiting_for_leaders: dict[Any, None] = {}
        """Metadata requests that wait for the successor of a leader that is probably dead."""
        self._build_cluster(config, directories)
        self.link = ControllerLink(
            self.outbox, self.cluster.handle_locally, self.cluster.active_controller, config.request_timeout_ms
        )
        assignments = DirectoryAssignments(
            config.node_id, self.outbox, self.link.ask, lambda: self.lifecycle.broker_epoch
        )
        self.broker = Broker(
            config.node_id,
            config,
            self.replicas,
            self.outbox,
            lambda: self.cluster.image,
            lambda: self.lifecycle.broker_epoch,
            assignments,
        )
        self.lifecycle = BrokerLifecycle(
            config,
            self.outbox,
            self.link,
            self.life.registration,
            lambda: self.cluster.image_offset,
            lambda: [one.directory_id for one in hosting if not one.online and one.meta is not None],
            self.life.is_caught_up,
            self.life.note_registered,
            self.broker.is_half_known,
        )
        self.isr_changes = IsrChanges(
            config.node_id,
            self.outbox,
            self.link.ask,
            self.epoch_of_broker,
            lambda: self.lifecycle.broker_epoch,
            self.replicas.grow_isr,
        )
        self.replicas.propose_isr = self.isr_changes.propose
        self.replication_events = (
            ReplicationEvents(
                config.node_id,
                self.outbox,
                self.replicas,
                self.link,
                self._events_leader,
                lambda: sum(broker.active for broker in self.cluster.image.brokers.values()),
                config.replication_events_buffer_max_records,
            )
            if config.replication_events_enable
            else None
        )
        self.producer_ids = ProducerIds(config.node_id, self.link, lambda: self.lifecycle.broker_epoch)
        self.internal_topics = InternalTopics(self)
        self.group_topics = GroupTopics(lambda: self.cluster.image)
        self.groups = Groups(
            self.outbox,
            self.replicas,
            lambda: self.broker.config,
            self.group_topics,
            lambda group_id: self.cluster.image.config(GROUP_RESOURCE, group_id),
        )
        self.broker.coordinators[OFFSETS_TOPIC] = self.groups.coordinator
        self.transaction_links = TransactionLinks(self)
        self.verification = Verification(self)
        self.transactions = make_transactions(self)
        self.broker.coordinators[TRANSACTIONS_TOPIC] = self.transactions.coordinator
        self._controller_listeners = config.controller_listener_set
        self.outbox.at(now_ms, self.life.start)

    # --- the door ---

    @property
    def wake_at_ms(self) -> int | None:
        """When the next step is due if nothing happens before."""
        return self.outbox.wake_at_ms

    @property
    def serves_clients(self) -> bool:
        """Whether clients may be let in; before that they wait, as with Kafka, instead of hearing of no controller."""
        return self.lifecycle.state in (State.RUNNING, State.STOPPING)

    @property
    def api_versions(self) -> Mapping[int, tuple[int, int]]:
        """The requests this node can read, with their versions."""
        return apis.ALL_VERSIONS

    def advertised_versions(self, listener: str) -> Mapping[int, tuple[int, int]]:
        """The requests that are answered on a listener: a broker's or a controller's."""
        return apis.CONTROLLER_VERSIONS if self.is_controller_listener(listener) else apis.BROKER_VERSIONS

    def is_controller_listener(self, listener: str) -> bool:
        """Whether the quorum and the controller are served there, and not clients."""
        return listener in self._controller_listeners

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Take one event at a time; a clock that went back is held where it was."""
        outbox = self.outbox
        outbox.now_ms = max(outbox.now_ms, now_ms)
        try:
            match event:
                case Request():
                    self._request(event)
                case FlushDone():
                    outbox.resume(event.token, event.error)
                case WorkDone():
                    outbox.resume(event.token, event.result, event.error)
                case PeerAnswered():
                    outbox.resume(event.request_id, event.body, None)
                case PeerFailed():
                    outbox.resume(event.request_id, None, event.reason)
                case ConnectionClosed():
                    self._connection_closed(event)
                case StopRequested():
                    self.life.stop()
            outbox.run_due_timers()
            return outbox.take_effects()
        except (StorageError, CorruptionError) as error:
            # Replicas take care of their own disks; what arrives here is the metadata log's, and without it this node
            # can neither vote nor know what it may serve.
            self.life.former.forget()
            outbox.halt(1, f"the metadata log failed: {error}")
            return outbox.take_effects()

    def _request(self, request: Request) -> None:
        is_for_controller = self.is_controller_listener(request.listener)
        handlers = apis.CONTROLLER_HANDLERS if is_for_controller else apis.BROKER_HANDLERS
        handler = handlers.get(request.api_key)
        if handler is None:
            self.outbox.close(
                request.connection_id, f"{api_name(request.api_key)} is not served on listener {request.listener}"
            )
            return
        try:
            response = handler(self, request)
        except KafkaError as error:
            response = self.error_response(request, error.code, error.message)
        if response is not None:
            self.outbox.reply(request.connection_id, request.slot, response)

    def error_response(self, request: Request, code: ErrorCode, message: str) -> Any:
        """An answer that says only what went wrong, for requests whose answer has a place for that at the top."""
        response = response_class(request.api_key)()
        if hasattr(response, "error_code"):
            response.error_code = code
            if hasattr(response, "error_message"):
                response.error_message = message
            return response
        self.outbox.close(request.connection_id, f"{code.name}: {message}")
        return None

    def wake(self, fetch: Any) -> None:
        """Look at a parked fetch again at the end of this step, however many of its partitions have news."""
        if not self.woken_fetches:
            self.outbox.at_end_of_step(self._look_at_woken_fetches)
        self.woken_fetches[fetch] = None

    def _look_at_woken_fetches(self) -> None:
        woken, self.woken_fetches = self.woken_fetches, {}
        for fetch in woken:
            fetch.look_again()

    def _connection_closed(self, event: ConnectionClosed) -> None:
        self.metadata_askers.discard(event.connection_id)
        for fetch in list(self.parked_fetches.get(event.connection_id, ())):
            fetch.drop()
        self.broker_watch.connection_closed(event)

    # --- what the APIs look at ---

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        return self.cluster.image

    @property
    def config(self) -> NodeConfig:
        """The settings in force now."""
        return self.broker.config

    @property
    def supported_features(self) -> Mapping[str, tuple[int, int]]:
        """Feature levels that this software can work with."""
        return SUPPORTED_FEATURES

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name behind a topic id."""
        topic = self.cluster.image.topics.get(topic_id)
        return None if topic is None else topic.name

    def topic_name_or_empty(self, topic_id: bytes) -> str:
        """The name behind a topic id, or "" when no topic has it."""
        return self.topic_name(topic_id) or ""

    def controller_for_clients(self, listed: Collection[int]) -> int:
        """A broker that takes what is meant for the controller: any can pass it on, so this one (KIP-590).

        It must be among those that a client is told of, or librdkafka waits for it until its next look at the metadata,
        minutes later. A broker that was let in just now may not have read that yet, and names another one.
        """
        if self.lifecycle.state is State.RUNNING and self.node_id in listed:
            return self.node_id
        return next((one for one in sorted(listed) if one != self.node_id), -1)

    # --- its parts ---

    def _build_cluster(self, config: NodeConfig, directories: Sequence[LogDirectory]) -> None:
        metadata_directory = next(
            (one for one in directories if one.storage.root == config.metadata_directory), directories[0]
        )
        listener = config.controller_listener_names[0].upper() if config.controller_listener_names else ""
        identity = Identity(
            self.cluster_id,
            self.node_id,
            metadata_directory.directory_id,
            listener,
            {one.name: (one.host, one.port) for one in config.controller_addresses} if config.is_controller else None,
            VoterSet.parse_static(config.controller_quorum_voters, listener),
            config.quorum_bootstrap_addresses,
        )
        storage = metadata_directory.storage
        quorum = Quorum(self.outbox, storage, self.cluster, identity, QuorumSettings.from_config(config))
        self.cluster.quorum = quorum
        if config.is_controller:
            self.cluster.controller = Controller(
                self.node_id,
                self.cluster_id,
                config,
                self.outbox,
                quorum.append,
                next_offset=lambda: quorum.next_offset,
                kraft_version=lambda: quorum.kraft_version,
            )
            self.cluster.bootstrap_records = _read_bootstrap_records(storage)

    def _metadata_changed(self, delta: ImageDelta) -> None:
        self.group_topics.note(delta)
        if self.replicas.is_loaded and not self.replicas.is_stopping:
            self.broker.apply(delta)
            if delta.topics_deleted:
                self.groups.topics_deleted(topic.name for topic in delta.topics_deleted.values())
        for wait in list(self.waiting_for_leaders):
            wait.look_again()
        self.lifecycle.metadata_applied()

    def _events_leader(self) -> tuple[int, tuple[int, str, int] | None] | None:
        """Who leads the topic of replication events, and where it is."""
        topic = self.cluster.image.topic(EVENTS_TOPIC)
        if topic is None or 0 not in topic.partitions:
            return None
        leader = topic.partitions[0].leader
        return leader, self.broker.address_of(leader)

    def epoch_of_broker(self, broker_id: int) -> int:
        """The life that a broker is in, as far as the metadata here has it; -1 for one that is not registered."""
        broker = self.cluster.image.brokers.get(broker_id)
        return -1 if broker is None else broker.epoch

    def _is_isr_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        """Alive, not about to stop, and in the life it fetched with (KIP-903; -1 where it did not say)."""
        broker = self.cluster.image.brokers.get(broker_id)
        return broker is not None and broker.active and broker_epoch in (-1, broker.epoch)


def _read_bootstrap_records(storage: Storage) -> list[Message] | None:
    """What format wrote down for the first controller; None where it wrote nothing."""
    try:
        return metadata_snapshot.read(storage.read_file(BOOTSTRAP_CHECKPOINT), BOOTSTRAP_CHECKPOINT).records
    except FileNotFoundError:
        return None
