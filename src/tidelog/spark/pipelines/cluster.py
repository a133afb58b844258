"""What a pipeline asks a cluster itself: whether topics are there, where they end, which epochs they had."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidelog.errors import ErrorCode, KafkaError
from tidelog.spark.pipelines.declaration import nearest
from tidelog.spark.pipelines.failures import PipelineError

if TYPE_CHECKING:
    from tidelog.client.client import Client, TopicPartition

REACH_MS = 10_000
"""How long the first broker is waited for: a job that cannot begin should say so soon."""
SETTLE_MS = 60_000
"""How long transactions that are open are waited for, where all that is in the log must be seen."""


def connect(bootstrap: str) -> Client:
    """A client that has met the cluster; PipelineError says which brokers did not answer, why, and for how long."""
    from tidelog.client.client import Client

    client = Client(bootstrap, client_id="tidelog-pipeline", bootstrap_timeout_ms=REACH_MS)
    try:
        client.refresh(None)
    except KafkaError as error:
        client.close()
        raise PipelineError(f"no broker of {bootstrap} could be reached for {REACH_MS // 1000} s: {error}") from None
    return client


def topics_named(client: Client, names: Sequence[str]) -> list[str]:
    """The topics, each of which must be there; PipelineError with the nearest name for one that is not."""
    known = [name for name in client.metadata.topics if not name.startswith("__")]
    for name in names:
        try:
            client.topic(name)
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            listed = nearest(name, known) or (f"; there are {', '.join(sorted(known)[:10])}" if known else "")
            raise PipelineError(f"there is no topic {name!r}{listed}") from None
    return list(names)


def topics_matching(client: Client, pattern: str) -> list[str]:
    """The topics whose whole name fits a pattern now."""
    client.refresh(None)
    return sorted(name for name in client.metadata.topics if re.fullmatch(pattern, name))


def ends_of(
    client: Client, topics: Iterable[str], *, earliest: bool = False, read_committed: bool = False
) -> dict[TopicPartition, int]:
    """Where each partition ends (or begins) for a consumer."""
    from tidelog.client.offsets import EARLIEST, LATEST, list_offsets

    wanted = {
        (topic, partition): EARLIEST if earliest else LATEST
        for topic in topics
        for partition in client.topic(topic).partitions
    }
    found = list_offsets(client, wanted, read_committed=read_committed) if wanted else {}
    return {where: each.offset for where, each in found.items()}


def wait_until_settled(client: Client, topics: Sequence[str]) -> None:
    """Until readers of committed records see all that is there now; PipelineError when a transaction stays open."""
    from tidelog.client.backoff import Deadline

    ends = ends_of(client, topics)
    deadline = Deadline(SETTLE_MS)
    while True:
        stable = ends_of(client, topics, read_committed=True)
        behind = [where for where in sorted(ends) if stable.get(where, 0) < ends[where]]
        if not behind:
            return
        topic, partition = behind[0]
        try:
            deadline.pause(KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "one is open"))
        except KafkaError:
            raise PipelineError(
                f"a transaction is open in {topic}-{partition} from offset {stable[behind[0]]} on, and did not end in "
                f"{SETTLE_MS // 1000} s: what stands behind it cannot be read, so nothing can be said of it; "
                "`tidelog transactions list` shows whose it is"
            ) from None


def epochs_of(client: Client, topics: Iterable[str]) -> list[tuple[str, int, int, int, int]]:
    """Every leader epoch that has records: topic, partition, epoch, first offset, end offset (OffsetForLeaderEpoch).

    Asked of any Kafka cluster, one epoch at a time: the answer names the largest epoch not above the one asked for.
    """
    found = []
    for (topic, partition), end in ends_of(client, topics).items():
        start = 0
        for epoch, epoch_end in _epochs(client, topic, partition):
            stop = min(epoch_end, end)
            if stop > start:
                found.append((topic, partition, epoch, start, stop))
                start = stop
    return found


def _epochs(client: Client, topic: str, partition: int) -> list[tuple[int, int]]:
    from tidelog.wire.messages.offset_for_leader_epoch import (
        OffsetForLeaderEpochRequest,
        OffsetForLeaderEpochResponse,
        OffsetForLeaderPartition,
        OffsetForLeaderTopic,
    )

    current = client.metadata.leader_of(topic, partition).leader_epoch
    ends: dict[int, int] = {}
    asked = current
    while asked >= 0:

        def build(_partitions: list[TopicPartition], epoch: int = asked) -> OffsetForLeaderEpochRequest:
            known = client.metadata.leader_of(topic, partition).leader_epoch
            wanted = OffsetForLeaderPartition(partition=partition, current_leader_epoch=known, leader_epoch=epoch)
            return OffsetForLeaderEpochRequest(
                replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
            )

        def read(answer: OffsetForLeaderEpochResponse) -> Iterable[tuple[TopicPartition, int, tuple[int, int]]]:
            for one in answer.topics:
                for each in one.partitions:
                    yield (one.topic, each.partition), each.error_code, (each.leader_epoch, each.end_offset)

        epoch, end = client.ask_leaders([(topic, partition)], build, read)[topic, partition]
        if epoch < 0 or end < 0:
            break
        ends[epoch] = end
        asked = epoch - 1
    return sorted(ends.items())
