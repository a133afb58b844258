"""Members of groups, a hundred in one process: raw requests on a connection each, the same for every peer.

    python -m benchmarks.group_clients rebalance --bootstrap 127.0.0.1:9092 --topic t --partitions 300
    python -m benchmarks.group_clients read --bootstrap 127.0.0.1:9092 --topic t --partitions 30 --records 1000000

A hundred real clients have a thousand threads, and are then what is measured; so for the rebalance the members are
coroutines that do what a client does: join, sync and report in the classic protocol; report, give up and take over in
that of KIP-848. Reading is done by ten real ones. Prints one line of JSON.
"""

from __future__ import annotations

import abc
import argparse
import asyncio
import json
import statistics
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Assigned

from benchmarks.apart import Failed, measure_apart, options
from benchmarks.clients import CONSUMER_SETTINGS
from tidelog.errors import ErrorCode
from tidelog.wire import frames
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from tidelog.wire.messages.find_coordinator import FindCoordinatorRequest
from tidelog.wire.messages.heartbeat import HeartbeatRequest
from tidelog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tidelog.wire.records.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from tidelog.wire.records.consumer_protocol_subscription import ConsumerProtocolSubscription
from tidelog.wire.stored import encode_versioned

HEARTBEAT_S = 0.1
"""How often members report in the classic protocol, and what both peers are set to ask for in the other: nobody hears
of a rebalance in between."""
WITHIN_S = 120.0


