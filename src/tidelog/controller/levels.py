"""Feature levels (KIP-584): what a finalized metadata.version allows, and which record versions it stands for.

Levels below 7 (3.3-IV3) are what Apache Kafka 4 cannot open either; above 30 (4.3-IV0) records may have fields that we
would lose, so such a log is refused instead of half understood.
"""

from __future__ import annotations

from tidelog.errors import TidelogError

METADATA_VERSION = "metadata.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
KRAFT_VERSION = "kraft.version"

LOWEST_LEVEL = 7
LATEST_LEVEL = 30

LEVELS: dict[int, tuple[str, bool]] = {
    7: ("3.3-IV3", True),
    8: ("3.4-IV0", True),
    9: ("3.5-IV0", False),
    10: ("3.5-IV1", False),
    11: ("3.5-IV2", True),
    12: ("3.6-IV0", False),
    13: ("3.6-IV1", True),
    14: ("3.6-IV2", True),
    15: ("3.7-IV0", True),
    16: ("3.7-IV1", False),
    17: ("3.7-IV2", True),
    18: ("3.7-IV3", False),
    19: ("3.7-IV4", False),
    20: ("3.8-IV0", False),
    21: ("3.9-IV0", False),
    22: ("4.0-IV0", False),
    23: ("4.0-IV1", True),
    24: ("4.0-IV2", False),
    25: ("4.0-IV3", False),
    26: ("4.1-IV0", False),
    27: ("4.1-IV1", False),
    28: ("4.2-IV0", False),
    29: ("4.2-IV1", False),
    30: ("4.3-IV0", True),
}
"""Name of each level, and whether it changed the metadata records: such a step cannot be taken back."""

SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    METADATA_VERSION: (LOWEST_LEVEL, LATEST_LEVEL),
    KRAFT_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    GROUP_VERSION: (0, 1),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
}
"""What this software can work with, lowest and highest, as registrations and ApiVersions say it."""

_NEEDS_METADATA_VERSION: dict[tuple[str, int], int] = {
    (KRAFT_VERSION, 1): 21,
    (TRANSACTION_VERSION, 1): 24,
    (TRANSACTION_VERSION, 2): 24,
    (GROUP_VERSION, 1): 22,
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 1): 23,
}


class UnsupportedLevelError(TidelogError):
    """The metadata was written at a metadata.version that this software cannot work with."""


def check_metadata_version(level: int) -> None:
    """Refuse a metadata.version that cannot be opened, naming what can."""
    if level in LEVELS:
        return
    low, high = LEVELS[LOWEST_LEVEL][0], LEVELS[LATEST_LEVEL][0]
    raise UnsupportedLevelError(
        f"metadata.version {level} cannot be opened: supported are {LOWEST_LEVEL} ({low}) to {LATEST_LEVEL} ({high})"
    )


def name_of(level: int) -> str:
    """How people call a metadata.version level."""
    return LEVELS[level][0] if level in LEVELS else str(level)


def needed_metadata_version(feature: str, level: int) -> int:
    """The lowest metadata.version at which a level of another feature may be finalized."""
    return _NEEDS_METADATA_VERSION.get((feature, level), LOWEST_LEVEL)


def loses_metadata(current: int, wanted: int) -> bool:
    """Whether going down from `current` to `wanted` passes a level that changed the records."""
    return any(changed for level, (_, changed) in LEVELS.items() if wanted < level <= current)


# --- what a level allows ---


def bumps_leader_epoch_on_shrink(level: int) -> bool:
    """Before 3.6 every ISR shrink raised the leader epoch (KAFKA-15021)."""
    return level < 12


def has_transactions(level: int) -> bool:
    """Metadata transactions, KIP-868."""
    return level >= 13


def has_controller_registration(level: int) -> bool:
    """Controllers register as brokers do, KIP-919."""
    return level >= 15


def has_directories(level: int) -> bool:
    """Partitions know the log directory of each replica, KIP-858."""
    return level >= 17


def has_eligible_leader_replicas(level: int) -> bool:
    """The records have room for the ELR, KIP-966; whether it is used is a feature of its own."""
    return level >= 23


def has_cordoned_directories(level: int) -> bool:
    """Directories that take no new replicas, KIP-1066."""
    return level >= 30


# --- record versions ---


def partition_version(level: int) -> int:
    """Version of PartitionRecord and of PartitionChangeRecord."""
    return 2 if has_eligible_leader_replicas(level) else 1 if has_directories(level) else 0


def register_broker_version(level: int) -> int:
    """Version of RegisterBrokerRecord."""
    if has_cordoned_directories(level):
        return 4
    if has_directories(level):
        return 3
    return 2 if level >= 8 else 1


def registration_change_version(*, shutdown: bool, directories: bool, cordoned: bool) -> int:
    """Version of BrokerRegistrationChangeRecord: the lowest that has the fields it carries."""
    return 3 if cordoned else 2 if directories else 1 if shutdown else 0
