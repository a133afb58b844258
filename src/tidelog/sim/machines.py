"""Machines of a simulated world, and the processes that live and die on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidelog.events import Event
from tidelog.node import Node
from tidelog.sim.clock import Clock
from tidelog.sim.disk import SimulatedDisk
from tidelog.sim.network import Connection

Address = tuple[str, int]


class Process:
    """One life of a node, from its start to its death."""

    __slots__ = ("alive", "backlog", "connections", "exit_code", "host", "node", "paused", "peers", "tick_at_ms")

    def __init__(self, host: Host) -> None:
        self.host = host
        self.node: Node
        self.alive = True
        self.paused = False
        self.backlog: list[Event] = []
        """What happened while it was paused; the operating system keeps it."""
        self.exit_code: int | None = None
        self.connections: dict[int, Connection] = {}
        self.peers: dict[tuple[int, str], Connection] = {}
        self.tick_at_ms: int | None = None


class Host:
    """A machine: disks that outlive processes, addresses, a clock, and a way to make its node again."""

    __slots__ = (
        "addresses",
        "boots",
        "clock",
        "control_listeners",
        "disks",
        "make_node",
        "name",
        "process",
    )

    def __init__(
        self,
        name: int,
        disks: Sequence[SimulatedDisk],
        addresses: Mapping[Address, str],
        make_node: Callable[[Sequence[SimulatedDisk], int, int, str], Node],
        control_listeners: Sequence[str] = ("CONTROLLER",),
    ) -> None:
        self.name = name
        self.disks = list(disks)
        self.addresses = dict(addresses)
        """Where it listens, with the name of each listener."""
        self.make_node = make_node
        """From the disks, a seed, the time and the boot of the machine."""
        self.boots = 0
        """How often the machine went down: a kill leaves it up."""
        self.control_listeners = control_listeners
        self.clock = Clock(0)
        self.process: Process | None = None
