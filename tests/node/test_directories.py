"""Two log directories: one fails, the other goes on serving, and nothing acknowledged is lost."""

from __future__ import annotations

from typing import Any

from tests.node.support import TOPIC, OneNode, partitions_of, values_of
from tidelog.controller.bootstrap import format_records
from tidelog.effects import Flush
from tidelog.errors import ErrorCode
from tidelog.node.node import BOOTSTRAP_CHECKPOINT
from tidelog.quorum import snapshot
from tidelog.replica.directory import META_PROPERTIES, MetaProperties
from tidelog.replica.partition import Role
from tidelog.sim.disk import SimulatedDisk
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from tidelog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

SECOND = "/data2"


class TwoDirectories(OneNode):
    """A node whose second directory is a disk of its own."""

    def __init__(self, configs: dict[str, str] | None = None) -> None:
        super().__init__(partitions=4, configs=configs, log_dirs=f"/data,{SECOND}")

    def start_all(self) -> None:
        host = self.world.hosts[1]
        if len(host.disks) == 1:
            disk = SimulatedDisk(SECOND)
            meta = MetaProperties(self.cluster_id, 1, self.world.chance.uuid()).to_bytes()
            disk.apply_flush(Flush(0, disk, replacements=[(META_PROPERTIES, meta)], directories=[""]))
            host.disks.append(disk)
        super().start_all()

    @property
    def second(self) -> SimulatedDisk:
        return self.world.hosts[1].disks[1]

    def held_by(self, disk: SimulatedDisk) -> set[int]:
        return {int(name.rpartition("-")[2]) for name in disk.list("") if name.startswith(f"{TOPIC}-")}

    def leaders(self, topic_name: str = TOPIC) -> dict[int, int]:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic_name)])
        topic = self.ask(1, ApiKey.METADATA, 12, request).topics[0]
        return {one.partition_index: one.leader_id for one in topic.partitions}


def test_partitions_spread_over_the_directories() -> None:
    node = TwoDirectories()
    assert len(node.held_by(node.second)) == 2
    assert node.held_by(node.second) | node.held_by(node.world.hosts[1].disks[0]) == {0, 1, 2, 3}


def test_the_controller_learns_where_replicas_lie() -> None:
    node = TwoDirectories()
    core = node.process(1).node

    def known() -> bool:
        topic = core.image.topic(TOPIC)
        assert topic is not None
        return all(
            topic.partitions[index].directories == (core.replicas.partitions[(TOPIC, index)].directory_id,)
            for index in range(4)
        )

    assert node.world.run_until(known, within_ms=5_000)


def test_one_directory_fails_the_other_goes_on() -> None:
    node = TwoDirectories()
    node.world.run_for(1_000)
    node.produce({index: node.batch(b"kept") for index in range(4)})
    lost = node.held_by(node.second)
    node.second.fail("append", reason="input/output error")
    node.second.fail("flush", reason="input/output error")
    answers = node.produce({index: node.batch(b"more") for index in range(4)})
    assert {index for index, one in answers.items() if one.error_code == ErrorCode.KAFKA_STORAGE_ERROR} == lost
    assert {index for index, one in answers.items() if one.error_code == 0} == {0, 1, 2, 3} - lost
    assert node.world.run_until(lambda: {index for index, leader in node.leaders().items() if leader == -1} == lost)
    hosted = node.process(1).node.replicas.partitions
    assert {index for index in range(4) if hosted[TOPIC, index].role is Role.OFFLINE} == lost, "nobody copies to it"
    described: Any = node.ask(1, ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
    assert {one.log_dir: one.error_code for one in described.results} == {
        "/data": 0,
        SECOND: ErrorCode.KAFKA_STORAGE_ERROR,
    }
    node.second.heal()
    node.world.kill(1)
    node.start_all()
    assert node.world.run_until(lambda: -1 not in node.leaders().values()), "a repaired disk serves again"
    for index in range(4):
        found = values_of(partitions_of(node.fetch({index: 0}))[index])
        assert found == ([b"kept"] if index in lost else [b"kept", b"more"])


def test_a_deleted_topic_leaves_nothing_behind() -> None:
    from tidelog.wire.messages.delete_topics import DeleteTopicsRequest

    node = TwoDirectories()
    node.ask(1, ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=1_000))
    node.world.run_for(120_000)
    for disk in node.world.hosts[1].disks:
        assert not [name for name in disk.list("") if name.startswith(TOPIC)]


def test_a_topic_made_again_under_its_name_starts_empty() -> None:
    from tidelog.wire.messages.delete_topics import DeleteTopicsRequest

    node = TwoDirectories()
    node.produce({index: node.batch(b"old") for index in range(4)})
    node.ask(1, ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=1_000))
    node.create(TOPIC, 4)
    node.produce({0: node.batch(b"new")})
    assert values_of(partitions_of(node.fetch({0: 0}))[0]) == [b"new"]
    assert values_of(partitions_of(node.fetch({1: 0}))[1]) == []


def test_a_metadata_directory_of_its_own_holds_no_replicas() -> None:
    class Separate(TwoDirectories):
        """The first disk is the metadata's alone."""

        def __init__(self) -> None:
            OneNode.__init__(self, partitions=4, log_dirs=SECOND, metadata_log_dir="/data")

    node = Separate()
    assert node.held_by(node.second) == {0, 1, 2, 3}
    assert node.held_by(node.world.hosts[1].disks[0]) == set()
    node.produce({0: node.batch(b"a")})
    assert values_of(partitions_of(node.fetch({0: 0}))[0]) == [b"a"]


