"""The throttle of a reassignment, set and taken away as Kafka's own tool does it (KIP-73)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.client.admin import ResourceType
    from tidelog.client.client import Client, TopicPartition

    Throttled = list[tuple[ResourceType, str, Sequence[str]]]
    """Of topics and brokers, the settings of a throttle that they have."""

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"


def throttle(
    client: Client,
    before: Mapping[TopicPartition, Sequence[int]],
    plan: Mapping[TopicPartition, Sequence[int]],
    bytes_a_second: int,
) -> Throttled:
    """Throttle what moves: at those who have it now, because any of them may lead, and at those who get it.

    A broker that is down takes no settings, and moves nothing either. What was set comes back.
    """
    from tidelog.client.admin import AlterOperation, ResourceType, alter_configs

    throttled: Throttled = []
    for topic in sorted({topic for topic, _ in plan}):
        moved = [where for where in sorted(plan) if where[0] == topic]
        leaders = [f"{where[1]}:{broker}" for where in moved for broker in before[where]]
        followers = [f"{where[1]}:{broker}" for where in moved for broker in plan[where] if broker not in before[where]]
        changes = [(LEADERS, AlterOperation.SET, ",".join(leaders))]
        if followers:
            changes.append((FOLLOWERS, AlterOperation.SET, ",".join(followers)))
        alter_configs(client, ResourceType.TOPIC, topic, changes)
        throttled.append((ResourceType.TOPIC, topic, [name for name, _, _ in changes]))
    brokers = {broker for where in plan for broker in (*before[where], *plan[where])}
    for broker in sorted(brokers & set(client.refresh().brokers)):
        rates = [(name, AlterOperation.SET, str(bytes_a_second)) for name in RATES]
        alter_configs(client, ResourceType.BROKER, str(broker), rates)
        throttled.append((ResourceType.BROKER, str(broker), RATES))
    return throttled


def unthrottle(client: Client, throttled: Throttled) -> None:
    """Take away what was set. Nobody is asked whether it is there: a broker may hear of it a moment later."""
    from tidelog.client.admin import AlterOperation, alter_configs

    for kind, name, keys in throttled:
        alter_configs(client, kind, name, [(key, AlterOperation.DELETE, None) for key in keys])


def remove_throttle(client: Client) -> list[str]:
    """Take away every throttle there is; of whom comes back. A broker that is down keeps its own until it is back."""
    from tidelog.client.admin import ResourceType, describe_configs, describe_topics

    throttled: Throttled = []
    places = [(ResourceType.TOPIC, one.name, (LEADERS, FOLLOWERS)) for one in describe_topics(client)]
    places += [(ResourceType.BROKER, str(one), RATES) for one in sorted(client.refresh().brokers)]
    for kind, name, keys in places:
        found = describe_configs(client, kind, name, keys=keys)
        own = [one.name for one in found if one.source in ("topic", "broker, dynamic")]
        if own:
            throttled.append((kind, name, own))
    unthrottle(client, throttled)
    return [f"{kind.name.lower()} {name}" for kind, name, _ in throttled]
