"""Checkers of simulated histories, one small class an invariant, each named after what it protects."""

from __future__ import annotations

from tidelog.sim.checkers.base import Checker, History, Violation
from tidelog.sim.checkers.cleaning import CleanedLogsStayInOrder, LastValuesStay
from tidelog.sim.checkers.clients import (
    AcknowledgedRecordsStay,
    ConsumersSeeWhatIsCommitted,
    EpochsAreFenced,
    IdempotentLogsHaveNoDuplicate,
    LatestOffsetsNeverGoBack,
    ReadRecordsStay,
)
from tidelog.sim.checkers.decisions import DecisionsFollowTheRules, LostBytesAreNotTrusted
from tidelog.sim.checkers.directories import FailedDirectoriesAreLeft
from tidelog.sim.checkers.eligible import EligibleHaveWhatIsCommitted
from tidelog.sim.checkers.groups import (
    DeletedGroupsStayGone,
    GroupsPassNothingOver,
    OffsetCommitsStay,
    OneOwnerAPartition,
    StaticMembersKeepTheirPlace,
)
from tidelog.sim.checkers.joining import JoinersHaveCaughtUp, LeadersCountOnTheIsr, ProposalsAreForThePresent
from tidelog.sim.checkers.metadata import (
    CommittedMetadataStays,
    EpochsOnlyGrow,
    ImagesConverge,
    LeaderIsInSync,
    OneQuorumLeaderAnEpoch,
    SnapshotsEqualReplay,
)
from tidelog.sim.checkers.nodes import AnswersAreWhole, NodesGoOn
from tidelog.sim.checkers.replicas import (
    CommittedRecordsStay,
    NewReplicasAreEmpty,
    OneLeaderAnEpoch,
    ReplicasAreIdentical,
    WatermarkNeverGoesBack,
    WatermarkWaitsForMinIsr,
    WatermarkWithinInSyncLogs,
)
from tidelog.sim.checkers.story import EventsTellWhatHappened
from tidelog.sim.checkers.transactions import (
    AtomicVisibility,
    ExactlyOnceTransform,
    LastStableOffsetWaits,
    MarkersFollowDecisions,
    NoAbortedRead,
    NoDirtyRead,
    ZombiesFenced,
)
from tidelog.sim.checkers.votes import VotesAreDurable

ALL: tuple[type[Checker], ...] = (
    NodesGoOn,
    AnswersAreWhole,
    OneLeaderAnEpoch,
    WatermarkWithinInSyncLogs,
    WatermarkWaitsForMinIsr,
    WatermarkNeverGoesBack,
    NewReplicasAreEmpty,
    CommittedRecordsStay,
    LeaderIsInSync,
    EpochsOnlyGrow,
    OneQuorumLeaderAnEpoch,
    VotesAreDurable,
    CommittedMetadataStays,
    DecisionsFollowTheRules,
    LostBytesAreNotTrusted,
    EligibleHaveWhatIsCommitted,
    FailedDirectoriesAreLeft,
    JoinersHaveCaughtUp,
    ProposalsAreForThePresent,
    LeadersCountOnTheIsr,
    SnapshotsEqualReplay,
    EventsTellWhatHappened,
    ImagesConverge,
    ReplicasAreIdentical,
    AcknowledgedRecordsStay,
    ReadRecordsStay,
    ConsumersSeeWhatIsCommitted,
    EpochsAreFenced,
    LatestOffsetsNeverGoBack,
    IdempotentLogsHaveNoDuplicate,
    MarkersFollowDecisions,
    LastStableOffsetWaits,
    ZombiesFenced,
    NoAbortedRead,
    NoDirtyRead,
    AtomicVisibility,
    ExactlyOnceTransform,
    OffsetCommitsStay,
    OneOwnerAPartition,
    StaticMembersKeepTheirPlace,
    DeletedGroupsStayGone,
    GroupsPassNothingOver,
    LastValuesStay,
    CleanedLogsStayInOrder,
)
"""Every checker, in the order they look."""

__all__ = ["ALL", "Checker", "History", "Violation"]
