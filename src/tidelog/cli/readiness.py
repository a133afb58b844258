"""Whether a local cluster can be worked with: every broker is in, and the controller would make a topic."""

from __future__ import annotations

from tidelog.client.connection import Connection
from tidelog.errors import KafkaError
from tidelog.runtime.cluster_plan import HOST, ClusterPlan
from tidelog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.messages.describe_cluster import DescribeClusterRequest

_TIMEOUT_MS = 2_000


class Readiness:
    """Asks every broker until it knows all brokers, then one whether the controller would make a topic on them all.

    A broker tells of others only once they are unfenced, so that all told is all may lead; and a controller that
    would make a topic is active and has caught up. Nothing is made: the question is `validate_only`.
    """

    def __init__(self, plan: ClusterPlan) -> None:
        self._brokers = {node.node_id: node.port for node in plan.nodes if node.port is not None}
        self._waiting = dict(self._brokers)
        self._connections: dict[int, Connection] = {}
        self.why = "nothing asked yet"
        """What was missing at the last check."""

    def check(self) -> bool:
        """Ask once; True when ready."""
        for broker_id, port in list(self._waiting.items()):
            if self._knows_all(broker_id, port):
                del self._waiting[broker_id]
        return not self._waiting and self._would_make_topic()

    def close(self) -> None:
        """Close what was opened."""
        for connection in self._connections.values():
            connection.close()

    def _knows_all(self, broker_id: int, port: int) -> bool:
        try:
            answer = self._connection(broker_id, port).call(DescribeClusterRequest(), _TIMEOUT_MS)
        except KafkaError as error:
            self.why = f"node {broker_id}: {error}"
            return False
        missing = set(self._brokers) - {broker.broker_id for broker in answer.brokers}
        if answer.error_code or missing or answer.controller_id < 0:
            self.why = f"node {broker_id} knows no controller" if not missing else f"node {min(missing)} is not in yet"
            return False
        return True

    def _would_make_topic(self) -> bool:
        broker_id, port = next(iter(self._brokers.items()))
        # One partition on every broker is possible only when the controller counts them all as alive.
        topic = CreatableTopic(name="ready", num_partitions=1, replication_factor=len(self._brokers))
        request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS, validate_only=True)
        try:
            answer = self._connection(broker_id, port).call(request, _TIMEOUT_MS)
        except KafkaError as error:
            self.why = f"node {broker_id}: {error}"
            return False
        code = answer.topics[0].error_code if answer.topics else -1
        if code not in (0, 36):  # a topic of that name may be there already; that is an answer as good
            self.why = f"the controller makes no topic yet (error {code})"
            return False
        return True

    def _connection(self, broker_id: int, port: int) -> Connection:
        connection = self._connections.get(broker_id)
        if connection is None or not connection.is_open:
            connection = Connection(HOST, port, client_id="tidelog-up", timeout_ms=_TIMEOUT_MS)
            self._connections[broker_id] = connection
        return connection
