"""One replica of the quorum that decides on the cluster's metadata: the whole of it behind one class.

    requests of other replicas  -> handle(request)            start(), append(records), write_snapshot(…), resign(…)
    the listener of this node   <- on_committed, on_snapshot_loaded, on_leader_change, on_activated, on_resigned

All else (answers, requests, flushes, timers) goes through the node's Outbox. A StorageError out of any method means
that the metadata directory failed: the node has to halt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tidelog.events import Request
from tidelog.outbox import Outbox
from tidelog.quorum.batches import RecordAndVersion
from tidelog.quorum.core import Core, Identity
from tidelog.quorum.describe import handle_describe
from tidelog.quorum.elections import Elections
from tidelog.quorum.fetches import Fetches
from tidelog.quorum.following import Following
from tidelog.quorum.joining import Joining
from tidelog.quorum.leadership import Leadership
from tidelog.quorum.listener import Listener
from tidelog.quorum.membership import Membership
from tidelog.quorum.roles import RoleName
from tidelog.quorum.settings import QuorumSettings
from tidelog.quorum.snapshot import SnapshotId
from tidelog.quorum.snapshots import Snapshots
from tidelog.quorum.voters import Peer, VoterSet
from tidelog.storage import Storage
from tidelog.wire.api_table import ApiKey
from tidelog.wire.batch import BatchHeader


class Quorum:
    """A replica of `__cluster_metadata-0`: voter or observer, leader or follower."""

    def __init__(
        self,
        outbox: Outbox,
        storage: Storage,
        listener: Listener,
        identity: Identity,
        settings: QuorumSettings | None = None,
    ) -> None:
        """Open the log; nothing is said or done before `start`. `storage` is the metadata directory."""
        self._has_started = False
        self._core = Core(outbox, storage, listener, identity, settings or QuorumSettings())
        self._leadership = Leadership(self._core)
        self._elections = Elections(self._core, self._leadership.lead)
        following = Following(self._core, self._elections)
        Joining(self._core)
        fetches = Fetches(self._core, self._leadership)
        membership = Membership(self._core, self._leadership)
        self._snapshots = Snapshots(self._core)
        self._handlers: dict[int, Callable[[Request], None]] = {
            ApiKey.FETCH: fetches.handle_fetch,
            ApiKey.FETCH_SNAPSHOT: fetches.handle_fetch_snapshot,
            ApiKey.VOTE: self._elections.handle_vote,
            ApiKey.BEGIN_QUORUM_EPOCH: following.handle_begin,
            ApiKey.END_QUORUM_EPOCH: following.handle_end,
            ApiKey.DESCRIBE_QUORUM: lambda request: handle_describe(self._core, self._leadership, request),
            ApiKey.ADD_RAFT_VOTER: membership.handle_add,
            ApiKey.REMOVE_RAFT_VOTER: membership.handle_remove,
            ApiKey.UPDATE_RAFT_VOTER: membership.handle_update,
        }

    # --- life ---

    def start(self) -> None:
        """Begin: tell the listener the newest snapshot, then follow, wait for an election, or, alone, lead."""
        core = self._core
        self._has_started = True
        if core.log.lost_records:
            alone = core.voters.is_only_voter(core.identity.key)
            core.outbox.tell(
                "quorum-records-lost", "error", had=core.log.mark.offset, end_offset=core.log.end_offset, alone=alone
            )
            if alone:  # nobody has them any more: waiting would not bring them back
                core.log.has_all_again()
            else:
                core.log.mark.flush(lambda: None)  # so that the next start knows it too
        core.commits.tell()
        core.begin()
        if core.voters.is_only_voter(core.identity.key):
            self._elections.elect_alone()
        else:
            core.when_durable(self._elections.started)
        self._snapshots.start()

    def handle(self, request: Request) -> None:
        """Answer a request of `requests.QUORUM_APIS`; a Fetch has to be one of the metadata log.

        One that comes before `start` finds nobody here: a role that was taken by it would be lost to the first one.
        """
        if not self._has_started:
            self._core.outbox.close(request.connection_id, "this replica of the quorum has not started yet")
            return
        self._handlers[request.api_key](request)

    def resign(self, then: Callable[[], None]) -> None:
        """A clean stop: hold no more elections, hand leadership over, then continue.

        `then` is called once: at once where this replica does not lead or is alone, else when the other voters know,
        at the latest after twice the election timeout.
        """
        self._core.stopping = True
        self._leadership.resign(then)

    def close(self) -> None:
        """Close the log's files; nothing may be called after."""
        self._core.failed = True
        self._core.role.cancel_timers()
        self._core.log.close()

    def leader_connection_lost(self) -> None:
        """The connection to the leader broke: a voter soon asks the others whether they still hear it (a pre-vote)."""
        self._elections.leader_connection_lost()

    # --- the leader's records ---

    def append(self, records: Sequence[RecordAndVersion]) -> int:
        """Append (record, version) pairs together, leader only; the offset of the last. Committed when told so.

        All appends of a step go out in one batch and one flush. NOT_CONTROLLER where this replica does not lead,
        RECORD_LIST_TOO_LARGE beyond 8 MiB at once.
        """
        return self._leadership.append(records)

    def write_snapshot(
        self,
        records: Iterable[RecordAndVersion],
        end_offset: int,
        *,
        last_timestamp_ms: int | None = None,
        then: Callable[[SnapshotId | None], None] | None = None,
    ) -> SnapshotId | None:
        """Write what the listener was told before `end_offset` as a snapshot, over several steps, and clean up after.

        `records` is read on as the steps go, so it must not change under way. `last_timestamp_ms` is that of the last
        batch covered. None when a snapshot is being written, or one that goes as far exists.
        """
        return self._snapshots.write(records, end_offset, last_timestamp_ms, then)

    # --- what it knows ---

    @property
    def epoch(self) -> int:
        """The epoch of this replica."""
        return self._core.epoch

    @property
    def leader_id(self) -> int | None:
        """The leader of this epoch as far as this replica knows."""
        return self._core.leader_id

    @property
    def leader_peer(self) -> Peer | None:
        """Id, host and port of that leader."""
        return self._core.leader_peer()

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads; it serves only after `on_activated`."""
        return self._leadership.leader is not None

    @property
    def role(self) -> RoleName:
        """What this replica is in the quorum now."""
        return self._core.role.name

    @property
    def is_voter(self) -> bool:
        """Whether this replica is in the voter set."""
        return self._core.is_voter

    @property
    def voters(self) -> VoterSet:
        """The voter set in force."""
        return self._core.voters

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version in force."""
        return self._core.log.history.kraft_version

    @property
    def high_watermark(self) -> int:
        """All below is committed, as far as this replica knows."""
        return self._core.commits.high_watermark

    @property
    def log_start_offset(self) -> int:
        """The first offset the log still has."""
        return self._core.log.start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self._core.log.end_offset

    def batches(self, offset: int, end_offset: int) -> Iterator[BatchHeader]:
        """The batches of the log from one offset up to another, for who looks on."""
        return self._core.log.batches(offset, end_offset)

    @property
    def next_offset(self) -> int:
        """The offset that the next appended record will have: `append` gathers what comes in one step."""
        leader = self._leadership.leader
        return leader.pending_end_offset if leader is not None and leader.pending else self.log_end_offset

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The newest snapshot."""
        return self._core.log.latest_snapshot
