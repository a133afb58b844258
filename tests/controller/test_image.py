"""The image: every record of a metadata log has its effect, and a snapshot loses nothing."""

from __future__ import annotations

import gc
import time

import pytest

from tests.controller.world import World
from tidelog.controller import (
    ImageDelta,
    MetadataImage,
    UnknownRecordError,
    UnsupportedLevelError,
    levels,
    records_for_snapshot,
)
from tidelog.controller.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from tidelog.errors import CorruptionError
from tidelog.wire.message import Message
from tidelog.wire.stored import decode_metadata_record, encode_metadata_record

TOPIC_ID = b"t" * 16


def image_of(*records: Record) -> MetadataImage:
    image = MetadataImage()
    image.apply_all(records)
    return image


def topic_records(partitions: int = 1, name: str = "t", topic_id: bytes = TOPIC_ID) -> list[Record]:
    return [
        TopicRecord(name=name, topic_id=topic_id),
        *(
            PartitionRecord(
                partition_id=each,
                topic_id=topic_id,
                replicas=[1, 2, 3],
                isr=[1, 2, 3],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[b"a" * 16, b"b" * 16, b"c" * 16],
            )
            for each in range(partitions)
        ),
    ]


def test_brokers_come_change_and_go() -> None:
    image = image_of(RegisterBrokerRecord(broker_id=1, broker_epoch=5, rack="r", log_dirs=[b"d" * 16]))
    assert image.brokers[1].fenced
    image.apply(UnfenceBrokerRecord(id=1, epoch=5))
    assert image.brokers[1].active
    image.apply(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, in_controlled_shutdown=1))
    assert not image.brokers[1].active
    assert image.brokers[1].log_dirs == (b"d" * 16,)
    image.apply(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, log_dirs=[b"e" * 16]))
    assert image.brokers[1].log_dirs == (b"e" * 16,)
    image.apply(FenceBrokerRecord(id=1, epoch=5))
    assert image.brokers[1].fenced
    image.apply(UnregisterBrokerRecord(broker_id=1, broker_epoch=5))
    assert not image.brokers


def test_a_record_for_another_life_of_a_broker_is_corruption() -> None:
    image = image_of(RegisterBrokerRecord(broker_id=1, broker_epoch=5))
    with pytest.raises(CorruptionError, match="broker 1 epoch 4"):
        image.apply(UnfenceBrokerRecord(id=1, epoch=4))


def test_every_change_raises_the_partition_epoch_and_only_a_named_leader_the_leader_epoch() -> None:
    image = image_of(*topic_records())
    image.apply(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=[1, 2]))
    partition = image.topics[TOPIC_ID].partitions[0]
    assert (partition.leader_epoch, partition.partition_epoch, partition.isr) == (0, 1, (1, 2))
    image.apply(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, leader=1))
    partition = image.topics[TOPIC_ID].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 1, 2)


def test_replicas_that_stay_keep_their_directories() -> None:
    image = image_of(*topic_records())
    image.apply(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, replicas=[3, 4, 1]))
    assert image.topics[TOPIC_ID].partitions[0].directories == (b"c" * 16, bytes(15) + b"\x01", b"a" * 16)


def test_deleting_a_topic_takes_its_settings_along() -> None:
    image = image_of(*topic_records(), ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1"))
    image.apply(RemoveTopicRecord(topic_id=TOPIC_ID))
    assert image == MetadataImage()


def test_a_setting_is_removed_by_null() -> None:
    image = image_of(ConfigRecord(resource_type=4, resource_name="", name="a", value="1"))
    image.apply(ConfigRecord(resource_type=4, resource_name="", name="a", value=None))
    assert image.configs == {}


def test_clearing_the_elr_is_no_new_epoch() -> None:
    image = image_of(*topic_records())
    change = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, eligible_leader_replicas=[2], last_known_elr=[1])
    image.apply(change)
    before = image.topics[TOPIC_ID].partitions[0]
    image.apply(ClearElrRecord(topic_name="t"))
    after = image.topics[TOPIC_ID].partitions[0]
    assert after.eligible_leader_replicas == after.last_known_elr == ()
    assert after.partition_epoch == before.partition_epoch
    image.apply(change)
    image.apply(ClearElrRecord())
    assert image.topics[TOPIC_ID].partitions[0].eligible_leader_replicas == ()


