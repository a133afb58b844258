"""Finding a cluster, agreeing on versions, and giving up in time."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from tests.client.fake_cluster import Broker, Close, Cluster, running
from tests.support.ports import free_ports
from tidelog.client import EARLIEST, LATEST, Client, coordinators, list_offsets
from tidelog.client import client as client_module
from tidelog.client.client import parse_bootstrap
from tidelog.client.cluster_admin import list_brokers
from tidelog.client.connection import Connection, address_text
from tidelog.errors import ConfigError, ErrorCode, KafkaError
from tidelog.wire.apis import ApiKey, api_versions
from tidelog.wire.messages.describe_cluster import DescribeClusterResponse
from tidelog.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse
from tidelog.wire.messages.list_offsets import ListOffsetsTopicResponse as TopicAnswer
from tidelog.wire.messages.metadata import MetadataRequest

USUAL_TIMEOUT_S = 10.0
"""What a connection is given where nothing is said: many times what is asserted to be enough, on any machine."""


def test_the_highest_version_that_both_sides_have_is_used() -> None:
    with running(versions={ApiKey.METADATA: (0, 5)}) as cluster, Client(cluster.bootstrap) as client:
        client.refresh(["t"])
        assert [version for _, key, _, version in cluster.requests if key == ApiKey.METADATA] == [5]


def test_a_broker_with_old_api_versions_is_asked_again_in_its_own_version() -> None:
    with running(versions={ApiKey.API_VERSIONS: (0, 2)}) as cluster, Client(cluster.bootstrap) as client:
        assert client.refresh(["t"]).cluster_id == "test"
        assert [version for _, key, _, version in cluster.requests if key == ApiKey.API_VERSIONS] == [2]


def test_no_common_version_is_told_with_both_ranges() -> None:
    with running(versions={ApiKey.LIST_OFFSETS: (90, 91)}) as cluster, Client(cluster.bootstrap) as client:
        with pytest.raises(KafkaError, match="versions 90 to 91 of ListOffsets") as caught:
            list_offsets(client, {("t", 0): LATEST})
        assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION


def test_the_first_broker_that_answers_is_enough() -> None:
    nobody = free_ports(1)[0]
    with running() as cluster, Client(f"127.0.0.1:{nobody},{cluster.bootstrap}") as client:
        assert client.refresh().brokers.keys() == {1}


def test_an_address_is_told_as_it_can_be_given() -> None:
    for text in ("127.0.0.1:9092", "[::1]:9092", "broker:9092"):
        assert address_text(*parse_bootstrap(text)[0]) == text
    port = free_ports(1)[0]
    with Client(f"[::1]:{port}") as client, pytest.raises(KafkaError, match=rf"\[::1\]:{port}: "):
        client.refresh()


def test_when_nobody_is_there_it_says_so_at_once() -> None:
    port = free_ports(1)[0]
    started = time.monotonic()
    with Client(f"127.0.0.1:{port}") as client, pytest.raises(KafkaError, match=f"{port}: connection refused"):
        client.refresh()
    assert time.monotonic() - started < USUAL_TIMEOUT_S


def test_it_waits_for_a_first_broker_when_told_to() -> None:
    port = free_ports(1)[0]
    started: list[Cluster] = []
    late = threading.Timer(0.1, lambda: started.append(Cluster(1, 1, port=port)))
    late.start()
    try:
        with Client(f"127.0.0.1:{port}", bootstrap_timeout_ms=10_000) as client:
            assert client.refresh().cluster_id == "test"
    finally:
        late.join()
        started[0].close()


def test_a_server_of_another_protocol_is_named_and_not_believed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        with Client(f"127.0.0.1:{port}") as client, pytest.raises(KafkaError, match="does not speak Kafka's protocol"):
            client.refresh()
        thread.join()


def test_a_silent_broker_costs_no_more_than_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        started = time.monotonic()
        with (
            Client(f"127.0.0.1:{port}", timeout_ms=200) as client,
            pytest.raises(KafkaError, match="no answer in time"),
        ):
            client.refresh()
        assert time.monotonic() - started < USUAL_TIMEOUT_S


def test_a_connection_that_breaks_is_made_again() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        client.refresh(["t"])
        cluster.fail(ApiKey.METADATA, lambda *_: Close, lambda *_: Close)
        assert client.refresh(["t"]).topics.keys() == {"t"}


def test_one_that_knows_no_controller_is_not_asked_again_while_others_are_there() -> None:
    """A broker that is cut off answers clients, and can do nothing for them."""
    asked = []

    def cut_off(broker: Broker, body: object, version: int) -> DescribeClusterResponse:
        asked.append(broker.broker_id)
        unhappy = len(asked) == 1 or broker.broker_id == asked[0]
        return DescribeClusterResponse(error_code=ErrorCode.NOT_CONTROLLER if unhappy else 0, cluster_id="test")

    versions = {int(ApiKey.DESCRIBE_CLUSTER): api_versions(ApiKey.DESCRIBE_CLUSTER)}
    with running(brokers=2, versions=versions) as cluster, Client(cluster.bootstrap) as client:
        cluster.fail(ApiKey.DESCRIBE_CLUSTER, *[cut_off] * 10)
        assert list_brokers(client).cluster_id == "test"
        assert asked == [1, 2]


def test_a_broken_answer_is_an_error_and_not_a_crash() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        client.refresh(["t"])
        client.timeout_ms = 500
        cluster.fail(ApiKey.METADATA, *[lambda *_: b"\0\0\0\x08\0\0\0\x05junk"] * 50)
        with pytest.raises(KafkaError) as caught:
            client.refresh(["t"])
        assert caught.value.code == ErrorCode.NETWORK_EXCEPTION


def test_a_call_that_is_interrupted_leaves_no_half_answer_behind() -> None:
    class Interrupted:
        """Memory for answers, until somebody presses Ctrl-C in the middle of one."""

        is_now = False

        def __call__(self, size: int) -> bytearray:
            if self.is_now:
                raise KeyboardInterrupt
            return bytearray(size)

    with running() as cluster:
        memory = Interrupted()
        port = cluster.brokers[0].port
        connection = Connection("127.0.0.1", port, client_id="test", timeout_ms=10_000, allocate=memory)
        memory.is_now = True
        with pytest.raises(KeyboardInterrupt):
            connection.call(MetadataRequest(topics=None), 10_000)
        assert not connection.is_open


def test_an_unknown_topic_is_believed_after_a_short_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_NEW_TOPIC_PATIENCE_MS", 500)
    with running() as cluster, Client(cluster.bootstrap) as client:
        with pytest.raises(KafkaError, match="there is no topic 'nothing'") as caught:
            client.topic("nothing")
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert len(cluster.of(ApiKey.METADATA)) > 1


def test_a_partition_without_a_leader_does_not_matter_to_those_who_ask_for_others() -> None:
    with running(partitions=2) as cluster, Client(cluster.bootstrap) as client:
        cluster.partitions[1].leader = -1
        assert list_offsets(client, {("t", 0): LATEST}).keys() == {("t", 0)}
        assert client.topic("t", led=[0]).partitions.keys() == {0, 1}
        client.timeout_ms = 500
        with pytest.raises(KafkaError, match="t-1 has no leader"):
            list_offsets(client, {("t", 1): LATEST})


def test_a_partition_without_a_leader_is_waited_for() -> None:
    with running() as cluster, Client(cluster.bootstrap) as client:
        cluster.partitions[0].leader = -1

        def elect(broker: object, body: object, version: int) -> None:
            cluster.partitions[0].leader = 1

        cluster.fail(ApiKey.METADATA, lambda *_: None, lambda *_: None, elect)
        assert client.topic("t").partitions[0].leader == 1


def test_offsets_are_asked_of_each_leader_and_again_when_it_moved() -> None:
    with running(brokers=2, partitions=2) as cluster, Client(cluster.bootstrap) as client:
        cluster.partitions[0].start, cluster.partitions[0].end = 3, 10
        cluster.partitions[1].end = 20
        client.refresh(["t"])
        cluster.partitions[1].leader, cluster.partitions[1].epoch = 2, 1
        found = list_offsets(client, {("t", 0): EARLIEST, ("t", 1): LATEST})
        assert {where: one.offset for where, one in found.items()} == {("t", 0): 3, ("t", 1): 20}
        assert [broker for broker, key, _, _ in cluster.requests if key == ApiKey.LIST_OFFSETS][-1] == 2


def test_what_cannot_be_retried_is_raised_with_its_code() -> None:
    refusal = ListOffsetsResponse(
        topics=[TopicAnswer(name="t", partitions=[ListOffsetsPartitionResponse(partition_index=0, error_code=29)])]
    )
    with running() as cluster, Client(cluster.bootstrap) as client:
        cluster.fail(ApiKey.LIST_OFFSETS, lambda *_: refusal)
        with pytest.raises(KafkaError) as caught:
            list_offsets(client, {("t", 0): LATEST})
        assert caught.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert len(cluster.of(ApiKey.LIST_OFFSETS)) == 1


def test_an_error_that_lasts_is_raised_when_the_time_is_up() -> None:
    with running(brokers=2) as cluster, Client(cluster.bootstrap) as client:
        client.refresh(["t"])
        client.timeout_ms = 150
        cluster.partitions[0].leader = 2
        client.metadata.brokers.pop(2)
        cluster.brokers[1].stop()
        started = time.monotonic()
        with pytest.raises(KafkaError):
            list_offsets(client, {("t", 0): LATEST})
        assert time.monotonic() - started < USUAL_TIMEOUT_S


def test_a_coordinator_that_has_just_left_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One broker still names it, and another does not know it any more."""
    named = iter([9, 1])
    monkeypatch.setattr(coordinators, "find_coordinator", lambda *_: next(named))
    with running() as cluster, Client(cluster.bootstrap) as client:
        request = MetadataRequest(topics=[])
        broker_id, _ = coordinators.ask_coordinator(client, "group", coordinators.GROUP, request, lambda _: 0)
        assert broker_id == 1


