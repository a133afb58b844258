from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.config import (
    BrokerValues,
    ConfigSource,
    Kind,
    Listener,
    NodeConfig,
    Scope,
    TopicConfig,
    Voter,
    describe_cluster_defaults,
    describe_node,
    describe_topic,
    format_properties,
    parse_connection_overrides,
    parse_properties,
    validate_node_overrides,
    validate_topic_overrides,
)
from tidelog.config.others import TOPIC_WITHOUT_EFFECT, WITHOUT_EFFECT
from tidelog.errors import ConfigError

WEEK_MS = 7 * 24 * 3_600_000


def node(**changes: str) -> NodeConfig:
    """A small node; keyword names have underscores for dots."""
    properties = {"node.id": "1", "log.dirs": "data"}
    properties.update({name.replace("_", "."): text for name, text in changes.items()})
    return NodeConfig.from_properties(properties)


def refusal_of(**changes: str) -> str:
    with pytest.raises(ConfigError) as caught:
        node(**changes)
    return str(caught.value)


# --- a properties file ---


def test_a_kafka_properties_file_works_as_it_is() -> None:
    text = """
        # The file that Apache Kafka ships for one combined node, without its comments.
        process.roles=broker,controller
        node.id=1
        controller.quorum.bootstrap.servers=localhost:9093
        listeners=PLAINTEXT://:9092,CONTROLLER://:9093
        inter.broker.listener.name=PLAINTEXT
        advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
        controller.listener.names=CONTROLLER
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
        num.network.threads=3
        num.io.threads=8
        socket.send.buffer.bytes=102400
        socket.receive.buffer.bytes=102400
        socket.request.max.bytes=104857600
        log.dirs=kraft-combined-logs
        num.partitions=1
        num.recovery.threads.per.data.dir=1
        offsets.topic.replication.factor=1
        share.coordinator.state.topic.replication.factor=1
        share.coordinator.state.topic.min.isr=1
        transaction.state.log.replication.factor=1
        transaction.state.log.min.isr=1
        log.retention.hours=168
        log.segment.bytes=1073741824
        log.retention.check.interval.ms=300000
    """
    config = NodeConfig.from_properties(parse_properties(text))
    assert config.log_dirs == ("kraft-combined-logs",)
    assert config.offsets_topic_replication_factor == 1
    assert config.advertised_addresses == (Listener("PLAINTEXT", "localhost", 9092),)
    assert config.controller_addresses == (Listener("CONTROLLER", "localhost", 9093),)
    assert config.quorum_bootstrap_addresses == (("localhost", 9093),)
    assert config.metadata_directory == "kraft-combined-logs"
    assert config.is_broker
    assert config.is_controller


def test_properties_have_javas_syntax() -> None:
    text = (
        "# a comment\n"
        "! another\n"
        "plain=value\n"
        "  colon : spaced value \n"
        "blank separated\n"
        "long=first,\\\n"
        "     second\n"
        "escaped\\ name\\=x=a\\tb\\u0041\\\\\n"
        "empty=\n"
        "alone\r\n"
        "not.comment=a # b\n"
        "cut=short\\"
    )
    assert parse_properties(text) == {
        "plain": "value",
        "colon": "spaced value ",
        "blank": "separated",
        "long": "first,second",
        "escaped name=x": "a\tbA\\",
        "empty": "",
        "alone": "",
        "not.comment": "a # b",
        "cut": "short",
    }


def test_a_name_given_twice_is_a_slip_and_says_where() -> None:
    with pytest.raises(ConfigError, match=r"line 3: log\.dirs is given twice"):
        parse_properties("log.dirs=a\n\nlog.dirs=b\n")
    assert parse_properties("a=1\na=1\n") == {"a": "1"}


def test_a_broken_unicode_escape_is_refused() -> None:
    with pytest.raises(ConfigError, match="line 1"):
        parse_properties("a=\\u12x4")


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=5))
def test_what_is_written_reads_back(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties)) == properties


