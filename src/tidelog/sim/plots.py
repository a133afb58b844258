"""Faults of several acts, each aimed at a moment at which a cluster is vulnerable.

    blackout        the replicas of a partition are killed one after the other and come back together: whoever leads
                    then has an old watermark, and others have less
    amnesia         a follower loses its power and is back at once, but its leader hears nothing from its followers:
                    what it remembers of that one is of a former life
    stale proposal  followers lag, and what the leader proposes for that is held up on its way to the controller until
                    the controller has decided something else
    usurper         a leader that lives is replaced, and cuts its log while answers of it are still on their way
    new voter       a voter comes back with an empty disk, and the quorum's leader is killed

A plot is a generator: it does something and yields what it waits for, and for how long at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from tidelog.controller.entities import Partition as PartitionImage
from tidelog.controller.image import MetadataImage
from tidelog.replica.leadership import Leadership
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.network import CONTROL, DATA
from tidelog.sim.shape import Fault
from tidelog.sim.world import World

LOOK_MS = 3
"""How often a plot looks whether what it waits for has happened."""
CONTROLLER_CHANNEL = "controller"
"""The channel of a broker's own requests to the controller."""
Wait = tuple[Callable[[], bool], int]
"""What a plot waits for, and for how many milliseconds at most."""


class Hands(Protocol):
    """What a plot may do besides holding messages back."""

    is_over: bool

    def claim(self, node_id: int, *, loses_bytes: bool = False) -> bool:
        """Have a node for oneself, if it lives, nobody else has it, and the budget allows it to lose bytes."""

    def start(self, node_id: int) -> None:
        """Start a node that was claimed, if it is dead, and give it back."""

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something later, unless faults are over by then."""


def play(world: World, later: Callable[[int, Callable[[], None]], None], acts: Iterator[Wait]) -> None:
    """Go through the acts of a plot, each when what the one before waits for has come, or its time is up."""
    wait = next(acts, None)
    if wait is None:
        return
    is_so, patience_ms = wait
    deadline_ms = world.now_ms + patience_ms

    def look() -> None:
        if is_so() or world.now_ms >= deadline_ms:
            play(world, later, acts)
        else:
            later(LOOK_MS, look)

    look()


class Plots:
    """Plays such faults on a cluster."""

    def __init__(self, cluster: SimulatedCluster, hands: Hands, lag_ms: int) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._hands = hands
        self._lag_ms = lag_ms
        """replica.lag.time.max.ms"""
        self._kinds: dict[str, Callable[[Fault], Iterator[Wait] | None]] = {
            "blackout": self._blackout,
            "amnesia": self._amnesia,
            "stale proposal": self._stale_proposal,
            "usurper": self._usurper,
            "new voter": self._new_voter,
        }

    @property
    def kinds(self) -> Sequence[str]:
        """What can be played."""
        return list(self._kinds)

    def begin(self, fault: Fault) -> bool:
        """Play a plot, where there is somebody to play it with."""
        acts = self._kinds[fault.kind](fault)
        if acts is None:
            return False
        play(self._world, self._hands.later, acts)
        return True

    # --- plots ---

    def _blackout(self, fault: Fault) -> Iterator[Wait] | None:
        found = self._partition(fault, 2)
        if found is None:
            return None
        partition = found[2]
        order = [one for one in partition.replicas if one != partition.leader] + [partition.leader]
        victims = [one for one in order if self._hands.claim(one)]
        return self._black_out(victims, fault.duration_ms) if victims else None

    def _black_out(self, victims: Sequence[int], duration_ms: int) -> Iterator[Wait]:
        for number, victim in enumerate(victims):
            self._kill(victim)
            yield _never, 100 + duration_ms % (400 if number else 1_700)
        for victim in victims:
            self._hands.start(victim)

    def _amnesia(self, fault: Fault) -> Iterator[Wait] | None:
        for _, _, partition in self._partitions(fault, 2):
            for follower in _followers(partition):
                if self._hands.claim(follower, loses_bytes=True):
                    return self._forget(partition, follower, fault.duration_ms)
        return None

    def _forget(self, partition: PartitionImage, follower: int, duration_ms: int) -> Iterator[Wait]:
        network, leader = self._world.network, partition.leader
        for other in _followers(partition):  # nothing is committed meanwhile, so that it once had all that is
            network.hold(other, leader, (DATA,))
        self._world.power_loss(follower)
        yield _never, 20 + duration_ms % 200
        self._hands.start(follower)
        yield (lambda: self._is_known(follower, leader)), 4_000
        yield _never, 50 + duration_ms % 300
        for other in _followers(partition):
            network.release(other, leader, (DATA,))

    def _stale_proposal(self, fault: Fault) -> Iterator[Wait] | None:
        controller = self._cluster.active_controller()
        for topic, index, partition in self._partitions(fault, 3):
            leader, followers = partition.leader, [one for one in _followers(partition) if one in partition.isr]
            if controller is None or controller[0] == leader or len(followers) < 2:
                continue
            victim = next((one for one in followers if one != controller[0] and self._hands.claim(one)), None)
            if victim is not None:
                return self._overtake((topic, index), leader, controller[0], followers, victim)
        return None

    def _overtake(
        self, key: tuple[str, int], leader: int, controller: int, followers: Sequence[int], victim: int
    ) -> Iterator[Wait]:
        network = self._world.network
        for follower in followers:
            network.hold(leader, follower, (DATA,))
        yield _never, self._lag_ms * 4 // 5
        network.hold(leader, controller, (CONTROL,))
        yield (lambda: (led := self._leadership(leader, key)) is None or led.proposed is not None), self._lag_ms
        self._kill(victim)
        yield (lambda: victim not in self._isr(controller, key)), 600
        network.release(leader, controller, (CONTROL,))
        yield _never, 50
        for follower in followers:
            network.release(leader, follower, (DATA,))
        self._hands.start(victim)

    def _usurper(self, fault: Fault) -> Iterator[Wait] | None:
        controller = self._cluster.active_controller()
        for topic, index, partition in self._partitions(fault, 3):
            leader, followers = partition.leader, _followers(partition)
            if controller is None or controller[0] == leader or not set(followers) & set(partition.isr):
                continue
            if self._hands.claim(leader):
                return self._replace((topic, index), leader, controller[0], followers)
        return None

    def _replace(self, key: tuple[str, int], leader: int, controller: int, followers: Sequence[int]) -> Iterator[Wait]:
        network = self._world.network
        for follower in followers:
            network.hold(leader, follower, (DATA,))
        yield _never, 150
        network.hold(leader, controller, (CONTROL,))
        self._break_control(leader, controller)
        yield (lambda: self._leader(controller, key) not in (leader, -1)), 1_000
        usurper = self._leader(controller, key)
        network.release(leader, controller, (CONTROL,))
        if usurper in followers:
            network.release(leader, usurper, (DATA,))
            yield (lambda: self._follows(leader, key, usurper)), 1_500
            yield _never, 60
        for follower in followers:
            network.release(leader, follower, (DATA,))
        self._hands.start(leader)

    def _new_voter(self, fault: Fault) -> Iterator[Wait] | None:
        controller = self._cluster.active_controller()
        voters = [one for one in self._cluster.controllers if controller is not None and one != controller[0]]
        wiped = next((one for one in voters if self._hands.claim(one, loses_bytes=True)), None)
        if controller is None or wiped is None:
            return None
        return self._elect_by_new_voter(controller[0], wiped, fault.duration_ms)

    def _elect_by_new_voter(self, controller: int, wiped: int, duration_ms: int) -> Iterator[Wait]:
        self._world.power_loss(wiped)
        self._cluster.wipe(wiped)
        yield _never, 50 + duration_ms % 400
        self._hands.start(wiped)
        yield _never, 5 + duration_ms % 60
        if self._hands.claim(controller):
            self._kill(controller)
            yield _never, 1_500 + duration_ms % 2_500
            self._hands.start(controller)

    # --- looking ---

    def _partition(self, fault: Fault, least_replicas: int) -> tuple[str, int, PartitionImage] | None:
        return next(iter(self._partitions(fault, least_replicas)), None)

    def _partitions(self, fault: Fault, least_replicas: int) -> list[tuple[str, int, PartitionImage]]:
        """Those with a leader and enough replicas, beginning with the one that the fault is aimed at."""
        image = self._cluster.newest_image()
        found = [
            (topic.name, index, partition)
            for topic, index, partition in image.partitions()
            if partition.leader >= 0 and len(partition.replicas) >= least_replicas
        ]
        first = max(fault.aim, 0) % len(found) if found else 0
        return [*found[first:], *found[:first]]

    def _image(self, node_id: int) -> MetadataImage | None:
        process = self._world.hosts[node_id].process
        return process.node.image if process is not None and process.alive else None

    def _image_of(self, node_id: int, key: tuple[str, int]) -> PartitionImage | None:
        image = self._image(node_id)
        topic = None if image is None else image.topic(key[0])
        return None if topic is None else topic.partitions.get(key[1])

    def _isr(self, node_id: int, key: tuple[str, int]) -> tuple[int, ...]:
        partition = self._image_of(node_id, key)
        return () if partition is None else partition.isr

    def _leader(self, node_id: int, key: tuple[str, int]) -> int:
        partition = self._image_of(node_id, key)
        return -1 if partition is None else partition.leader

    def _leadership(self, node_id: int, key: tuple[str, int]) -> Leadership | None:
        process = self._world.hosts[node_id].process
        hosted = None if process is None else process.node.replicas.partitions.get(key)
        return None if hosted is None else hosted.leadership

    def _follows(self, node_id: int, key: tuple[str, int], leader: int) -> bool:
        process = self._world.hosts[node_id].process
        hosted = None if process is None else process.node.replicas.partitions.get(key)
        return hosted is not None and hosted.leader_id == leader

    def _is_known(self, node_id: int, by: int) -> bool:
        """Whether a node is in its present life an active broker, as far as another one knows."""
        process, image = self._world.hosts[node_id].process, self._image(by)
        broker = None if image is None else image.brokers.get(node_id)
        if process is None or not process.alive or broker is None:
            return False
        return broker.active and broker.epoch == process.node.lifecycle.broker_epoch

    # --- doing ---

    def _kill(self, node_id: int) -> None:
        process = self._world.hosts[node_id].process
        if process is not None and process.alive:
            self._world.kill(node_id)

    def _break_control(self, node_id: int, controller: int) -> None:
        """The controller sees the connection of a broker break, as by a reset."""
        process = self._world.hosts[node_id].process
        connection = None if process is None else process.peers.get((controller, CONTROLLER_CHANNEL))
        if connection is not None:
            self._world.reset(connection)


def _never() -> bool:
    return False


def _followers(partition: PartitionImage) -> list[int]:
    return [one for one in partition.replicas if one != partition.leader]
