"""The settings of a node that concern producers, transactions and groups; `node_settings.py` has all others."""

from __future__ import annotations

from tidelog.config.setting import (
    DYNAMIC,
    INT32_MAX,
    NODE,
    SettingsBase,
    boolean,
    int16,
    int32,
    int64,
    names,
    settings,
    string,
)


@settings
class CoordinatorSettings(SettingsBase):
    """A part of `NodeSettings`."""

    # --- idempotent producers and transactions ---
    producer_id_expiration_ms: int = int32(86_400_000, DYNAMIC, "How long an idle producer is remembered.", low=1)
    producer_id_expiration_check_interval_ms: int = int32(
        600_000, NODE, "How often idle producers are looked for.", low=1, internal=True
    )
    transactional_id_expiration_ms: int = int32(
        604_800_000, NODE, "How long an idle transactional id is remembered.", low=1
    )
    transaction_max_timeout_ms: int = int32(900_000, NODE, "The longest transaction a producer may ask for.", low=1)
    transaction_state_log_replication_factor: int = int16(3, NODE, "Replicas of the transaction log.", low=1)
    transaction_state_log_min_isr: int = int32(2, NODE, "min.insync.replicas of the transaction log.", low=1)
    transaction_state_log_num_partitions: int = int32(
        50, NODE, "Partitions of the transaction log; never to be changed later.", low=1
    )
    transaction_state_log_segment_bytes: int = int32(104_857_600, NODE, "Segment size of the transaction log.", low=1)
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = int32(
        10_000, NODE, "How often transactions past their time are looked for.", low=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = int32(
        3_600_000, NODE, "How often expired transactional ids are looked for.", low=1
    )
    transaction_partition_verification_enable: bool = boolean(
        True, DYNAMIC, "Whether a write is checked to belong to an open transaction (KIP-890)."
    )
    transaction_two_phase_commit_enable: bool = boolean(
        False, NODE, "Whether producers may take part in two-phase commit (KIP-939); only false is accepted."
    )
    add_partitions_to_txn_retry_backoff_ms: int = int32(
        20, NODE, "First wait before a partition is added to a transaction again.", low=1
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = int32(
        100, NODE, "Longest wait before a partition is added to a transaction again.", low=0
    )

    # --- groups and their offsets ---
    group_coordinator_rebalance_protocols: tuple[str, ...] = names(
        ("classic", "consumer"),
        NODE,
        "Group protocols served.",
        choices=("classic", "consumer"),
        kafka_default="classic,consumer,streams",
    )
    group_initial_rebalance_delay_ms: int = int32(3000, NODE, "How long a new group waits for more members.", low=0)
    group_min_session_timeout_ms: int = int32(6000, NODE, "Shortest session a member may ask for.", low=1)
    group_max_session_timeout_ms: int = int32(1_800_000, NODE, "Longest session a member may ask for.", low=1)
    group_max_size: int = int32(INT32_MAX, NODE, "Members of a classic group.", low=1)
    group_consumer_session_timeout_ms: int = int32(
        45_000, NODE, "Session of a member of a consumer group (KIP-848).", low=1
    )
    group_consumer_min_session_timeout_ms: int = int32(
        45_000, NODE, "Shortest session a consumer group may be given.", low=1
    )
    group_consumer_max_session_timeout_ms: int = int32(
        60_000, NODE, "Longest session a consumer group may be given.", low=1
    )
    group_consumer_heartbeat_interval_ms: int = int32(
        5000, NODE, "How often a member of a consumer group reports.", low=1
    )
    group_consumer_min_heartbeat_interval_ms: int = int32(
        5000, NODE, "Shortest heartbeat interval a consumer group may be given.", low=1
    )
    group_consumer_max_heartbeat_interval_ms: int = int32(
        15_000, NODE, "Longest heartbeat interval a consumer group may be given.", low=1
    )
    group_consumer_max_size: int = int32(INT32_MAX, NODE, "Members of a consumer group.", low=1)
    group_consumer_assignors: tuple[str, ...] = names(
        ("uniform", "range"),
        NODE,
        "Assignors of consumer groups; the first is the default.",
        choices=("uniform", "range"),
    )
    group_consumer_assignment_interval_ms: int = int32(
        1000, DYNAMIC, "Shortest time between two assignments of a consumer group.", low=0
    )
    group_consumer_min_assignment_interval_ms: int = int32(
        0, NODE, "Least value a consumer group may be given for its assignment interval.", low=0
    )
    group_consumer_max_assignment_interval_ms: int = int32(
        15_000, NODE, "Largest value a consumer group may be given for its assignment interval.", low=0
    )
    group_consumer_migration_policy: str = string(
        "bidirectional",
        NODE,
        "Which way a group may move between the protocols.",
        choices=("disabled", "downgrade", "upgrade", "bidirectional"),
    )
    group_consumer_regex_refresh_interval_ms: int = int32(
        600_000, NODE, "How often a regular-expression subscription is resolved anew.", low=10_000, internal=True
    )
    group_coordinator_append_linger_ms: int = int32(
        -1, NODE, "How long the coordinator gathers records before it writes them; -1 adapts.", low=-1
    )
    offsets_topic_replication_factor: int = int16(3, NODE, "Replicas of the offsets topic.", low=1)
    offsets_topic_num_partitions: int = int32(
        50, NODE, "Partitions of the offsets topic; never to be changed later.", low=1
    )
    offsets_topic_segment_bytes: int = int32(104_857_600, NODE, "Segment size of the offsets topic.", low=1)
    offsets_topic_compression_codec: int = int32(
        0, NODE, "Codec of the offsets topic, by Kafka's number.", low=0, high=4
    )
    offsets_retention_minutes: int = int32(10_080, NODE, "How long an empty group's offsets are kept.", low=1)
    offsets_retention_check_interval_ms: int = int64(600_000, NODE, "How often expired offsets are looked for.", low=1)
    offsets_commit_timeout_ms: int = int32(5000, NODE, "How long a commit waits for its replicas.", low=1)
    offset_metadata_max_bytes: int = int32(4096, NODE, "The longest note a commit may carry.", low=0)
