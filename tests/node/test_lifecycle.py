"""How a broker registers and stops, without a controller: the test answers in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.config import NodeConfig
from tidelog.node.lifecycle import BrokerLifecycle, State
from tidelog.outbox import Outbox
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


class Link:
    """Keeps what is asked, for the test to answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Callable[[Any, str | None], None]]] = []

    def ask(self, api_key: int, api_version: int, body: Any, then: Callable[[Any, str | None], None]) -> None:
        self.asked.append((api_key, then))


def test_a_broker_that_stops_before_it_could_register_does_not_try_again() -> None:
    """It would be registered while it stops: the epoch that its mark of a clean stop names would be over."""
    outbox, link, registered = Outbox(1), Link(), list[int]()
    lifecycle = BrokerLifecycle(
        NodeConfig(node_id=1),
        outbox,
        link,  # type: ignore[arg-type]
        BrokerRegistrationRequest,
        lambda: 0,
        list,
        lambda epoch: True,
        registered.append,
    )
    lifecycle.start()
    assert [api_key for api_key, _ in link.asked] == [ApiKey.BROKER_REGISTRATION]
    link.asked.pop()[1](None, "there is no active controller")
    stopped: list[bool] = []
    lifecycle.stop(lambda: stopped.append(True))
    assert stopped
    outbox.now_ms += 10_000
    outbox.run_due_timers()
    for _, then in list(link.asked):
        then(BrokerRegistrationResponse(broker_epoch=5), None)
    assert (link.asked, registered, lifecycle.state) == ([], [], State.STOPPED)
