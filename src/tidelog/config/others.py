"""Settings of Apache Kafka that a properties file may hold and that mean nothing here, and those that are refused.

What is without effect is still checked, so that a slip is found; what promises something that Tidelog does not do
(encryption, authorization, remote storage) is refused unless it says no: a node that ignored it would be a trap.
"""

from __future__ import annotations

from tidelog.config.setting import (
    DYNAMIC,
    INT64_MAX,
    NODE,
    Setting,
    boolean,
    int32,
    int64,
    names,
    string,
)

_THREADS = "A node is one event loop; there are no threads to count."
_PURGATORY = "A waiting request is woken when its condition holds and leaves nothing to purge."
_JMX = "org.apache.kafka.common.metrics.JmxReporter"
_METRICS = "There are no Java metrics reporters."
_QUOTA = "Quotas are not enforced."
_BUFFER = "The coordinator's buffers are as large as what they hold."


def _named(name: str, setting: Setting) -> tuple[str, Setting]:
    setting.name = name
    return name, setting


WITHOUT_EFFECT: dict[str, Setting] = dict(
    [
        _named("num.network.threads", int32(3, DYNAMIC, _THREADS, low=1)),
        _named("num.io.threads", int32(8, DYNAMIC, _THREADS, low=1)),
        _named("background.threads", int32(10, DYNAMIC, _THREADS, low=1)),
        _named("num.recovery.threads.per.data.dir", int32(2, DYNAMIC, _THREADS, low=1)),
        _named("num.replica.alter.log.dirs.threads", int32(None, NODE, _THREADS, low=1)),
        _named(
            "num.replica.fetchers", int32(1, DYNAMIC, "A follower has one pipelined fetch stream per leader.", low=1)
        ),
        _named("group.coordinator.threads", int32(4, NODE, _THREADS, low=1)),
        _named("group.coordinator.background.threads", int32(2, NODE, _THREADS, low=1)),
        _named("queued.max.requests", int32(500, NODE, "See max.inflight.requests.per.connection.", low=1)),
        _named("fetch.purgatory.purge.interval.requests", int32(1000, NODE, _PURGATORY)),
        _named("producer.purgatory.purge.interval.requests", int32(1000, NODE, _PURGATORY)),
        _named("delete.records.purgatory.purge.interval.requests", int32(1, NODE, _PURGATORY)),
        _named("share.fetch.purgatory.purge.interval.requests", int32(1000, NODE, _PURGATORY)),
        _named("socket.connection.setup.timeout.ms", int64(10_000, NODE, "See request.timeout.ms.")),
        _named("socket.connection.setup.timeout.max.ms", int64(30_000, NODE, "See request.timeout.ms.")),
        _named("early.start.listeners", names(None, NODE, "Listeners open when the node can answer on them.")),
        _named("offsets.load.buffer.size", int32(5_242_880, NODE, _BUFFER, low=1)),
        _named("transaction.state.log.load.buffer.size", int32(5_242_880, NODE, _BUFFER, low=1)),
        _named("group.coordinator.cached.buffer.max.bytes", int32(1_048_588, DYNAMIC, _BUFFER, low=524_288)),
        _named("quota.window.num", int32(11, NODE, _QUOTA, low=1)),
        _named("quota.window.size.seconds", int32(1, NODE, _QUOTA, low=1)),
        _named("controller.quota.window.num", int32(11, NODE, _QUOTA, low=1)),
        _named("controller.quota.window.size.seconds", int32(1, NODE, _QUOTA, low=1)),
        _named("alter.log.dirs.replication.quota.window.num", int32(11, NODE, _QUOTA, low=1)),
        _named("alter.log.dirs.replication.quota.window.size.seconds", int32(1, NODE, _QUOTA, low=1)),
        _named("metric.reporters", names((), DYNAMIC, _METRICS, kafka_default=_JMX)),
        _named("metrics.num.samples", int32(2, NODE, _METRICS, low=1)),
        _named("metrics.recording.level", string("INFO", NODE, _METRICS)),
        _named("metrics.sample.window.ms", int64(30_000, NODE, _METRICS, low=1)),
        _named("kafka.metrics.reporters", names((), NODE, _METRICS)),
        _named("kafka.metrics.polling.interval.secs", int32(10, NODE, _METRICS, low=1)),
        _named("telemetry.max.bytes", int32(1_048_576, NODE, "Clients are not asked for telemetry.", low=1)),
        _named("server.max.startup.time.ms", int64(INT64_MAX, NODE, "A start takes as long as it takes.", low=0)),
        _named("connection.failed.authentication.delay.ms", int32(100, NODE, "There is no authentication.", low=0)),
        _named("connections.max.reauth.ms", int64(0, NODE, "There is no authentication.")),
        _named("leader.imbalance.per.broker.percentage", int32(10, NODE, "Any imbalance is put right.", low=0)),
        _named("log.local.retention.ms", int64(-2, DYNAMIC, "There is no remote storage.", low=-2)),
        _named("log.local.retention.bytes", int64(-2, DYNAMIC, "There is no remote storage.", low=-2)),
        _named("follower.fetch.last.tiered.offset.enable", boolean(False, DYNAMIC, "There is no remote storage.")),
        _named("unstable.api.versions.enable", boolean(False, NODE, "What is not finished is not advertised.")),
        _named("unstable.feature.versions.enable", boolean(False, NODE, "What is not finished is not offered.")),
    ]
)
"""Accepted and checked in a node's properties, and then not used. The sentence says why."""

