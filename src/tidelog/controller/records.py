"""The metadata records, gathered: what a `MetadataImage` is built from and what a decision consists of."""

from __future__ import annotations

from tidelog.wire.message import Message
from tidelog.wire.records.abort_transaction_record import AbortTransactionRecord
from tidelog.wire.records.access_control_entry_record import AccessControlEntryRecord
from tidelog.wire.records.begin_transaction_record import BeginTransactionRecord
from tidelog.wire.records.broker_registration_change_record import BrokerRegistrationChangeRecord
from tidelog.wire.records.clear_elr_record import ClearElrRecord
from tidelog.wire.records.client_quota_record import ClientQuotaRecord, EntityData
from tidelog.wire.records.config_record import ConfigRecord
from tidelog.wire.records.delegation_token_record import DelegationTokenRecord
from tidelog.wire.records.end_transaction_record import EndTransactionRecord
from tidelog.wire.records.feature_level_record import FeatureLevelRecord
from tidelog.wire.records.fence_broker_record import FenceBrokerRecord
from tidelog.wire.records.no_op_record import NoOpRecord
from tidelog.wire.records.partition_change_record import PartitionChangeRecord
from tidelog.wire.records.partition_record import PartitionRecord
from tidelog.wire.records.producer_ids_record import ProducerIdsRecord
from tidelog.wire.records.register_broker_record import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from tidelog.wire.records.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from tidelog.wire.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from tidelog.wire.records.remove_delegation_token_record import RemoveDelegationTokenRecord
from tidelog.wire.records.remove_topic_record import RemoveTopicRecord
from tidelog.wire.records.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from tidelog.wire.records.topic_record import TopicRecord
from tidelog.wire.records.unfence_broker_record import UnfenceBrokerRecord
from tidelog.wire.records.unregister_broker_record import UnregisterBrokerRecord
from tidelog.wire.records.user_scram_credential_record import UserScramCredentialRecord
from tidelog.wire.records.zk_migration_state_record import ZkMigrationStateRecord

Record = Message
VersionedRecord = tuple[Message, int]
"""A record and the version it is written in."""

__all__ = [
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerEndpoint",
    "BrokerFeature",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "ControllerEndpoint",
    "ControllerFeature",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "EntityData",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "Record",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UserScramCredentialRecord",
    "VersionedRecord",
    "ZkMigrationStateRecord",
]
