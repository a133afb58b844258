"""How a controller hears that a broker is gone before its session ends: a connection breaks, or nobody listens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tidelog.events import CONNECTION_REFUSED, LOCAL_CONNECTION, ConnectionClosed
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from tidelog.controller.controller import Controller
    from tidelog.node.node import Node

PROBE_CHANNEL = "probe"
PROBE_VERSION = 3


class BrokerWatch:
    """What the node that is the controller knows of the brokers' connections."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._connections: dict[int, int] = {}
        """The connection that each broker's last heartbeat came by."""

    def heard_on(self, connection_id: int, broker_id: int) -> None:
        """A broker's heartbeat came by this connection: should it break, the broker may be dead.

        Only the connection it was heard on last counts: an older one may be seen to end long after it was replaced.
        """
        if connection_id != LOCAL_CONNECTION:
            self._connections[broker_id] = connection_id

    def connection_closed(self, event: ConnectionClosed) -> None:
        """Tell the controller whose connection that was, if it was a broker's and the broker ended it."""
        controller = self._node.cluster.controller
        for broker_id, connection_id in self._connections.items():
            if connection_id == event.connection_id:
                del self._connections[broker_id]
                if event.by_peer and controller is not None:
                    controller.connection_lost(broker_id)
                break

    def look_for_unheard(self) -> None:
        """A new controller asks brokers it has not heard whether anybody is there, until it knows or they time out.

        The one before may have died together with the broker it ran in: nobody saw that broker's connection break.
        """
        node, controller = self._node, self._node.cluster.controller
        if controller is None or not controller.active:
            return
        for broker_id in controller.unheard_brokers():
            address = node.broker.address_of(broker_id)
            if address is not None:
                request = ApiVersionsRequest(client_software_name="tidelog", client_software_version="controller")
                node.outbox.send(
                    address,
                    PROBE_CHANNEL,
                    ApiKey.API_VERSIONS,
                    PROBE_VERSION,
                    request,
                    node.config.broker_session_timeout_ms,
                    partial(self._probed, controller, broker_id),
                )
        if controller.unheard_brokers():
            node.outbox.after(max(1, node.config.broker_connection_loss_grace_ms), self.look_for_unheard)

    @staticmethod
    def _probed(controller: Controller, broker_id: int, _response: Any, error: str | None) -> None:
        if error == CONNECTION_REFUSED:
            controller.connection_refused(broker_id)
