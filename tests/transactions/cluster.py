"""Three simulated nodes, and a transactional producer that finds its way among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.transactions.requests import BUSY, V1, Outcome, Requests, Versions
from tidelog.coordination.coordinator import partition_for
from tidelog.errors import ErrorCode
from tidelog.sim.cluster import NoAnswer, SimulatedCluster
from tidelog.transactions.service import TOPIC as STATE_TOPIC
from tidelog.transactions.transaction import Transaction
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import iterate_batches, iterate_records
from tidelog.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

TOPIC = "events"
ID = "payments"
GROUP = "readers"
STATE_PARTITIONS = 3


class Three(SimulatedCluster):
    """`events` has three partitions, each on one node alone: partition n is on node n + 1."""

    def __init__(self, seed: int, replicas: list[list[int]] | None = None, **settings: str) -> None:
        defaults = {
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": str(STATE_PARTITIONS),
            "group.initial.rebalance.delay.ms": "0",
            "replication.events.enable": "false",
        }
        super().__init__(seed, 3, {**defaults, **{name.replace("_", "."): text for name, text in settings.items()}})
        self.start_all()
        topic = CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1)
        topic.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=broker_ids)
            for index, broker_ids in enumerate(replicas or [[1], [2], [3]])
        ]
        answer = self.ask(1, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic])).topics[0]
        assert answer.error_code == 0, answer
        self.requests = Requests(self._route, TOPIC, lambda: self.pass_ms(50))

    # --- where things are ---

    def pass_ms(self, duration_ms: int) -> None:
        self.world.run_for(duration_ms)

    def leader(self, topic: str, index: int) -> int:
        found = self.newest_image().topic(topic)
        return -1 if found is None else found.partitions[index].leader

    def coordinator(self, transactional_id: str = ID) -> int:
        return self.leader(STATE_TOPIC, partition_for(transactional_id, STATE_PARTITIONS))

    def _route(self, api_key: ApiKey, version: int, body: Any) -> Any:
        """As a client does it: to the coordinator or the leader, wherever that is by now."""
        for _ in range(100):
            try:
                return self.ask(self._target(api_key, body), api_key, version, body, 5_000)
            except NoAnswer:
                self.pass_ms(100)
        raise AssertionError(f"nobody answers {api_key.name}")

    def _target(self, api_key: ApiKey, body: Any) -> int:
        living = self.living()
        if api_key is ApiKey.PRODUCE:
            found = self.leader(TOPIC, body.topic_data[0].partition_data[0].index)
        elif api_key is ApiKey.TXN_OFFSET_COMMIT:
            found = self.leader("__consumer_offsets", partition_for(body.group_id, 3))
        elif api_key is ApiKey.FIND_COORDINATOR:
            found = living[0]
        else:
            found = self.coordinator()
        return found if found in living else living[0]

    # --- a producer ---

    def init(self) -> Outcome:
        """A producer for the transactional id."""
        self.requests.until_settled(self._found)
        made = self.requests.until_settled(lambda: self.requests.init(ID))
        assert made.code is ErrorCode.NONE, made
        return Outcome(*made)

    def find_group(self) -> None:
        """The group has a coordinator."""
        found = ErrorCode.NONE, ErrorCode.NOT_COORDINATOR
        self.requests.until_settled(lambda: found[self.requests.find(GROUP, key_type=0) < 0])

    def _found(self) -> ErrorCode:
        return ErrorCode.NONE if self.requests.find(ID) >= 0 else ErrorCode.NOT_COORDINATOR

    def write(self, producer: Outcome, versions: Versions, index: int, value: bytes, sequence: int = 0) -> None:
        """One record within the transaction."""
        identity = (ID, producer.producer_id, producer.epoch)
        requests = self.requests
        if versions is V1:
            assert requests.until_settled(lambda: requests.add(*identity, index)) == [ErrorCode.NONE]
        produced = requests.until_settled(
            lambda: requests.produce(*identity, sequence, index=index, version=versions.produce, value=value)
        )
        assert produced is ErrorCode.NONE, produced

    def end(self, producer: Outcome, versions: Versions, commit: bool) -> Outcome:
        """The answer, after coming again as often as asked to."""
        identity = (ID, producer.producer_id, producer.epoch)
        ended = self.requests.until_settled(lambda: self.requests.end(*identity, commit, version=versions.end))
        return Outcome(*ended)

    # --- what is there ---

    def transaction(self, transactional_id: str = ID) -> Transaction | None:
        """As the present coordinator knows it; None while there is none that has read it."""
        node_id = self.coordinator(transactional_id)
        if node_id not in self.living():
            return None
        for state in self.process(node_id).node.transactions.states():
            if transactional_id in state.transactions:
                return state.transactions[transactional_id]
        return None

    def wait_for_state(self, name: str) -> Transaction:
        def is_there() -> bool:
            found = self.transaction()
            return found is not None and found.state.public_name == name

        assert self.world.run_until(is_there, 30_000), f"{name} expected: {self.transaction()}"
        found = self.transaction()
        assert found is not None
        return found

    def wait_for_all(self) -> None:
        """Every node is up again."""
        assert self.world.run_until(lambda: all(self.is_running(one) for one in self.node_ids), 60_000)

    def fetch(self, index: int, node_id: int | None = None, offset: int = 0, isolation: int = 1) -> Any:
        """A partition's answer to a reader of committed records."""
        wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            isolation_level=isolation,
            topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
        )
        target = self.leader(TOPIC, index) if node_id is None else node_id
        return self.ask(target, ApiKey.FETCH, 12, request).responses[0].partitions[0]

    def committed_values(self, index: int, node_id: int | None = None) -> list[bytes]:
        return committed(self.fetch(index, node_id))

    def has_marker(self, index: int) -> bool:
        """Whether any marker is in a partition, committed or not."""
        log = self.process(self.leader(TOPIC, index)).node.replicas.partitions[TOPIC, index].log
        found = log.read(0, 1 << 20, up_to_offset=log.log_end_offset)
        return any(batch.is_control for part in found.parts for batch in iterate_batches(part.read()))


def committed(data: Any) -> list[bytes]:
    """What a client makes of a Fetch answer: aborted transactions are left out, as it is told where they begin."""
    begins = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    aborted: set[int] = set()
    values: list[bytes] = []
    for batch in iterate_batches(data.records) if data.records else ():
        while begins and begins[0][0] <= batch.last_offset:
            aborted.add(begins.pop(0)[1])
        if batch.is_control:
            aborted.discard(batch.producer_id)
        elif batch.producer_id not in aborted or not batch.is_transactional:
            values += [bytes(record.value or b"") for record in iterate_records(batch)]
    return values


def code_of(action: Callable[[], Any]) -> ErrorCode:
    """The code of one try, without coming again."""
    found = action()
    return found.code if isinstance(found, Outcome) else ErrorCode(found)


__all__ = ("BUSY", "GROUP", "ID", "STATE_TOPIC", "TOPIC", "Three", "code_of", "committed")
