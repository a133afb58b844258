"""Settings that are allowed and that hardly anybody should have: said aloud whenever a node starts with one.

Those are a rule that Kafka gave up for good reasons, and whatever is set to something else than its default though
nothing uses it: whoever wrote that line counts on it.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.config import NodeConfig
from tidelog.config.others import NOT_USED


class Caution(NamedTuple):
    """A setting that is on, and why one should think twice."""

    setting: str
    reason: str


def cautions(config: NodeConfig) -> list[Caution]:
    """What a node with these settings is to be warned about."""
    found = []
    if config.replica_lag_max_messages >= 0:
        reason = (
            "a burst of writes throws healthy followers out of the ISR; Kafka took this rule away for that "
            "(tidelog scenario run lag-by-count-flaps shows it), replica.lag.time.max.ms alone is enough"
        )
        found.append(Caution("replica.lag.max.messages", reason))
    for name, setting in NodeConfig.SETTINGS.items():
        if name in NOT_USED and getattr(config, setting.attribute) != setting.default:
            found.append(Caution(name, f"it has no effect: {NOT_USED[name]}"))
    return found