def test_rot_among_flushed_records_stops_that_partition_and_nothing_else() -> None:
    one_batch_a_segment = {"flush.messages": "1", "segment.bytes": "1048576", "internal.segment.bytes": "300"}
    node = OneNode(configs=one_batch_a_segment)
    for _ in range(2):
        node.produce({0: node.batch(b"x" * 200), 1: node.batch(b"sound")})
    node.world.run_for(120_000)  # the recovery point is in its checkpoint now
    for _ in range(2):
        node.produce({0: node.batch(b"x" * 200)})
    disk = node.world.hosts[1].disks[0]
    node.world.kill(1)
    disk.flip_bit(f"{TOPIC}-0/00000000000000000001.log", 120)
    node.start_all()
    assert values_of(partitions_of(node.fetch({1: 0}))[1]) == [b"sound", b"sound"]
    assert node.produce({0: node.batch(b"more")})[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert partitions_of(node.fetch({0: 0}))[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert any(tell.kind == "log-damaged" for _, _, tell in node.world.told)


def test_rot_at_the_end_is_cut_where_a_power_loss_may_have_done_it_and_told() -> None:
    node = OneNode(configs={"flush.messages": "1"})
    node.produce({0: node.batch(b"kept")})
    node.produce({0: node.batch(b"x" * 200)})
    node.world.run_for(120_000)
    disk = node.world.hosts[1].disks[0]
    node.world.kill(1)
    node.world.hosts[1].boots += 1  # the machine was down: nobody vouches for its disk
    disk.flip_bit(f"{TOPIC}-0/00000000000000000000.log", 200)
    node.start_all()
    assert values_of(partitions_of(node.fetch({0: 0}))[0]) == [b"kept"]
    told = next(tell for _, _, tell in node.world.told if tell.kind == "log-recovered")
    assert (told.level, told.fields["offset"]) == ("error", 1)


def test_a_directory_that_cannot_even_be_asked_to_flush_fails_alone() -> None:
    """What a flush writes and opens first failed beside every handler, and the whole node gave up."""
    node = TwoDirectories({"flush.messages": "1"})
    node.world.run_for(1_000)
    lost = node.held_by(node.second)
    node.second.fail("open")
    answers = node.produce({index: node.batch(b"a") for index in range(4)})
    assert {index for index, one in answers.items() if one.error_code == ErrorCode.KAFKA_STORAGE_ERROR} == lost
    assert {index for index, one in answers.items() if one.error_code == 0} == {0, 1, 2, 3} - lost
    assert node.process(1).alive


def test_a_directory_that_fails_when_a_topic_is_made_fails_alone() -> None:
    """Where a new replica goes is asked of every directory, and the whole node gave up."""
    node = TwoDirectories()
    node.second.fail("list")
    assert node.create("another", 2).error_code == 0
    assert node.world.run_until(lambda: not node.process(1).node.replicas.directories[1].online)
    assert node.process(1).alive
    assert node.produce({0: node.batch(b"a")}, topic="another")[0].error_code == 0


def test_a_replica_that_cannot_be_made_is_told() -> None:
    """The controller did not know in which directory it was to be, and its broker led it for ever, for nobody."""
    node = TwoDirectories()
    node.second.fail("make_directory")
    assert node.create("another", 2).error_code == 0
    assert node.world.run_until(lambda: sorted(node.leaders("another").values()) == [-1, 1])
    assert node.process(1).alive


class TwoUnknownDirectories(TwoDirectories):
    """The same, in a cluster whose metadata.version has no place for directories yet."""

    def start_all(self) -> None:
        disk = self.world.hosts[1].disks[0]
        content = snapshot.write(format_records({"metadata.version": 16}), now_ms=0)
        disk.apply_flush(Flush(0, disk, replacements=[(BOOTSTRAP_CHECKPOINT, content)], directories=[""]))
        super().start_all()


def test_directories_are_known_as_soon_as_the_metadata_can_have_them() -> None:
    """Told by the next registration only, a directory that failed would keep the leaders that nobody can reach."""
    node = TwoUnknownDirectories()
    core = node.process(1).node
    known = core.image.brokers[1]
    assert (core.image.metadata_version, known.log_dirs) == (16, ())
    change = FeatureUpdateKey(feature="metadata.version", max_version_level=30, upgrade_type=1)
    assert node.ask(1, ApiKey.UPDATE_FEATURES, 1, UpdateFeaturesRequest(feature_updates=[change])).error_code == 0
    assert node.world.run_until(lambda: len(core.image.brokers[1].log_dirs) == 2, within_ms=5_000)
    assert (core.image.brokers[1].epoch, core.image.brokers[1].fenced) == (known.epoch, False)
    lost = node.held_by(node.second)
    node.second.fail("append", reason="input/output error")
    node.produce({index: node.batch(b"more") for index in range(4)})
    assert node.world.run_until(lambda: {index for index, leader in node.leaders().items() if leader == -1} == lost)


def test_a_replica_is_not_begun_anew_while_it_may_be_in_a_directory_that_failed() -> None:
    node = TwoUnknownDirectories()
    node.produce({index: node.batch(b"kept") for index in range(4)})
    lost = node.held_by(node.second)
    node.world.kill(1)
    node.second.fail("list", path_prefix=TOPIC)
    node.start_all()
    assert not node.process(1).node.replicas.directories[1].online
    assert node.held_by(node.world.hosts[1].disks[0]) == {0, 1, 2, 3} - lost
    for index in range(4):
        answer = partitions_of(node.fetch({index: 0}))[index]
        assert (answer.error_code == 0) == (index not in lost)
