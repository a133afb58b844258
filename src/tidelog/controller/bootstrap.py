"""The first records of a new cluster, and those of a `bootstrap.checkpoint` that Kafka's format tool wrote.

The first active controller of an empty metadata log appends them before anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.controller import levels
from tidelog.controller.image import BROKER_RESOURCE
from tidelog.controller.records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    Record,
    VersionedRecord,
)
from tidelog.errors import ConfigError

DEFAULT_FEATURES: dict[str, int] = {
    levels.METADATA_VERSION: levels.LATEST_LEVEL,
    levels.ELIGIBLE_LEADER_REPLICAS_VERSION: 1,
    levels.GROUP_VERSION: 1,
    levels.TRANSACTION_VERSION: 2,
}
"""What a new cluster is formatted with. kraft.version is a control record of the quorum, not one of these."""

MIN_INSYNC_REPLICAS = "min.insync.replicas"


def format_records(features: Mapping[str, int] | None = None) -> list[VersionedRecord]:
    """What `bootstrap.checkpoint` holds: the feature levels of a new cluster, metadata.version first.

    `features` overrides or adds levels (`tidelog format --feature name=level`); 0 leaves one out.
    """
    chosen = {**DEFAULT_FEATURES, **(features or {})}
    level = chosen[levels.METADATA_VERSION]
    levels.check_metadata_version(level)
    for name, wanted in chosen.items():
        if name not in levels.SUPPORTED_FEATURES or name == levels.KRAFT_VERSION:
            known = ", ".join(sorted(set(levels.SUPPORTED_FEATURES) - {levels.KRAFT_VERSION}))
            raise ConfigError(f"feature {name!r} is not known here; known are {known}")
        low, high = levels.SUPPORTED_FEATURES[name]
        if not low <= wanted <= high:
            raise ConfigError(f"feature {name}: {wanted} is not allowed; it must be {low} to {high}")
        needed = levels.needed_metadata_version(name, wanted)
        if level < needed:
            if features is not None and name in features:
                raise ConfigError(f"feature {name}={wanted} needs metadata.version {needed}, not {level}")
            chosen[name] = 0
    order = sorted(chosen, key=lambda name: (name != levels.METADATA_VERSION, name))
    return [(FeatureLevelRecord(name=name, feature_level=chosen[name]), 0) for name in order if chosen[name]]


def records_for_empty_log(
    bootstrap: Iterable[Record] | None = None, *, min_insync_replicas: int = 1
) -> list[VersionedRecord]:
    """What the first controller writes: the bootstrap records, in one metadata transaction where the level has them.

    With eligible leader replicas on, min.insync.replicas of the cluster is written down too, as Kafka does: which
    replicas are eligible rests on it, so it must not depend on who is the controller (KIP-966).
    """
    records: list[VersionedRecord] = format_records() if bootstrap is None else [(each, 0) for each in bootstrap]
    found = {each.name: each.feature_level for each, _ in records if isinstance(each, FeatureLevelRecord)}
    if levels.METADATA_VERSION not in found:
        raise ConfigError("the bootstrap records name no metadata.version")
    levels.check_metadata_version(found[levels.METADATA_VERSION])
    if found.get(levels.ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0 and not _sets_min_insync_replicas(records):
        records.append(
            (
                ConfigRecord(
                    resource_type=BROKER_RESOURCE,
                    resource_name="",
                    name=MIN_INSYNC_REPLICAS,
                    value=str(min_insync_replicas),
                ),
                0,
            )
        )
    if not levels.has_transactions(found[levels.METADATA_VERSION]):
        return records
    return [(BeginTransactionRecord(name="Bootstrap records"), 0), *records, (EndTransactionRecord(), 0)]


def _sets_min_insync_replicas(records: Iterable[VersionedRecord]) -> bool:
    return any(
        isinstance(each, ConfigRecord)
        and (each.resource_type, each.resource_name, each.name) == (BROKER_RESOURCE, "", MIN_INSYNC_REPLICAS)
        for each, _ in records
    )
