"""BrokerRegistration 0-4 (KIP-631, KIP-858, KIP-966), UnregisterBroker 0, ControllerRegistration 0 (KIP-919).

A broker's epoch is the offset of its registration record. A new incarnation of a known broker leaves every ISR; unless
it proves that it lost nothing by naming the epoch it ended with (see replica/former_life.py), and still has the
directories it had, it leaves the ELRs too: what it had may be gone.
"""

from __future__ import annotations

from tidelog.controller import levels
from tidelog.controller.decide.decision import Context, Decision, Liveness
from tidelog.controller.decide.partition_updates import add_change, changer, in_sync_on, update_partitions
from tidelog.controller.entities import UNASSIGNED_DIRECTORY, Broker, Partition, is_reserved_directory
from tidelog.controller.image import MetadataImage
from tidelog.controller.records import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from tidelog.wire.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from tidelog.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tidelog.wire.uuids import to_text


def decide_broker(image: MetadataImage, request: BrokerRegistrationRequest, context: Context) -> Decision:
    """Let a broker in, fenced until it has caught up with the metadata."""
    broker_id = request.broker_id
    existing = image.brokers.get(broker_id)
    _check(image, request, existing, context)
    decision = Decision(BrokerRegistrationResponse())
    record = _record(image, request)
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        record.broker_epoch = existing.epoch
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
        reason = "registered again"
    else:
        clean = existing is not None and request.previous_broker_epoch == existing.epoch
        _retire_former_life(image, decision, request, existing, clean, context)
        record.broker_epoch = context.next_offset + len(decision.records)
        reason = "first registration" if existing is None else "with all it had" if clean else "after an unclean stop"
    decision.broker_reasons[broker_id] = reason
    decision.add(record, levels.register_broker_version(image.metadata_version))
    decision.response.broker_epoch = record.broker_epoch
    return decision


def _check(image: MetadataImage, request: BrokerRegistrationRequest, existing: Broker | None, context: Context) -> None:
    if request.cluster_id != context.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {context.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    if existing is not None and existing.incarnation_id != request.incarnation_id:
        _check_not_duplicate(request, existing, context)
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers.")
    if levels.has_directories(image.metadata_version):
        _check_directories(image, request)
    _check_features(image, request)


def _check_not_duplicate(request: BrokerRegistrationRequest, existing: Broker, context: Context) -> None:
    """Two processes must not share an id, so a broker that is in touch keeps it until its session ends.

    Kafka always waits for that. We do not when the old incarnation is silent and the new one has its directories: a
    process holds a lock on each of its directories, so the old one is dead.
    """
    liveness = context.liveness(request.broker_id)
    if liveness is Liveness.GONE:
        return
    if liveness is Liveness.PRESUMED and set(existing.log_dirs) & set(request.log_dirs):
        return
    raise KafkaError(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        f"Another broker is registered with id {request.broker_id}. If it was just restarted, this resolves itself "
        "when the session of its former life ends.",
    )


def _check_directories(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    if not request.log_dirs:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "No directories specified in request")
    if any(is_reserved_directory(directory) for directory in request.log_dirs):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request")
    for broker in image.brokers.values():
        if broker.broker_id == request.broker_id:
            continue
        for directory in broker.log_dirs:
            if directory in request.log_dirs:
                raise KafkaError(
                    ErrorCode.INVALID_REGISTRATION,
                    f"Broker {broker.broker_id} is already registered with directory {to_text(directory)}",
                )


def _check_features(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    """The broker must be able to work with every finalized level."""
    offered = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    if levels.METADATA_VERSION not in offered:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Request features do not contain 'metadata.version'")
    for name, finalized in image.features.items():
        low, high = offered.get(name, (0, 0))
        if not low <= finalized <= high and name in levels.SUPPORTED_FEATURES:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {finalized} of {name}. "
                f"The broker wants a version between {low} and {high}, inclusive.",
            )


def _record(image: MetadataImage, request: BrokerRegistrationRequest) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in request.listeners
        ],
        features=[
            BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
        rack=request.rack,
        log_dirs=list(request.log_dirs) if levels.has_directories(image.metadata_version) else [],
    )


