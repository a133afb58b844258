"""Send a node frames that are almost right, many at once, and see that it neither dies, leaks nor bothers others.

Frame `number` of a seed is always the same, whatever came before it:

    python -m tests.support.fuzzing --port 9092 --seed 7 --first 1200 --count 1

sends one of them again.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.support import probe
from tests.support.frame_corpus import Generator, recorded
from tidelog.errors import TidelogError
from tidelog.wire import apis, frames
from tidelog.wire.api_table import ApiKey

HARMFUL = frozenset(
    {
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UPDATE_FEATURES,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)
"""What an administrator may do and everybody would notice: done right it is no bad input, so it is not sent."""
BOUNDED = frozenset(
    {ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS}
)
"""Sent, unless they happen to be a sound order for too much: a million partitions, another limit for the broker."""
MOST_PARTITIONS = 20
BROKER_RESOURCE = 4
SENTINEL_CORRELATION_ID = 0x7EA5E11E
SENTINEL = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, SENTINEL_CORRELATION_ID, -1)
"""The last request on a connection: its answer says that all before it was dealt with."""
CONNECTIONS_AT_ONCE = 12
PATIENCE_S = 0.25
"""How long an answer is waited for on a connection where a frame may have swallowed what came after it."""

Mutation = Callable[[random.Random, bytearray], None]


def flip_bits(chance: random.Random, frame: bytearray) -> None:
    """A few bits anywhere."""
    for _ in range(chance.randint(1, 6)):
        frame[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)


def set_number(chance: random.Random, frame: bytearray) -> None:
    """A length, a count or an id becomes an edge of its type."""
    size, code = chance.choice(((2, ">h"), (4, ">i"), (8, ">q")))
    if len(frame) > size:
        edge = chance.choice((-1, 0, 1, 2 ** (size * 8 - 1) - 1, -(2 ** (size * 8 - 1)), 127, 255))
        position = chance.randrange(len(frame) - size)
        frame[position : position + size] = struct.pack(code, edge)


def set_varint(chance: random.Random, frame: bytearray) -> None:
    """A compact length becomes huge, or never ends."""
    position = chance.randrange(len(frame))
    bomb = chance.choice(
        (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\xff" * 12, b"\x00", b"\x80\x80\x80\x80\x01")
    )
    frame[position : position + 1] = bomb


def cut(chance: random.Random, frame: bytearray) -> None:
    """The end is missing."""
    del frame[chance.randrange(len(frame)) :]


def drop_piece(chance: random.Random, frame: bytearray) -> None:
    """Something in the middle is missing."""
    start = chance.randrange(len(frame))
    del frame[start : start + chance.randint(1, 8)]


def insert_piece(chance: random.Random, frame: bytearray) -> None:
    """Something is there that should not be."""
    position = chance.randrange(len(frame) + 1)
    frame[position:position] = chance.randbytes(chance.randint(1, 12))


def repeat_piece(chance: random.Random, frame: bytearray) -> None:
    """Something is there twice."""
    start = chance.randrange(len(frame))
    piece = frame[start : start + chance.randint(1, 60)]
    frame[start:start] = piece


def change_api(chance: random.Random, frame: bytearray) -> None:
    """The body of one request under the name of another."""
    frame[0:2] = struct.pack(">h", chance.choice((*ApiKey, 999, -1)))


def change_version(chance: random.Random, frame: bytearray) -> None:
    """The body of one version under the number of another."""
    frame[2:4] = struct.pack(">h", chance.choice((*range(20), -1, 32_767)))


def splice(chance: random.Random, frame: bytearray) -> None:
    """The start of one request and the end of another."""
    other = chance.choice(recorded())
    frame[chance.randrange(len(frame)) :] = other[chance.randrange(len(other)) :]


def become_garbage(chance: random.Random, frame: bytearray) -> None:
    """Nothing of a request is left."""
    frame[:] = chance.randbytes(chance.randint(0, 200))


MUTATIONS: tuple[Mutation, ...] = (
    *(flip_bits, flip_bits, set_number, set_number, set_varint, cut, drop_piece, insert_piece, repeat_piece),
    *(change_api, change_version, splice, become_garbage),
)


def is_harmful(frame: bytes | bytearray) -> bool:
    """Whether this is, by chance, a sound order that would rightly disturb everybody."""
    if len(frame) < 4:
        return False
    (api_key,) = struct.unpack_from(">h", frame)
    if api_key in HARMFUL:
        return True
    if api_key not in BOUNDED:
        return False
    try:
        body = frames.decode_request(frame, {api_key: apis.api_versions(api_key)}).body
    except TidelogError:
        return False
    if api_key == ApiKey.CREATE_TOPICS:
        return sum(max(each.num_partitions, len(each.assignments)) for each in body.topics) > MOST_PARTITIONS
    if api_key == ApiKey.CREATE_PARTITIONS:
        return any(each.count > MOST_PARTITIONS for each in body.topics)
    return any(each.resource_type == BROKER_RESOURCE for each in body.resources)


@dataclass
class Frame:
    """What is written to the socket, and whether an answer can be hoped for behind it."""

    data: bytes
    ends_in_order: bool


def frame_of(seed: int, number: int, generator: Generator) -> Frame:
    """The frame of a number: a sound request, changed in up to three ways, with a length that mostly fits."""
    chance = random.Random(f"{seed}/{number}")
    while True:
        source = chance.choice(recorded()) if chance.random() < 0.4 else generator.request(chance)
        frame = bytearray(source)
        for _ in range(chance.choice((0, 0, 1, 1, 1, 2, 3))):
            if frame:
                chance.choice(MUTATIONS)(chance, frame)
        if not is_harmful(frame):
            break
    if chance.random() < 0.03:
        wrong = chance.choice((-1, 0, -(2**31), 2**31 - 1, len(frame) + 1, len(frame) + 1000, max(len(frame) - 3, 0)))
        return Frame(struct.pack(">i", wrong) + frame, ends_in_order=False)
    return Frame(struct.pack(">i", len(frame)) + frame, ends_in_order=True)


@dataclass
class Tally:
    """What became of the connections."""

    frames: int = 0
    answered: int = 0
    closed: int = 0
    silent: int = 0
    refused: list[str] = field(default_factory=list)


class Connection:
    """One connection of the fuzzer, opened again whenever the node had enough of it."""

    def __init__(self, port: int, tally: Tally) -> None:
        self._port = port
        self._tally = tally
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, sent: Sequence[Frame], *, abruptly: bool) -> None:
        """Send frames at once and wait until the node dealt with them: by an answer, by closing, or by silence."""
        self._tally.frames += len(sent)
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError as error:
            self._tally.refused.append(str(error))
            return
        reader, writer = self._streams
        try:
            writer.write(b"".join(each.data for each in sent) + SENTINEL)
            async with asyncio.timeout(PATIENCE_S if all(each.ends_in_order for each in sent) else PATIENCE_S / 10):
                correlation_id = 0
                while correlation_id != SENTINEL_CORRELATION_ID:
                    (length,) = struct.unpack(">i", await reader.readexactly(4))
                    (correlation_id,) = struct.unpack(">i", (await reader.readexactly(length))[:4])
            self._tally.answered += 1
            return
        except TimeoutError:
            self._tally.silent += 1
        except (asyncio.IncompleteReadError, OSError):
            self._tally.closed += 1
        self.close(abruptly=abruptly)

    def close(self, *, abruptly: bool = False) -> None:
        """End the connection, by a reset when `abruptly`."""
        if self._streams is not None:
            writer = self._streams[1]
            writer.transport.abort() if abruptly else writer.close()
        self._streams = None


async def _send(port: int, seed: int, numbers: Sequence[int], generator: Generator, tally: Tally) -> None:
    waiting = iter(numbers)
    chance = random.Random(seed)

    async def worker() -> None:
        connection = Connection(port, tally)
        while group := list(itertools.islice(waiting, chance.choice((1, 1, 1, 1, 1, 1, 3, 5)))):
            await connection.send(
                [frame_of(seed, number, generator) for number in group], abruptly=chance.random() < 0.5
            )
        connection.close()

    await asyncio.gather(*(worker() for _ in range(CONNECTIONS_AT_ONCE)))


def send_frames(port: int, seed: int, first: int, count: int, topics: Mapping[str, bytes]) -> Tally:
    """Send frames `first` to `first + count - 1` of a seed; topics are names with their ids."""
    tally = Tally()
    generator = Generator(topics, probe.served_apis(port))
    asyncio.run(_send(port, seed, range(first, first + count), generator, tally))
    return tally


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Send the mutated frames of a seed to a node.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    arguments = parser.parse_args()
    topics = {"fuzz-0": bytes(16)}
    if arguments.count == 1:
        generator = Generator(topics, probe.served_apis(arguments.port))
        print(frame_of(arguments.seed, arguments.first, generator).data.hex())
    print(send_frames(arguments.port, arguments.seed, arguments.first, arguments.count, topics))


if __name__ == "__main__":
    main()
