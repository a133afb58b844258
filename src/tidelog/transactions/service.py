"""The transaction coordinator of a node: finds the shard that looks after a transactional id."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidelog.coordination.coordinator import Coordinator
from tidelog.coordination.shard import Shard, ShardStatus
from tidelog.errors import ErrorCode, KafkaError
from tidelog.replica.replicas import Replicas
from tidelog.transactions.state import Surroundings, TransactionsState

TOPIC = "__transaction_state"


class Transactions:
    """All transactional ids that this node looks after."""

    def __init__(self, replicas: Replicas, surroundings: Surroundings, partitions_of: Callable[[str], int]) -> None:
        self._surroundings = surroundings
        self._partitions_of = partitions_of
        self.coordinator: Coordinator[TransactionsState] = Coordinator(TOPIC, replicas, self._make_state)

    def _make_state(self, shard: Callable[[], Shard]) -> TransactionsState:
        return TransactionsState(self._surroundings, shard)

    def state_of(self, transactional_id: str) -> TransactionsState:
        """The state with a transactional id; raises what a client is told when that is not here or not read yet."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
        shard = self.coordinator.shard_of(transactional_id, self._partitions_of(TOPIC))
        assert isinstance(shard.state, TransactionsState)
        return shard.state

    def states(self) -> Iterator[TransactionsState]:
        """Every shard of this node that has been read."""
        for shard in self.coordinator.shards.values():
            if shard.status is ShardStatus.ACTIVE and isinstance(shard.state, TransactionsState):
                yield shard.state

    @property
    def is_loading(self) -> bool:
        """Whether some shard is still being read."""
        return any(shard.status is ShardStatus.LOADING for shard in self.coordinator.shards.values())
