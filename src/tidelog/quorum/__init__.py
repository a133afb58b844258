"""The quorum: Raft for the metadata log as Kafka has it (KRaft: KIP-595, KIP-630, KIP-853, KIP-996, KIP-1166)."""

from __future__ import annotations

from tidelog.quorum.batches import RecordAndVersion as RecordAndVersion
from tidelog.quorum.core import Identity as Identity
from tidelog.quorum.listener import CommittedBatch as CommittedBatch
from tidelog.quorum.listener import Listener as Listener
from tidelog.quorum.listener import LoadedSnapshot as LoadedSnapshot
from tidelog.quorum.metadata_log import DIRECTORY as DIRECTORY
from tidelog.quorum.metadata_log import TOPIC as TOPIC
from tidelog.quorum.metadata_log import TOPIC_ID as TOPIC_ID
from tidelog.quorum.quorum import Quorum as Quorum
from tidelog.quorum.requests import QUORUM_APIS as QUORUM_APIS
from tidelog.quorum.roles import RoleName as RoleName
from tidelog.quorum.settings import QuorumSettings as QuorumSettings
from tidelog.quorum.snapshot import SnapshotId as SnapshotId
from tidelog.quorum.voters import ReplicaKey as ReplicaKey
from tidelog.quorum.voters import Voter as Voter
from tidelog.quorum.voters import VoterSet as VoterSet
