"""By which connection a controller hears that a broker is gone."""

from __future__ import annotations

from tidelog.events import ConnectionClosed, Request
from tidelog.sim.cluster import SimulatedCluster
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.broker_heartbeat import BrokerHeartbeatRequest

CONNECTION = 987_654


def test_a_heartbeat_of_a_former_life_takes_over_no_connection() -> None:
    """It is refused; when its connection ended, the broker of today was fenced."""
    cluster = SimulatedCluster(1, settings={}, brokers=(1, 2, 3), controllers=(9,))
    cluster.start_all()
    world, process = cluster.world, cluster.process(9)
    world.run_for(5_000)
    already_told = len(world.told)
    former_epoch = process.node.image.brokers[1].epoch - 1
    body = BrokerHeartbeatRequest(broker_id=1, broker_epoch=former_epoch, current_metadata_offset=0)
    listener = world.hosts[9].control_listeners[0]
    world.step(process, Request(CONNECTION, 0, ApiKey.BROKER_HEARTBEAT, 1, None, body, listener=listener))
    world.step(process, ConnectionClosed(CONNECTION))
    world.run_for(400)
    assert [one for _, _, one in world.told[already_told:] if one.kind == "broker-fenced"] == []