def test_a_transaction_takes_effect_at_its_end_or_never() -> None:
    image = MetadataImage()
    delta = ImageDelta()
    image.apply_all([BeginTransactionRecord(name="x"), *topic_records()], delta)
    assert not image.topics
    assert not delta
    with pytest.raises(ValueError, match="transaction"):
        list(records_for_snapshot(image))
    image.apply(EndTransactionRecord(), delta)
    assert delta.topics_created == {TOPIC_ID}
    image.apply_all([BeginTransactionRecord(), RemoveTopicRecord(topic_id=TOPIC_ID), AbortTransactionRecord()])
    assert TOPIC_ID in image.topics
    with pytest.raises(CorruptionError):
        image.apply(EndTransactionRecord())


def test_an_unknown_record_is_never_skipped() -> None:
    class FutureRecord(Message):
        __slots__ = ()

    with pytest.raises(UnknownRecordError, match="FutureRecord"):
        MetadataImage().apply(FutureRecord())
    image = image_of(BeginTransactionRecord())
    with pytest.raises(UnknownRecordError):
        image.apply(FutureRecord())


@pytest.mark.parametrize("level", [1, 6, 31])
def test_a_metadata_version_that_cannot_be_opened_is_refused_by_name(level: int) -> None:
    with pytest.raises(UnsupportedLevelError, match=r"supported are 7 \(3.3-IV3\) to 30 \(4.3-IV0\)"):
        image_of(FeatureLevelRecord(name="metadata.version", feature_level=level))


def security_records() -> list[Record]:
    entity = [EntityData(entity_type="user", entity_name=None), EntityData(entity_type="client-id", entity_name="c")]
    return [
        AccessControlEntryRecord(id=b"1" * 16, resource_type=2, resource_name="t", principal="User:a"),
        AccessControlEntryRecord(id=b"2" * 16, resource_type=2, resource_name="u", principal="User:b"),
        RemoveAccessControlEntryRecord(id=b"2" * 16),
        UserScramCredentialRecord(name="a", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"q", iterations=4096),
        UserScramCredentialRecord(name="b", mechanism=1),
        RemoveUserScramCredentialRecord(name="b", mechanism=1),
        DelegationTokenRecord(owner="o", requester="r", token_id="x"),
        DelegationTokenRecord(token_id="y"),
        RemoveDelegationTokenRecord(token_id="y"),
        ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1.5),
        ClientQuotaRecord(entity=entity, key="consumer_byte_rate", value=2.5),
        ClientQuotaRecord(entity=entity, key="consumer_byte_rate", remove=True),
        ZkMigrationStateRecord(zk_migration_state=0),
    ]


def whole_image(level: int) -> MetadataImage:
    directories = [b"d" * 16] if levels.has_directories(level) else []
    records: list[Record] = [
        FeatureLevelRecord(name="metadata.version", feature_level=level),
        FeatureLevelRecord(name="share.version", feature_level=1),
        RegisterBrokerRecord(broker_id=1, broker_epoch=5, rack=None, log_dirs=directories, fenced=False),
        RegisterBrokerRecord(broker_id=2, broker_epoch=6, rack="r", in_controlled_shutdown=True),
        RegisterControllerRecord(controller_id=3, incarnation_id=b"i" * 16),
        ConfigRecord(resource_type=4, resource_name="", name="a", value="1"),
        ConfigRecord(resource_type=2, resource_name="t", name="b", value=""),
        ProducerIdsRecord(broker_id=1, broker_epoch=5, next_producer_id=3000),
        NoOpRecord(),
        *security_records(),
        *topic_records(3),
        *topic_records(1, "u", b"u" * 16),
        PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=1, leader=2, leader_recovery_state=1, isr=[2]),
    ]
    if levels.has_eligible_leader_replicas(level):
        records.append(
            PartitionChangeRecord(
                topic_id=TOPIC_ID, partition_id=2, isr=[], leader=-1, eligible_leader_replicas=[2], last_known_elr=[1]
            )
        )
    if not levels.has_directories(level):
        for record in records:
            if isinstance(record, PartitionRecord):
                record.directories = []
    return image_of(*records)


