"""Every setting of a topic, one line each, and how one that is not given is found at the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelog.config.node import NodeConfig, unknown_setting
from tidelog.config.node_settings import HOUR_MS
from tidelog.config.others import REFUSED, TOPIC_WITHOUT_EFFECT, refusal
from tidelog.config.setting import (
    INT64_MAX,
    TOPIC,
    SettingsBase,
    boolean,
    int32,
    int64,
    names,
    number,
    settings,
    string,
)
from tidelog.errors import ConfigError

DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS
_UNIT_MS = {"hours": HOUR_MS, "minutes": 60_000}
"""What the last word of a broker setting makes of its value, for a topic setting in milliseconds."""


@settings
class TopicConfig(SettingsBase):
    """The settings in force for one topic. `synonyms` are the broker settings a line falls back to, the first wins."""

    cleanup_policy: tuple[str, ...] = names(
        ("delete",),
        TOPIC,
        "What is done with old records: delete them, compact them by key, or both.",
        choices=("compact", "delete"),
        synonyms=("log.cleanup.policy",),
    )
    compression_type: str = string(
        "producer",
        TOPIC,
        "How batches are stored: as the producer sent them, or compressed anew.",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        synonyms=("compression.type",),
    )
    compression_gzip_level: int = int32(
        -1,
        TOPIC,
        "Level of gzip where batches are compressed anew.",
        low=1,
        high=9,
        also=(-1,),
        synonyms=("compression.gzip.level",),
    )
    compression_lz4_level: int = int32(
        9, TOPIC, "Level of lz4 where batches are compressed anew.", low=1, high=17, synonyms=("compression.lz4.level",)
    )
    compression_zstd_level: int = int32(
        3,
        TOPIC,
        "Level of zstd where batches are compressed anew.",
        low=-131_072,
        high=22,
        synonyms=("compression.zstd.level",),
    )
    delete_retention_ms: int = int64(
        DAY_MS,
        TOPIC,
        "How long a deletion marker stays in a compacted topic.",
        low=0,
        synonyms=("log.cleaner.delete.retention.ms",),
    )
    file_delete_delay_ms: int = int64(
        60_000,
        TOPIC,
        "How long a deleted segment's files stay on disk.",
        low=0,
        synonyms=("log.segment.delete.delay.ms",),
    )
    flush_messages: int = int64(
        INT64_MAX,
        TOPIC,
        "Records after which they are forced to disk.",
        low=1,
        synonyms=("log.flush.interval.messages",),
    )
    flush_ms: int = int64(
        INT64_MAX,
        TOPIC,
        "The longest a record waits to be forced to disk.",
        low=0,
        synonyms=("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    follower_replication_throttled_replicas: tuple[str, ...] = names(
        (), TOPIC, "Replicas throttled when they follow: partition:broker entries, or *."
    )
    leader_replication_throttled_replicas: tuple[str, ...] = names(
        (), TOPIC, "Replicas throttled when they are followed: partition:broker entries, or *."
    )
    index_interval_bytes: int = int32(
        4096, TOPIC, "Bytes of log between two index entries.", low=0, synonyms=("log.index.interval.bytes",)
    )
    max_compaction_lag_ms: int = int64(
        INT64_MAX,
        TOPIC,
        "How long a record may wait for compaction.",
        low=1,
        synonyms=("log.cleaner.max.compaction.lag.ms",),
    )
    max_message_bytes: int = int32(
        1_048_588, TOPIC, "The largest record batch.", low=0, synonyms=("message.max.bytes",)
    )
    message_timestamp_after_max_ms: int = int64(
        HOUR_MS,
        TOPIC,
        "How far a record's time may lie in the future.",
        low=0,
        synonyms=("log.message.timestamp.after.max.ms",),
    )
    message_timestamp_before_max_ms: int = int64(
        INT64_MAX,
        TOPIC,
        "How far a record's time may lie in the past.",
        low=0,
        synonyms=("log.message.timestamp.before.max.ms",),
    )
    message_timestamp_type: str = string(
        "CreateTime",
        TOPIC,
        "Whether a record has the producer's time or the time of its append.",
        choices=("CreateTime", "LogAppendTime"),
        synonyms=("log.message.timestamp.type",),
    )
    min_cleanable_dirty_ratio: float = number(
        0.5,
        TOPIC,
        "Share of the log that must be uncompacted before it is compacted.",
        low=0,
        high=1,
        synonyms=("log.cleaner.min.cleanable.ratio",),
    )
    min_compaction_lag_ms: int = int64(
        0, TOPIC, "How long a record is safe from compaction.", low=0, synonyms=("log.cleaner.min.compaction.lag.ms",)
    )
    min_insync_replicas: int = int32(
        1,
        TOPIC,
        "Replicas that must have a record before acks=all is answered.",
        low=1,
        synonyms=("min.insync.replicas",),
    )
    preallocate: bool = boolean(
        False,
        TOPIC,
        "Whether segments are made in full size beforehand.",
        synonyms=("log.preallocate",),
    )
    record_validation_enable: bool = boolean(
        False,
        TOPIC,
        "Whether the records inside every batch are read and checked; Kafka always does.",
        ours=True,
        synonyms=("log.record.validation.enable",),
    )
    retention_bytes: int = int64(
        -1,
        TOPIC,
        "Size of a partition above which its oldest segments are deleted; -1 is no limit.",
        synonyms=("log.retention.bytes",),
    )
    retention_ms: int = int64(
        WEEK_MS,
        TOPIC,
        "Age at which records are deleted; -1 is never.",
        low=-1,
        synonyms=("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    segment_bytes: int = int32(
        1 << 30,
        TOPIC,
        "Bytes at which a segment is closed and the next begins.",
        low=1 << 20,
        synonyms=("log.segment.bytes",),
    )
    internal_segment_bytes: int | None = int32(
        None, TOPIC, "Overrides segment.bytes without its lower bound, for tests.", low=14, internal=True
    )
    segment_index_bytes: int = int32(
        10_485_760,
        TOPIC,
        "The largest index of a segment; a full one closes the segment.",
        low=4,
        synonyms=("log.index.size.max.bytes",),
    )
    segment_jitter_ms: int = int64(
        0,
        TOPIC,
        "The most taken off a segment's age at random.",
        low=0,
        synonyms=("log.roll.jitter.ms", "log.roll.jitter.hours"),
    )
    segment_ms: int = int64(
        WEEK_MS, TOPIC, "Age at which a segment is closed.", low=1, synonyms=("log.roll.ms", "log.roll.hours")
    )
    unclean_leader_election_enable: bool = boolean(
        False,
        TOPIC,
        "Whether a replica that is not in sync may lead when no other can; records can be lost.",
        synonyms=("unclean.leader.election.enable",),
    )

    @classmethod
    def from_overrides(
        cls, overrides: Mapping[str, str], node: NodeConfig, dynamic: Mapping[str, str] | None = None
    ) -> TopicConfig:
        """The settings in force: the topic's own, else the broker's run-time ones, else its properties, else defaults.

        `dynamic` holds a broker's run-time settings, its own over the cluster's. Names that are not for topics are
        passed over here, so that one unknown name from an old log never stops a node; `validate_topic_overrides` is
        what refuses them at the door.
        """
        if dynamic:
            node = node.with_dynamic(dynamic)
        values: dict[str, Any] = {}
        for name, setting in cls.SETTINGS.items():
            text = overrides.get(name)
            value = broker_value(setting.synonyms, node) if text is None else setting.parse(text)
            if value is not None and value != setting.default:
                values[setting.attribute] = value
        if "internal_segment_bytes" in values:
            values["segment_bytes"] = values["internal_segment_bytes"]
        return cls(**values)

    @property
    def is_compacted(self) -> bool:
        """Whether records are compacted by key, so that each must have one."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted_by_retention(self) -> bool:
        """Whether old segments are deleted by age and size."""
        return "delete" in self.cleanup_policy


