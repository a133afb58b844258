"""Frames out of a stream, however it is cut into pieces."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.errors import DecodeError
from tidelog.runtime.receiving import KEPT_BYTES, SHARED_BYTES, ReceiveMemory, Receiver


class Pieces:
    """Stands in for a socket: gives what it was fed, piece by piece."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def recv_into(self, room: memoryview) -> int:
        if not self.pieces:
            return 0
        piece = self.pieces[0]
        taken = piece[: len(room)]
        assert taken, "asked to read into no room at all"
        room[: len(taken)] = taken
        self.pieces[0] = piece[len(taken) :]
        if not self.pieces[0]:
            self.pieces.pop(0)
        return len(taken)


def frames_of(receiver: Receiver, source: Pieces, per_turn: int = 1_000_000) -> list[bytes]:
    found: list[bytes] = []
    while True:
        for _ in range(per_turn):
            frame = receiver.next_frame()
            if frame is None:
                break
            found.append(bytes(frame))
            frame[:] = bytes(len(frame))  # the node stamps in place
        else:
            receiver.settle()
            continue
        receiver.settle()
        if not receiver.receive(source):  # type: ignore[arg-type]
            return found


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(
        st.one_of(st.integers(1, 100), st.integers(1, 10_000), st.integers(SHARED_BYTES - 5, 3 * SHARED_BYTES)),
        max_size=12,
    ),
    cuts=st.lists(st.integers(1, 400_000), min_size=1, max_size=40),
    per_turn=st.integers(1, 5),
)
def test_any_cutting_gives_the_same_frames(sizes: list[int], cuts: list[int], per_turn: int) -> None:
    frames = [bytes([number % 251 + 1]) * size for number, size in enumerate(sizes)]
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    pieces: list[bytes] = []
    for size in cuts:
        pieces.append(stream[:size])
        stream = stream[size:]
    pieces = [piece for piece in [*pieces, stream] if piece]
    memory = ReceiveMemory()
    receiver = Receiver(memory, 1 << 30)
    assert frames_of(receiver, Pieces(pieces), per_turn) == frames
    receiver.close()
    assert memory.owned_bytes == 0


def test_two_streams_share_a_buffer_and_nothing_else() -> None:
    memory = ReceiveMemory()
    first, second = Receiver(memory, 1000), Receiver(memory, 1000)
    one, two = struct.pack(">i", 8) + b"first 01", struct.pack(">i", 8) + b"second 2"
    first.receive(Pieces([one[:7]]))  # type: ignore[arg-type]
    assert first.next_frame() is None
    first.settle()
    second.receive(Pieces([two]))  # type: ignore[arg-type]
    frame = second.next_frame()
    assert frame is not None
    assert bytes(frame) == b"second 2"
    second.settle()
    first.receive(Pieces([one[7:]]))  # type: ignore[arg-type]
    frame = first.next_frame()
    assert frame is not None
    assert bytes(frame) == b"first 01"
    first.settle()
    assert memory.owned_bytes == 0


@pytest.mark.parametrize("length", [-1, 0, 1001, 2**31 - 1, -(2**31)])
def test_an_impossible_length_is_refused(length: int) -> None:
    receiver = Receiver(ReceiveMemory(), 1000)
    receiver.receive(Pieces([struct.pack(">i", length)]))  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match="the limit is 1000"):
        receiver.next_frame()


def test_memory_grows_with_what_came() -> None:
    memory = ReceiveMemory()
    receiver = Receiver(memory, 1 << 30)
    receiver.receive(Pieces([struct.pack(">i", 1 << 29) + b"x"]))  # type: ignore[arg-type]
    assert receiver.next_frame() is None
    receiver.settle()
    assert memory.owned_bytes < 10_000
    source = Pieces([bytes(10_000_000)])
    while receiver.receive(source):  # type: ignore[arg-type]
        receiver.settle()
    assert 10_000_000 <= memory.owned_bytes <= 20_000_000


def test_many_busy_streams_do_not_keep_their_buffers() -> None:
    memory = ReceiveMemory()
    streams = [Receiver(memory, 1 << 30) for _ in range(60)]
    for _ in range(2):
        for stream in streams:
            assert frames_of(stream, Pieces([struct.pack(">i", 1_000_000) + bytes(1_000_000)])) == [bytes(1_000_000)]
    assert memory.owned_bytes <= KEPT_BYTES


def test_a_real_socket_works_too() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(struct.pack(">i", 5) + b"hello")
        receiver = Receiver(ReceiveMemory(), 1000)
        assert receiver.receive(right) == 9
        frame = receiver.next_frame()
        assert frame is not None
        assert not frame.readonly
        assert bytes(frame) == b"hello"
