"""The private query of Tidelog's nodes: what Kafka's protocol has no words for. It is not advertised; a node of Apache
Kafka ends the connection instead of an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tidelog.client.backoff import raise_for
from tidelog.client.connection import Connection
from tidelog.errors import ErrorCode, KafkaError
from tidelog.wire.private_query import TidelogQueryRequest, TidelogQueryResponse

_VERSION = 0


def query(connection: Connection, question: str, arguments: Mapping[str, Any], timeout_ms: int) -> dict[str, Any]:
    """Ask one node; KafkaError when it cannot be reached, or does not know the question."""
    request = TidelogQueryRequest(question=question, arguments=json.dumps(dict(arguments)))
    connection.send(request, _VERSION, timeout_ms)
    answer: TidelogQueryResponse = connection.receive(timeout_ms)
    raise_for(answer.error_code, answer.error_message)
    try:
        found: dict[str, Any] = json.loads(answer.answer)
    except ValueError:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer to a private query is not JSON") from None
    return found


class NodeQueries:
    """Asks several nodes the same, keeps the connections, and takes silence for an answer."""

    def __init__(self, addresses: Mapping[int, tuple[str, int]], *, timeout_ms: int) -> None:
        self.addresses = dict(addresses)
        """Host and port of each node; may be changed at any time."""
        self._timeout_ms = timeout_ms
        self._connections: dict[int, Connection] = {}

    def ask(
        self, question: str, arguments: Mapping[str, Any] | None = None, nodes: Iterable[int] | None = None
    ) -> dict[int, dict[str, Any] | KafkaError]:
        """What each node said, or why it said nothing."""
        answers: dict[int, dict[str, Any] | KafkaError] = {}
        for node_id in self.addresses if nodes is None else nodes:
            try:
                answers[node_id] = query(self._connection(node_id), question, arguments or {}, self._timeout_ms)
            except KafkaError as error:
                self._forget(node_id)
                answers[node_id] = error
        return answers

    def close(self) -> None:
        """Close every connection."""
        for node_id in list(self._connections):
            self._forget(node_id)

    def _connection(self, node_id: int) -> Connection:
        connection = self._connections.get(node_id)
        if connection is None or not connection.is_open:
            host, port = self.addresses[node_id]
            connection = Connection(host, port, client_id="tidelog-query", timeout_ms=self._timeout_ms)
            self._connections[node_id] = connection
        return connection

    def _forget(self, node_id: int) -> None:
        connection = self._connections.pop(node_id, None)
        if connection is not None:
            connection.close()
