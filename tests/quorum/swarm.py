"""Random histories of a quorum under faults, and the checkers that watch them. One seed is one history."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from tests.quorum.world import Node, World, record
from tidelog.quorum import QuorumSettings
from tidelog.wire.records.config_record import ConfigRecord

SETTINGS = QuorumSettings(metadata_log_segment_bytes=2_000)


class CheckedWorld(World):
    """A world that stops at the first broken promise."""

    def __init__(self, seed: int, voters: range, *, static: bool) -> None:
        self.leaders: dict[int, int] = {}
        """One leader an epoch."""
        self.history: dict[int, tuple[int, str, str]] = {}
        """What is committed at an offset, as the first that was told heard it: the same for everyone, for ever."""
        self.high_watermarks: dict[int, tuple[int, int]] = {}
        self.seen = {"truncated": 0, "snapshot": 0, "elected": 0, "power": 0, "kill": 0, "appended": 0}
        super().__init__(seed, voters, static=static, settings=SETTINGS)

    def role_changed(self, node: Node) -> None:
        super().role_changed(node)
        if node.quorum.is_leader:
            self.seen["elected"] += 1
            known = self.leaders.setdefault(node.quorum.epoch, node.id)
            assert known == node.id, f"epoch {node.quorum.epoch} is led by {known} and by {node.id}"

    def committed(self, node: Node, offset: int, epoch: int, message: ConfigRecord) -> None:
        told = (epoch, message.resource_name, str(message.value))
        known = self.history.setdefault(offset, told)
        assert known == told, f"offset {offset} was {known} and is {told} on {node.id}"

    def snapshot_loaded(self, node: Node, end_offset: int, state: dict[str, str]) -> None:
        assert state == self.replayed(end_offset), f"snapshot {end_offset} on {node.id} is not what the records say"
        self.seen["snapshot"] += end_offset > 0

    def replayed(self, end_offset: int) -> dict[str, str]:
        """The state after all committed records before `end_offset`."""
        return {key: value for offset, (_, key, value) in sorted(self.history.items()) if offset < end_offset}

    def activated(self, node: Node, epoch: int) -> None:
        super().activated(node, epoch)
        assert node.listener.state == self.replayed(node.listener.next_offset), "a leader serves without knowing all"
        known_end = max(self.history, default=-1) + 1
        assert node.listener.next_offset >= known_end, f"leader {node.id} of epoch {epoch} lost committed records"

    def told(self, node: Node, effect: Any) -> None:
        super().told(node, effect)
        self.seen["truncated"] += effect.kind == "quorum-truncated"
        assert effect.kind != "quorum-two-leaders"

    def after_event(self) -> None:
        for node in self.nodes.values():
            if node.up:
                assert node.halted is None, node.halted
                quorum = node.quorum
                life, before = self.high_watermarks.get(node.id, (0, 0))
                assert life != node.life or quorum.high_watermark >= before, "a high watermark went down"
                assert quorum.high_watermark <= quorum.log_end_offset
                self.high_watermarks[node.id] = (node.life, quorum.high_watermark)

    def check_logs_match(self) -> None:
        """Raft's log matching: where two logs have a record of the same epoch at an offset, all before is equal."""
        logs = {}
        for node in self.nodes.values():
            if node.up:
                start = node.quorum.log_start_offset
                logs[node.id] = {start + index: entry for index, entry in enumerate(node.log())}
        for (one, left), (other, right) in combinations(logs.items(), 2):
            both = sorted(left.keys() & right.keys())
            last_equal = max((offset for offset in both if left[offset][0] == right[offset][0]), default=-1)
            for offset in both:
                assert offset > last_equal or left[offset] == right[offset], f"{one} and {other} differ at {offset}"


def play(seed: int, steps: int = 120) -> CheckedWorld:
    """A history with faults, then one without: everything has to come together again."""
    world = CheckedWorld(seed, range(1, 2 + (seed % 5 or 2)), static=seed % 7 == 0)
    random = world.random
    world.drop_rate = random.choice([0, 0, 0.01, 0.05])
    world.delay_ms = random.choice([(1, 2), (1, 20), (1, 200)])
    world.flush_delay_ms = random.choice([(0, 1), (1, 10), (1, 50)])
    observer = world.add_machine(90, broker=True)
    world.start()
    for node in world.nodes.values():
        if random.random() < 0.3:
            node.flush_delay_ms = random.choice([(20, 100), (200, 800)])
    voters = [node for node in world.nodes.values() if node is not observer]
    for step in range(steps):
        world.run(random.randint(1, 400))
        fault(world, voters, step)
        if step % 20 == 0:
            world.check_logs_match()
    settle(world)
    return world


def fault(world: CheckedWorld, voters: list[Node], step: int) -> None:
    random = world.random
    node = random.choice([*voters, *voters, *world.nodes.values()])
    leader = world.leader()
    kind = random.random()
    if kind < 0.5 and leader is not None:
        count = random.randint(1, 4)
        records = [record(f"k{random.randint(0, 9)}", f"{step}.{index}") for index in range(count)]
        world.seen["appended"] += count
        leader.step(lambda: leader.quorum.append(records))
    elif kind < 0.6 and node.up:
        power = random.random() < 0.5
        world.seen["power" if power else "kill"] += 1
        world.kill(node.id, power=power)
        if random.random() < 0.5:
            node.start()
    elif kind < 0.75:
        for down in world.nodes.values():
            if not down.up and random.random() < 0.7:
                down.start()
    elif kind < 0.82:
        one, other = random.sample(list(world.nodes), 2)
        world.cut_link(one, other, silently=random.random() < 0.5)
    elif kind < 0.9:
        world.heal()
    elif kind < 0.93:
        node.paused = True
    elif kind < 0.95 and node.up and node.listener.next_offset:
        state = sorted(node.listener.state.items())
        records = [record(key, value) for key, value in state]
        node.step(lambda: node.quorum.write_snapshot(records, node.listener.next_offset))
    elif kind < 0.97 and node.up and node.quorum.latest_snapshot is not None:
        latest = node.quorum.latest_snapshot
        node.step(lambda: node.quorum._core.log.raise_start_to(latest))
    elif node.up and kind < 0.98:
        node.step(node.quorum.leader_connection_lost)
    else:
        for paused in world.nodes.values():
            paused.paused = False


def settle(world: CheckedWorld) -> None:
    """No more faults: a leader, one new record, and the same state everywhere, within a bound."""
    world.heal()
    world.drop_rate = 0.0
    world.delay_ms, world.flush_delay_ms = (1, 5), (1, 5)
    for node in world.nodes.values():
        node.paused, node.flush_delay_ms = False, None
        if not node.up:
            node.start()
    assert world.run(60_000, until=lambda: world.leader() is not None), "no leader although nothing is broken"
    world.run(5_000)
    leader = world.leader()
    assert leader is not None
    leader.step(lambda: leader.quorum.append([record("last", "one")]))

    def everywhere() -> bool:
        return all(node.listener.state.get("last") == "one" for node in world.nodes.values())

    assert world.run(60_000, until=everywhere), "the last record did not reach everybody"
    world.check_logs_match()
    states = [node.listener.state for node in world.nodes.values()]
    assert all(state == states[0] for state in states)
    assert states[0] == world.replayed(1 << 60)
