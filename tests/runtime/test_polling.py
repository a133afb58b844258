"""Every poller says the same of the same descriptors."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator

import pytest

from tidelog.runtime.polling import READ, WRITE, EpollPoller, Poller, SelectorPoller


@pytest.fixture(params=[EpollPoller, SelectorPoller])
def poller(request: pytest.FixtureRequest) -> Iterator[Poller]:
    made: Callable[[], Poller] = request.param
    one = made()
    yield one
    one.close()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def found(poller: Poller) -> list[int]:
    """What a wait calls back with."""
    told: list[int] = []
    for ready, events in poller.wait(0):
        ready(events)
        told.append(events)
    return told


def test_a_descriptor_is_told_of_what_it_asked_for(poller: Poller, ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    heard: list[int] = []
    poller.register(here.fileno(), READ, heard.append)
    assert found(poller) == []
    there.send(b"x")
    assert found(poller) == heard == [READ]
    poller.modify(here.fileno(), READ | WRITE, heard.append)
    assert found(poller) == [READ | WRITE]
    poller.modify(here.fileno(), WRITE, heard.append)
    assert found(poller) == [WRITE]
    poller.unregister(here.fileno())
    assert found(poller) == []


def test_the_end_of_a_stream_wakes_whoever_reads_or_writes(
    poller: Poller, ends: tuple[socket.socket, socket.socket]
) -> None:
    here, there = ends
    poller.register(here.fileno(), READ, lambda _events: None)
    there.close()
    (events,) = found(poller)
    assert events & READ
    poller.modify(here.fileno(), WRITE, lambda _events: None)
    (events,) = found(poller)
    assert events & WRITE


def test_several_are_told_in_one_wait(poller: Poller, ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    heard: dict[str, int] = {}
    poller.register(here.fileno(), WRITE, lambda events: heard.update(here=events))
    poller.register(there.fileno(), READ | WRITE, lambda events: heard.update(there=events))
    here.send(b"x")
    assert len(found(poller)) == 2
    assert heard == {"here": WRITE, "there": READ | WRITE}


def test_an_error_alone_wakes_whoever_waits_for_anything(poller: Poller) -> None:
    """The end of a pipe is neither bytes to read nor room to write."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.write(writer, bytes(1 << 20))
    poller.register(writer, WRITE, lambda _events: None)
    assert found(poller) == [], "it is full"
    os.close(reader)
    (events,) = found(poller)
    assert events & WRITE
    poller.unregister(writer)
    os.close(writer)
    reader, writer = os.pipe()
    poller.register(reader, READ, lambda _events: None)
    os.close(writer)
    (events,) = found(poller)
    assert events & READ
    poller.unregister(reader)
    os.close(reader)
