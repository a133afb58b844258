"""BrokerHeartbeat 0-2 (KIP-631, KIP-841, KIP-858): how a broker's state goes on, and what its partitions do then.

    FENCED               -> UNFENCED             it wants to serve and has applied its own registration
    UNFENCED             -> FENCED               it asks for it, its session ends, or its connection broke (ours)
    UNFENCED             -> CONTROLLED_SHUTDOWN  it wants to stop and still leads partitions
    UNFENCED, FENCED     -> SHUTDOWN_NOW         it wants to stop and leads none
    CONTROLLED_SHUTDOWN  -> SHUTDOWN_NOW         its leaderships are gone, and every live broker has read so

Fenced means: in no ISR, leading nothing, not told to clients.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from tidelog.controller import levels
from tidelog.controller.decide.decision import Context, Decision, check_broker_epoch
from tidelog.controller.decide.partition_updates import in_sync_on, leads_any, update_partitions, without_leader
from tidelog.controller.entities import Broker
from tidelog.controller.image import MetadataImage
from tidelog.controller.records import BrokerRegistrationChangeRecord
from tidelog.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

FENCE, UNFENCE, ENTER_SHUTDOWN = 1, -1, 1


class BrokerState(Enum):
    """See the head of this file."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


class Progress:
    """What the controller knows about metadata offsets that is in no record, for controlled shutdowns."""

    __slots__ = ("others_have_read", "shutdown_offset")

    def __init__(self, shutdown_offset: int | None, others_have_read: int | None) -> None:
        self.shutdown_offset = shutdown_offset
        """The last record of this broker's controlled shutdown; None when it has not begun, as far as is known here."""
        self.others_have_read = others_have_read
        """The least offset that an active broker reported; None when there is no other."""


def decide(
    image: MetadataImage, request: BrokerHeartbeatRequest, context: Context, progress: Progress
) -> tuple[Decision, BrokerState]:
    """Take a heartbeat; the second value is the broker's next state."""
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    caught_up = request.current_metadata_offset >= broker.epoch
    present = _present_state(broker)
    offline = [directory for directory in broker.log_dirs if directory in request.offline_log_dirs]
    following = _next_state(image, broker, request, present, caught_up, progress)
    if offline and len(offline) == len(broker.log_dirs) and following is BrokerState.UNFENCED:
        following = BrokerState.FENCED
    decision = Decision()
    if following is BrokerState.UNFENCED and present is BrokerState.FENCED:
        unfence(image, broker, context, decision, offline)
    elif following is BrokerState.CONTROLLED_SHUTDOWN and present is BrokerState.UNFENCED:
        _begin_shutdown(image, broker, context, decision)
    elif following in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW) and not broker.fenced:
        reason = "it stops" if following is BrokerState.SHUTDOWN_NOW else "it asked for it"
        if not request.want_fence and following is BrokerState.FENCED:
            reason = "all its log directories are offline"
        fence(image, broker, context, decision, reason)
    if offline and len(offline) < len(broker.log_dirs) and levels.has_directories(image.metadata_version):
        _directories_offline(image, broker, offline, context, decision, following)
    _note_cordoned(image, broker, request, decision)
    decision.response = BrokerHeartbeatResponse(
        is_caught_up=caught_up,
        is_fenced=following in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=following is BrokerState.SHUTDOWN_NOW,
    )
    return decision, following


def _present_state(broker: Broker) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def _next_state(
    image: MetadataImage,
    broker: Broker,
    request: BrokerHeartbeatRequest,
    present: BrokerState,
    caught_up: bool,
    progress: Progress,
) -> BrokerState:
    if present is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        # Who has said that it stops does not come back in the same life: no record can take that word back.
        stays = not caught_up or request.want_fence or broker.in_controlled_shutdown
        return BrokerState.FENCED if stays else BrokerState.UNFENCED
    if present is BrokerState.UNFENCED:
        if request.want_shut_down:
            # Nobody else is there to take the leaderships over or to hear of it, so there is nothing to wait for.
            alone = progress.others_have_read is None
            if request.want_fence or alone or not leads_any(image, broker.broker_id):
                return BrokerState.SHUTDOWN_NOW
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.FENCED if request.want_fence else BrokerState.UNFENCED
    if leads_any(image, broker.broker_id):
        return BrokerState.CONTROLLED_SHUTDOWN
    heard = progress.others_have_read is None or (
        progress.shutdown_offset is not None and progress.others_have_read >= progress.shutdown_offset
    )
    return BrokerState.SHUTDOWN_NOW if heard else BrokerState.CONTROLLED_SHUTDOWN


def fence(image: MetadataImage, broker: Broker, context: Context, decision: Decision, reason: str) -> None:
    """Take a broker out of every ISR and every leadership, then out of service."""
    broker_id = broker.broker_id
    cause = f"broker {broker_id} fenced: {reason}"
    update_partitions(image, context, decision, cause, in_sync_on(image, broker_id), leaving=broker_id)
    decision.broker_reasons[broker_id] = reason
    decision.add(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=FENCE))


def unfence(
    image: MetadataImage, broker: Broker, context: Context, decision: Decision, offline: Collection[bytes] = ()
) -> None:
    """Put a broker into service, and let it lead what nobody leads where it may: not from directories just lost."""
    broker_id = broker.broker_id
    decision.broker_reasons[broker_id] = "it has caught up with the metadata"
    decision.add(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=UNFENCE))
    cause = f"broker {broker_id} unfenced"
    places = [place for place in without_leader(image) if place[2].directory_of(broker_id) not in offline]
    update_partitions(image, context, decision, cause, places, returning=broker_id)


def _begin_shutdown(image: MetadataImage, broker: Broker, context: Context, decision: Decision) -> None:
    broker_id = broker.broker_id
    decision.broker_reasons[broker_id] = "it wants to stop"
    record = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=ENTER_SHUTDOWN
    )
    decision.add(record, levels.registration_change_version(shutdown=True, directories=False, cordoned=False))
    cause = f"broker {broker_id} is in controlled shutdown"
    update_partitions(image, context, decision, cause, in_sync_on(image, broker_id), leaving=broker_id)


def _directories_offline(
    image: MetadataImage,
    broker: Broker,
    offline: list[bytes],
    context: Context,
    decision: Decision,
    following: BrokerState,
) -> None:
    """Replicas in a directory that failed leave the ISR and lead nothing (KIP-858)."""
    broker_id = broker.broker_id
    if following is BrokerState.UNFENCED:
        places = [place for place in in_sync_on(image, broker_id) if place[2].directory_of(broker_id) in offline]
        cause = f"a log directory of broker {broker_id} is offline"
        places = [place for place in places if (place[0].topic_id, place[1]) not in decision.partition_reasons]
        update_partitions(image, context, decision, cause, places, leaving=broker_id)
    online = [directory for directory in broker.log_dirs if directory not in offline]
    record = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, log_dirs=online)
    decision.add(record, levels.registration_change_version(shutdown=False, directories=True, cordoned=False))


def _note_cordoned(image: MetadataImage, broker: Broker, request: BrokerHeartbeatRequest, decision: Decision) -> None:
    """Directories that are to take no new replicas (KIP-1066)."""
    if request.cordoned_log_dirs is None or not levels.has_cordoned_directories(image.metadata_version):
        return
    if set(request.cordoned_log_dirs) == set(broker.cordoned_log_dirs):
        return
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=list(request.cordoned_log_dirs)
    )
    decision.add(record, levels.registration_change_version(shutdown=False, directories=False, cordoned=True))
