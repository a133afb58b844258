"""Every setting of a node, one by one: Apache Kafka 4.3's names, types, defaults and ranges, unless a line says so.

Those of producers, transactions and groups stand in `coordinator_settings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.config.coordinator_settings import CoordinatorSettings
from tidelog.config.setting import (
    DYNAMIC,
    INT32_MAX,
    INT64_MAX,
    NODE,
    boolean,
    int32,
    int64,
    names,
    number,
    settings,
    string,
)

HOUR_MS = 3_600_000


@settings
class NodeSettings(CoordinatorSettings):
    """The lines alone; `NodeConfig` adds how they are read and what follows from them."""

    # --- who the node is ---
    node_id: int = int32(-1, NODE, "The number of this node, unique in its cluster; it has no default.", low=0)
    process_roles: tuple[str, ...] = names(
        ("broker", "controller"),
        NODE,
        "What this node does; Kafka has no default for it.",
        choices=("broker", "controller"),
    )
    broker_rack: str | None = string(
        None, NODE, "Where this broker stands; replicas are spread over racks, and readers may ask for one nearby."
    )

    # --- where it listens ---
    listeners: tuple[str, ...] = names(
        ("PLAINTEXT://:9092",), NODE, "Addresses to listen on, each NAME://host:port; an empty host is every interface."
    )
    advertised_listeners: tuple[str, ...] | None = names(
        None,
        NODE,
        "Addresses told to clients and other nodes; when not set, those of listeners, this machine's name for no host.",
    )
    controller_listener_names: tuple[str, ...] = names(
        (), NODE, "The listeners that serve the quorum and the controller; Kafka has no default for it."
    )
    inter_broker_listener_name: str | None = string(
        None, NODE, "The listener brokers use among themselves; when not set, the first that is not the controller's."
    )
    listener_security_protocol_map: str = string(
        "PLAINTEXT:PLAINTEXT",
        NODE,
        "The protocol of each listener; only PLAINTEXT is served, and a listener that is not named here is PLAINTEXT.",
        kafka_default="SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    )
    security_inter_broker_protocol: str = string(
        "PLAINTEXT", NODE, "The protocol among brokers; only PLAINTEXT is served.", choices=("PLAINTEXT",)
    )
    socket_listen_backlog_size: int = int32(
        50, NODE, "Connections the system may hold before they are accepted.", low=1
    )
    socket_send_buffer_bytes: int = int32(
        102_400, NODE, "Send buffer of a client's socket; -1 leaves it to the system."
    )
    socket_receive_buffer_bytes: int = int32(
        102_400, NODE, "Receive buffer of a client's socket; -1 leaves it to the system."
    )

    # --- what one client may take ---
    socket_request_max_bytes: int = int32(
        104_857_600, NODE, "The largest request; a larger one closes its connection.", low=1
    )
    max_connections: int = int32(
        10_000,
        DYNAMIC,
        "Client connections at the same time; a new one above it is closed.",
        low=0,
        kafka_default="2147483647",
    )
    max_connections_per_ip: int = int32(
        INT32_MAX, DYNAMIC, "Client connections from one address at the same time.", low=0
    )
    max_connections_per_ip_overrides: str = string(
        "", DYNAMIC, "Exceptions to max.connections.per.ip, as address:count with commas between them."
    )
    max_connection_creation_rate: int = int32(INT32_MAX, DYNAMIC, "Connections accepted in a second.", low=0)
    max_inflight_requests_per_connection: int = int32(
        100,
        NODE,
        "Requests of one connection taken in before the first is answered; beyond it the connection is not read.",
        low=1,
        ours=True,
    )
    max_queued_response_bytes_per_connection: int = int64(
        8_388_608,
        NODE,
        "Bytes of answers waiting for one client to take them; beyond it the connection is not read.",
        low=1,
        ours=True,
    )
    queued_max_request_bytes: int = int64(
        268_435_456,
        NODE,
        "Bytes of requests being received on all connections; beyond it no more is read. -1 is no limit.",
        kafka_default="-1",
    )
    connections_max_idle_ms: int = int64(
        600_000, NODE, "A connection without traffic for this long is closed; -1 is never."
    )
    fetch_max_bytes: int = int32(
        57_671_680,
        NODE,
        "The most a Fetch is answered with, whatever it asks; a larger first batch still comes.",
        low=1024,
    )
    max_incremental_fetch_session_cache_slots: int = int32(1000, NODE, "Fetch sessions kept (KIP-227).", low=0)
    max_request_partition_size_limit: int = int32(
        2000, NODE, "The most partitions in one answer of DescribeTopicPartitions.", low=1
    )
    request_timeout_ms: int = int32(30_000, NODE, "How long a node waits for another node's answer.")

    # --- where the data is ---
    log_dir: tuple[str, ...] = names(
        (), NODE, "Data directories, where log.dirs is not set.", kafka_default="/tmp/kafka-logs"
    )
    log_dirs: tuple[str, ...] = names((), NODE, "Data directories. One of log.dirs and log.dir must be set.")
    metadata_log_dir: str | None = string(
        None, NODE, "The directory of the metadata log; when not set, the first of the data directories."
    )
    log_dir_failure_timeout_ms: int = int64(
        30_000, NODE, "A broker that cannot report a failed directory for this long stops.", low=1
    )

    # --- topics ---
    num_partitions: int = int32(1, NODE, "Partitions of a topic that is made without saying how many.", low=1)
    default_replication_factor: int = int32(1, NODE, "Replicas of a topic that is made without saying how many.")
    auto_create_topics_enable: bool = boolean(True, NODE, "Whether asking for an unknown topic makes it.")
    delete_topic_enable: bool = boolean(True, NODE, "Whether topics can be deleted.")
    min_insync_replicas: int = int32(1, DYNAMIC, "Replicas that must have a record before acks=all is answered.", low=1)
    unclean_leader_election_enable: bool = boolean(
        False, DYNAMIC, "Whether a replica that is not in sync may lead when no other can; records can be lost."
    )
    unclean_leader_election_interval_ms: int = int64(
        300_000, NODE, "How often the controller looks for partitions to lead uncleanly.", low=1, internal=True
    )
    message_max_bytes: int = int32(1_048_588, DYNAMIC, "The largest record batch.", low=0)

    # --- segments, indexes, retention ---
    log_segment_bytes: int = int32(
        1 << 30, DYNAMIC, "Bytes at which a segment is closed and the next begins.", low=1 << 20
    )
    log_roll_ms: int | None = int64(
        None, DYNAMIC, "Age at which a segment is closed; when not set, log.roll.hours.", low=1
    )
    log_roll_hours: int = int32(168, NODE, "Age at which a segment is closed.", low=1)
    log_roll_jitter_ms: int | None = int64(
        None, DYNAMIC, "The most taken off a segment's age at random; when not set, log.roll.jitter.hours.", low=0
    )
    log_roll_jitter_hours: int = int32(0, NODE, "The most taken off a segment's age at random.", low=0)
    log_index_size_max_bytes: int = int32(
        10_485_760, DYNAMIC, "The largest index of a segment; a full one closes the segment.", low=4
    )
    log_index_interval_bytes: int = int32(4096, DYNAMIC, "Bytes of log between two index entries.", low=0)
    log_retention_ms: int | None = int64(
        None,
        DYNAMIC,
        "Age at which records are deleted, -1 for never; when not set, log.retention.minutes.",
        low=1,
        also=(-1,),
    )
    log_retention_minutes: int | None = int32(
        None, NODE, "Age at which records are deleted; when not set, log.retention.hours.", low=1, also=(-1,)
    )
    log_retention_hours: int = int32(168, NODE, "Age at which records are deleted, -1 for never.", low=1, also=(-1,))
    log_retention_bytes: int = int64(
        -1, DYNAMIC, "Size of a partition above which its oldest segments are deleted; -1 is no limit."
    )
    log_retention_check_interval_ms: int = int64(300_000, NODE, "How often old segments are looked for.", low=1)
    log_initial_task_delay_ms: int = int64(
        30_000, NODE, "How long after the start the first look for old segments is.", low=0, internal=True
    )
    log_cleanup_policy: tuple[str, ...] = names(
        ("delete",),
        DYNAMIC,
        "What is done with old records: delete them, compact them by key, or both.",
        choices=("compact", "delete"),
    )
    log_segment_delete_delay_ms: int = int64(60_000, DYNAMIC, "How long a deleted segment's files stay on disk.", low=0)
    log_preallocate: bool = boolean(False, DYNAMIC, "Whether segments are made in full size beforehand.")

    # --- records ---
    log_message_timestamp_type: str = string(
        "CreateTime",
        DYNAMIC,
        "Whether a record has the producer's time or the time of its append.",
        choices=("CreateTime", "LogAppendTime"),
    )
    log_message_timestamp_before_max_ms: int = int64(
        INT64_MAX, DYNAMIC, "How far a record's time may lie in the past.", low=0
    )
    log_message_timestamp_after_max_ms: int = int64(
        HOUR_MS, DYNAMIC, "How far a record's time may lie in the future.", low=0
    )
    log_record_validation_enable: bool = boolean(
        False, DYNAMIC, "Whether the records inside every batch are read and checked; Kafka always does.", ours=True
    )
    compression_type: str = string(
        "producer",
        DYNAMIC,
        "How batches are stored: as the producer sent them, or compressed anew.",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    )
    compression_gzip_level: int = int32(
        -1, DYNAMIC, "Level of gzip where batches are compressed anew.", low=1, high=9, also=(-1,)
    )
    compression_lz4_level: int = int32(9, DYNAMIC, "Level of lz4 where batches are compressed anew.", low=1, high=17)
    compression_zstd_level: int = int32(
        3, DYNAMIC, "Level of zstd where batches are compressed anew.", low=-131_072, high=22
    )

    # --- what is forced to disk when ---
    log_flush_interval_messages: int = int64(
        INT64_MAX, DYNAMIC, "Records of a partition after which they are forced to disk.", low=1
    )
    log_flush_interval_ms: int | None = int64(
        None,
        DYNAMIC,
        "The longest a record waits to be forced to disk; when not set, log.flush.scheduler.interval.ms.",
        low=0,
    )
    log_flush_scheduler_interval_ms: int = int64(
        INT64_MAX, NODE, "How often partitions that are due to be forced to disk are looked for.", low=0
    )
    log_flush_offset_checkpoint_interval_ms: int = int32(
        60_000, NODE, "How often the recovery points are written.", low=0
    )
    log_flush_start_offset_checkpoint_interval_ms: int = int32(
        60_000, NODE, "How often the log start offsets are written.", low=0
    )

    # --- compaction ---
    log_cleaner_enable: bool = boolean(True, NODE, "Whether compacted topics are compacted.")
    log_cleaner_threads: int = int32(1, DYNAMIC, "Compactions at the same time.", low=0)
    log_cleaner_io_max_bytes_per_second: float = number(
        1.7976931348623157e308, DYNAMIC, "The most compaction reads and writes in a second."
    )
    log_cleaner_dedupe_buffer_size: int = int64(
        134_217_728, DYNAMIC, "Memory for keys in all compactions together.", low=1_048_576
    )
    log_cleaner_io_buffer_size: int = int32(
        524_288, DYNAMIC, "Read and write buffers of all compactions together.", low=0
    )
    log_cleaner_io_buffer_load_factor: float = number(
        0.9, DYNAMIC, "How full the memory for keys may get.", low=0, high=1
    )
    log_cleaner_backoff_ms: int = int64(15_000, DYNAMIC, "How long to wait when there is nothing to compact.", low=0)
    log_cleaner_min_cleanable_ratio: float = number(
        0.5, DYNAMIC, "Share of a log that must be uncompacted before it is compacted.", low=0, high=1
    )
    log_cleaner_delete_retention_ms: int = int64(
        86_400_000, DYNAMIC, "How long a deletion marker stays in a compacted topic.", low=0
    )
    log_cleaner_min_compaction_lag_ms: int = int64(0, DYNAMIC, "How long a record is safe from compaction.", low=0)
    log_cleaner_max_compaction_lag_ms: int = int64(
        INT64_MAX, DYNAMIC, "How long a record may wait for compaction.", low=1
    )

    # --- replication ---
    replica_lag_time_max_ms: int = int64(
        30_000, NODE, "A follower that has not caught up for this long leaves the ISR.", low=1
    )
    replica_lag_max_messages: int = int64(
        -1,
        NODE,
        "A follower this many records behind leaves the ISR, -1 for never: Kafka's old rule, kept to show why it went.",
        low=1,
        also=(-1,),
        ours=True,
    )
    replica_fetch_wait_max_ms: int = int32(500, NODE, "How long a leader may hold a follower's empty fetch.", low=0)
    replica_fetch_min_bytes: int = int32(1, NODE, "Bytes a leader waits for before it answers a follower.", low=0)
    replica_fetch_max_bytes: int = int32(
        1_048_576, NODE, "Bytes a follower asks for of one partition; a larger batch still comes.", low=0
    )
    replica_fetch_response_max_bytes: int = int32(
        10_485_760, NODE, "Bytes a follower asks for in one fetch; a larger batch still comes.", low=0
    )
    replica_fetch_backoff_ms: int = int32(1000, NODE, "How long a follower waits after a failed fetch.", low=0)
    replica_socket_timeout_ms: int = int32(30_000, NODE, "How long a follower waits for a leader's answer.", low=1)
    replica_socket_receive_buffer_bytes: int = int32(
        65_536, NODE, "Receive buffer of a follower's socket; -1 leaves it to the system."
    )
    replica_high_watermark_checkpoint_interval_ms: int = int64(
        5000, NODE, "How often high watermarks are written.", low=1
    )
    replica_selector_class: str | None = string(
        None,
        NODE,
        "How a reader's replica is chosen: not set for the leader, or Kafka's class name of RackAwareReplicaSelector.",
        choices=(
            "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "org.apache.kafka.common.replica.LeaderSelector",
        ),
    )
    leader_replication_throttled_rate: int = int64(
        INT64_MAX, DYNAMIC, "Bytes a second a leader sends for throttled replicas.", low=0
    )
    follower_replication_throttled_rate: int = int64(
        INT64_MAX, DYNAMIC, "Bytes a second a follower takes for throttled replicas.", low=0
    )
    replication_quota_window_num: int = int32(
        11, NODE, "Windows over which the bytes of throttled replicas are counted.", low=1
    )
    replication_quota_window_size_seconds: int = int32(1, NODE, "Length of each of these windows.", low=1)
    replica_alter_log_dirs_io_max_bytes_per_second: int = int64(
        INT64_MAX, DYNAMIC, "Bytes a second for moving replicas between directories.", low=0
    )

    # --- brokers and the controller ---
    broker_heartbeat_interval_ms: int = int32(2000, NODE, "How often a broker reports to the controller.", low=1)
    broker_session_timeout_ms: int = int32(9000, NODE, "A broker silent for this long is fenced.", low=1)
    broker_connection_loss_fencing_enable: bool = boolean(
        True,
        NODE,
        "Whether a broker whose connection to the controller breaks is fenced before its session ends.",
        ours=True,
    )
    broker_connection_loss_grace_ms: int = int32(
        200, NODE, "How long a broker whose connection broke has to come back before it is fenced.", low=0, ours=True
    )
    replication_events_enable: bool = boolean(
        True,
        NODE,
        "Whether elections, ISR changes, truncations and positions are written to the topic __replication_events.",
        ours=True,
    )
    replication_events_buffer_max_records: int = int32(
        10_000, NODE, "Events that may wait to be written; further ones are dropped and counted.", low=1, ours=True
    )
    peer_address_overrides: tuple[str, ...] = names(
        (),
        NODE,
        "Other addresses to reach nodes at, each host:port=host:port; for tests and tidelog chaos, which cuts them.",
        ours=True,
    )
    initial_broker_registration_timeout_ms: int = int32(
        60_000, NODE, "A broker that cannot register for this long stops.", low=1
    )
    controlled_shutdown_enable: bool = boolean(
        True, NODE, "Whether a broker hands its leaderships over before it stops."
    )
    controller_socket_timeout_ms: int = int32(
        30_000, NODE, "How long a broker waits for the controller's answer.", low=1
    )
    auto_leader_rebalance_enable: bool = boolean(
        True, NODE, "Whether leaderships go back to the first replica of each partition."
    )
    leader_imbalance_check_interval_seconds: int = int64(300, NODE, "How often leaderships are looked at.", low=1)

    # --- the quorum and its log ---
    controller_quorum_voters: tuple[str, ...] = names(
        (), NODE, "The voters, each id@host:port, where they never change."
    )
    controller_quorum_bootstrap_servers: tuple[str, ...] = names(
        (), NODE, "Addresses to find the quorum by, where voters can change (KIP-853)."
    )
    controller_quorum_auto_join_enable: bool = boolean(
        False, NODE, "Whether a controller that is no voter asks to become one."
    )
    controller_quorum_election_timeout_ms: int = int32(1000, NODE, "How long a candidate waits for votes.", low=0)
    controller_quorum_election_backoff_max_ms: int = int32(1000, NODE, "Longest wait between two elections.", low=0)
    controller_quorum_fetch_timeout_ms: int = int32(
        2000, NODE, "A voter that cannot fetch from its leader for this long asks for an election.", low=0
    )
    controller_quorum_request_timeout_ms: int = int32(2000, NODE, "How long a voter waits for another's answer.", low=0)
    controller_quorum_retry_backoff_ms: int = int32(
        20, NODE, "Wait before a failed request to the quorum is sent again.", low=0
    )
    controller_quorum_append_linger_ms: int = int32(
        25, NODE, "How long the leader gathers metadata records before it forces them to disk.", low=0
    )
    controller_quorum_fetch_max_bytes: int = int32(1_048_576, NODE, "Bytes of the metadata log in one fetch.", low=1)
    controller_quorum_fetch_snapshot_max_bytes: int = int32(1_048_576, NODE, "Bytes of a snapshot in one fetch.", low=1)
    metadata_log_segment_bytes: int = int32(1 << 30, NODE, "Segment size of the metadata log.", low=8_388_608)
    metadata_log_segment_ms: int = int64(
        604_800_000, NODE, "Age at which a segment of the metadata log is closed.", low=1
    )
    metadata_log_max_record_bytes_between_snapshots: int = int64(
        20_971_520, NODE, "Bytes of metadata records after which a snapshot is taken.", low=1
    )
    metadata_log_max_snapshot_interval_ms: int = int64(
        HOUR_MS, NODE, "Time after which a snapshot is taken; 0 for never.", low=0
    )
    metadata_max_retention_bytes: int = int64(
        104_857_600, NODE, "Size of the metadata log above which what a snapshot holds is deleted."
    )
    metadata_max_retention_ms: int = int64(
        604_800_000, NODE, "Age of the metadata log above which what a snapshot holds is deleted."
    )
    metadata_max_idle_interval_ms: int = int32(
        500, NODE, "How often an idle leader of the quorum writes a record; 0 for never.", low=0
    )

    # --- not settings ---
    EXTRA_ATTRIBUTES = ("given",)
    given: Mapping[str, str] = {}
    """The properties it was made from, by Kafka's names: what DescribeConfigs calls static."""