# --- one setting ---


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("node.id", "one", "node.id: 'one' is not a whole number"),
        ("node.id", "-1", "node.id: '-1' is not allowed; it must be 0 to 2147483647"),
        ("node.id", "1_000", "node.id: '1_000' is not a whole number"),
        ("log.segment.bytes", "1000", "log.segment.bytes: '1000' is not allowed; it must be 1048576 to 2147483647"),
        ("message.max.bytes", "3000000000", "message.max.bytes: 3000000000 does not fit in 32 bits"),
        ("auto.create.topics.enable", "yes", "auto.create.topics.enable: 'yes' is not true or false"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "it must be 0 to 1"),
        ("log.cleaner.min.cleanable.ratio", "nan", "it must be 0 to 1"),
        ("log.cleaner.min.cleanable.ratio", "half", "is not a number"),
        ("compression.type", "brotli", "one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "0", "it must be 1 to 9, or -1"),
        ("log.cleanup.policy", "compact,drop", "'drop' is not allowed; it must be of compact, delete"),
        ("log.cleanup.policy", "delete,delete", "names an entry twice"),
        ("log.dirs", "a,,b", "has an empty entry"),
        ("num.io.threads", "0", "num.io.threads: '0' is not allowed"),
        ("log.retention.ms", "0", "it must be 1 to 9223372036854775807, or -1"),
        ("max.connections.per.ip.overrides", "10.0.0.1", "is not address:count"),
    ],
)
def test_a_bad_value_is_refused_by_name_with_what_is_allowed(name: str, text: str, said: str) -> None:
    message = refusal_of(**{name.replace(".", "_"): text})
    assert message.startswith(name + ":")
    assert said in message


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    assert refusal_of(log_retention_hour="1") == (
        "log.retention.hour: there is no such setting; did you mean log.retention.hours?"
    )
    assert refusal_of(zzz="1") == "zzz: there is no such setting"
    with pytest.raises(ConfigError, match=r"did you mean retention\.ms\?"):
        validate_topic_overrides({"retention.millis": "5"})


def test_what_promises_safety_that_is_not_there_is_refused() -> None:
    assert "neither TLS nor SASL" in refusal_of(ssl_keystore_location="x")
    assert "neither TLS nor SASL" in refusal_of(sasl_enabled_mechanisms="PLAIN")
    assert "no authorization" in refusal_of(authorizer_class_name="org.example.Authorizer")
    assert "only PLAINTEXT" in refusal_of(listeners="PLAINTEXT://:1", listener_security_protocol_map="PLAINTEXT:SSL")
    assert "ZooKeeper" in refusal_of(zookeeper_connect="localhost:2181")
    assert "no two-phase commit" in refusal_of(transaction_two_phase_commit_enable="true")
    with pytest.raises(ConfigError, match="no remote storage"):
        validate_topic_overrides({"remote.storage.enable": "true"})
    assert node(authorizer_class_name="", remote_log_storage_system_enable="false").node_id == 1
    validate_topic_overrides({"remote.storage.enable": "false"})


def test_numbers_lists_and_texts_are_read_with_blanks_around_them() -> None:
    config = node(log_dirs=" a , b ", message_max_bytes=" 5 ", auto_create_topics_enable="FALSE", log_cleanup_policy="")
    assert config.log_dirs == ("a", "b")
    assert config.message_max_bytes == 5
    assert config.auto_create_topics_enable is False
    assert config.log_cleanup_policy == ()


def test_the_defaults_that_keep_data_safe() -> None:
    config = node()
    assert config.unclean_leader_election_enable is False
    assert config.min_insync_replicas == 1
    assert config.replica_lag_time_max_ms == 30_000
    assert config.replica_lag_max_messages == -1
    assert config.broker_session_timeout_ms == 9000
    assert TopicConfig().unclean_leader_election_enable is False
    assert TopicConfig().min_insync_replicas == 1


