"""Groups of confluent-kafka consumers in both protocols: everything is read, and no partition has two readers."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, ConsumerGroupType, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.clients import confluent
from tests.clients.conftest import TopicMaker
from tests.clients.group_readers import Register, readers_of, wait_for_shares
from tests.clients.samples import Record
from tests.clients.test_crash import own_node
from tests.support.nodes import Node
from tests.support.processes import wait_until

NODE_PROPERTIES = {
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "0",
}
CLASSIC = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 300}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "eager": {"partition_assignment_strategy": "range", **CLASSIC},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky", **CLASSIC},
    "consumer": {"group_protocol": "consumer"},
}
PARTITIONS = 4


def fill(node: Node, topic: str, start: int = 0, count: int = 50) -> set[tuple[int, int]]:
    """Records in every partition; returns where they are."""
    for partition in range(PARTITIONS):
        records = [Record(None, b"%d" % number, 1) for number in range(count)]
        confluent.produce_all(node, topic, records, partition=partition)
    return {(partition, start + number) for partition in range(PARTITIONS) for number in range(count)}


def committed_by(node: Node, group: str, topic: str) -> list[int]:
    """How far a group is in each partition."""
    reader = Consumer({"bootstrap.servers": node.bootstrap, "group.id": group})
    try:
        found = reader.committed([TopicPartition(topic, number) for number in range(PARTITIONS)], 60)
    finally:
        reader.close()
    return [one.offset for one in found]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_join_and_leave_and_all_is_read(node: Node, make_topic: TopicMaker, protocol: str) -> None:
    topic = make_topic(PARTITIONS)
    written = fill(node, topic)
    register = Register()
    settings = {"group_id": topic, **PROTOCOLS[protocol]}
    with readers_of(node, register) as start:
        start("first", [topic], **settings)
        wait_for_shares(register, [4])
        second = start("second", [topic], **settings)
        wait_for_shares(register, [2, 2])
        start("third", [topic], **settings)
        wait_for_shares(register, [1, 1, 2])
        before = register.revoked["first"]
        second.stop()
        wait_for_shares(register, [2, 2])
        if protocol != "eager":
            assert register.revoked["first"] == before, "one that leaves does not stop the others"
        written |= fill(node, topic, start=50)
        wait_until(lambda: set(register.read) == written, 60, "all is read")


@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
def test_a_static_member_comes_back_to_its_place(node: Node, make_topic: TopicMaker, protocol: str) -> None:
    topic = make_topic(PARTITIONS)
    register = Register()
    settings = {"group_id": topic, **PROTOCOLS[protocol]}
    with readers_of(node, register) as start:
        start("first", [topic], group_instance_id="one", **settings)
        second = start("second", [topic], group_instance_id="two", **settings)
        wait_for_shares(register, [2, 2])
        place = {partition for partition, owner in register.owners.items() if owner == "second"}
        moved = register.revoked["first"]
        second.stop()
        start("returned", [topic], group_instance_id="two", **settings)
        wait_for_shares(register, [2, 2])
        assert {partition for partition, owner in register.owners.items() if owner == "returned"} == place
        assert register.revoked["first"] == moved, "nobody else noticed"


def test_a_topic_that_is_made_later_is_found_by_its_pattern(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(1)
    register = Register()
    with readers_of(node, register) as start:
        start("first", [f"^{topic}.*"], group_id=topic, group_protocol="consumer")
        wait_for_shares(register, [1])
        make_topic(PARTITIONS)
        wait_for_shares(register, [PARTITIONS])


def test_a_group_moves_to_the_other_protocol_and_back_while_it_reads(node: Node, make_topic: TopicMaker) -> None:
    """Members are replaced one by one, as in a rolling restart: nobody is cut off and everything is read."""
    topic = make_topic(PARTITIONS)
    written = fill(node, topic)
    register = Register()
    client: AdminClient = confluent.admin(node)

    def kind() -> Any:
        return client.describe_consumer_groups([topic])[topic].result(60).type

    with readers_of(node, register) as start:
        alive = [start(f"old {number}", [topic], group_id=topic, **PROTOCOLS["cooperative"]) for number in range(2)]
        wait_for_shares(register, [2, 2])
        assert kind() == ConsumerGroupType.CLASSIC
        for protocol, then in (("consumer", ConsumerGroupType.CONSUMER), ("cooperative", ConsumerGroupType.CLASSIC)):
            for number in range(2):
                alive.append(start(f"{protocol} {number}", [topic], group_id=topic, **PROTOCOLS[protocol]))
                wait_for_shares(register, [1, 1, 2])
                assert kind() == ConsumerGroupType.CONSUMER, "while some member speaks that protocol"
                alive.pop(0).stop()
                wait_for_shares(register, [2, 2])
            assert kind() == then
        written |= fill(node, topic, start=50)
        wait_until(lambda: set(register.read) == written, 60, "all is read")


@pytest.mark.parametrize("protocol", ["eager", "consumer"])
def test_a_group_goes_on_where_it_was_after_a_kill(protocol: str) -> None:
    with own_node(**{name.replace(".", "_"): value for name, value in NODE_PROPERTIES.items()}) as node:
        confluent.create_topic(node, "kept", PARTITIONS)
        written = fill(node, "kept")
        register = Register()
        settings = {"group_id": "g", **PROTOCOLS[protocol]}
        with readers_of(node, register) as start:
            start("first", ["kept"], **settings)
            start("second", ["kept"], **settings)
            wait_for_shares(register, [2, 2])
            wait_until(lambda: set(register.read) == written, 60, "all is read")
            wait_until(lambda: committed_by(node, "g", "kept") == [50] * PARTITIONS, 60, "all is committed")
        node.kill()
        node.start()
        assert committed_by(node, "g", "kept") == [50] * PARTITIONS
        again = Register()
        with readers_of(node, again) as start:
            start("third", ["kept"], **settings)
            more = fill(node, "kept", start=50)
            wait_until(lambda: set(again.read) >= more, 60, "the new records are read")
        assert set(again.read) == more, "what was committed is not read again"


def test_members_read_on_while_their_coordinator_is_killed(make_topic: TopicMaker) -> None:
    with own_node(**{name.replace(".", "_"): value for name, value in NODE_PROPERTIES.items()}) as node:
        confluent.create_topic(node, "kept", PARTITIONS)
        written = fill(node, "kept")
        register = Register()
        with readers_of(node, register) as start:
            for name in ("first", "second"):
                start(name, ["kept"], group_id="g", **PROTOCOLS["consumer"])
            wait_for_shares(register, [2, 2])
            node.kill()
            node.start()
            written |= fill(node, "kept", start=50)
            wait_until(lambda: set(register.read) == written, 60, "all is read")


def test_the_admin_calls_of_groups(node: Node, make_topic: TopicMaker) -> None:
    topic = make_topic(PARTITIONS)
    fill(node, topic)
    client: AdminClient = confluent.admin(node)
    register = Register()
    with readers_of(node, register) as start:
        start("classic", [topic], group_id=f"{topic}-classic", **PROTOCOLS["eager"])
        wait_for_shares(register, [4])
        wait_until(lambda: len(register.read) == 4 * 50, 60, "all is read")
        listed = {one.group_id: one for one in client.list_consumer_groups().result(60).valid}
        assert listed[f"{topic}-classic"].type == ConsumerGroupType.CLASSIC
        described = client.describe_consumer_groups([f"{topic}-classic"])[f"{topic}-classic"].result(60)
        assert [(one.client_id, one.host) for one in described.members] == [("classic", "/127.0.0.1")]
        assert len(described.members[0].assignment.topic_partitions) == PARTITIONS
    (found,) = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(f"{topic}-classic")]).values()
    assert {one.partition: one.offset for one in found.result(60).topic_partitions} == dict.fromkeys(range(4), 50)
    wanted = ConsumerGroupTopicPartitions(f"{topic}-classic", [TopicPartition(topic, 0, 7)])
    (altered,) = client.alter_consumer_group_offsets([wanted]).values()
    assert altered.result(60).topic_partitions[0].error is None
    client.delete_consumer_groups([f"{topic}-classic"])[f"{topic}-classic"].result(60)
    assert f"{topic}-classic" not in {one.group_id for one in client.list_consumer_groups().result(60).valid}
