"""Replica lists that somebody wrote by hand, and the first state of a partition."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.controller import levels
from tidelog.controller.decide.decision import default_directory, is_active
from tidelog.controller.entities import MIGRATING_DIRECTORY, Partition
from tidelog.controller.image import MetadataImage
from tidelog.errors import ErrorCode, KafkaError


def check_assignment(image: MetadataImage, replicas: Sequence[int], replication_factor: int | None) -> None:
    """INVALID_REPLICA_ASSIGNMENT unless each replica is on another known broker, and there are as many as elsewhere."""
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    seen: set[int] = set()
    for broker_id in sorted(replicas):
        if broker_id not in image.brokers:
            raise _invalid(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if broker_id in seen:
            raise _invalid(f"The manual partition assignment includes the broker {broker_id} more than once.")
        seen.add(broker_id)
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def new_partition(image: MetadataImage, replicas: Sequence[int]) -> Partition | None:
    """A partition nobody has written to: all live replicas are in sync. None when none is live."""
    isr = tuple(broker_id for broker_id in replicas if is_active(image, broker_id))
    if not isr:
        return None
    directories = (MIGRATING_DIRECTORY,) * len(replicas)
    if levels.has_directories(image.metadata_version):
        directories = tuple(default_directory(image, broker_id) for broker_id in replicas)
    return Partition(tuple(replicas), directories, isr, isr[0], 0, 0)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
