"""Random histories of a quorum under faults, and the checkers that watch them. One seed is one history."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from tests.quorum.machines import Node, record
from tests.quorum.world import World
from tidelog.quorum import QuorumSettings
from tidelog.quorum.metadata_log import DIRECTORY
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
        self.hurt: dict[int, int] = {}
        """Nodes whose disk lost bytes it had flushed, and how much was committed then: never more than a minority."""
        self.hurt_in_life: dict[int, int] = {}
        """In which life of the node that was: damage is found at the next start at the latest."""
        self.seen: Counter[str] = Counter()
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

    def may_hurt(self, node: Node) -> bool:
        """Whether this node's disk may lose bytes now: the voters hurt stay a minority until they caught up."""
        voter_sets = [other.quorum.voters for other in self.nodes.values() if len(other.quorum.voters)]
        for hurt_id, end_offset in list(self.hurt.items()):
            hurt = self.nodes[hurt_id]
            healed = hurt.up and not hurt.halted and hurt.life > self.hurt_in_life[hurt_id]
            if any(voters.get(hurt_id) and voters.get(hurt_id).key != hurt.key for voters in voter_sets):  # type: ignore[union-attr]
                continue  # its lost disk is still a voter somewhere
            if healed and not hurt.quorum._core.log.lost_records and hurt.listener.next_offset >= end_offset:
                del self.hurt[hurt_id]
        smallest = min(map(len, voter_sets), default=0)
        return node.id not in self.broker_ids and len({*self.hurt, node.id}) <= (smallest - 1) // 2

    def note_hurt(self, node: Node) -> None:
        self.hurt[node.id] = self.committed_end_offset
        self.hurt_in_life[node.id] = node.life

    def rot(self, node: Node) -> None:
        """Turn a bit of the log or of a snapshot around, behind everybody's back."""
        if not node.disk.exists(DIRECTORY):
            return
        names = [
            name
            for name in node.disk.list(DIRECTORY)
            if name.endswith((".log", ".checkpoint")) and not name.startswith("0" * 20 + "-")
        ]
        name = self.random.choice(names) if names else None
        if name is not None and node.disk.size(f"{DIRECTORY}/{name}"):
            self.note_hurt(node)
            self.seen["rot"] += 1
            position = self.random.randrange(node.disk.size(f"{DIRECTORY}/{name}"))
            node.disk.flip_bit(f"{DIRECTORY}/{name}", position, self.random.randrange(8))

    def activated(self, node: Node, epoch: int) -> None:
        super().activated(node, epoch)
        assert node.listener.state == self.replayed(node.listener.next_offset), "a leader serves without knowing all"
        assert node.listener.next_offset >= self.committed_end_offset, (
            f"leader {node.id} of epoch {epoch} lost committed records"
        )

    def told(self, node: Node, effect: Any) -> None:
        super().told(node, effect)
        self.seen["truncated"] += effect.kind == "quorum-truncated"
        assert effect.kind != "quorum-two-leaders"

    def stepped(self, node: Node) -> None:
        if node.halted and node.id in self.hurt:
            self.seen["halted"] += 1
            self.kill(node.id)
            return
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
            if node.up and node.id not in self.hurt:
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
    if seed % 3 == 0 and not len(world.static_voters):
        world.add_machine(8)
        world.add_machine(9)
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
    """Do one of the things below, drawn by weight."""
    random = world.random
    node = random.choice([*voters, *voters, *world.nodes.values()])
    chosen = random.choices([function for function, _ in FAULTS], [weight for _, weight in FAULTS])[0]
    chosen(world, node, step)


def append(world: CheckedWorld, node: Node, step: int) -> None:
    random, leader = world.random, world.leader()
    if leader is not None:
        records = [record(f"k{random.randint(0, 9)}", f"{step}.{index}") for index in range(random.randint(1, 4))]
        world.seen["appended"] += len(records)
        leader.step(lambda: leader.quorum.append(records))


