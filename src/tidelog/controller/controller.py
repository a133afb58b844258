"""The active controller: takes requests, decides, writes records, and answers when they are committed.

    INACTIVE -> ACTIVE     the quorum made this node its leader and everything before is committed: `activate`
    ACTIVE   -> INACTIVE   it leads no more: `deactivate`

While active it works on an image of its own that has its records as soon as they are written, so that the next decision
builds on them. What it answers, and what it tells people, waits until the records it rests on are committed; when the
leadership goes first, the answer is NOT_CONTROLLER and the image is thrown away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

from tidelog.config import NodeConfig
from tidelog.controller import bootstrap, levels
from tidelog.controller.answers import error_response
from tidelog.controller.decide.decision import (
    MAX_ELECTIONS_PER_ROUND,
    UNCLEAN_LEADER_ELECTION,
    Context,
    Decision,
)
from tidelog.controller.delta import ImageDelta
from tidelog.controller.image import MetadataImage
from tidelog.controller.records import AbortTransactionRecord, Record, VersionedRecord
from tidelog.controller.sessions import Sessions
from tidelog.controller.telling import Telling, tellings
from tidelog.errors import ErrorCode, KafkaError
from tidelog.events import Request
from tidelog.outbox import Outbox, Timer
from tidelog.wire.apis import ApiKey

Append = Callable[[list[VersionedRecord]], int]
"""Writes records to the metadata log as one batch; returns the offset of the last. KafkaError when not the leader."""
Reply = Callable[[Any], None]
AfterWrite = Callable[[int], None]
"""Called with the offset of a decision's last record, or -1 when it has none."""

