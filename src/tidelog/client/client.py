"""Ask any broker, a certain broker, or the leaders of partitions; with retries that end."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Self, TypeVar

from tidelog.client.backoff import Deadline, error_of
from tidelog.client.connection import Connection
from tidelog.client.metadata import Broker, Metadata, TopicView
from tidelog.errors import ConfigError, ErrorCode, KafkaError
from tidelog.wire.message import Message
from tidelog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

TopicPartition = tuple[str, int]
Answered = TypeVar("Answered")

_BROKEN = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
_NEW_TOPIC_PATIENCE_MS = 1_000
"""A topic just made may not be known to every broker yet; after this an unknown topic is believed to be unknown."""


class Client:
    """A cluster as seen from outside. Connections are made when needed and kept."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "tidelog",
        timeout_ms: int = 30_000,
        bootstrap_timeout_ms: int = 0,
    ) -> None:
        """`bootstrap_timeout_ms` is how long to wait for a first broker to appear; 0 asks each of them once."""
        self.client_id = client_id
        self.timeout_ms = timeout_ms
        self.metadata = Metadata()
        self._bootstrap_timeout_ms = bootstrap_timeout_ms
        self._bootstrap = parse_bootstrap(bootstrap)
        self._connections: dict[tuple[str, int, str], Connection] = {}
        self._has_met_cluster = False
        self._last_asked: tuple[str, int] | None = None
        """Who was chosen when any broker would do."""
        self._avoided: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        for connection in list(self._connections.values()):
            connection.close()
        self._connections.clear()

    def close_channel(self, channel: str) -> None:
        """Close the connections of one channel: whoever had it to itself is gone."""
        for key in [key for key in list(self._connections) if key[2] == channel]:
            self._connections.pop(key).close()

    # --- asking ---

    def turn_elsewhere(self) -> None:
        """What was heard last does not help, and whoever told it may be cut off from the others: ask another next time.

        Such a broker goes on believing that it leads, and would be believed for as long as it is asked.
        """
        self._avoided = self._last_asked

    def ask(self, request: Message, *, broker_id: int | None = None, timeout_ms: int | None = None) -> Any:
        """Ask one broker, by default whichever answers; a broken connection is tried again until the timeout.

        Errors inside the answer are the caller's: only it knows where the answer keeps them.
        """
        deadline = Deadline(self.timeout_ms if timeout_ms is None else timeout_ms)
        while True:
            try:
                connection = self.connect(broker_id, deadline)
                return connection.call(request, deadline.remaining_ms)
            except KafkaError as error:
                if error.code not in _BROKEN or not self._has_met_cluster:
                    raise
                deadline.pause(error)
                if broker_id is not None:
                    self.refresh(deadline=deadline)

    def connect(self, broker_id: int | None, deadline: Deadline, channel: str = "") -> Connection:
        """A connection to a broker, or to any. `channel` keeps long polls off the connection others wait on."""
        if broker_id is not None:
            if broker_id not in self.metadata.brokers:
                self.refresh(deadline=deadline)
            broker = self.metadata.brokers.get(broker_id)
            if broker is None:
                raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no broker {broker_id} in the cluster")
            return self._connection(broker.host, broker.port, channel, deadline)
        return self._connect_any(channel, deadline)

    def _connect_any(self, channel: str, deadline: Deadline) -> Connection:
        for connection in list(self._connections.values()):
            address = (connection.host, connection.port)
            if connection.is_open and connection.is_idle and not channel and address != self._avoided:
                self._last_asked = address
                return connection
        first_contact = Deadline(max(self._bootstrap_timeout_ms, 1))
        while True:
            failures = []
            for host, port in self._candidates():
                try:
                    connection = self._connection(host, port, channel, deadline)
                    self._has_met_cluster = True
                    self._last_asked = (host, port)
                    return connection
                except KafkaError as error:
                    failures.append(error)
                    if error.code not in _BROKEN:
                        raise
            failure = KafkaError(ErrorCode.NETWORK_EXCEPTION, "no broker answers: " + "; ".join(map(str, failures)))
            if self._has_met_cluster:
                deadline.pause(failure)
            else:
                first_contact.pause(failure)

    def _candidates(self) -> list[tuple[str, int]]:
        """Known brokers in a random order, so that clients spread; then the bootstrap list, which may have moved.

        One to be avoided comes behind the others that are known, and before those that only may be there.
        """
        known = [(broker.host, broker.port) for broker in self.metadata.brokers.values()]
        random.shuffle(known)
        rest = [address for address in self._bootstrap if address not in known]
        return [*self._avoided_last(known), *self._avoided_last(rest)]

    def _avoided_last(self, addresses: list[tuple[str, int]]) -> list[tuple[str, int]]:
        return sorted(dict.fromkeys(addresses), key=lambda address: address == self._avoided)

    def _connection(self, host: str, port: int, channel: str, deadline: Deadline) -> Connection:
        key = (host, port, channel)
        connection = self._connections.get(key)
        if connection is None or not connection.is_open:
            timeout_ms = max(1, min(deadline.remaining_ms, 10_000))
            connection = Connection(host, port, client_id=self.client_id, timeout_ms=timeout_ms)
            self._connections[key] = connection
        return connection

    # --- metadata ---

    def refresh(
        self,
        topics: Iterable[str] | None = (),
        *,
        deadline: Deadline | None = None,
        create: bool = False,
    ) -> Metadata:
        """Ask for brokers and topics (None: all topics; by default those already known)."""
        deadline = deadline or Deadline(self.timeout_ms)
        if topics is None:
            self.metadata.topics.clear()
            wanted = None
        else:
            wanted = [MetadataRequestTopic(name=name) for name in sorted({*topics, *self.metadata.topics})]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        while True:
            try:
                connection = self._connect_any("", deadline)
                self.metadata.update(connection.call(request, deadline.remaining_ms))
                return self.metadata
            except KafkaError as error:
                if error.code not in _BROKEN or not self._has_met_cluster:
                    raise
                deadline.pause(error)

    def topic(
        self, name: str, *, create: bool = False, timeout_ms: int | None = None, led: Collection[int] | None = None
    ) -> TopicView:
        """A topic with a leader for every partition, waiting for one that was just made.

        `led` are the partitions that need one; others may have none, for as long as nobody asks for them.
        """
        deadline = Deadline(self.timeout_ms if timeout_ms is None else timeout_ms)
        unknown = Deadline(min(_NEW_TOPIC_PATIENCE_MS, deadline.timeout_ms))
        while True:
            self.refresh([name], deadline=deadline, create=create)
            view = self.metadata.topics.get(name)
            code = self.metadata.topic_errors.get(name, 0)
            try:
                if view is not None:
                    for partition in view.partitions if led is None else set(led).intersection(view.partitions):
                        self.metadata.leader_of(name, partition)
                    return view
                raise error_of(code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
            except KafkaError as error:
                if not error.code.retriable:
                    raise error_of(error.code, f"topic {name!r} is not possible") from None
                patient = error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or create
                (deadline if patient else unknown).pause(error)
                self.turn_elsewhere()

    # --- leaders ---

    def ask_leaders(
        self,
        partitions: Sequence[TopicPartition],
        build: Callable[[list[TopicPartition]], Message],
        read: Callable[[Any], Iterable[tuple[TopicPartition, int, Answered]]],
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, Answered]:
        """Ask each partition's leader; partitions with a retriable error are asked again, of whoever leads then."""
        deadline = Deadline(self.timeout_ms if timeout_ms is None else timeout_ms)
        for topic in {topic for topic, partition in partitions if not self.metadata.knows(topic, partition)}:
            wanted_here = [number for name, number in partitions if name == topic]
            self.topic(topic, timeout_ms=deadline.remaining_ms, led=wanted_here)
        results: dict[TopicPartition, Answered] = {}
        while True:
            failure: KafkaError | None = None
            by_leader: dict[int, list[TopicPartition]] = {}
            for topic, partition in partitions:
                if (topic, partition) not in results:
                    try:
                        leader = self.metadata.leader_of(topic, partition).leader
                        by_leader.setdefault(leader, []).append((topic, partition))
                    except KafkaError as error:
                        if error.code != ErrorCode.LEADER_NOT_AVAILABLE:
                            raise
                        failure = error
            for leader, wanted in by_leader.items():
                try:
                    answer = self.connect(leader, deadline).call(build(wanted), deadline.remaining_ms)
                except KafkaError as error:
                    if error.code not in (*_BROKEN, ErrorCode.BROKER_NOT_AVAILABLE):
                        raise
                    failure = error
                    continue
                for where, code, value in read(answer):
                    if code == ErrorCode.NONE:
                        results[where] = value
                        continue
                    failure = error_of(code, f"partition {where[0]}-{where[1]}")
                    if not failure.code.retriable:
                        raise failure
            if len(results) == len(set(partitions)):
                return results
            deadline.pause(failure or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a broker left out a partition"))
            self.turn_elsewhere()
            self.refresh({topic for topic, _ in partitions}, deadline=deadline)

    def broker(self, broker_id: int) -> Broker:
        """A broker by its id, as far as it is known."""
        return self.metadata.brokers[broker_id]


def parse_bootstrap(text: str) -> list[tuple[str, int]]:
    """`host:port,host:port` as pairs; IPv6 addresses stand in brackets."""
    addresses = []
    for word in text.split(","):
        host, colon, port = word.strip().rpartition(":")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigError(f"bootstrap {word.strip()!r} is not HOST:PORT")
        addresses.append((host.strip("[]"), int(port)))
    return addresses
