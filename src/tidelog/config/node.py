"""A node's settings as the node uses them: read from properties, checked one by one and against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelog.config.listeners import (
    Listener,
    Voter,
    parse_address_overrides,
    parse_addresses,
    parse_listeners,
    parse_voters,
)
from tidelog.config.node_settings import NodeSettings
from tidelog.config.others import REFUSED, WITHOUT_EFFECT, has_no_effect, refusal
from tidelog.config.setting import Scope, nearest
from tidelog.errors import ConfigError


class NodeConfig(NodeSettings):
    """The settings of one node. `from_properties` checks them; the constructor takes checked values, as tests do."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> NodeConfig:
        """Read Kafka's properties. ConfigError names the first setting that is wrong; nothing is half-applied."""
        values = parse_values(properties)
        if "broker.id" in properties:
            broker_id = _read_broker_id(properties["broker.id"])
            if values.setdefault("node_id", broker_id) != broker_id:
                raise ConfigError("broker.id: it must be the same as node.id, or left out")
        if "node_id" not in values:
            raise ConfigError("node.id: it is missing and has no default")
        values["log_dirs"] = values.get("log_dirs") or values.get("log_dir") or ()
        config = cls(**values, given=dict(properties))
        config.check()
        return config

    def with_dynamic(self, overrides: Mapping[str, str]) -> NodeConfig:
        """These settings with run-time changes over them; unknown or unchangeable ones are refused by name."""
        if not overrides:
            return self
        validate_node_overrides(overrides)
        return self.replace(**parse_values(overrides))

    # --- what follows from the settings ---

    @property
    def is_broker(self) -> bool:
        """Whether it serves clients."""
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        """Whether it votes in the quorum."""
        return "controller" in self.process_roles

    @property
    def metadata_directory(self) -> str:
        """The directory that holds the metadata log."""
        return self.metadata_log_dir or self.log_dirs[0]

    @property
    def listener_addresses(self) -> tuple[Listener, ...]:
        """Every address to listen on."""
        return parse_listeners("listeners", self.listeners)

    @property
    def controller_listener_set(self) -> frozenset[str]:
        """The names of the controller's listeners, in capitals as listeners have them."""
        return frozenset(name.upper() for name in self.controller_listener_names)

    @property
    def broker_addresses(self) -> tuple[Listener, ...]:
        """The addresses to listen on for clients and brokers."""
        return tuple(entry for entry in self.listener_addresses if entry.name not in self.controller_listener_set)

    @property
    def controller_addresses(self) -> tuple[Listener, ...]:
        """What other nodes are told of the controller's listeners: as advertised.listeners has them, else as they are.

        An empty host is filled in as in `advertised_addresses`.
        """
        told = {entry.name: entry for entry in parse_listeners("advertised.listeners", self.advertised_listeners or ())}
        names = self.controller_listener_set
        return tuple(told.get(entry.name, entry) for entry in self.listener_addresses if entry.name in names)

    @property
    def advertised_addresses(self) -> tuple[Listener, ...]:
        """What clients and brokers are told of this node: without the controller's listeners.

        A listener with an empty host is told as it is; whoever opens the socket fills in the host, as it fills in a
        port 0.
        """
        hidden = self.controller_listener_set
        entries = self.listeners if self.advertised_listeners is None else self.advertised_listeners
        return tuple(entry for entry in parse_listeners("advertised.listeners", entries) if entry.name not in hidden)

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener that brokers use among themselves; empty on a controller that is no broker."""
        if self.inter_broker_listener_name:
            return self.inter_broker_listener_name.upper()
        return next((entry.name for entry in self.broker_addresses), "")

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The voters of controller.quorum.voters; empty where they are in the metadata log (KIP-853)."""
        return parse_voters("controller.quorum.voters", self.controller_quorum_voters)

    @property
    def quorum_bootstrap_addresses(self) -> tuple[tuple[str, int], ...]:
        """Where to look for the quorum."""
        return parse_addresses("controller.quorum.bootstrap.servers", self.controller_quorum_bootstrap_servers)

    @property
    def peer_addresses(self) -> dict[tuple[str, int], tuple[str, int]]:
        """Advertised addresses of other nodes that are reached somewhere else."""
        return parse_address_overrides("peer.address.overrides", self.peer_address_overrides)

    # --- checks of settings against each other ---

    def check(self) -> None:
        """Raise ConfigError for the first setting that contradicts another."""
        if not self.process_roles:
            raise ConfigError("process.roles: it must name broker, controller or both")
        if not self.log_dirs:
            raise ConfigError("log.dirs: it must name at least one directory")
        self._check_listeners()
        self._check_quorum()
        parse_connection_overrides(self.max_connections_per_ip_overrides)
        parse_address_overrides("peer.address.overrides", self.peer_address_overrides)
        if self.broker_session_timeout_ms < 2 * self.broker_heartbeat_interval_ms:
            raise ConfigError("broker.session.timeout.ms: it must be at least twice broker.heartbeat.interval.ms")
        if self.transaction_two_phase_commit_enable:
            raise ConfigError("transaction.two.phase.commit.enable: Tidelog has no two-phase commit")
        for lower, upper in _IN_ORDER:
            if getattr(self, lower) > getattr(self, upper):
                raise ConfigError(f"{lower.replace('_', '.')}: it must not be above {upper.replace('_', '.')}")

    def _check_listeners(self) -> None:
        names = {entry.name for entry in self.listener_addresses}
        for pair in self.listener_security_protocol_map.split(","):
            name, _, protocol = pair.strip().partition(":")
            if name.upper() in names and protocol.upper() != "PLAINTEXT":
                raise ConfigError(f"listener.security.protocol.map: {pair.strip()}: only PLAINTEXT is served")
        for entry in self.advertised_addresses:
            if entry.host in ("0.0.0.0", "::"):  # noqa: S104 - it is refused here
                raise ConfigError(f"advertised.listeners: {entry}: a client cannot connect to every interface")
            if self.advertised_listeners is not None and entry.name not in names:
                raise ConfigError(f"advertised.listeners: {entry.name} is not among the listeners")
        if self.is_broker and not self.advertised_addresses:
            raise ConfigError("listeners: a broker needs one that is not in controller.listener.names")
        if not self.is_broker and self.broker_addresses:
            raise ConfigError(f"listeners: {self.broker_addresses[0].name} is not in controller.listener.names")
        if self.is_broker and self.inter_broker_listener not in {entry.name for entry in self.advertised_addresses}:
            raise ConfigError(f"inter.broker.listener.name: {self.inter_broker_listener} is not an advertised listener")
        if self.is_broker and not self.is_controller and self.controller_addresses:
            raise ConfigError("listeners: a node that is no controller must not open a controller's listener")

    def _check_quorum(self) -> None:
        voters = self.voters
        found_by = voters or self.quorum_bootstrap_addresses
        if not self.is_controller:
            if any(voter.node_id == self.node_id for voter in voters):
                raise ConfigError(f"controller.quorum.voters: node {self.node_id} is no controller")
            if not found_by:
                raise ConfigError("controller.quorum.voters: a broker alone must know where the quorum is")
            if not self.controller_listener_names:
                raise ConfigError("controller.listener.names: a broker alone must name the controller's listener")
            return
        if voters and not any(voter.node_id == self.node_id for voter in voters):
            raise ConfigError(f"controller.quorum.voters: node {self.node_id} is a controller and must be in it")
        missing = self.controller_listener_set - {entry.name for entry in self.listener_addresses}
        if missing:
            raise ConfigError(f"controller.listener.names: {min(missing)} is not among the listeners")
        if found_by and not self.controller_addresses:
            raise ConfigError("controller.listener.names: a controller must name a listener of its own")