def _retire_former_life(
    image: MetadataImage,
    decision: Decision,
    request: BrokerRegistrationRequest,
    existing: Broker | None,
    clean: bool,
    context: Context,
) -> None:
    """Take the broker out of ISRs, and out of ELRs and last known leaders where its data cannot be trusted."""
    broker_id = request.broker_id
    cause = f"broker {broker_id} came back {'with all it had' if clean else 'after an unclean stop'}"

    def alive(other: int) -> bool:
        broker = image.brokers.get(other)
        return other != broker_id and broker is not None and broker.active

    for topic, partition_id, partition in list(image.partitions()):
        if broker_id not in partition.replicas:
            continue
        in_isr = broker_id in partition.isr
        in_elr = broker_id in partition.eligible_leader_replicas
        lost = _directory_lost(partition, request, existing)
        distrusted = image.elr_enabled and (not clean or lost)
        # A directory that is known is only away, and nobody may lead from it meanwhile: should the broker begin anew in
        # another one, it says so (decide/directories.py). One that is not known would be taken for any it has.
        unknown = is_reserved_directory(partition.directory_of(broker_id))
        was_leader = broker_id in (*partition.last_known_elr, partition.leader)
        forget = lost and unknown and was_leader and image.elr_enabled
        if not in_isr and not (in_elr and distrusted) and not forget:
            continue
        wanted = changer(image, context, topic, partition_id, partition, alive=alive)
        wanted.isr = tuple(replica for replica in partition.isr if replica != broker_id)
        if distrusted:
            wanted.unclean_shutdown = (broker_id,)
        if forget:
            wanted.forget_last_known = True
        add_change(decision, wanted.build(), f"{cause} without its directory" if lost else cause)


def _directory_lost(partition: Partition, request: BrokerRegistrationRequest, existing: Broker | None) -> bool:
    """Whether the replica's log is gone: the broker no longer has the directory that it lay in (KIP-858).

    So a node that was formatted anew, or whose disk was changed, never counts as having what it had.
    """
    if not request.log_dirs:
        return False
    directory = partition.directory_of(request.broker_id)
    if not is_reserved_directory(directory):
        return directory not in request.log_dirs
    if directory != UNASSIGNED_DIRECTORY:
        return False
    return existing is None or not set(existing.log_dirs) & set(request.log_dirs)


def decide_unregister(image: MetadataImage, request: UnregisterBrokerRequest, context: Context) -> Decision:
    """Forget a broker that will not come back; its replicas stay listed until they are reassigned."""
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {request.broker_id} is not currently registered"
        )
    decision = Decision(UnregisterBrokerResponse(error_message=None))
    places = in_sync_on(image, broker.broker_id)
    update_partitions(
        image, context, decision, f"broker {broker.broker_id} unregistered", places, leaving=broker.broker_id
    )
    decision.broker_reasons[broker.broker_id] = "by request"
    decision.add(UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch))
    return decision


def decide_controller(image: MetadataImage, request: ControllerRegistrationRequest, context: Context) -> Decision:
    """Note where a controller listens and what it supports."""
    if not levels.has_controller_registration(image.metadata_version):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    decision = Decision(ControllerRegistrationResponse(error_message=None))
    decision.add(
        RegisterControllerRecord(
            controller_id=request.controller_id,
            incarnation_id=request.incarnation_id,
            zk_migration_ready=False,
            end_points=[
                ControllerEndpoint(
                    name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
                )
                for each in request.listeners
            ],
            features=[
                ControllerFeature(
                    name=each.name,
                    min_supported_version=each.min_supported_version,
                    max_supported_version=each.max_supported_version,
                )
                for each in request.features
            ],
        )
    )
    return decision