_DECIDE: dict[int, tuple[str, str]] = {
    ApiKey.CREATE_TOPICS: ("create_topics", "decide"),
    ApiKey.DELETE_TOPICS: ("delete_topics", "decide"),
    ApiKey.CREATE_PARTITIONS: ("create_partitions", "decide"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ("configs", "decide_incremental"),
    ApiKey.ALTER_CONFIGS: ("configs", "decide_legacy"),
    ApiKey.UPDATE_FEATURES: ("features", "decide"),
    ApiKey.BROKER_REGISTRATION: ("registration", "decide_broker"),
    ApiKey.UNREGISTER_BROKER: ("registration", "decide_unregister"),
    ApiKey.CONTROLLER_REGISTRATION: ("registration", "decide_controller"),
    ApiKey.ALTER_PARTITION: ("alter_partition", "decide"),
    ApiKey.ELECT_LEADERS: ("elections", "decide"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ("reassignments", "decide"),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ("reassignments", "decide_list"),
    ApiKey.ALLOCATE_PRODUCER_IDS: ("producer_ids", "decide"),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: ("directories", "decide"),
}
"""Where each request is decided, under `tidelog.controller.decide`; imported when the first one comes."""

CONTROLLER_APIS = frozenset((*_DECIDE, ApiKey.BROKER_HEARTBEAT))
"""Requests that `Controller.handle` takes."""


class _Held:
    """An answer, or things to tell, that wait for an offset to be committed."""

    __slots__ = ("api_key", "body", "offset", "reply", "response", "tellings")

    def __init__(
        self,
        offset: int,
        *,
        tellings: Sequence[Telling] = (),
        api_key: int = -1,
        body: Any = None,
        response: Any = None,
        reply: Reply | None = None,
    ) -> None:
        self.offset = offset
        self.tellings = tellings
        self.api_key = api_key
        self.body = body
        self.response = response
        self.reply = reply


class Controller:
    """One node's controller; see the head of this file.

    `next_offset()` is the offset that the next record handed to `append` will have.
    """

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        config: NodeConfig,
        outbox: Outbox,
        append: Append,
        *,
        next_offset: Callable[[], int],
        kraft_version: Callable[[], int],
    ) -> None:
        self.node_id = node_id
        self.epoch = -1
        """The quorum's epoch while active."""
        self.image: MetadataImage | None = None
        """The working image: the committed one and what was written since. None while inactive."""
        self._cluster_id = cluster_id
        self._config = config
        self._outbox = outbox
        self._append = append
        self._next_offset = next_offset
        self._kraft_version = kraft_version
        self._sessions = Sessions(config, outbox, self._session_ended)
        self._held: deque[_Held] = deque()
        """In the order of their offsets."""
        self._committed = -1
        self._balance_timer: Timer | None = None

    @property
    def active(self) -> bool:
        """Whether this is the controller of the cluster."""
        return self.image is not None

    def is_life_of(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether a broker is registered with this epoch, as far as this controller, if it is active, has decided."""
        broker = None if self.image is None else self.image.brokers.get(broker_id)
        return broker is not None and broker.epoch == broker_epoch

    # --- the quorum's side ---

    def activate(self, image: MetadataImage, epoch: int, bootstrap_records: Iterable[Record] | None = None) -> None:
        """Take over. `image` has everything that is committed and belongs to the controller from here on.

        A log without metadata.version is a new cluster's: its first records are `bootstrap_records` (those of the
        node's `bootstrap.checkpoint`), else our own defaults.
        """
        self.image = image
        self.epoch = epoch
        self._outbox.tell("controller-active", controller=self.node_id, epoch=epoch)
        if image.transaction is not None:
            self._write(Decision(None, [(AbortTransactionRecord(reason="Controller failover"), 0)]))
        if levels.METADATA_VERSION not in image.features:
            minimum = self._config.min_insync_replicas
            records = bootstrap.records_for_empty_log(bootstrap_records, min_insync_replicas=minimum)
            self._write(Decision(None, records))
        self._sessions.begin(broker_id for broker_id, broker in image.brokers.items() if not broker.fenced)
        self._elect_leaderless(f"controller {self.node_id} took over")
        self._set_balance_timer()

    def deactivate(self, reason: str = "another node leads the quorum") -> None:
        """Stop being the controller: every waiting client is sent to the next one."""
        if self.image is None:
            return
        self._outbox.tell("controller-resigned", controller=self.node_id, epoch=self.epoch, reason=reason)
        self.image = None
        self._sessions.clear()
        if self._balance_timer is not None:
            self._balance_timer.cancel()
            self._balance_timer = None
        held, self._held = self._held, deque()
        for each in held:
            if each.reply is not None:
                each.reply(error_response(each.api_key, each.body, ErrorCode.NOT_CONTROLLER))

    def committed(self, offset: int) -> None:
        """Everything up to and including `offset` is committed: give the answers that waited for it."""
        if offset > self._committed:
            self._committed = offset
            self._release()

    # --- the node's side ---

    def handle(self, request: Request, reply: Reply | None = None) -> None:
        """Take a request of CONTROLLER_APIS; `reply` gets the answer when the request's own connection should not."""
        if reply is None:
            connection_id, slot = request.connection_id, request.slot

            def reply(response: Any) -> None:
                self._outbox.reply(connection_id, slot, response)

        self.ask(request.api_key, request.api_version, request.body, reply)

    def ask(self, api_key: int, api_version: int, body: Any, reply: Reply) -> None:
        """The same for a request without a connection."""
        if self.image is None:
            reply(error_response(api_key, body, ErrorCode.NOT_CONTROLLER))
            return
        then: AfterWrite | None = None
        try:
            decision, then = self._decide(self.image, api_key, api_version, body)
        except KafkaError as error:
            decision = Decision(error_response(api_key, body, error.code, error.message))
        except Exception as error:  # a request must not end the node: nothing was written for it
            self._outbox.tell("controller-error", "error", api=ApiKey(api_key).name, error=repr(error))
            decision = Decision(error_response(api_key, body, ErrorCode.UNKNOWN_SERVER_ERROR))
        try:
            offset = self._write(decision)
        except KafkaError as error:
            reply(error_response(api_key, body, error.code, error.message))
            return
        if then is not None:
            then(offset)
        # Without records of its own an answer may still rest on what was written and is not committed yet.
        offset = max(offset, self._held[-1].offset if self._held else -1)
        self._held.append(_Held(offset, api_key=api_key, body=body, response=decision.response, reply=reply))
        self._release()

    def connection_lost(self, broker_id: int) -> None:
        """A broker's control connection ended unexpectedly: reset, or closed without a shutdown; no idle close."""
        if self.image is not None:
            serving = [each.broker_id for each in self.image.brokers.values() if each.active]
            self._sessions.connection_lost(broker_id, serving)

    def connection_refused(self, broker_id: int) -> None:
        """Nobody listens at the address of a broker that this controller has not heard yet."""
        if self.image is not None:
            serving = [each.broker_id for each in self.image.brokers.values() if each.active]
            self._sessions.connection_refused(broker_id, serving)

    def unheard_brokers(self) -> list[int]:
        """Unfenced brokers that this controller has only read of: a new one does not know whether they live."""
        if self.image is None:
            return []
        return self._sessions.unheard(each.broker_id for each in self.image.brokers.values() if each.active)

    # --- deciding ---

    def _context(self, api_version: int = 0) -> Context:
        return Context(
            self._config,
            self._outbox.chance,
            node_id=self.node_id,
            cluster_id=self._cluster_id,
            next_offset=self._next_offset(),
            now_ms=self._outbox.now_ms,
            api_version=api_version,
            kraft_version=self._kraft_version(),
            liveness=self._sessions.liveness,
        )

    def _decide(
        self, image: MetadataImage, api_key: int, api_version: int, body: Any
    ) -> tuple[Decision, AfterWrite | None]:
        context = self._context(api_version)
        if api_key == ApiKey.BROKER_HEARTBEAT:
            return self._decide_heartbeat(image, body, context)
        module, function = _DECIDE[api_key]
        decision: Decision = getattr(import_module(f"tidelog.controller.decide.{module}"), function)(
            image, body, context
        )
        if api_key == ApiKey.BROKER_REGISTRATION:
            known = image.brokers.get(body.broker_id)
            if known is None or known.incarnation_id != body.incarnation_id:
                return decision, lambda offset: self._sessions.register(body.broker_id)
        elif api_key == ApiKey.UNREGISTER_BROKER:
            return decision, lambda offset: self._sessions.remove(body.broker_id)
        return decision, None

    def _decide_heartbeat(
        self, image: MetadataImage, body: Any, context: Context
    ) -> tuple[Decision, AfterWrite | None]:
        from tidelog.controller.decide import heartbeat

        broker_id = body.broker_id
        session = self._sessions.get(broker_id)
        others = [each.broker_id for each in image.brokers.values() if each.active and each.broker_id != broker_id]
        progress = heartbeat.Progress(
            None if session is None else session.shutdown_offset, self._sessions.least_offset(others)
        )
        decision, state = heartbeat.decide(image, body, context, progress)

        def heard(offset: int) -> None:
            if state is heartbeat.BrokerState.SHUTDOWN_NOW:
                self._sessions.remove(broker_id)
                return
            session = self._sessions.touch(broker_id, body.current_metadata_offset)
            if state is heartbeat.BrokerState.CONTROLLED_SHUTDOWN and session.shutdown_offset is None:
                session.shutdown_offset = self._next_offset() - 1

        return decision, heard

    def _write(self, decision: Decision) -> int:
        """Write a decision's records, apply them, and act on what that changed; -1 when there are none."""
        image = self.image
        if image is None or not decision.records:
            return -1
        expected = self._next_offset() + len(decision.records) - 1
        offset = self._append(decision.records)
        # A broker's epoch is the offset of its registration, and was decided before the record had it.
        assert offset == expected, f"records were written up to {offset}, not up to {expected}"
        delta = ImageDelta()
        for record, _ in decision.records:
            image.apply(record, delta)
        self._held.append(_Held(offset, tellings=list(tellings(image, delta, decision))))
        if any(UNCLEAN_LEADER_ELECTION in names for names in delta.configs.values()):
            # Kafka looks for such partitions every five minutes.
            self._elect_leaderless(f"{UNCLEAN_LEADER_ELECTION} changed")
        self._release()
        return offset

    def _write_unasked(self, decision: Decision) -> None:
        """The same for what no request asked for: a leadership that is being lost is told by `deactivate`."""
        try:
            self._write(decision)
        except KafkaError as error:
            self._outbox.tell("controller-not-writing", "warning", controller=self.node_id, reason=str(error))

    def _release(self) -> None:
        held = self._held
        while held and held[0].offset <= self._committed:
            each = held.popleft()
            for kind, level, fields in each.tellings:
                self._outbox.tell_fields(kind, fields, level)
            if each.reply is not None:
                each.reply(each.response)

    # --- what nobody asks for ---

    def _session_ended(self, broker_id: int, reason: str) -> None:
        if self.image is None:
            return
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.fenced:
            return
        from tidelog.controller.decide import heartbeat

        decision = Decision()
        heartbeat.fence(self.image, broker, self._context(), decision, reason)
        self._write_unasked(decision)

    def _elect_leaderless(self, cause: str) -> None:
        if self.image is None:
            return
        from tidelog.controller.decide import elections

        decision = elections.decide_leaderless(self.image, self._context(), cause)
        self._write_unasked(decision)
        if len(decision.records) >= MAX_ELECTIONS_PER_ROUND:
            self._outbox.after(0, lambda: self._elect_leaderless(cause))

    def _set_balance_timer(self, delay_ms: int | None = None) -> None:
        if not self._config.auto_leader_rebalance_enable:
            return
        if delay_ms is None:
            delay_ms = self._config.leader_imbalance_check_interval_seconds * 1000
        self._balance_timer = self._outbox.after(delay_ms, self._balance)

    def _balance(self) -> None:
        if self.image is None:
            return
        from tidelog.controller.decide import elections

        decision = elections.decide_balance(self.image, self._context())
        self._write_unasked(decision)
        self._set_balance_timer(0 if len(decision.records) >= MAX_ELECTIONS_PER_ROUND else None)