WITHOUT_EFFECT_PREFIXES: tuple[tuple[str, str], ...] = (
    ("group.share.", "Share groups are not served."),
    ("share.coordinator.", "Share groups are not served."),
    ("group.streams.", "Streams groups are not served."),
    ("remote.fetch.", "There is no remote storage."),
    ("remote.list.", "There is no remote storage."),
)
"""The same by the beginning of a name, and not checked."""

TOPIC_WITHOUT_EFFECT: dict[str, Setting] = dict(
    [
        _named("local.retention.ms", int64(-2, NODE, "There is no remote storage.", low=-2)),
        _named("local.retention.bytes", int64(-2, NODE, "There is no remote storage.", low=-2)),
        _named("remote.log.copy.disable", boolean(False, NODE, "There is no remote storage.")),
        _named("remote.log.delete.on.disable", boolean(False, NODE, "There is no remote storage.")),
    ]
)
"""The same for topics."""

_SYSTEM = "the system sizes the buffers of sockets"
_ONE_LEVEL = "each codec has one level"
_GROWING = "segments grow as they are written"
NOT_USED: dict[str, str] = {
    "socket.send.buffer.bytes": _SYSTEM,
    "socket.receive.buffer.bytes": _SYSTEM,
    "replica.socket.receive.buffer.bytes": _SYSTEM,
    "log.dir.failure.timeout.ms": "such a broker goes on trying, and is fenced when its session is over",
    "unclean.leader.election.interval.ms": "the controller looks when something changes that may let one lead",
    "log.initial.task.delay.ms": "the first look is log.retention.check.interval.ms after the start",
    "log.preallocate": _GROWING,
    "preallocate": _GROWING,
    "compression.gzip.level": _ONE_LEVEL,
    "compression.lz4.level": _ONE_LEVEL,
    "compression.zstd.level": _ONE_LEVEL,
    "replica.alter.log.dirs.io.max.bytes.per.second": "moves between directories have no bound",
    "initial.broker.registration.timeout.ms": "such a broker tries until it is let in",
    "controlled.shutdown.enable": "a broker always does, where it reaches the controller",
    "controller.socket.timeout.ms": "request.timeout.ms holds for the controller, too",
    "controller.quorum.append.linger.ms": "records are forced to disk as they come",
    "metadata.max.idle.interval.ms": "an idle leader writes nothing",
    "group.consumer.regex.refresh.interval.ms": "subscriptions are resolved when topics come or go",
    "group.coordinator.append.linger.ms": "records are written as they come",
}
"""Settings of nodes and topics that are checked, kept and shown though nothing uses them: what happens instead."""

_PLAINTEXT = "Tidelog has neither TLS nor SASL: keep it in a network you trust, or put a proxy in front"
_ZOOKEEPER = (
    "there is no ZooKeeper: the metadata is kept by the controller quorum (process.roles, controller.quorum.voters)"
)
_PLUGIN = "Tidelog does not load Java classes"
_GONE = "Apache Kafka 4 has removed it; features are set with tidelog format"

REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "authorizer.class.name": (("",), "Tidelog has no authorization"),
    "remote.log.storage.system.enable": (("false",), "Tidelog has no remote storage"),
    "remote.storage.enable": (("false",), "Tidelog has no remote storage"),
    "alter.config.policy.class.name": ((), _PLUGIN),
    "create.topic.policy.class.name": ((), _PLUGIN),
    "client.quota.callback.class": ((), _PLUGIN),
    "principal.builder.class": ((), _PLUGIN),
    "security.providers": ((), _PLUGIN),
    "config.providers": (("",), _PLUGIN),
    "control.plane.listener.name": ((), _GONE),
    "inter.broker.protocol.version": ((), _GONE),
    "log.message.format.version": ((), _GONE),
    "message.format.version": ((), _GONE),
    "cordoned.log.dirs": (("",), "Tidelog cannot cordon a data directory"),
}
"""By name: the texts that are accepted all the same because they say no, and the reason for refusing the others."""

REFUSED_PREFIXES: tuple[tuple[str, str], ...] = (
    ("ssl.", _PLAINTEXT),
    ("sasl.", _PLAINTEXT),
    ("listener.name.", _PLAINTEXT),
    ("delegation.token.", _PLAINTEXT),
    ("super.users", "Tidelog has no authorization"),
    ("zookeeper.", _ZOOKEEPER),
    ("remote.log.", "Tidelog has no remote storage"),
)
"""The same by the beginning of a name."""


def explained(setting: Setting) -> str:
    """What people are told about a setting, and that it has no effect where it has none."""
    instead = NOT_USED.get(setting.name)
    return setting.doc if instead is None else f"{setting.doc} Without effect: {instead}."


def without_effect(name: str) -> str | None:
    """Why a setting that is accepted has no effect, as the end of a line; None where it has one, or is unknown."""
    known = {**WITHOUT_EFFECT, **TOPIC_WITHOUT_EFFECT}.get(name)
    by_prefix = (reason for prefix, reason in WITHOUT_EFFECT_PREFIXES if name.startswith(prefix))
    reason = NOT_USED.get(name) or (known.doc if known is not None else next(by_prefix, None))
    return None if reason is None else reason.rstrip(".")


def has_no_effect(name: str) -> bool:
    """Whether a node's setting is accepted and then not used."""
    return name in WITHOUT_EFFECT or any(name.startswith(prefix) for prefix, _ in WITHOUT_EFFECT_PREFIXES)


def refusal(name: str, text: str) -> str | None:
    """Why a setting of Kafka's is refused; None when it is not one of those, or says no."""
    if name in REFUSED:
        accepted, reason = REFUSED[name]
        return None if text.strip().lower() in accepted else reason
    return next((reason for prefix, reason in REFUSED_PREFIXES if name.startswith(prefix)), None)