def test_every_setting_reads_its_own_default_back() -> None:
    tables = (NodeConfig.SETTINGS, TopicConfig.SETTINGS, WITHOUT_EFFECT, TOPIC_WITHOUT_EFFECT)
    for setting in (setting for table in tables for setting in table.values()):
        text = setting.format(setting.default)
        if text is not None and setting.name != "node.id":
            assert setting.parse(text) == setting.default, setting.name
        assert setting.doc.endswith("."), setting.name
        assert setting.name == setting.name.lower().strip(), setting.name


def test_every_topic_setting_and_its_brokers_settings_agree() -> None:
    for setting in TopicConfig.SETTINGS.values():
        assert setting.scope is Scope.TOPIC
        for name in setting.synonyms:
            assert name in NodeConfig.SETTINGS, f"{setting.name} falls back to {name}, which is no setting"
    assert TopicConfig.from_overrides({}, node(), {}) == TopicConfig(), "defaults of topics and brokers differ"


# --- settings together ---


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"process_roles": ""}, "process.roles"),
        ({"log_dirs": ""}, "log.dirs"),
        ({"listeners": "PLAINTEXT:9092"}, "is not NAME://host:port"),
        ({"listeners": "PLAINTEXT://h"}, "has no port"),
        ({"listeners": "PLAINTEXT://h:70000"}, "a port is 0 to 65535"),
        ({"listeners": "A://h:1,A://h:2"}, "the name A is used twice"),
        ({"listeners": "A://h:1,B://h:1"}, "port 1 is used twice"),
        ({"listeners": "A://::1:1"}, "brackets"),
        ({"listeners": "A://0.0.0.0:1"}, "advertised.listeners: A://0.0.0.0:1"),
        ({"listeners": "A://h:1", "advertised_listeners": "B://h:1"}, "B is not among the listeners"),
        ({"listeners": "A://h:1", "inter_broker_listener_name": "B"}, "inter.broker.listener.name: B"),
        ({"listeners": "C://h:1", "controller_listener_names": "C"}, "a broker needs one"),
        ({"listeners": "A://h:1", "controller_listener_names": "C"}, "C is not among the listeners"),
        ({"process_roles": "controller", "listeners": "A://h:1"}, "A is not in controller.listener.names"),
        ({"process_roles": "broker"}, "must know where the quorum is"),
        ({"process_roles": "broker", "controller_quorum_voters": "1@h:1"}, "node 1 is no controller"),
        ({"process_roles": "broker", "controller_quorum_voters": "2@h:1"}, "controller.listener.names"),
        ({"controller_quorum_voters": "2@h:1"}, "node 1 is a controller and must be in it"),
        ({"controller_quorum_voters": "1@h:1"}, "a listener of its own"),
        ({"controller_quorum_voters": "1@h:1,1@h:2"}, "voter 1 is named twice"),
        ({"controller_quorum_voters": "h:1"}, "is not id@host:port"),
        ({"controller_quorum_bootstrap_servers": ":1"}, "has no host"),
        ({"broker_id": "2"}, "broker.id: it must be the same as node.id"),
        ({"broker_session_timeout_ms": "3000"}, "at least twice broker.heartbeat.interval.ms"),
        ({"replica_fetch_wait_max_ms": "40000"}, "must not be above replica.socket.timeout.ms"),
        ({"group_consumer_session_timeout_ms": "1000"}, "group.consumer.min.session.timeout.ms"),
        ({"group_consumer_assignment_interval_ms": "16000"}, "group.consumer.max.assignment.interval.ms"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes: dict[str, str], said: str) -> None:
    assert said in refusal_of(**changes)


