"""Transactional producers, some of them zombies, on three simulated nodes under faults; everything drawn from one seed.

Each producer is written as if it were alone: its requests stop its thread until the answer is there, and never more
than one thread runs, so that a seed is one history.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from tests.transactions.cluster import GROUP, STATE_PARTITIONS, TOPIC, committed
from tests.transactions.requests import BUSY, V1, V2, Outcome, Requests, Versions
from tidelog.coordination.coordinator import partition_for
from tidelog.errors import ErrorCode
from tidelog.sim.cluster import NoAnswer, SimulatedCluster
from tidelog.transactions.service import TOPIC as STATE_TOPIC
from tidelog.wire.apis import ApiKey
from tidelog.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tidelog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

PARTITIONS = 3
PRODUCERS = 3
REQUEST_MS = 3_000
FAULTS_MS = 20_000
SETTLE_MS = 300_000
REPLICAS = ([1, 2, 3], [2, 3, 1], [3, 1, 2])


class Stopped(Exception):
    """The swarm is over."""


class GaveUp(Exception):
    """A producer met an error it cannot go on after, with its identity."""


class Script(threading.Thread):
    """A thread that runs only while the world waits for it."""

    def __init__(self, swarm: Swarm, body: Callable[[Script], None]) -> None:
        super().__init__(daemon=True)
        self._swarm = swarm
        self._body = body
        self._mine, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self._answer: Any = None
        self.is_over = False
        self.failure: BaseException | None = None

    def run(self) -> None:
        self._mine.acquire()
        try:
            self._body(self)
        except Stopped:
            pass
        except BaseException as error:  # told by the main thread
            self.failure = error
        self.is_over = True
        self._theirs.release()

    def resume(self, answer: Any = None) -> None:
        """From the world: go on until the next question."""
        if self.is_over:
            return
        self._answer = answer
        self._mine.release()
        self._theirs.acquire()

    def wait(self) -> Any:
        """From the script: let the world go on until somebody resumes this."""
        self._theirs.release()
        self._mine.acquire()
        if self._swarm.is_over:
            raise Stopped
        return self._answer

    def pause(self, duration_ms: int) -> None:
        """Let time pass."""
        world = self._swarm.cluster.world
        world.at(world.now_ms + duration_ms, self.resume)
        self.wait()

    def ask(self, node_id: int, api_key: ApiKey, version: int, body: Any) -> Any:
        """A request on a connection of its own; None when there is no answer."""
        world = self._swarm.cluster.world
        connection = world.connect(node_id)
        if connection is None:
            self.pause(50)
            return None
        answers: list[Any] = []

        def answered(answer: Any) -> None:
            if not answers:
                answers.append(answer)
                self.resume(answer)

        # Never from within this very call: the script has to be waiting by then.
        world.at(world.now_ms, lambda: world.request(connection, api_key, version, body, answered))
        world.at(world.now_ms + REQUEST_MS, lambda: answered(None))
        return self.wait()


class Producer:
    """One transactional id, used for transaction after transaction; remembers what became of each."""

    def __init__(self, swarm: Swarm, number: int) -> None:
        self.swarm = swarm
        self.number = number
        self.name = f"producer-{number}"
        self.versions: Versions = V2 if swarm.chance.random() < 0.5 else V1
        self.chance = random.Random(swarm.chance.random())
        self.fates: dict[int, str] = {}
        """Of each transaction: committed, aborted, or open where nobody knows."""
        self.written: dict[int, list[tuple[int, str]]] = {}
        """Partition and value of what was acknowledged in each."""
        self.next_transaction = 0
        self.complaints: list[str] = []
        self.script = Script(swarm, self.run)
        self.requests = Requests(self._route, TOPIC, lambda: self.script.pause(50))
        self._sequences: dict[int, int] = {}

    def _route(self, api_key: ApiKey, version: int, body: Any) -> Any:
        """Wherever it belongs by now; NoAnswer when the answer is lost, and then nobody knows."""
        answer = self.script.ask(self.swarm.target(api_key, body), api_key, version, body)
        if answer is None:
            raise NoAnswer(api_key.name)
        return answer

    def _until(self, action: Callable[[], Any]) -> Any:
        """Again while it is lost or too early, as clients do; a lost answer is asked for once more."""
        for _ in range(400):
            try:
                found = action()
            except NoAnswer:
                self.script.pause(50)
                continue
            codes = found if isinstance(found, list) else [found.code if isinstance(found, Outcome) else found]
            if not BUSY.intersection(codes) and ErrorCode.UNKNOWN_TOPIC_OR_PARTITION not in codes:
                return found
            self.script.pause(self.chance.choice((5, 20, 100)))
        raise AssertionError(f"{self.name}: no end of it: {found}")

    def run(self, _script: Script) -> None:
        """Live after life until the swarm is over."""
        zombie: Outcome | None = None
        while True:
            identity = self._init()
            if zombie is not None and self.chance.random() < 0.7:
                self._haunt(zombie)
            try:
                for _ in range(self.chance.randrange(1, 8)):
                    identity = self._transaction(identity)
            except GaveUp:
                pass
            zombie = identity

    def _init(self) -> Outcome:
        self._until(lambda: ErrorCode.NONE if self.requests.find(self.name) >= 0 else ErrorCode.NOT_COORDINATOR)
        self._until(lambda: ErrorCode.NONE if self.requests.find(GROUP, key_type=0) >= 0 else ErrorCode.NOT_COORDINATOR)
        made = self._until(lambda: self.requests.init(self.name, timeout_ms=self.swarm.timeout_ms))
        if made.code is not ErrorCode.NONE:
            raise AssertionError(f"{self.name}: init says {made.code.name}")
        self._sequences.clear()
        return Outcome(*made)

    def _haunt(self, zombie: Outcome) -> None:
        """What a former life still sends must be refused."""
        index = self.chance.randrange(PARTITIONS)
        identity = (self.name, zombie.producer_id, zombie.epoch)
        try:
            code = self._until(
                lambda: self.requests.produce(
                    *identity, 500, index=index, version=self.versions.produce, value=b"zombie"
                )
            )
            if code is ErrorCode.NONE:
                self.complaints.append(f"{self.name}: a zombie of epoch {zombie.epoch} wrote to {index}")
            ended = self._until(lambda: self.requests.end(*identity, True, version=self.versions.end))
            if ended.code is ErrorCode.NONE:
                self.complaints.append(f"{self.name}: a zombie of epoch {zombie.epoch} committed")
        except NoAnswer:
            return

    def _transaction(self, identity: Outcome) -> Outcome:
        self.script.pause(self.chance.choice((1, 50, 300)))
        number = self.next_transaction
        self.next_transaction += 1
        self.fates[number] = "open"
        self.written[number] = []
        if self.versions is V2:
            self._sequences.clear()
        for index in self.chance.sample(range(PARTITIONS), self.chance.randrange(1, PARTITIONS + 1)):
            for _ in range(self.chance.randrange(1, 3)):
                self._write(identity, number, index)
        self._commit_offset(identity, number)
        if self.chance.random() < 0.05:
            raise GaveUp  # dies in the middle
        commit = self.chance.random() < 0.75
        action = (self.name, identity.producer_id, identity.epoch, commit)
        ended = self._until(lambda: self.requests.end(*action, version=self.versions.end))
        if ended.code is not ErrorCode.NONE:
            raise GaveUp
        self.fates[number] = "committed" if commit else "aborted"
        return Outcome(*ended) if self.versions is V2 else identity

    def _write(self, identity: Outcome, number: int, index: int) -> None:
        who = (self.name, identity.producer_id, identity.epoch)
        if self.versions is V1 and self._until(lambda: self.requests.add(*who, index)) != [ErrorCode.NONE]:
            raise GaveUp
        sequence = self._sequences.get(index, 0)
        value = f"{self.number} {number} {index} {sequence}"
        # May be in the log from here on, acknowledged or not.
        code = self._until(
            lambda: self.requests.produce(
                *who, sequence, index=index, version=self.versions.produce, value=value.encode()
            )
        )
        if code is not ErrorCode.NONE:
            raise GaveUp
        self._sequences[index] = sequence + 1
        self.written[number].append((index, value))

    def _commit_offset(self, identity: Outcome, number: int) -> None:
        who = (self.name, identity.producer_id, identity.epoch)
        group = f"{GROUP}-{self.number}"
        if self.versions is V1 and self._until(lambda: self.requests.add_offsets(*who, group)) is not ErrorCode.NONE:
            raise GaveUp
        code = self._until(lambda: self.requests.commit_offset(*who, group, number, version=self.versions.offsets))
        if code is not ErrorCode.NONE:
            raise GaveUp


class Swarm:
    """One seed's cluster, producers and faults."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.timeout_ms = self.chance.choice((4_000, 30_000))
        settings = {
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": str(STATE_PARTITIONS),
            "replication.events.enable": "false",
            "min.insync.replicas": "2",
            "broker.session.timeout.ms": "2000",
            "broker.heartbeat.interval.ms": "300",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
            "replica.lag.time.max.ms": self.chance.choice(("1000", "10000")),
        }
        self.cluster = SimulatedCluster(seed, 3, settings)
        self.cluster.start_all()
        topic = CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1)
        topic.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=broker_ids)
            for index, broker_ids in enumerate(REPLICAS)
        ]
        self.cluster.ask(1, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))
        self.is_over = False
        self.faults: list[str] = []
        self.producers = [Producer(self, number) for number in range(PRODUCERS)]

    def target(self, api_key: ApiKey, body: Any) -> int:
        """The node that a client would ask, as far as the newest metadata tell; else anybody."""
        image = self.cluster.newest_image()
        if api_key is ApiKey.PRODUCE:
            place = (TOPIC, body.topic_data[0].partition_data[0].index)
        elif api_key is ApiKey.TXN_OFFSET_COMMIT:
            place = ("__consumer_offsets", partition_for(body.group_id, 3))
        elif api_key is ApiKey.FIND_COORDINATOR:
            place = ("", 0)
        else:
            name = getattr(body, "v3_and_below_transactional_id", "") or getattr(body, "transactional_id", "")
            place = (STATE_TOPIC, partition_for(name, STATE_PARTITIONS))
        found = image.topic(place[0])
        leader = -1 if found is None else found.partitions[place[1]].leader
        living = self.cluster.living() or self.cluster.node_ids
        return leader if leader in living else self.chance.choice(living)

    # --- faults ---

    def _schedule_faults(self) -> None:
        world = self.cluster.world
        at_ms = world.now_ms + 2_000
        while at_ms < world.now_ms + FAULTS_MS:
            world.at(at_ms, self._break_something)
            at_ms += self.chance.randrange(500, 4_000)

    def _break_something(self) -> None:
        world, cluster = self.cluster.world, self.cluster
        if self.is_over or len([one for one in cluster.node_ids if cluster.is_running(one)]) < 3:
            return  # one at a time: with two away nothing can go on
        node_id = self.chance.choice(cluster.node_ids)
        kind = self.chance.choice(("kill", "kill", "power", "pause", "cut"))
        duration_ms = self.chance.randrange(100, 5_000)
        self.faults.append(f"{world.now_ms % 1_000_000} {kind} {node_id} for {duration_ms} ms")
        if kind in ("kill", "power"):
            (world.kill if kind == "kill" else world.power_loss)(node_id)
            world.at(world.now_ms + duration_ms, lambda: self._start(node_id))
        elif kind == "pause":
            world.pause(node_id)
            world.at(world.now_ms + duration_ms, lambda: world.resume(node_id))
        else:
            others = [one for one in cluster.node_ids if one != node_id]
            for one in others:
                world.network.cut(node_id, one)
                world.network.cut(one, node_id)
            world.at(world.now_ms + duration_ms, world.network.heal)

    def _start(self, node_id: int) -> None:
        process = self.cluster.world.hosts[node_id].process
        if process is None or not process.alive:
            self.cluster.world.start(node_id)

    # --- the run ---

    def run(self) -> list[str]:
        """Everything that is wrong in the end; nothing, most likely."""
        world = self.cluster.world
        self._schedule_faults()
        for producer in self.producers:
            producer.script.start()
            producer.script.resume()
        world.run_until(lambda: any(one.script.failure for one in self.producers), FAULTS_MS + 3_000)
        complaints = [f"{one.name}: {one.script.failure!r}" for one in self.producers if one.script.failure is not None]
        self.is_over = True
        for producer in self.producers:
            producer.script.resume()
            complaints += producer.complaints
        world.network.heal()
        for node_id in self.cluster.node_ids:
            process = world.hosts[node_id].process
            if process is not None and process.alive:
                world.resume(node_id)
            else:
                world.start(node_id)
        if not world.run_until(lambda: all(map(self.cluster.is_running, self.cluster.node_ids)), SETTLE_MS):
            return [*complaints, "the cluster does not come back"]
        return complaints + self._judge()

    def _judge(self) -> list[str]:
        world = self.cluster.world
        settled = world.run_until(self._is_quiet, SETTLE_MS)
        complaints = [] if settled else [f"transactions hang: {self._loose_ends()}"]
        seen: dict[str, int] = {}
        for index in range(PARTITIONS):
            views = [self._read(index, node_id) for node_id in REPLICAS[index]]
            if any(view != views[0] for view in views):
                complaints.append(f"replicas of {index} show readers different records")
            for value in views[0]:
                seen[value] = seen.get(value, 0) + 1
        complaints += [f"{value!r} is there {count} times" for value, count in seen.items() if count > 1]
        if "zombie" in seen:
            complaints.append("a zombie's record is there")
        for producer in self.producers:
            complaints += self._judge_producer(producer, seen)
        return complaints

    def _judge_producer(self, producer: Producer, seen: dict[str, int]) -> list[str]:
        complaints = []
        last_committed = -1
        for number, fate in producer.fates.items():
            visible = [value in seen for _, value in producer.written[number]]
            strays = [one for one in seen if one.startswith(f"{producer.number} {number} ")]
            if fate == "committed" and not all(visible):
                complaints.append(f"{producer.name}: committed transaction {number} is not all there")
            if fate == "aborted" and strays:
                complaints.append(f"{producer.name}: aborted transaction {number} is there: {strays}")
            if fate == "open" and visible and any(visible) != all(visible):
                complaints.append(f"{producer.name}: half of transaction {number} is there: {visible}")
            if fate == "committed" or (strays and fate == "open"):
                last_committed = number
        offset = self._offset(producer)
        unsure = [number for number, fate in producer.fates.items() if fate == "open"]
        if offset != last_committed and offset not in unsure:
            complaints.append(
                f"{producer.name}: offset {offset} is committed, the last transaction is {last_committed}"
            )
        return complaints

    # --- looking ---

    def _is_quiet(self) -> bool:
        return not self._loose_ends()

    def _loose_ends(self) -> list[str]:
        found = []
        for topic in (TOPIC, "__consumer_offsets"):
            for index in range(PARTITIONS):
                replicas = [
                    self.cluster.process(one).node.replicas.partitions.get((topic, index))
                    for one in self.cluster.node_ids
                ]
                held = [one for one in replicas if one is not None]
                if len({one.log.log_end_offset for one in held}) > 1:
                    found.append(f"{topic}-{index}: replicas of different length")
                for one in held:
                    if one.last_stable_offset != one.log.log_end_offset:
                        found.append(f"{one!r} on {one.node_id}: {one.last_stable_offset} of {one.log.log_end_offset}")
        return found

    def _read(self, index: int, node_id: int) -> list[str]:
        values: list[str] = []
        offset = 0
        while True:
            wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 24)
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=1 << 24,
                isolation_level=1,
                topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
            )
            data = self.cluster.ask(node_id, ApiKey.FETCH, 12, request).responses[0].partitions[0]
            assert data.error_code == 0, data
            return values + [value.decode() for value in committed(data)]

    def _offset(self, producer: Producer) -> int:
        name = f"{GROUP}-{producer.number}"
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None)], require_stable=True)
        for _ in range(100):
            found = self.cluster.newest_image().topic("__consumer_offsets")
            if found is None:
                return -1
            try:
                leader = found.partitions[partition_for(name, 3)].leader
                answer = self.cluster.ask(leader, ApiKey.OFFSET_FETCH, 8, request).groups[0]
            except (NoAnswer, KeyError):
                answer = None
            if answer is not None and answer.error_code == 0:
                return answer.topics[0].partitions[0].committed_offset if answer.topics else -1
            self.cluster.world.run_for(100)
        raise AssertionError("the group does not come back")
