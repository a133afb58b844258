"""How a broker reaches the active controller: inside the same node, or over the network.

A question asked here is answered exactly once. Whoever asks decides whether to ask again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.events import LOCAL_CONNECTION, Request
from tidelog.outbox import Outbox, SendContinuation

CHANNEL = "controller"


class ControllerLink:
    """Sends a broker's own requests, and those it forwards for clients, to whoever is the controller now."""

    def __init__(
        self,
        outbox: Outbox,
        handle_locally: Callable[[Request], bool],
        active_controller: Callable[[], tuple[int, str, int] | None],
        timeout_ms: int,
    ) -> None:
        self._outbox = outbox
        self._handle_locally = handle_locally
        """Gives a request to this node's own controller; False when it is not the active one."""
        self._active_controller = active_controller
        self._timeout_ms = timeout_ms

    def ask(self, api_key: int, api_version: int, body: Any, then: SendContinuation) -> None:
        """Ask the active controller."""
        number = self._outbox.expect(then)
        if self._handle_locally(Request(LOCAL_CONNECTION, number, api_key, api_version, None, body)):
            return
        controller = self._active_controller()
        if controller is None:
            self._outbox.resume(number, None, "there is no active controller")
            return
        self._outbox.cancel(number)
        self._outbox.send(controller, CHANNEL, api_key, api_version, body, self._timeout_ms, then)