def test_a_broker_alone_and_a_controller_alone() -> None:
    broker = node(
        process_roles="broker",
        listeners="CLIENTS://127.0.0.1:9092,BROKERS://[::1]:9094",
        inter_broker_listener_name="BROKERS",
        controller_listener_names="CONTROLLER",
        controller_quorum_voters="2@127.0.0.1:9093",
    )
    assert not broker.is_controller
    assert broker.voters == (Voter(2, "127.0.0.1", 9093),)
    assert broker.inter_broker_listener == "BROKERS"
    assert str(broker.broker_addresses[1]) == "BROKERS://[::1]:9094"
    controller = node(
        process_roles="controller",
        listeners="CONTROLLER://127.0.0.1:9093",
        controller_listener_names="controller",
        controller_quorum_voters="1@127.0.0.1:9093",
    )
    assert controller.broker_addresses == ()
    assert controller.advertised_addresses == ()
    assert controller.inter_broker_listener == ""


def test_the_old_name_of_the_node_id_and_of_the_directories() -> None:
    config = NodeConfig.from_properties({"broker.id": "7", "log.dir": "old"})
    assert config.node_id == 7
    assert config.log_dirs == ("old",)
    with pytest.raises(ConfigError, match=r"node\.id: it is missing"):
        NodeConfig.from_properties({"log.dirs": "x"})


# --- settings do not change ---


def test_a_config_cannot_be_changed_only_replaced() -> None:
    config = node()
    with pytest.raises(AttributeError):
        config.node_id = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del config.node_id
    other = config.replace(node_id=2)
    assert (config.node_id, other.node_id) == (1, 2)
    assert config != other
    assert hash(TopicConfig()) == hash(TopicConfig(retention_ms=WEEK_MS))
    assert TopicConfig() == TopicConfig(retention_ms=WEEK_MS)
    assert TopicConfig() != object()
    with pytest.raises(TypeError, match="no setting 'segment_byte'"):
        TopicConfig(segment_byte=1)  # type: ignore[call-arg]
    assert repr(TopicConfig(retention_ms=5)) == "TopicConfig(retention_ms=5)"
    assert config.text("log.dirs") == "data"
    assert config.text("broker.rack") is None


def test_run_time_settings_go_over_the_file_and_fixed_ones_are_refused() -> None:
    config = node(message_max_bytes="100")
    assert config.with_dynamic({}) is config
    changed = config.with_dynamic({"message.max.bytes": "200", "num.io.threads": "4"})
    assert (config.message_max_bytes, changed.message_max_bytes) == (100, 200)
    with pytest.raises(ConfigError, match=r"node\.id: it is fixed when the node starts"):
        validate_node_overrides({"node.id": "3"})
    with pytest.raises(ConfigError, match="is not address:count"):
        validate_node_overrides({"max.connections.per.ip.overrides": "x"})
    assert parse_connection_overrides("10.0.0.1:5, ::1:6") == {"10.0.0.1": 5, "::1": 6}


# --- topics ---


@pytest.mark.parametrize(
    ("file", "dynamic", "topic", "expected_ms"),
    [
        ({}, {}, {}, WEEK_MS),
        ({"log_retention_hours": "2"}, {}, {}, 2 * 3_600_000),
        ({"log_retention_hours": "2", "log_retention_minutes": "3"}, {}, {}, 3 * 60_000),
        ({"log_retention_hours": "2", "log_retention_minutes": "3", "log_retention_ms": "4"}, {}, {}, 4),
        ({"log_retention_hours": "-1"}, {}, {}, -1),
        ({"log_retention_ms": "4"}, {"log.retention.ms": "5"}, {}, 5),
        ({"log_retention_ms": "4"}, {"log.retention.ms": "5"}, {"retention.ms": "6"}, 6),
    ],
)
def test_a_topic_falls_back_to_its_broker(
    file: dict[str, str], dynamic: dict[str, str], topic: dict[str, str], expected_ms: int
) -> None:
    assert TopicConfig.from_overrides(topic, node(**file), dynamic).retention_ms == expected_ms


