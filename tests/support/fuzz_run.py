"""A whole fuzzing run: a node, a healthy client beside it, many mutated frames, and what must still be true after."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.fuzzing import Tally, send_frames
from tests.support.healthy import HealthyClient
from tests.support.nodes import Node
from tests.support.processes import wait_until

HEALTHY_TOPIC = "healthy"
TOPICS = ("fuzz-0", "fuzz-1", "fuzz-2")
ROUND = 2_000
"""After so many frames, topics that were made by accident are deleted: only what leaks stays."""
NODE_PROPERTIES = {"log.segment.delete.delay.ms": "100"}
MEGABYTE = 1_000_000


def make_topics(client: AdminClient, names: tuple[str, ...]) -> dict[str, bytes]:
    """Make topics and return their ids."""
    for future in client.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        future.result(60)
    wait_until(lambda: set(names) <= set(client.list_topics(timeout=60).topics), 60, f"{names} are there")
    described = client.describe_topics(TopicCollection(list(names)))
    return {name: uuid_bytes(future.result(60).topic_id) for name, future in described.items()}


def make_internal_topics(node: Node) -> None:
    """Use a group and a transactional id: frames may ask for coordinators too, and what that makes is no leak."""
    Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "first"}).init_transactions(60)
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "first"})
    consumer.commit(offsets=[TopicPartition(HEALTHY_TOPIC, 0, 0)], asynchronous=False)
    consumer.close()


def uuid_bytes(topic_id: object) -> bytes:
    """The sixteen bytes of librdkafka's Uuid."""
    most = getattr(topic_id, "get_most_significant_bits")()  # noqa: B009 - the stubs do not know the method
    least = getattr(topic_id, "get_least_significant_bits")()  # noqa: B009
    return (most & (2**64 - 1)).to_bytes(8, "big") + (least & (2**64 - 1)).to_bytes(8, "big")


def delete_all_but_healthy(client: AdminClient) -> None:
    """Delete every topic the frames made; the last frames may still be making or deleting some."""

    def none_left() -> bool:
        names = [
            name
            for name in client.list_topics(timeout=60).topics
            if name != HEALTHY_TOPIC and not name.startswith("__")
        ]
        if names:
            for future in client.delete_topics(names).values():
                with contextlib.suppress(KafkaException):
                    future.result(60)
        return not names

    wait_until(none_left, 60, "the topics of the frames are deleted")


@dataclass(frozen=True)
class Limits:
    """What a run may cost the node for good."""

    resident_bytes: int
    open_files: int
    log_has_no: str | None
    """A text whose appearance in the log means that an error was not foreseen."""


LIMITS = {
    "tidelog": Limits(30 * MEGABYTE, 10, "Traceback"),
    # A JVM takes what its heap may have; a parked poll keeps its connection in Kafka, though its client has left.
    "kafka": Limits(500 * MEGABYTE, 500, None),
}


def fuzz(node: Node, seed: int, frames: int) -> Tally:
    """Send so many frames of a seed and check everything a user would lose if one of them hurt."""
    limits = LIMITS[node.peer]
    how = f"seed {seed}; again with TIDELOG_FUZZ_SEED={seed}"
    print(f"fuzzing with {how}")
    client = AdminClient({"bootstrap.servers": node.bootstrap})
    make_topics(client, (HEALTHY_TOPIC,))
    make_internal_topics(node)
    pid = node.running.pid
    total = Tally()
    resident: list[int] = []
    files: list[int] = []
    with HealthyClient(node, HEALTHY_TOPIC) as healthy:
        for first in range(0, frames, ROUND):
            topics = make_topics(client, TOPICS)
            tally = send_frames(node.client_port, seed, first, min(ROUND, frames - first), topics)
            where = f"frames {first} to {first + ROUND} of {how}"
            node.running.require_running()
            assert not tally.refused, f"connections were refused at {where}: {tally.refused[:3]}"
            assert not healthy.complaints, f"a healthy client failed at {where}: {healthy.complaints}"
            delete_all_but_healthy(client)
            total.frames += tally.frames
            total.answered += tally.answered
            total.closed += tally.closed
            total.silent += tally.silent
            resident.append(node.resident_bytes())
            files.append(node.open_files())
    assert node.running.pid == pid
    assert healthy.rounds > 3, f"the healthy client made only {healthy.rounds} rounds: {how}"
    growth = resident[-1] - resident[1]
    assert growth <= limits.resident_bytes, f"memory grew by {growth / MEGABYTE:.0f} MB: {sizes(resident)}; {how}"
    most_files = files[0] + limits.open_files
    wait_until(lambda: node.open_files() <= most_files, 60, f"file descriptors are given back ({files}); {how}")
    if limits.log_has_no is not None:
        text = node.log_file.read_text(errors="replace")
        place = text.find(limits.log_has_no)
        assert place < 0, f"{text[max(place - 300, 0) : place + 3000]}\n{how}"
    print(
        f"{total}, healthy rounds {healthy.rounds}, slowest {healthy.slowest_round_s:.2f} s, memory {sizes(resident)}"
    )
    return total


def sizes(resident: list[int]) -> str:
    """Memory after each round, readable."""
    return " ".join(f"{each / MEGABYTE:.0f}" for each in resident) + " MB"
