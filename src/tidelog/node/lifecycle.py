"""A broker's life as its controller knows it (KIP-631).

    STARTING  -> RECOVERING     registered: the controller gave a broker epoch
    RECOVERING -> RUNNING       caught up with its own registration, logs open, unfenced
    RUNNING   -> STARTING       its epoch is stale (another incarnation registered, or it was unregistered)
    RUNNING   -> STOPPING       a clean stop: leaderships move away first, then `then` is called
    any       -> STOPPED

Heartbeats go on from RECOVERING until STOPPED; the controller fences a broker that stays silent.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from tidelog.config import NodeConfig
from tidelog.errors import ErrorCode
from tidelog.node.controller_link import ControllerLink
from tidelog.outbox import Outbox, Timer
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.wire.messages.broker_registration import BrokerRegistrationRequest


class State(Enum):
    """See the head of this file."""

    STARTING = "starting"
    RECOVERING = "recovering"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 1
RETRY_MS = 50
"""Between tries to reach a controller: well within broker.connection.loss.grace.ms."""


class BrokerLifecycle:
    """Registers this broker, keeps its session alive and says when it may serve."""

    def __init__(
        self,
        config: NodeConfig,
        outbox: Outbox,
        link: ControllerLink,
        registration: Callable[[], BrokerRegistrationRequest],
        metadata_offset: Callable[[], int],
        offline_directories: Callable[[], list[bytes]],
        is_ready: Callable[[int], bool],
        note_registered: Callable[[int], None],
        is_half_known: Callable[[int], bool] = lambda broker_epoch: False,
    ) -> None:
        self.state = State.STARTING
        self.broker_epoch = -1
        self.fenced = True
        self._config = config
        self._outbox = outbox
        self._link = link
        self._registration = registration
        self._metadata_offset = metadata_offset
        self._offline_directories = offline_directories
        self._is_ready = is_ready
        """Whether the metadata up to this offset is applied and the logs are open."""
        self._note_registered = note_registered
        self._is_half_known = is_half_known
        """Whether the cluster's metadata has room by now for more than this epoch's registration says there."""
        self._timer: Timer | None = None
        self._stopped: Callable[[], None] | None = None

    def start(self) -> None:
        """Register; goes on trying until a controller answers, or this broker stops."""
        if self.state is State.STOPPED:
            return
        self.state = State.STARTING
        request = self._registration()
        self._link.ask(ApiKey.BROKER_REGISTRATION, REGISTRATION_VERSION, request, self._registered)

    def _registered(self, response: Any, error: str | None) -> None:
        if self.state is not State.STARTING:
            return
        if error is not None or response.error_code != ErrorCode.NONE:
            code = ErrorCode.UNKNOWN_SERVER_ERROR if response is None else ErrorCode(response.error_code)
            if code in _REGISTRATION_IS_HOPELESS:
                self._outbox.halt(1, f"the controller refused this broker's registration: {code.name}")
                return
            self._outbox.after(RETRY_MS, self.start)
            return
        self.broker_epoch = response.broker_epoch
        self.state = State.RECOVERING
        self._note_registered(self.broker_epoch)
        self._beat()

    def metadata_applied(self) -> None:
        """New metadata is in place: perhaps this broker has caught up now, so ask to be unfenced without waiting."""
        if self.state is State.RECOVERING and self._is_ready(self.broker_epoch):
            self._beat()

    def directories_changed(self) -> None:
        """A log directory went offline: tell the controller at once, so that leaders move (KIP-858)."""
        if self.state in (State.RECOVERING, State.RUNNING):
            self._beat()

    def stop(self, then: Callable[[], None]) -> None:
        """Ask for a controlled shutdown and call back when the controller lets go, or when it cannot be reached."""
        if self.state in (State.STARTING, State.STOPPED):
            self.state = State.STOPPED
            then()
            return
        self.state = State.STOPPING
        self._stopped = then
        self._outbox.after(self._config.broker_session_timeout_ms, self._let_go)
        self._beat()

    def _let_go(self) -> None:
        stopped, self._stopped = self._stopped, None
        self.state = State.STOPPED
        if self._timer is not None:
            self._timer.cancel()
        if stopped is not None:
            stopped()

    def _beat(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.state is State.STOPPED:
            return
        self._timer = self._outbox.after(self._config.broker_heartbeat_interval_ms, self._beat)
        request = BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=not self._is_ready(self.broker_epoch),
            want_shut_down=self.state is State.STOPPING,
            offline_log_dirs=self._offline_directories(),
        )
        self._link.ask(ApiKey.BROKER_HEARTBEAT, HEARTBEAT_VERSION, request, self._beaten)
        if self.state in (State.RECOVERING, State.RUNNING) and self._is_half_known(self.broker_epoch):
            # The same incarnation: its epoch and state stay. What comes of it is told by the metadata.
            registration = self._registration()
            self._link.ask(ApiKey.BROKER_REGISTRATION, REGISTRATION_VERSION, registration, lambda response, error: None)

    def _beat_soon(self) -> None:
        """The controller was not reached, or moved: a broken connection must be replaced within the grace it gives."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._outbox.after(RETRY_MS, self._beat)

    def _beaten(self, response: Any, error: str | None) -> None:
        if self.state in (State.STARTING, State.STOPPED):
            return
        if error is not None:
            if self.state is State.STOPPING:
                self._let_go()
            else:
                self._beat_soon()
            return
        code = ErrorCode(response.error_code)
        if code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
            if self.state is State.STOPPING:
                self._let_go()
                return
            self._outbox.tell("broker-epoch-stale", "warning", broker=self._config.node_id, epoch=self.broker_epoch)
            self.fenced = True
            if self._timer is not None:
                self._timer.cancel()
            self.start()
            return
        if code is not ErrorCode.NONE:
            self._beat_soon()
            return
        self.fenced = response.is_fenced
        if self.state is State.STOPPING and response.should_shut_down:
            self._let_go()
        elif self.state is State.RECOVERING and not response.is_fenced:
            self.state = State.RUNNING
            self._outbox.tell("broker-running", broker=self._config.node_id, epoch=self.broker_epoch)


_REGISTRATION_IS_HOPELESS = (
    ErrorCode.INCONSISTENT_CLUSTER_ID,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_REGISTRATION,
)
