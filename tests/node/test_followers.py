"""What a leader concludes from the fetches of its followers, also from those that come late."""

from __future__ import annotations

from typing import Any

from tests.node.support import TOPIC, OneNode, partitions_of
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState

EPOCH, LIFE = 9, 7


class Leader:
    """Leads both partitions of a topic; 2 and 3 follow it, and are in sync."""

    def __init__(self) -> None:
        self.node = OneNode(1, 2, replication_events_enable="false")
        self.core = self.node.process(1).node
        self.core.replicas.surroundings.is_eligible = lambda _id, _epoch: True
        self.core.replicas.propose_isr = lambda _partition, _isr, _reason: None
        self.partition, self.other = (self.core.replicas.partitions[TOPIC, index] for index in (0, 1))
        for one in (self.partition, self.other):
            one.become_leader(EPOCH, 9, [1, 2, 3], [1, 2, 3])
        self._connections = {follower: self.node.world.connect(1) for follower in (2, 3)}

    def write(self) -> None:
        batch = memoryview(bytearray(self.node.batch(b"0")))
        self.partition.append(batch, self.core.outbox.now_ms)
        self.core.replicas.appended(self.partition, len(batch))

    def fetch(
        self,
        follower: int,
        session: tuple[int, int],
        offsets: dict[int, int] | None = None,
        *,
        forgotten: tuple[int, ...] = (),
        life: int = LIFE,
    ) -> Any:
        """One fetch of a follower, and its answer."""
        topic_id = self.partition.topic_id
        named = [
            FetchPartition(
                partition=index,
                fetch_offset=offset,
                current_leader_epoch=EPOCH,
                last_fetched_epoch=-1,
                log_start_offset=0,
                partition_max_bytes=1 << 20,
            )
            for index, offset in (offsets or {}).items()
        ]
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=follower, replica_epoch=life),
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=session[0],
            session_epoch=session[1],
            topics=[FetchTopic(topic=TOPIC, topic_id=topic_id, partitions=named)] if named else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=topic_id, partitions=list(forgotten))] if forgotten else [],
        )
        answers: list[Any] = []
        self.node.world.request(self._connections[follower], ApiKey.FETCH, 17, request, answers.append)
        self.node.world.run_for(20)
        return answers[0]

    def position_of(self, follower: int) -> int:
        assert self.partition.leadership is not None
        return self.partition.leadership.followers[follower].log_end_offset


def test_who_no_longer_follows_a_partition_is_not_waited_for_because_it_follows_another() -> None:
    """The disk of that replica failed, an hour ago: the next record waited for it as for one that is about to join."""
    leader = Leader()
    second = leader.fetch(2, (0, 0), {0: 0, 1: 0}).session_id
    third = leader.fetch(3, (0, 0), {0: 0, 1: 0}).session_id
    leader.fetch(2, (second, 1), forgotten=(0,))
    leader.partition.become_leader(EPOCH, 10, [1, 2, 3], [1, 3])
    leader.core.outbox.now_ms += 3_600_000
    leader.node.world.now_ms = leader.core.outbox.now_ms
    leader.fetch(2, (second, 2))
    leader.write()
    leader.fetch(3, (third, 1), {0: 1})
    assert leader.partition.high_watermark == 1


def test_a_fetch_that_comes_late_counts_only_until_the_follower_is_heard_again() -> None:
    """It had given that fetch up with its connection, and opened another session, which names only what changes: the
    leader believed the late one for ever, dropped the follower, and refused to write with too few in sync."""
    leader = Leader()
    given_up = leader.fetch(2, (0, 0), {0: 0}).session_id
    leader.write()
    session = leader.fetch(2, (0, 0), {0: 0}).session_id
    leader.fetch(2, (session, 1), {0: 1})
    assert leader.position_of(2) == 1
    leader.fetch(2, (given_up, 1), {0: 0})
    assert leader.position_of(2) == 0
    leader.fetch(2, (session, 2))
    assert leader.position_of(2) == 1
    leader.fetch(2, (given_up, 2), forgotten=(0,))
    leader.fetch(2, (session, 3))
    assert leader.position_of(2) == 1


def test_a_fetch_of_a_brokers_former_life_counts_for_nothing() -> None:
    """A process that was cut off and replaced has what its successor may lack: counted for it, that would be committed
    without anybody to lead with it (KIP-903)."""
    leader = Leader()
    leader.partition.become_leader(EPOCH, 10, [1, 2], [1, 2])
    leader.core.epoch_of_broker = {2: 20, 3: -1}.__getitem__  # type: ignore[method-assign]
    leader.write()
    session = leader.fetch(2, (0, 0), {0: 0}, life=20).session_id
    late = leader.fetch(2, (0, 0), {0: 1}, life=10)
    assert partitions_of(late)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (leader.position_of(2), leader.partition.high_watermark) == (0, 0)
    leader.fetch(2, (session, 1), {0: 1}, life=20)
    assert (leader.position_of(2), leader.partition.high_watermark) == (1, 1)
