"""The settings of one consumer group (KIP-848): changed at run time, and else the coordinator's own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tidelog.config.node import NodeConfig, unknown_setting
from tidelog.config.setting import GROUP, SettingsBase, int32, settings
from tidelog.errors import ConfigError

_ELSEWHERE = ("share.", "streams.", "consumer.assignor.offload.")
"""Groups and ways of assigning that Tidelog does not have."""


@settings
class GroupConfig(SettingsBase):
    """The settings in force for one group. `synonyms` is the broker setting a line falls back to."""

    consumer_session_timeout_ms: int = int32(
        45_000,
        GROUP,
        "Session of a member of this group.",
        low=1,
        synonyms=("group.consumer.session.timeout.ms",),
    )
    consumer_heartbeat_interval_ms: int = int32(
        5000,
        GROUP,
        "How often a member of this group reports.",
        low=1,
        synonyms=("group.consumer.heartbeat.interval.ms",),
    )
    consumer_assignment_interval_ms: int = int32(
        1000,
        GROUP,
        "Shortest time between two assignments of this group.",
        low=0,
        synonyms=("group.consumer.assignment.interval.ms",),
    )

    @classmethod
    def from_overrides(cls, overrides: Mapping[str, str], node: NodeConfig) -> GroupConfig:
        """The settings in force: the group's own, else the broker's. A value that is no longer one is passed over."""
        values: dict[str, Any] = {}
        for name, setting in cls.SETTINGS.items():
            value = getattr(node, setting.synonyms[0].replace(".", "_"))
            if name in overrides:
                with suppress(ConfigError):
                    value = setting.parse(overrides[name])
            values[setting.attribute] = value
        return cls(**values)


def validate_group_overrides(overrides: Mapping[str, str], node: NodeConfig) -> None:
    """Check what somebody wants to set on a group against the bounds of the coordinator, as Kafka does."""
    for name, text in overrides.items():
        setting = GroupConfig.SETTINGS.get(name)
        if setting is None:
            if name.startswith(_ELSEWHERE):
                raise ConfigError(f"{name}: Tidelog has no such groups, and no such setting of them")
            raise unknown_setting(name, tuple(GroupConfig.SETTINGS))
        setting.parse(text)
    wanted = GroupConfig.from_overrides(overrides, node)
    for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
        name, attribute = f"consumer.{what}", what.replace(".", "_")
        value = getattr(wanted, f"consumer_{attribute}")
        low = getattr(node, f"group_consumer_min_{attribute}")
        high = getattr(node, f"group_consumer_max_{attribute}")
        if value < low:
            raise ConfigError(f"{name} must be greater than or equal to group.consumer.min.{what}")
        if value > high:
            raise ConfigError(f"{name} must be less than or equal to group.consumer.max.{what}")
    if wanted.consumer_session_timeout_ms <= wanted.consumer_heartbeat_interval_ms:
        raise ConfigError("consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms")
