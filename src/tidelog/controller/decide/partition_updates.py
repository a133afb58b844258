"""What an event at a broker means for its partitions: leave ISRs, give up or take leaderships."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidelog.controller.decide.decision import (
    Context,
    Decision,
    is_active,
    min_insync_replicas,
    unclean_election_enabled,
)
from tidelog.controller.decide.partition_change import Election, PartitionChange, PartitionChanger
from tidelog.controller.entities import NO_LEADER, Partition, Topic
from tidelog.controller.image import MetadataImage

Place = tuple[Topic, int, Partition]
"""A partition as `MetadataImage.partitions` gives it."""


def changer(
    image: MetadataImage,
    context: Context,
    topic: Topic,
    partition_id: int,
    partition: Partition,
    *,
    alive: Callable[[int], bool] | None = None,
    election: Election | None = None,
) -> PartitionChanger:
    """A changer for a partition under the rules that hold for its topic.

    `alive` replaces the image's word on who is active, for brokers whose state is about to change; `election` replaces
    what the topic's unclean.leader.election.enable asks for.
    """

    def acceptable(broker_id: int) -> bool:
        if not (is_active(image, broker_id) if alive is None else alive(broker_id)):
            return False
        broker = image.brokers.get(broker_id)
        return broker is not None and broker.has_online(partition.directory_of(broker_id))

    if election is None:
        election = Election.UNCLEAN if unclean_election_enabled(image, context, topic.name) else Election.ONLINE
    return PartitionChanger(
        partition,
        topic.topic_id,
        partition_id,
        level=image.metadata_version,
        elr_enabled=image.elr_enabled,
        min_isr=min_insync_replicas(image, context, topic.name, len(partition.replicas)),
        acceptable=acceptable,
        election=election,
    )


def add_change(decision: Decision, change: PartitionChange | None, cause: str) -> bool:
    """Put a change into a decision with its reason; False when there is none."""
    if change is None:
        return False
    record = change.record
    decision.add(record, change.version)
    place = (record.topic_id, record.partition_id)
    decision.partition_reasons[place] = f"{cause}: {change.how}" if change.how else cause
    return True


def update_partitions(
    image: MetadataImage,
    context: Context,
    decision: Decision,
    cause: str,
    places: Iterable[Place],
    *,
    leaving: int = NO_LEADER,
    returning: int = NO_LEADER,
    unclean: int = NO_LEADER,
) -> None:
    """Decide every given partition anew.

    `leaving` goes out of the ISR and may not lead; `returning` may lead although the image still has it fenced;
    `unclean` came back without a clean stop, so it goes out of the ISR and the ELR and may not lead yet.
    """

    def alive(broker_id: int) -> bool:
        if broker_id in (leaving, unclean):
            return False
        return broker_id == returning or is_active(image, broker_id)

    for topic, partition_id, partition in places:
        wanted = changer(image, context, topic, partition_id, partition, alive=alive)
        wanted.isr = tuple(replica for replica in partition.isr if replica not in (leaving, unclean))
        if unclean != NO_LEADER:
            wanted.unclean_shutdown = (unclean,)
        add_change(decision, wanted.build(), cause)


def in_sync_on(image: MetadataImage, broker_id: int) -> list[Place]:
    """Partitions whose ISR has the broker."""
    return [place for place in image.partitions() if broker_id in place[2].isr]


def without_leader(image: MetadataImage) -> list[Place]:
    """Partitions that nobody leads."""
    return [place for place in image.partitions() if place[2].leader == NO_LEADER]


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    """Whether the broker leads a partition."""
    return any(partition.leader == broker_id for _, _, partition in image.partitions())