class Link:
    """A connection that asks one thing at a time, as a member does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._next_id = 0

    @classmethod
    async def open(cls, bootstrap: str) -> Link:
        """Connect."""
        host, _, port = bootstrap.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, api_key: int, version: int, body: Any) -> Any:
        """Send a request and wait for its answer."""
        self._next_id += 1
        parts = frames.encode_request(api_key, version, self._next_id, "benchmark", body)
        self._writer.write(b"".join(part for part in parts if isinstance(part, bytes)))
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        _, answer = frames.decode_response(api_key, version, await self._reader.readexactly(size))
        return answer

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


class Member(abc.ABC):
    """One member; `version` is the generation or epoch of what it has, and `owned` that."""

    def __init__(self, group: Group, number: int) -> None:
        self.group = group
        self.number = number
        self.version = -1
        self.owned: frozenset[int] = frozenset()
        self.member_id = ""
        self.link: Link
        self._leaves = asyncio.Event()

    async def live(self) -> None:
        """Be a member until told to leave."""
        self.link = await Link.open(self.group.bootstrap)
        try:
            await self.take_part()
        finally:
            self.link.close()

    @abc.abstractmethod
    async def take_part(self) -> None:
        """What the protocol asks of it."""

    def leave(self) -> None:
        """Go at the next occasion."""
        self._leaves.set()

    async def pause(self, seconds: float = HEARTBEAT_S) -> bool:
        """Until the next report is due; whether it is to leave instead."""
        try:
            await asyncio.wait_for(self._leaves.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def has(self, version: int, owned: frozenset[int]) -> None:
        """Note what it has now."""
        self.version, self.owned = version, owned
        self.group.look()


class ClassicMember(Member):
    """Join, sync, heartbeat; eager, by range."""

    async def take_part(self) -> None:
        """Join again whenever a heartbeat says so."""
        subscription = encode_versioned(ConsumerProtocolSubscription(topics=[self.group.topic]), 0)
        while True:
            request = JoinGroupRequest(
                group_id=self.group.name,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=60_000,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
            )
            joined = await self.link.ask(ApiKey.JOIN_GROUP, 9, request)
            self.member_id = joined.member_id or self.member_id
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                continue
            _require(joined.error_code)
            code = await self._sync(joined)
            while code == ErrorCode.NONE:
                if await self.pause():
                    leaving = LeaveGroupRequest(
                        group_id=self.group.name, members=[MemberIdentity(member_id=self.member_id)]
                    )
                    _require((await self.link.ask(ApiKey.LEAVE_GROUP, 5, leaving)).error_code)
                    return
                beat = HeartbeatRequest(
                    group_id=self.group.name, generation_id=joined.generation_id, member_id=self.member_id
                )
                code = (await self.link.ask(ApiKey.HEARTBEAT, 4, beat)).error_code
            if code not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
                _require(code)

    async def _sync(self, joined: Any) -> int:
        assignments = []
        if joined.leader == self.member_id:
            members = sorted(one.member_id for one in joined.members)
            for place, member_id in enumerate(members):
                partitions = list(range(place, self.group.partitions, len(members)))
                rows = [TopicPartition(topic=self.group.topic, partitions=partitions)]
                data = encode_versioned(ConsumerProtocolAssignment(assigned_partitions=rows), 0)
                assignments.append(SyncGroupRequestAssignment(member_id=member_id, assignment=data))
        request = SyncGroupRequest(
            group_id=self.group.name,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        synced = await self.link.ask(ApiKey.SYNC_GROUP, 5, request)
        if synced.error_code == ErrorCode.NONE:
            self.has(joined.generation_id, _partitions_in(synced.assignment))
        return int(synced.error_code)


class ConsumerMember(Member):
    """Heartbeats of KIP-848; what it is told is acknowledged at once, and it comes again when it is told to."""

    async def take_part(self) -> None:
        """Report, and take over what the answers say."""
        self.member_id = f"{self.group.name}-{self.number}-{time.monotonic_ns()}"
        epoch = 0
        topic_id = b""
        says_all = True
        while True:
            request = ConsumerGroupHeartbeatRequest(
                group_id=self.group.name, member_id=self.member_id, member_epoch=epoch, rebalance_timeout_ms=60_000
            )
            if epoch == 0:
                request.subscribed_topic_names = [self.group.topic]
                request.server_assignor = "uniform"
                request.topic_partitions = []
            elif says_all:
                rows = [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=sorted(self.owned))]
                request.topic_partitions = rows if self.owned else []
            answer = await self.link.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
            _require(answer.error_code)
            epoch, says_all = answer.member_epoch, answer.assignment is not None
            owned = self.owned
            if answer.assignment is not None:
                owned = frozenset()
                for one in answer.assignment.topic_partitions:
                    topic_id, owned = one.topic_id, frozenset(one.partitions)
            self.has(epoch, owned)
            if not says_all and await self.pause(answer.heartbeat_interval_ms / 1000):
                request = ConsumerGroupHeartbeatRequest(
                    group_id=self.group.name, member_id=self.member_id, member_epoch=-1
                )
                _require((await self.link.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)).error_code)
                return


class Group:
    """Members of one group, and whether they have all there is between them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.bootstrap: str = arguments.bootstrap
        self.topic: str = arguments.topic
        self.partitions: int = arguments.partitions
        self.name = f"{arguments.protocol}-{time.time_ns()}"
        self._kind: type[Member] = ClassicMember if arguments.protocol == "classic" else ConsumerMember
        self.members: list[Member] = []
        self._tasks: dict[Member, asyncio.Task[None]] = {}
        self._settled = asyncio.Event()
        self.settled_at_s = 0.0

    def add(self) -> None:
        """One more member."""
        member = self._kind(self, len(self.members))
        self.members.append(member)
        self._settled.clear()
        self._tasks[member] = asyncio.create_task(member.live())

    async def remove(self, member: Member) -> None:
        """A member leaves, and is gone when this returns."""
        member.leave()
        await self._tasks.pop(member)
        self.members.remove(member)
        self._settled.clear()

    def look(self) -> None:
        """Whether every member has the same version, and all partitions have one owner."""
        versions = {member.version for member in self.members}
        owned = sum(len(member.owned) for member in self.members)
        if len(versions) == 1 and owned == self.partitions and not self._settled.is_set():
            every = frozenset().union(*(member.owned for member in self.members))
            if len(every) == self.partitions:
                self.settled_at_s = time.perf_counter()
                self._settled.set()

    async def settled(self) -> float:
        """Wait until it is; when that was."""
        waiting = asyncio.create_task(self._settled.wait())
        done, _ = await asyncio.wait(
            {waiting, *self._tasks.values()}, timeout=WITHIN_S, return_when=asyncio.FIRST_COMPLETED
        )
        if waiting not in done:
            waiting.cancel()
            for task in done:
                task.result()
            raise Failed(f"the group did not settle in {WITHIN_S} s")
        return self.settled_at_s