_IN_ORDER = (
    ("replica_fetch_wait_max_ms", "replica_socket_timeout_ms"),
    ("replica_fetch_wait_max_ms", "replica_lag_time_max_ms"),
    ("log_cleaner_min_compaction_lag_ms", "log_cleaner_max_compaction_lag_ms"),
    ("group_min_session_timeout_ms", "group_max_session_timeout_ms"),
    ("group_consumer_min_session_timeout_ms", "group_consumer_session_timeout_ms"),
    ("group_consumer_session_timeout_ms", "group_consumer_max_session_timeout_ms"),
    ("group_consumer_min_heartbeat_interval_ms", "group_consumer_heartbeat_interval_ms"),
    ("group_consumer_heartbeat_interval_ms", "group_consumer_max_heartbeat_interval_ms"),
    ("group_consumer_heartbeat_interval_ms", "group_consumer_session_timeout_ms"),
    ("group_consumer_min_assignment_interval_ms", "group_consumer_assignment_interval_ms"),
    ("group_consumer_assignment_interval_ms", "group_consumer_max_assignment_interval_ms"),
)


def parse_values(properties: Mapping[str, str]) -> dict[str, Any]:
    """The checked values of a node's properties by attribute; what is without effect is checked and left out."""
    values: dict[str, Any] = {}
    for name, text in properties.items():
        setting = NodeConfig.SETTINGS.get(name)
        if setting is not None:
            values[setting.attribute] = setting.parse(text)
        elif name in WITHOUT_EFFECT:
            WITHOUT_EFFECT[name].parse(text)
        elif name != "broker.id" and not has_no_effect(name):
            reason = refusal(name, text)
            if reason is not None:
                raise ConfigError(f"{name}: {reason}")
            if name not in REFUSED:
                raise unknown_setting(name, (*NodeConfig.SETTINGS, *WITHOUT_EFFECT))
    return values


def validate_node_overrides(overrides: Mapping[str, str]) -> None:
    """Check settings given to a running broker; ConfigError names one that is unknown, wrong or fixed at the start."""
    for name in overrides:
        setting = NodeConfig.SETTINGS.get(name) or WITHOUT_EFFECT.get(name)
        if setting is not None and setting.scope is Scope.NODE:
            raise ConfigError(f"{name}: it is fixed when the node starts; set it in the properties file")
    values = parse_values(overrides)
    parse_connection_overrides(values.get("max_connections_per_ip_overrides", ""))


def unknown_setting(name: str, known: tuple[str, ...]) -> ConfigError:
    """The refusal of a name nobody knows, with the one that was probably meant."""
    like = nearest(name, known)
    return ConfigError(f"{name}: there is no such setting" + (f"; did you mean {like}?" if like else ""))


def parse_connection_overrides(text: str) -> dict[str, int]:
    """The exceptions of max.connections.per.ip.overrides by address."""
    found: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        address, separator, count = entry.rpartition(":")
        if not separator or not address or not count.isdecimal():
            raise ConfigError(f"max.connections.per.ip.overrides: {entry!r} is not address:count")
        found[address] = int(count)
    return found


def _read_broker_id(text: str) -> int:
    value: int = NodeConfig.SETTINGS["node.id"].parse(text)
    return value