def broker_value(synonyms: tuple[str, ...], node: NodeConfig) -> Any:
    """What the broker says about a topic setting: the first of its settings that is set, in the topic's unit."""
    for name in synonyms:
        value = getattr(node, name.replace(".", "_"))
        if value is not None:
            return in_milliseconds(name, value)
    return None


def in_milliseconds(name: str, value: Any) -> Any:
    """The value of a broker setting in the unit of its topic setting; -1 (never) stays -1."""
    factor = _UNIT_MS.get(name.rpartition(".")[2], 1)
    return value * factor if factor != 1 and value > 0 else value


def validate_topic_overrides(overrides: Mapping[str, str]) -> None:
    """Check what somebody wants to set on a topic; ConfigError names the first that is wrong or unknown."""
    values: dict[str, Any] = {}
    for name, text in overrides.items():
        setting = TopicConfig.SETTINGS.get(name)
        if setting is not None:
            values[setting.attribute] = setting.parse(text)
        elif name in TOPIC_WITHOUT_EFFECT:
            TOPIC_WITHOUT_EFFECT[name].parse(text)
        else:
            reason = refusal(name, text)
            if reason is not None:
                raise ConfigError(f"{name}: {reason}")
            if name not in REFUSED:
                raise unknown_setting(name, (*TopicConfig.SETTINGS, *TOPIC_WITHOUT_EFFECT))
    lag_low, lag_high = values.get("min_compaction_lag_ms", 0), values.get("max_compaction_lag_ms", INT64_MAX)
    if lag_low > lag_high:
        raise ConfigError("min.compaction.lag.ms: it must not be above max.compaction.lag.ms")
    for name in ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"):
        _check_throttled(name, values.get(name.replace(".", "_"), ()))


def _check_throttled(name: str, entries: tuple[str, ...]) -> None:
    if entries == ("*",):
        return
    for entry in entries:
        partition, separator, broker = entry.partition(":")
        if not separator or not partition.isdecimal() or not broker.isdecimal():
            raise ConfigError(f"{name}: {entry!r} is not partition:broker, and the list is not *")
