"""Every stored record's number, written by tools/generate_messages.py: change that, not this."""

from __future__ import annotations

METADATA_RECORDS: dict[int, tuple[str, str]] = {
    0: ("register_broker_record", "RegisterBrokerRecord"),
    1: ("unregister_broker_record", "UnregisterBrokerRecord"),
    2: ("topic_record", "TopicRecord"),
    3: ("partition_record", "PartitionRecord"),
    4: ("config_record", "ConfigRecord"),
    5: ("partition_change_record", "PartitionChangeRecord"),
    7: ("fence_broker_record", "FenceBrokerRecord"),
    8: ("unfence_broker_record", "UnfenceBrokerRecord"),
    9: ("remove_topic_record", "RemoveTopicRecord"),
    10: ("delegation_token_record", "DelegationTokenRecord"),
    11: ("user_scram_credential_record", "UserScramCredentialRecord"),
    12: ("feature_level_record", "FeatureLevelRecord"),
    14: ("client_quota_record", "ClientQuotaRecord"),
    15: ("producer_ids_record", "ProducerIdsRecord"),
    17: ("broker_registration_change_record", "BrokerRegistrationChangeRecord"),
    18: ("access_control_entry_record", "AccessControlEntryRecord"),
    19: ("remove_access_control_entry_record", "RemoveAccessControlEntryRecord"),
    20: ("no_op_record", "NoOpRecord"),
    21: ("zk_migration_state_record", "ZkMigrationStateRecord"),
    22: ("remove_user_scram_credential_record", "RemoveUserScramCredentialRecord"),
    23: ("begin_transaction_record", "BeginTransactionRecord"),
    24: ("end_transaction_record", "EndTransactionRecord"),
    25: ("abort_transaction_record", "AbortTransactionRecord"),
    26: ("remove_delegation_token_record", "RemoveDelegationTokenRecord"),
    27: ("register_controller_record", "RegisterControllerRecord"),
    28: ("clear_elr_record", "ClearElrRecord"),
}
"""Record type of `__cluster_metadata`: module in wire.records, class."""

GROUP_RECORDS: dict[int, tuple[str, str, str]] = {
    0: ("legacy_offset_commit", "LegacyOffsetCommitKey", "LegacyOffsetCommitValue"),
    1: ("offset_commit", "OffsetCommitKey", "OffsetCommitValue"),
    2: ("group_metadata", "GroupMetadataKey", "GroupMetadataValue"),
    3: ("consumer_group_metadata", "ConsumerGroupMetadataKey", "ConsumerGroupMetadataValue"),
    4: (
        "consumer_group_partition_metadata",
        "ConsumerGroupPartitionMetadataKey",
        "ConsumerGroupPartitionMetadataValue",
    ),
    5: ("consumer_group_member_metadata", "ConsumerGroupMemberMetadataKey", "ConsumerGroupMemberMetadataValue"),
    6: (
        "consumer_group_target_assignment_metadata",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupTargetAssignmentMetadataValue",
    ),
    7: (
        "consumer_group_target_assignment_member",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupTargetAssignmentMemberValue",
    ),
    8: (
        "consumer_group_current_member_assignment",
        "ConsumerGroupCurrentMemberAssignmentKey",
        "ConsumerGroupCurrentMemberAssignmentValue",
    ),
    16: (
        "consumer_group_regular_expression",
        "ConsumerGroupRegularExpressionKey",
        "ConsumerGroupRegularExpressionValue",
    ),
}
"""Record type of `__consumer_offsets` (the number before its key): module, key and value class."""

TRANSACTION_RECORDS: dict[int, tuple[str, str, str]] = {
    0: ("transaction_log", "TransactionLogKey", "TransactionLogValue"),
}
"""Record type of `__transaction_state` (the number before its key): module, key and value class."""