@pytest.mark.parametrize("text", ["", "localhost", "host:", ":9092", "host:0", "host:70000", "a:1,,b:2"])
def test_a_bootstrap_list_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not HOST:PORT"):
        parse_bootstrap(text)


def test_bootstrap_takes_several_brokers_and_ipv6() -> None:
    assert parse_bootstrap("a:1, [::1]:9092") == [("a", 1), ("::1", 9092)]


def test_the_client_never_asks_for_a_version_that_is_not_stable() -> None:
    with running(versions={ApiKey.INIT_PRODUCER_ID: (0, 99)}) as cluster, Client(cluster.bootstrap) as client:
        from tidelog.wire.messages.init_producer_id import InitProducerIdRequest

        client.ask(InitProducerIdRequest(transactional_id=None))
        used = [version for _, key, _, version in cluster.requests if key == ApiKey.INIT_PRODUCER_ID]
        assert used == [api_versions(ApiKey.INIT_PRODUCER_ID)[1]]


def test_a_broker_that_has_heard_less_does_not_bring_back_an_earlier_leader() -> None:
    with running(brokers=2) as cluster, Client(cluster.bootstrap) as client:
        partition = cluster.partitions[0]
        partition.leader, partition.epoch = 2, 5
        client.refresh({"t"})
        partition.leader, partition.epoch = 1, 4
        client.refresh({"t"})
        assert client.metadata.leader_of("t", 0)[1:3] == (2, 5)
        partition.leader, partition.epoch = -1, 6
        client.refresh({"t"})
        with pytest.raises(KafkaError):
            client.metadata.leader_of("t", 0)
