"""Every API, written by tools/generate_messages.py: change that, not this."""

from __future__ import annotations

from enum import IntEnum


class ApiKey(IntEnum):
    """The number of a request, as it stands in its header."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    ASSIGN_REPLICAS_TO_DIRS = 73
    DESCRIBE_TOPIC_PARTITIONS = 75
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82


API_TABLE: dict[int, tuple[str, str, int, int, int, int, tuple[str, ...]]] = {
    0: ("Produce", "produce", 3, 13, 9, 9, ("broker",)),
    1: (
        "Fetch",
        "fetch",
        4,
        18,
        12,
        12,
        (
            "broker",
            "controller",
        ),
    ),
    2: ("ListOffsets", "list_offsets", 1, 11, 6, 6, ("broker",)),
    3: ("Metadata", "metadata", 0, 13, 9, 9, ("broker",)),
    8: ("OffsetCommit", "offset_commit", 2, 10, 8, 8, ("broker",)),
    9: ("OffsetFetch", "offset_fetch", 1, 10, 6, 6, ("broker",)),
    10: ("FindCoordinator", "find_coordinator", 0, 6, 3, 3, ("broker",)),
    11: ("JoinGroup", "join_group", 0, 9, 6, 6, ("broker",)),
    12: ("Heartbeat", "heartbeat", 0, 4, 4, 4, ("broker",)),
    13: ("LeaveGroup", "leave_group", 0, 5, 4, 4, ("broker",)),
    14: ("SyncGroup", "sync_group", 0, 5, 4, 4, ("broker",)),
    15: ("DescribeGroups", "describe_groups", 0, 6, 5, 5, ("broker",)),
    16: ("ListGroups", "list_groups", 0, 5, 3, 3, ("broker",)),
    18: (
        "ApiVersions",
        "api_versions",
        0,
        4,
        3,
        3,
        (
            "broker",
            "controller",
        ),
    ),
    19: (
        "CreateTopics",
        "create_topics",
        2,
        7,
        5,
        5,
        (
            "broker",
            "controller",
        ),
    ),
    20: (
        "DeleteTopics",
        "delete_topics",
        1,
        6,
        4,
        4,
        (
            "broker",
            "controller",
        ),
    ),
    21: ("DeleteRecords", "delete_records", 0, 2, 2, 2, ("broker",)),
    22: ("InitProducerId", "init_producer_id", 0, 5, 2, 2, ("broker",)),
    23: ("OffsetForLeaderEpoch", "offset_for_leader_epoch", 2, 4, 4, 4, ("broker",)),
    24: ("AddPartitionsToTxn", "add_partitions_to_txn", 0, 5, 3, 3, ("broker",)),
    25: ("AddOffsetsToTxn", "add_offsets_to_txn", 0, 4, 3, 3, ("broker",)),
    26: ("EndTxn", "end_txn", 0, 5, 3, 3, ("broker",)),
    27: ("WriteTxnMarkers", "write_txn_markers", 1, 2, 1, 1, ("broker",)),
    28: ("TxnOffsetCommit", "txn_offset_commit", 0, 5, 3, 3, ("broker",)),
    32: (
        "DescribeConfigs",
        "describe_configs",
        1,
        4,
        4,
        4,
        (
            "broker",
            "controller",
        ),
    ),
    33: (
        "AlterConfigs",
        "alter_configs",
        0,
        2,
        2,
        2,
        (
            "broker",
            "controller",
        ),
    ),
    34: ("AlterReplicaLogDirs", "alter_replica_log_dirs", 1, 2, 2, 2, ("broker",)),
    35: ("DescribeLogDirs", "describe_log_dirs", 1, 5, 2, 2, ("broker",)),
    37: (
        "CreatePartitions",
        "create_partitions",
        0,
        3,
        2,
        2,
        (
            "broker",
            "controller",
        ),
    ),
    42: ("DeleteGroups", "delete_groups", 0, 2, 2, 2, ("broker",)),
    43: (
        "ElectLeaders",
        "elect_leaders",
        0,
        2,
        2,
        2,
        (
            "broker",
            "controller",
        ),
    ),
    44: (
        "IncrementalAlterConfigs",
        "incremental_alter_configs",
        0,
        1,
        1,
        1,
        (
            "broker",
            "controller",
        ),
    ),
    45: (
        "AlterPartitionReassignments",
        "alter_partition_reassignments",
        0,
        1,
        0,
        0,
        (
            "broker",
            "controller",
        ),
    ),
    46: (
        "ListPartitionReassignments",
        "list_partition_reassignments",
        0,
        0,
        0,
        0,
        (
            "broker",
            "controller",
        ),
    ),
    47: ("OffsetDelete", "offset_delete", 0, 0, 32767, 32767, ("broker",)),
    52: ("Vote", "vote", 0, 2, 0, 0, ("controller",)),
    53: ("BeginQuorumEpoch", "begin_quorum_epoch", 0, 1, 1, 1, ("controller",)),
    54: ("EndQuorumEpoch", "end_quorum_epoch", 0, 1, 1, 1, ("controller",)),
    55: (
        "DescribeQuorum",
        "describe_quorum",
        0,
        2,
        0,
        0,
        (
            "broker",
            "controller",
        ),
    ),
    56: ("AlterPartition", "alter_partition", 2, 3, 0, 0, ("controller",)),
    57: (
        "UpdateFeatures",
        "update_features",
        0,
        2,
        0,
        0,
        (
            "broker",
            "controller",
        ),
    ),
    58: ("Envelope", "envelope", 0, 0, 0, 0, ("controller",)),
    59: ("FetchSnapshot", "fetch_snapshot", 0, 1, 0, 0, ("controller",)),
    60: (
        "DescribeCluster",
        "describe_cluster",
        0,
        2,
        0,
        0,
        (
            "broker",
            "controller",
        ),
    ),
    61: ("DescribeProducers", "describe_producers", 0, 0, 0, 0, ("broker",)),
    62: ("BrokerRegistration", "broker_registration", 0, 4, 0, 0, ("controller",)),
    63: ("BrokerHeartbeat", "broker_heartbeat", 0, 2, 0, 0, ("controller",)),
    64: (
        "UnregisterBroker",
        "unregister_broker",
        0,
        0,
        0,
        0,
        (
            "broker",
            "controller",
        ),
    ),
    65: ("DescribeTransactions", "describe_transactions", 0, 0, 0, 0, ("broker",)),
    66: ("ListTransactions", "list_transactions", 0, 2, 0, 0, ("broker",)),
    67: ("AllocateProducerIds", "allocate_producer_ids", 0, 0, 0, 0, ("controller",)),
    68: ("ConsumerGroupHeartbeat", "consumer_group_heartbeat", 0, 1, 0, 0, ("broker",)),
    69: ("ConsumerGroupDescribe", "consumer_group_describe", 0, 1, 0, 0, ("broker",)),
    70: ("ControllerRegistration", "controller_registration", 0, 0, 0, 0, ("controller",)),
    73: ("AssignReplicasToDirs", "assign_replicas_to_dirs", 0, 0, 0, 0, ("controller",)),
    75: ("DescribeTopicPartitions", "describe_topic_partitions", 0, 0, 0, 0, ("broker",)),
    80: (
        "AddRaftVoter",
        "add_raft_voter",
        0,
        1,
        0,
        0,
        (
            "broker",
            "controller",
        ),
    ),
    81: (
        "RemoveRaftVoter",
        "remove_raft_voter",
        0,
        0,
        0,
        0,
        (
            "broker",
            "controller",
        ),
    ),
    82: ("UpdateRaftVoter", "update_raft_voter", 0, 0, 0, 0, ("controller",)),
}
"""Name, module, first and last stable version, first flexible one of each, listeners."""
