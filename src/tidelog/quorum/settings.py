"""The settings of the quorum and of its log, under Kafka's names with dots as underscores."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

MAX_BATCH_BYTES = 8 * 1024 * 1024
"""The largest batch of metadata records (Kafka's bound): what one append may hold."""
MAX_EPOCH = 1 << 30
"""No quorum holds so many elections: a larger epoch is a mistake, and would end the counting."""
MAX_FETCH_WAIT_MS = 500
"""How long a leader holds a fetch for which it has nothing."""
CHECK_QUORUM_FACTOR = 1.5
"""A leader that was not heard by a majority for the fetch timeout times this gives up."""
OBSERVER_SESSION_MS = 300_000
"""A replica that is no voter and has not fetched for this long is forgotten."""
CLEANING_INTERVAL_MS = 60_000
"""How often a replica looks for snapshots and segments it may delete."""


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    """A node's settings as far as they concern the quorum."""

    controller_quorum_election_timeout_ms: int = 1000
    controller_quorum_election_backoff_max_ms: int = 1000
    controller_quorum_fetch_timeout_ms: int = 2000
    controller_quorum_request_timeout_ms: int = 2000
    controller_quorum_retry_backoff_ms: int = 20
    controller_quorum_auto_join_enable: bool = False
    controller_quorum_fetch_max_bytes: int = 1_048_576
    controller_quorum_fetch_snapshot_max_bytes: int = 1_048_576
    metadata_log_segment_bytes: int = 1 << 30
    metadata_log_segment_ms: int = 604_800_000
    metadata_max_retention_bytes: int = 104_857_600
    metadata_max_retention_ms: int = 604_800_000

    @staticmethod
    def from_config(config: Any) -> QuorumSettings:
        """Take them from a `tidelog.config.NodeConfig`."""
        return QuorumSettings(**{field.name: getattr(config, field.name) for field in fields(QuorumSettings)})
