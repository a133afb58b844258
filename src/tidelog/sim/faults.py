"""Does to a simulated cluster what a shape's faults say, within a budget of lost bytes (see `budget`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidelog.sim.budget import Budget
from tidelog.sim.clock import RIGHT_PPM
from tidelog.sim.cluster import SimulatedCluster
from tidelog.sim.disk_faults import DiskFaults
from tidelog.sim.network import Place
from tidelog.sim.plots import Plots
from tidelog.sim.shape import ROT_OF_WORK, Fault, Shape

STOP_PATIENCE_MS = 5_000
"""A clean stop that takes longer than this becomes a kill, as an operator's would."""


class Faults:
    """The faults of one seed, under way or to come."""

    def __init__(self, cluster: SimulatedCluster, shape: Shape, note: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._shape = shape
        self._note = note
        self._busy: set[int] = set()
        """Nodes that something is being done to: one thing at a time."""
        self.disks = DiskFaults(cluster, shape, self, note)
        self._budget = Budget(cluster, shape, self.disks.failing)
        self.is_over = False
        self.kept_away = -1
        """A node that is not to be started, though faults are over."""
        self.injected = 0
        self._plots = Plots(cluster, self, int(shape.settings["replica.lag.time.max.ms"]))

    def schedule(self) -> None:
        """Put every fault into the world's queue."""
        begun_ms = self._world.now_ms
        for fault in self._shape.faults:
            self._world.at(begun_ms + fault.at_ms, lambda fault=fault: self._begin(fault))  # type: ignore[misc]

    def end(self) -> None:
        """No more of this: the network is whole, clocks run right, everybody goes on or is started again."""
        self.is_over = True
        self._world.network.heal()
        for node_id in self._cluster.node_ids:
            host = self._world.hosts[node_id]
            host.clock.run_at(self._world.now_ms, RIGHT_PPM)
            self.disks.heal(node_id)
            if host.process is not None and host.process.alive:
                self._world.resume(node_id)

    def start_the_dead(self) -> None:
        """Whoever is not running is started, and whoever runs without one of its directories is started again."""
        for node_id in self._cluster.node_ids:
            if self.disks.lacks_a_directory(node_id) and node_id != self.kept_away:
                self._note(f"kill {node_id}, to have its directory back")
                self._world.kill(node_id)
            process = self._world.hosts[node_id].process
            if (process is None or not process.alive) and node_id != self.kept_away:
                self.disks.see_to(node_id)
                self._world.start(node_id)

    # --- one fault ---

    def _begin(self, fault: Fault) -> None:
        if self.is_over:
            return
        acts: dict[str, Callable[[Fault], bool]] = {
            "kill": self._kill,
            "power loss": self._power_loss,
            "pause": self._pause,
            "cut": self._cut,
            "one-way cut": self._cut,
            "isolate": self._isolate,
            "hold": self._hold,
            "slow": self._slow,
            "restart": self._restart,
            "rolling restart": self._roll,
            "clock": self._clock,
            "strand": self._strand,
            "wipe": self._wipe,
            "full disk": self.disks.fill,
            "slow disk": self.disks.slow,
            "disk error": self.disks.fail,
            "rot": lambda fault: self.disks.rot(fault, self._budget.keep),
            ROT_OF_WORK: lambda fault: self.disks.rot(fault, self._budget.keep),
            **dict.fromkeys(self._plots.kinds, self._plots.begin),
        }
        fault = self._aimed(fault)
        done = acts[fault.kind](fault)
        self.injected += done
        self._note(f"fault {fault}" if done else f"no {fault.kind} of {fault.places}: busy, or beyond the budget")

    def _aimed(self, fault: Fault) -> Fault:
        """The fault, at who leads the partition that it is aimed at, when somebody does."""
        if fault.aim < 0:
            return fault
        topic, index = self._shape.targets[fault.aim % len(self._shape.targets)]
        known = self._cluster.newest_image().topic(topic)
        leader = -1 if known is None else known.partitions[index].leader
        others = [place for place in fault.places[1:] if place != leader]
        if leader < 0 or len(others) < len(fault.places) - 1:
            return fault
        return replace(fault, places=(leader, *others))

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something later, unless faults are over by then."""
        self._world.at(self._world.now_ms + delay_ms, lambda: None if self.is_over else action())

    def claim(self, node_id: int, *, loses_bytes: bool = False, keeps_metadata: bool = False) -> bool:
        """Have a node for oneself: it is alive, nothing is being done to it, and the budget lets it lose bytes."""
        process = self._world.hosts[node_id].process
        if node_id in self._busy or process is None or not process.alive:
            return False
        if loses_bytes and not self._budget.take(node_id, keeps_metadata=keeps_metadata):
            return False
        self._busy.add(node_id)
        return True

    def give_back(self, node_id: int) -> None:
        """Let others have a node that was claimed."""
        self._busy.discard(node_id)

    def _take(self, fault: Fault, *, loses_bytes: bool = False, keeps_metadata: bool = False) -> int | None:
        """The node of a fault, where it may be had."""
        node_id = _node(fault)
        return node_id if self.claim(node_id, loses_bytes=loses_bytes, keeps_metadata=keeps_metadata) else None

    def start(self, node_id: int) -> None:
        """Start a node that was claimed, if it is dead, and give it back."""
        process = self._world.hosts[node_id].process
        if process is None or not process.alive:
            self.disks.see_to(node_id)
            self._note(f"start {node_id}")
            self._world.start(node_id)
        self._busy.discard(node_id)

    def _kill(self, fault: Fault) -> bool:
        node_id = self._take(fault)
        if node_id is None:
            return False
        self._world.kill(node_id)
        self.later(fault.duration_ms, lambda: self.start(node_id))
        return True

    def _power_loss(self, fault: Fault) -> bool:
        node_id = self._take(fault, loses_bytes=True)
        if node_id is None:
            return False
        self._world.power_loss(node_id)
        self.later(fault.duration_ms, lambda: self.start(node_id))
        return True

    def _wipe(self, fault: Fault) -> bool:
        """The machine and its disk are gone; one with an empty disk comes in its place.

        Of several disks one is gone, more often than not, and the machine may have been up all the time.
        """
        number = self.disks.hit(fault)
        is_one = fault.amount % 4 > 0 and len(self._world.hosts[_node(fault)].disks) > 1
        node_id = self._take(fault, loses_bytes=True, keeps_metadata=is_one and number > 0)
        if node_id is None:
            return False
        if is_one and fault.amount % 4 > 1:
            self._world.kill(node_id)
        else:
            self._world.power_loss(node_id)
        if is_one:
            self._note(f"disk {number} of node {node_id} is replaced by an empty one")
            self._cluster.wipe_directory(node_id, number)
        else:
            self._cluster.wipe(node_id)
        self.later(fault.duration_ms, lambda: self.start(node_id))
        return True

    def _pause(self, fault: Fault) -> bool:
        node_id = self._take(fault)
        if node_id is None:
            return False
        self._world.pause(node_id)

        def resume() -> None:
            self._world.resume(node_id)
            self._busy.discard(node_id)

        self.later(fault.duration_ms, resume)
        return True

    def _cut(self, fault: Fault) -> bool:
        source, target = fault.places
        ways = [(source, target)] if fault.kind == "one-way cut" else [(source, target), (target, source)]
        self._cut_ways(fault, ways)
        return True

    def _isolate(self, fault: Fault) -> bool:
        node_id = fault.places[0]
        others: list[Place] = [one for one in self._cluster.node_ids if one != node_id]
        self._cut_ways(fault, [way for other in others for way in ((node_id, other), (other, node_id))])
        return bool(others)

    def _cut_ways(self, fault: Fault, ways: list[tuple[Place, Place]]) -> None:
        network = self._world.network
        for source, target in ways:
            network.cut(source, target, fault.traffic)

        def mend() -> None:
            for source, target in ways:
                network.mend(source, target, fault.traffic)

        self.later(fault.duration_ms, mend)

    def _hold(self, fault: Fault) -> bool:
        source, target = fault.places
        self._world.network.hold(source, target, fault.traffic)
        self.later(fault.duration_ms, lambda: self._world.network.release(source, target, fault.traffic))
        return True

    def _slow(self, fault: Fault) -> bool:
        source, target = fault.places
        network = self._world.network
        for one, other in ((source, target), (target, source)):
            network.slow(one, other, fault.amount, fault.traffic)

        def quicken() -> None:
            network.slow(source, target, 0, fault.traffic)
            network.slow(target, source, 0, fault.traffic)

        self.later(fault.duration_ms, quicken)
        return True

    def _strand(self, fault: Fault) -> bool:
        """A leader's records reach no follower for a while, and then it is gone: its log parts from the others'."""
        node_id = self._take(fault)
        if node_id is None:
            return False
        network = self._world.network
        others = [one for one in self._cluster.brokers if one != node_id]
        for other in others:
            network.hold(node_id, other, ("data",))

        def end() -> None:
            is_alive = self._cluster.process(node_id).alive
            if is_alive and fault.amount % 3 and self._budget.take(node_id):
                self._world.power_loss(node_id)
            elif is_alive:
                self._world.kill(node_id)
            for other in others:
                network.release(node_id, other, ("data",))
            self.later(fault.duration_ms, lambda: self.start(node_id))

        # Half of the time long enough for the followers to leave the ISR first: then nobody else may lead cleanly.
        self.later(50 + fault.duration_ms % 500 if fault.amount % 2 else 2000 + fault.duration_ms % 3000, end)
        return True

    def _restart(self, fault: Fault) -> bool:
        node_id = self._take(fault)
        if node_id is None:
            return False
        self.stop(node_id, fault.duration_ms, lambda: None)
        return True

    def stop(self, node_id: int, away_ms: int, then: Callable[[], None]) -> None:
        """Stop cleanly, stay away, start, go on."""
        process = self._cluster.process(node_id)
        self._world.stop(node_id)
        waited_ms = 0

        def look() -> None:
            nonlocal waited_ms
            if process.alive and waited_ms < STOP_PATIENCE_MS:
                waited_ms += 50
                self.later(50, look)
                return
            if process.alive:
                self._note(f"kill {node_id}: it does not stop")
                self._world.kill(node_id)
            self.later(away_ms, back)

        def back() -> None:
            self.start(node_id)
            then()

        look()

    def _roll(self, fault: Fault) -> bool:
        """Every broker in turn; the next begins when the one before is started, ready or not."""
        left = list(self._cluster.brokers)

        def next_one() -> None:
            while left:
                node_id = left.pop(0)
                process = self._world.hosts[node_id].process
                if node_id not in self._busy and process is not None and process.alive:
                    self._busy.add(node_id)
                    self._note(f"restart {node_id}")
                    self.stop(node_id, 100, lambda: self.later(fault.duration_ms // 4, next_one))
                    return

        next_one()
        return True

    def _clock(self, fault: Fault) -> bool:
        node_id = _node(fault)
        clock = self._world.hosts[node_id].clock
        if fault.amount % 2:
            clock.jump(self._world.now_ms, fault.amount)
        else:
            clock.run_at(self._world.now_ms, RIGHT_PPM + fault.amount * 30)
            self.later(fault.duration_ms, lambda: clock.run_at(self._world.now_ms, RIGHT_PPM))
        return True


def _node(fault: Fault) -> int:
    node_id = fault.places[0]
    assert isinstance(node_id, int)
    return node_id