def rebalance(arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds from the moment the last of so many members joins until all have their part: the median of some turns."""
    return asyncio.run(_rebalance(arguments))


async def _rebalance(arguments: argparse.Namespace) -> dict[str, Any]:
    group = Group(arguments)
    await _find_coordinator(group)
    for _ in range(arguments.members - 1):
        group.add()
        await asyncio.sleep(HEARTBEAT_S / arguments.members)  # so that they do not all report together
    await group.settled()
    taken_s = []
    for _ in range(arguments.turns):
        begun_s = time.perf_counter()
        group.add()
        taken_s.append(await group.settled() - begun_s)
        await group.remove(group.members[-1])
        await group.settled()
    for member in list(group.members):
        member.leave()
    await asyncio.gather(*group._tasks.values())
    return {"seconds": statistics.median(taken_s), "turns": taken_s}


async def _find_coordinator(group: Group) -> None:
    link = await Link.open(group.bootstrap)
    deadline_s = time.monotonic() + WITHIN_S
    while True:
        request = FindCoordinatorRequest(coordinator_keys=[group.name])
        answer = await link.ask(ApiKey.FIND_COORDINATOR, 4, request)
        if answer.coordinators[0].error_code == ErrorCode.NONE:
            beat = HeartbeatRequest(group_id=group.name, generation_id=0, member_id="nobody")
            code = (await link.ask(ApiKey.HEARTBEAT, 4, beat)).error_code
            if code == ErrorCode.UNKNOWN_MEMBER_ID:  # while it reads, Apache Kafka's answers every heartbeat with NONE
                break
        if time.monotonic() > deadline_s:
            raise Failed("no coordinator")
        await asyncio.sleep(0.05)
    link.close()


def read(arguments: argparse.Namespace) -> dict[str, Any]:
    """So many real consumers of one group read a topic; seconds from when all have their part until the last record."""
    settings = CONSUMER_SETTINGS | {
        "bootstrap.servers": arguments.bootstrap,
        "group.id": f"read-{time.time_ns()}",
        "auto.offset.reset": "earliest",
        "queued.max.messages.kbytes": 32_768,
    }
    if arguments.protocol == "consumer":
        settings["group.protocol"] = "consumer"

    def hold(consumer: Consumer, partitions: list[Assigned]) -> None:
        consumer.assign(partitions)
        consumer.pause(partitions)

    consumers = [Consumer(settings) for _ in range(arguments.members)]
    try:
        deadline_s = time.perf_counter() + WITHIN_S
        for consumer in consumers:
            consumer.subscribe([arguments.topic], on_assign=hold)
        shares: list[list[Assigned]] = []
        while not all(shares) or sum(map(len, shares)) < arguments.partitions:
            if time.perf_counter() > deadline_s:
                raise Failed(f"the group has {list(map(len, shares))} partitions")
            for consumer in consumers:
                if consumer.poll(0.01) is not None:
                    raise Failed("a consumer that is held read something")
            shares = [consumer.assignment() for consumer in consumers]
        begun_s = time.perf_counter()
        for consumer, share in zip(consumers, shares, strict=True):
            consumer.resume(share)
            # librdkafka notices that only when the thread of its connection wakes, up to a second later: a request
            # through that thread wakes it.
            consumer.get_watermark_offsets(share[0], WITHIN_S)
        left, size = arguments.records, 0
        while left > 0:
            for consumer in consumers:
                messages = consumer.consume(10_000, 0.001)
                if messages and (error := messages[0].error()) is not None:
                    raise KafkaException(error)
                left -= len(messages)
                size += sum(map(len, messages))
            if time.perf_counter() > deadline_s:
                raise Failed(f"{left} records did not come")
        seconds = time.perf_counter() - begun_s
        ends = [
            one.offset for consumer, share in zip(consumers, shares, strict=True) for one in consumer.position(share)
        ]
        if sum(ends) != arguments.records:
            raise Failed(f"{arguments.records} records were counted, but the group is at {sum(ends)}")
        return {"seconds": seconds, "bytes": size}
    finally:
        for consumer in consumers:
            consumer.close()


def call(command: str, **arguments: object) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    return measure_apart("benchmarks.group_clients", command, *options(**arguments))


def _partitions_in(assignment: bytes) -> frozenset[int]:
    from tidelog.wire.codec import decode

    message, _ = decode(ConsumerProtocolAssignment, 0, assignment, 2)
    return frozenset(number for one in message.assigned_partitions for number in one.partitions)


def _require(code: int) -> None:
    if code != ErrorCode.NONE:
        raise Failed(ErrorCode(code).name)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="One measurement of groups.")
    parser.add_argument("command", choices=["rebalance", "read"])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--protocol", choices=["classic", "consumer"], default="classic")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--records", type=int, default=0)
    arguments = parser.parse_args()
    commands = {"rebalance": rebalance, "read": read}
    print(json.dumps(commands[arguments.command](arguments)))


if __name__ == "__main__":
    main()