def test_a_topic_ignores_old_names_but_the_door_refuses_them() -> None:
    assert TopicConfig.from_overrides({"gone": "1", "segment.bytes": "2000000"}, node()).segment_bytes == 2_000_000
    with pytest.raises(ConfigError, match="gone: there is no such setting"):
        validate_topic_overrides({"gone": "1"})


def test_topic_settings_together() -> None:
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms: it must not be above"):
        validate_topic_overrides({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})
    with pytest.raises(ConfigError, match="is not partition:broker"):
        validate_topic_overrides({"leader.replication.throttled.replicas": "0:1,x"})
    validate_topic_overrides({"leader.replication.throttled.replicas": "*", "local.retention.ms": "-2"})
    validate_topic_overrides({"leader.replication.throttled.replicas": "0:1,1:2"})
    both = TopicConfig.from_overrides({"cleanup.policy": "compact,delete"}, node())
    assert both.is_compacted
    assert both.is_deleted_by_retention
    assert TopicConfig.from_overrides({"internal.segment.bytes": "100"}, node()).segment_bytes == 100


# --- what a client is told ---


def test_describing_a_topic_tells_who_decided() -> None:
    config = node(log_retention_hours="24", log_segment_bytes="2000000")
    entries = {
        entry.name: entry
        for entry in describe_topic(
            {"retention.bytes": "9"}, BrokerValues(config, {"log.segment.bytes": "3000000"}, {})
        )
    }
    assert "internal.segment.bytes" not in entries
    assert entries["retention.bytes"].value == "9"
    assert entries["retention.bytes"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert entries["retention.ms"].value == str(24 * 3_600_000)
    assert entries["retention.ms"].source is ConfigSource.STATIC_BROKER_CONFIG
    assert [tuple(synonym) for synonym in entries["segment.bytes"].synonyms] == [
        ("log.segment.bytes", "3000000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("log.segment.bytes", "2000000", ConfigSource.STATIC_BROKER_CONFIG),
        ("log.segment.bytes", "1073741824", ConfigSource.DEFAULT_CONFIG),
    ]
    assert entries["cleanup.policy"].kind is Kind.LIST
    assert entries["cleanup.policy"].source is ConfigSource.DEFAULT_CONFIG
    assert not entries["segment.bytes"].read_only


def test_describing_a_broker_tells_what_can_be_changed() -> None:
    config = node(num_io_threads="4")
    broker = BrokerValues(config, {}, {"message.max.bytes": "7"})
    names = ["node.id", "num.io.threads", "message.max.bytes", "broker.rack", "no.such"]
    entries = {entry.name: entry for entry in describe_node(broker, names)}
    assert list(entries) == names[:-1]
    assert entries["node.id"].read_only
    assert entries["node.id"].source is ConfigSource.STATIC_BROKER_CONFIG
    assert entries["num.io.threads"].value == "4"
    assert entries["message.max.bytes"].source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert not entries["message.max.bytes"].read_only
    assert entries["broker.rack"].value is None
    assert len(describe_node(broker)) == len(NodeConfig.SETTINGS) + len(WITHOUT_EFFECT)
    assert [entry.name for entry in describe_cluster_defaults({"message.max.bytes": "7"})] == ["message.max.bytes"]


def test_every_described_value_reads_back_as_what_is_in_force() -> None:
    config = node(log_retention_minutes="90", log_roll_hours="5", log_flush_scheduler_interval_ms="1000")
    in_force = TopicConfig.from_overrides({}, config)
    for entry in describe_topic({}, BrokerValues(config, {}, {})):
        assert entry.value == in_force.text(entry.name), entry.name


def test_importing_the_settings_costs_little_and_nothing_outside_the_core() -> None:
    """A node is to serve within a fraction of a second; settings must not spend it."""
    program = (
        "import __future__, collections.abc, enum, sys, typing\n"
        "before = set(sys.modules)\n"
        "import tidelog.config\n"
        "new = sorted(name for name in set(sys.modules) - before if not name.startswith('tidelog'))\n"
        "print(','.join(new))\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == ""
