"""How coordinators and leaders of one cluster speak about transactions: inside this node, or over the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidelog.controller.levels import TRANSACTION_VERSION
from tidelog.coordination.coordinator import partition_for
from tidelog.errors import KafkaError
from tidelog.events import LOCAL_CONNECTION, Request
from tidelog.outbox import SendContinuation
from tidelog.transactions.markers import NO_LEADER, MarkerSender
from tidelog.transactions.service import TOPIC, Transactions
from tidelog.transactions.state import Surroundings
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.write_txn_markers import WriteTxnMarkersRequest

if TYPE_CHECKING:
    from tidelog.node.node import Node

MARKER_CHANNEL = "markers"
MARKERS_VERSION = 2
NO_ADDRESS = "no address is known"
NO_ANSWER = "no answer in time"


class TransactionLinks:
    """Asks other brokers, or this one, what concerns transactions."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def ask(self, broker_id: int, channel: str, api_key: int, version: int, body: Any, then: SendContinuation) -> None:
        """Ask a broker; its answer, or why there is none, comes in a later step or at the end of this one."""
        node = self._node
        if broker_id == node.node_id:
            self._ask_here(api_key, version, body, then)
            return
        address = node.broker.address_of(broker_id)
        if address is None:
            number = node.outbox.expect(then)
            node.outbox.at_end_of_step(lambda: node.outbox.resume(number, None, NO_ADDRESS))
            return
        node.outbox.send(address, channel, api_key, version, body, node.config.request_timeout_ms, then)

    def _ask_here(self, api_key: int, version: int, body: Any, then: SendContinuation) -> None:
        from tidelog.node.apis import BROKER_HANDLERS

        node = self._node

        def answered(response: Any, error: str | None) -> None:
            timer.cancel()
            then(response, error)

        number = node.outbox.expect(answered)
        # As long as another node would be waited for: what cannot be written here holds nothing else up.
        timer = node.outbox.after(node.config.request_timeout_ms, lambda: node.outbox.resume(number, None, NO_ANSWER))
        request = Request(LOCAL_CONNECTION, number, api_key, version, None, body)
        try:
            response = BROKER_HANDLERS[api_key](node, request)
        except KafkaError as error:
            response = node.error_response(request, error.code, error.message)
        if response is not None:
            node.outbox.reply(request.connection_id, request.slot, response)

    def ask_for_markers(self, broker_id: int, body: WriteTxnMarkersRequest, then: SendContinuation) -> None:
        """Have a leader write markers."""
        self.ask(broker_id, MARKER_CHANNEL, ApiKey.WRITE_TXN_MARKERS, MARKERS_VERSION, body, then)

    def leader_of(self, topic: str, index: int) -> int | None:
        """The living leader of a partition, -1 when it has none, None when there is no such partition."""
        image = self._node.image
        found = image.topic(topic)
        partition = None if found is None else found.partitions.get(index)
        if partition is None:
            return None
        broker = image.brokers.get(partition.leader)
        return NO_LEADER if broker is None or broker.fenced else partition.leader

    def coordinator_of(self, transactional_id: str) -> int:
        """The broker that looks after a transactional id; -1 when there is none now."""
        partitions = self._node.group_topics.partitions_of(TOPIC)
        if not partitions:
            return NO_LEADER
        leader = self.leader_of(TOPIC, partition_for(transactional_id, partitions))
        return NO_LEADER if leader is None else leader


def make_transactions(node: Node) -> Transactions:
    """This node's transaction coordinator."""
    surroundings = Surroundings(
        node.outbox,
        lambda: node.broker.config,
        lambda: node.image.features.get(TRANSACTION_VERSION, 0),
        node.producer_ids.next,
        MarkerSender(node.outbox, node.transaction_links.ask_for_markers, node.transaction_links.leader_of),
    )
    return Transactions(node.replicas, surroundings, node.group_topics.partitions_of)
