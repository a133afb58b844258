"""UpdateFeatures 0-2 (KIP-584, KIP-778): all updates of a request take effect together or none does.

v0 and v1 answer for each feature, v2 (KIP-1022) with one error for all.
"""

from __future__ import annotations

from tidelog.controller import levels
from tidelog.controller.decide.decision import MIN_INSYNC_REPLICAS, Context, Decision
from tidelog.controller.decide.partition_updates import without_leader
from tidelog.controller.image import BROKER_RESOURCE, MetadataImage
from tidelog.controller.records import ClearElrRecord, ConfigRecord, FeatureLevelRecord, PartitionChangeRecord
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def decide(image: MetadataImage, request: UpdateFeaturesRequest, context: Context) -> Decision:
    """Finalize other feature levels."""
    response = UpdateFeaturesResponse(error_message=None)
    decision = Decision(response)
    proposed = dict(image.features)
    try:
        _check_duplicates(request)
        for update in request.feature_updates:
            proposed[update.feature] = update.max_version_level
        for update in request.feature_updates:
            _check(image, update, proposed, context)
    except KafkaError as error:
        response.error_code = error.code
        response.error_message = error.message or None
        return decision
    response.results = [
        UpdatableFeatureResult(feature=update.feature, error_message=None) for update in request.feature_updates
    ]
    if request.validate_only:
        return decision
    for update in request.feature_updates:
        if update.feature == levels.KRAFT_VERSION:
            continue  # it has this level already, and is no record of the controller's
        decision.add(FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level))
        if update.feature == levels.ELIGIBLE_LEADER_REPLICAS_VERSION:
            _switch_elr(image, decision, update.max_version_level > 0, context)
    return decision


def _check_duplicates(request: UpdateFeaturesRequest) -> None:
    names = [update.feature for update in request.feature_updates]
    for name in names:
        if names.count(name) > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Feature {name} is given more than once.")


def _check(image: MetadataImage, update: FeatureUpdateKey, proposed: dict[str, int], context: Context) -> None:
    name, level = update.feature, update.max_version_level
    upgrade_type = update.upgrade_type
    if context.api_version == 0:
        upgrade_type = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    if name == levels.KRAFT_VERSION and (level, upgrade_type) == (context.kraft_version, UPGRADE):
        return  # `upgrade --release-version` names every feature, this one too
    _check_supported(image, update)
    current = image.features.get(name, 0)
    if level < current and upgrade_type == UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        )
    if level > current and upgrade_type != UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if name == levels.METADATA_VERSION:
        _check_metadata_version(current, level, upgrade_type)
        for other, finalized in proposed.items():
            if other != name and levels.needed_metadata_version(other, finalized) > level:
                raise _invalid(update, f"{other}={finalized} needs a higher metadata.version.")
    else:
        needed = levels.needed_metadata_version(name, level)
        if proposed.get(levels.METADATA_VERSION, 0) < needed:
            raise _invalid(update, f"It could not be set because it depends on metadata.version level {needed}")


def _check_supported(image: MetadataImage, update: FeatureUpdateKey) -> None:
    """Everybody in the cluster must be able to work with the new level."""
    name, level = update.feature, update.max_version_level
    if name == levels.KRAFT_VERSION:
        raise _invalid(update, "kraft.version is kept by the quorum; it is set when the nodes are formatted.")
    if name not in levels.SUPPORTED_FEATURES:
        raise _invalid(update, "The controller does not support the given feature.")
    low, high = levels.SUPPORTED_FEATURES[name]
    everyone = [("The controller", (low, high))]
    everyone += [(f"Broker {each.broker_id}", each.features.get(name, (0, 0))) for each in image.brokers.values()]
    everyone += [
        (f"Controller {each.controller_id}", each.features.get(name, (0, 0))) for each in image.controllers.values()
    ]
    for who, (lowest, highest) in everyone:
        if not lowest <= level <= highest and (level != 0 or name == levels.METADATA_VERSION):
            supported = f"only supports versions {lowest}-{highest}" if highest else "does not support this feature."
            raise _invalid(update, f"{who} {supported}")


def _check_metadata_version(current: int, level: int, upgrade_type: int) -> None:
    if level not in levels.LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION, f"Invalid metadata.version {level}. Unknown metadata.version."
        )
    if level >= current or not levels.loses_metadata(current, level):
        return
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if upgrade_type == UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid metadata.version {level}. {reason}")


def _switch_elr(image: MetadataImage, decision: Decision, on: bool, context: Context) -> None:
    """Turned on, min.insync.replicas becomes the cluster's alone; turned off, the ELRs are forgotten (KIP-966)."""
    if not on:
        if image.elr_enabled:
            decision.add(ClearElrRecord())
            _put_last_in_sync_back(image, decision)
        return
    if MIN_INSYNC_REPLICAS not in image.config(BROKER_RESOURCE, ""):
        value = str(context.config.min_insync_replicas)
        decision.add(
            ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=MIN_INSYNC_REPLICAS, value=value)
        )
    for (kind, name), values in image.configs.items():
        if kind == BROKER_RESOURCE and name and MIN_INSYNC_REPLICAS in values:
            decision.add(
                ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=name, name=MIN_INSYNC_REPLICAS, value=None)
            )


def _put_last_in_sync_back(image: MetadataImage, decision: Decision) -> None:
    """Where nobody is in sync, one that may lead stays in the ISR, as the last one does without the ELR."""
    for topic, partition_id, partition in without_leader(image):
        eligible, last_known = partition.eligible_leader_replicas, partition.last_known_elr
        if not partition.isr and (eligible or last_known):
            isr = [replica for replica in last_known if replica in (eligible or last_known)] or list(eligible[:1])
            record = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=partition_id, isr=isr)
            decision.add(record, levels.partition_version(image.metadata_version))


def _invalid(update: FeatureUpdateKey, message: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.max_version_level} for feature {update.feature}. {message}",
    )