@pytest.mark.parametrize("level", sorted(levels.LEVELS))
def test_a_snapshot_through_bytes_rebuilds_the_image_at_every_level(level: int) -> None:
    image = whole_image(level)
    rebuilt = MetadataImage()
    for record, version in records_for_snapshot(image):
        again, _ = decode_metadata_record(encode_metadata_record(record, version))
        rebuilt.apply(again)
    assert rebuilt == image
    assert not ImageDelta.between(image, rebuilt)


def test_a_snapshot_depends_on_the_content_alone() -> None:
    broker = [RegisterBrokerRecord(broker_id=each, broker_epoch=each) for each in (1, 2)]
    settings = [ConfigRecord(resource_type=4, resource_name="", name=name, value="1") for name in ("a", "b")]
    level = FeatureLevelRecord(name="metadata.version", feature_level=30)
    first = image_of(level, *broker, *settings, *topic_records(2), *topic_records(1, "a", b"u" * 16))
    second = image_of(
        *topic_records(1, "a", b"u" * 16), *topic_records(2), *reversed(settings), *reversed(broker), level
    )
    written = [record for record, _ in records_for_snapshot(first)]
    assert written == [record for record, _ in records_for_snapshot(second)]
    assert written[0] == level


def test_a_copy_stands_alone() -> None:
    image = whole_image(30)
    copy = image.copy()
    copy.apply(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=[1]))
    copy.apply(ConfigRecord(resource_type=4, resource_name="", name="a", value=None))
    copy.apply(RemoveAccessControlEntryRecord(id=b"1" * 16))
    assert image == whole_image(30)


def test_a_delta_keeps_what_was_there_first() -> None:
    image = image_of(*topic_records(2))
    before = image.topics[TOPIC_ID].partitions[0]
    delta = ImageDelta()
    for isr in ([1, 2], [1]):
        image.apply(PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=isr), delta)
    assert delta.partitions == {TOPIC_ID: {0: before}}
    image.apply(RemoveTopicRecord(topic_id=TOPIC_ID), delta)
    assert delta.partitions == {}
    assert list(delta.topics_deleted) == [TOPIC_ID]


def test_a_topic_made_and_deleted_in_one_delta_was_never_there() -> None:
    image, delta = MetadataImage(), ImageDelta()
    image.apply_all([*topic_records(), RemoveTopicRecord(topic_id=TOPIC_ID)], delta)
    assert not delta


def test_between_two_images_is_what_the_records_between_them_say() -> None:
    world = World((1, 2, 3))
    world.create("gone", 2, 3)
    world.create("t", 2, 3)
    before = world.image.copy()
    start = len(world.log)
    world.crash(1)
    world.create("new", 1, 2)
    world.set_config(2, "t", retention_ms="5")
    topic_id = world.topic("gone").topic_id
    world.controller._append([(RemoveTopicRecord(topic_id=topic_id), 0)])
    after = before.copy()
    told = ImageDelta()
    after.apply_all((record for record, _ in world.log[start:]), told)
    found = ImageDelta.between(before, after)
    assert found.topics_deleted.keys() == told.topics_deleted.keys() == {topic_id}
    for name in ("brokers", "configs", "controllers", "features", "partitions", "topics_created"):
        assert getattr(found, name) == getattr(told, name), name


def test_one_large_topic_takes_about_as_long_to_apply_as_ten_small_ones() -> None:
    def cpu_seconds(topics: int, partitions: int) -> float:
        records = topic_records(partitions)
        images = [MetadataImage() for _ in range(topics)]
        gc.disable()  # what a collection costs depends on all that other tests have left in this process
        start = time.process_time()
        for image in images:
            image.apply_all(records)
        ended = time.process_time()
        gc.enable()
        assert all(len(image.topics[TOPIC_ID].partitions) == partitions for image in images)
        return ended - start

    # Both take equally long, so that whatever else a machine does falls into both; the quickest of each counts.
    rounds = [(cpu_seconds(10, 1_000), cpu_seconds(1, 10_000)) for _ in range(9)]
    small, large = (min(each) for each in zip(*rounds, strict=True))
    assert large < 4 * small, "an application that copied what is there would take ten times as long"