def kill(world: CheckedWorld, node: Node, step: int) -> None:
    if node.up:
        power = world.random.random() < 0.5
        world.seen["power" if power else "kill"] += 1
        world.kill(node.id, power=power)
        if world.random.random() < 0.5:
            node.start()


def start_some(world: CheckedWorld, node: Node, step: int) -> None:
    for down in world.nodes.values():
        if not down.up and world.random.random() < 0.7:
            down.start()


def cut(world: CheckedWorld, node: Node, step: int) -> None:
    one, other = world.random.sample(list(world.nodes), 2)
    world.cut_link(one, other, silently=world.random.random() < 0.5)


def heal(world: CheckedWorld, node: Node, step: int) -> None:
    world.heal()


def pause(world: CheckedWorld, node: Node, step: int) -> None:
    node.paused = True


def resume(world: CheckedWorld, node: Node, step: int) -> None:
    for paused in world.nodes.values():
        paused.resume()


def rot(world: CheckedWorld, node: Node, step: int) -> None:
    if world.may_hurt(node):
        if world.random.random() < 0.5:
            world.kill(node.id)
        world.rot(node)


def wipe(world: CheckedWorld, node: Node, step: int) -> None:
    if not len(world.static_voters) and world.may_hurt(node):
        world.seen["wipe"] += 1
        world.wipe(node.id)
        world.note_hurt(node)


def change_voters(world: CheckedWorld, node: Node, step: int) -> None:
    """Ask the leader to remove a voter, best of all one whose disk is gone, or to make an observer one."""
    leader = world.leader()
    if leader is None or node.id in world.broker_ids:
        return
    voters = leader.quorum.voters
    known = voters.get(node.id)
    if known is None:
        world.seen["add"] += 1
        world.add_voter(leader.id, node)
    elif known.key != node.key or not world.hurt:
        world.seen["remove"] += 1
        world.remove_voter(leader.id, known.key)


def write_snapshot(world: CheckedWorld, node: Node, step: int) -> None:
    if node.up and node.listener.next_offset:
        records = [record(key, value) for key, value in sorted(node.listener.state.items())]
        node.step(lambda: node.quorum.write_snapshot(records, node.listener.next_offset))


def clean(world: CheckedWorld, node: Node, step: int) -> None:
    latest = node.quorum.latest_snapshot if node.up else None
    if latest is not None:
        node.step(lambda: node.quorum._core.log.raise_start_to(latest))


def lose_connection(world: CheckedWorld, node: Node, step: int) -> None:
    if node.up:
        node.step(node.quorum.leader_connection_lost)


FAULTS = [
    (append, 50),
    (kill, 10),
    (start_some, 15),
    (cut, 7),
    (heal, 8),
    (pause, 2),
    (resume, 2),
    (rot, 2),
    (wipe, 1),
    (change_voters, 3),
    (write_snapshot, 3),
    (clean, 2),
    (lose_connection, 1),
]


def settle(world: CheckedWorld) -> None:
    """No more faults: a leader, one new record, and the same state everywhere, within a bound."""
    world.heal()
    world.drop_rate = 0.0
    world.delay_ms, world.flush_delay_ms = (1, 5), (1, 5)
    for node in world.nodes.values():
        node.flush_delay_ms = None
        node.resume()
        if not node.up:
            node.start()
    assert world.run(60_000, until=lambda: world.leader() is not None), "no leader although nothing is broken"
    for _ in range(5):
        world.run(2_000)
        for node in world.nodes.values():
            if not node.up:  # found its disk damaged
                node.start()
    leader = world.leader()
    assert leader is not None
    leader.step(lambda: leader.quorum.append([record("last", "one")]))

    def everywhere() -> bool:
        return all(node.up and node.listener.state.get("last") == "one" for node in world.nodes.values())

    assert world.run(60_000, until=everywhere), "the last record did not reach everybody"
    world.check_logs_match()
    states = [node.listener.state for node in world.nodes.values()]
    assert all(state == states[0] for state in states)
    assert states[0] == world.replayed(1 << 60)
