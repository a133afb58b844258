"""Plays a script on a stage, line by line, and tells what happened below each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidelog.sim import lanes
from tidelog.sim.expectations import judge
from tidelog.sim.script import Script, ScriptError, Step, duration_ms
from tidelog.sim.stage import Fetched, PartitionView, Place, Plan, ReplicaView, Stage, StoredRecord, Told, Traffic
from tidelog.sim.wording import tell

PATIENCE_MS = 60_000
"""How long `wait until` waits."""
KINDS = ("data", "control")
OF_ONE_NODE = ("log-truncated", "log-damaged", "damaged-replica-discarded")
"""Events that are told with the node that told them."""


@dataclass(slots=True)
class Happened:
    """One line of a script and what came of it."""

    line: int
    command: str
    lines: list[str] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    document: dict[str, Any] | None = None
    """The lanes for programs, where they are shown."""
    failure: str = ""
    """Empty, or what is instead of what was expected."""


class Player:
    """A script being played; `play` yields what happened, and stops after the first thing that was not as expected."""

    def __init__(self, script: Script, stage: Stage) -> None:
        self.script = script
        self.stage = stage
        self.topic = ""
        self.producers: list[str] = []
        self.seen: dict[str, list[StoredRecord]] = {}
        self.answers: dict[str, Fetched] = {}
        self.offsets: dict[str, str] = {}
        self.traffic: list[Traffic] = []
        self.told: list[Told] = []
        self._names: dict[str, int] = {}
        self._out: list[str] = []
        self._shown: list[str] = []
        self._has_cluster = False

    def play(self) -> Iterator[Happened]:
        """Carry out each line."""
        for step in self.script.steps:
            happened = Happened(step.line, step.text)
            if not step.is_comment:
                self._play_one(step, happened)
            yield happened
            if happened.failure:
                return

    def _play_one(self, step: Step, happened: Happened) -> None:
        self._out = happened.lines
        try:
            if step.words[0] == "expect":
                happened.failure = self._expect(step.words[1:])
                return
            command = COMMANDS.get(step.words[0])
            if command is None:
                raise ValueError(f"{step.words[0]!r} is no command")
            happened.failure = command(self, step.words[1:]) or ""
        except (ValueError, KeyError, IndexError, AssertionError, StopIteration) as error:
            raise ScriptError(self.script.name, step.line, f"{step.text}: {error}") from error
        except TimeoutError as error:
            happened.failure = f"in vain: {error}"
        self._tell_news()
        if self.topic and step.words[0] not in ("mark", "call"):
            self._show(happened)

    def _expect(self, words: Sequence[str]) -> str:
        """Empty when it is so, within the stage's patience, else what is instead."""
        is_so, found = judge(self, words)
        if is_so or not self.stage.patience_ms:
            return "" if is_so else found

        def look() -> bool:
            nonlocal found
            self._tell_news()
            outcome, found = judge(self, words)
            return outcome

        return "" if self.stage.wait_until(look, self.stage.patience_ms) else found

    def _tell_news(self) -> None:
        if not self._has_cluster:
            return
        self.traffic += self.stage.take_traffic()
        news = self.stage.take_told()
        self.told += news
        for one in news:
            sentence = tell(one.kind, one.fields)
            if sentence is not None and (one.kind != "log-truncated" or self.topic):
                who = f"node {one.node_id}: " if one.kind in OF_ONE_NODE else ""
                self._out.append(who + sentence)

    def _show(self, happened: Happened, *, always: bool = False) -> None:
        view = self.view()
        text = lanes.text(view)
        if always or text != self._shown:
            happened.lanes = self._shown = text
            happened.document = lanes.document(view)

    # --- what expectations and commands look up ---

    def view(self) -> PartitionView:
        """The partition that the script is about: the first of the topic made last."""
        return self.stage.partition(self.topic, 0)

    def lane(self, word: str) -> ReplicaView:
        """A replica of it."""
        return self.view().lane(self.node(word))

    def node(self, word: str) -> int:
        """The node a word means."""
        if word == "controller":
            controller = self.stage.controller()
            if controller is None:
                raise ValueError("there is no active controller")
            return controller[0]
        if word == "leader":
            return self.view().leader
        return self._names[word] if word in self._names else int(word)

    def number(self, word: str) -> int:
        """A number, or one that was given a name."""
        return self._names[word] if word in self._names else int(word)

    def place(self, word: str) -> Place:
        """A node or a client."""
        if word in self.producers or word in self.seen:
            return word
        return self.node(word)

    def ways(self, word: str) -> list[tuple[Place, Place]]:
        """`1->2` is one way, `1-2` both."""
        if "->" in word:
            source, target = (self.place(part) for part in word.split("->"))
            return [(source, target)]
        source, target = (self.place(part) for part in word.split("-"))
        return [(source, target), (target, source)]

    def say(self, line: str) -> None:
        """Put a line below the command."""
        self._out.append(line)

    # --- commands: the cluster ---

    def cluster(self, words: Sequence[str]) -> None:
        """Make the cluster; a second one in a script is another world, and the clients of the first are gone."""
        self.topic, self._shown = "", []
        self.producers.clear()
        for known in (self.seen, self.answers, self.offsets, self._names):
            known.clear()
        roles: dict[str, list[int]] = {"brokers": [], "controllers": []}
        settings, racks, role = {}, {}, "brokers"
        for word in words:
            if word in roles:
                role = word
            elif word.startswith("rack."):
                node_id, _, rack = word.removeprefix("rack.").partition("=")
                racks[int(node_id)] = rack
            elif "=" in word:
                name, _, value = word.partition("=")
                settings[name] = value
            else:
                roles[role].append(int(word))
        brokers = tuple(roles["brokers"])
        self._has_cluster = True
        self.stage.start(Plan(brokers, tuple(roles["controllers"]) or brokers, settings, racks))
        self.stage.take_told()
        controller = self.stage.controller()
        if controller is not None:
            self.say(f"node {controller[0]} is the controller, epoch {controller[1]}")

    def create(self, words: Sequence[str]) -> str:
        """Make a topic."""
        topic, _, *rest = words
        configs = _settings([word for word in rest if "=" in word])
        lists = " ".join(word for word in rest if "=" not in word).split(",")
        error = self.stage.create_topic(topic, [[self.node(word) for word in one.split()] for one in lists], configs)
        self.topic = "" if error else topic
        return error

    def alter(self, words: Sequence[str]) -> str:
        """Change a topic's settings."""
        return self.stage.alter_topic(words[0], _settings(words[1:]))

    def elect(self, words: Sequence[str]) -> str:
        """Ask for elections."""
        return self.stage.elect(words[0], self.topic, range(len(self.stage.leaders(self.topic))))

    # --- commands: clients ---

    def producer(self, words: Sequence[str]) -> None:
        """Add one."""
        self.stage.add_producer(words[0], _settings(words[1:]))
        self.producers.append(words[0])

    def produce(self, words: Sequence[str]) -> str:
        """Send and wait."""
        already = len(self.stage.ledger(words[0]))
        self.send(words)
        return self._settle(words[0], already)

    def send(self, words: Sequence[str]) -> None:
        """Send; the cluster gets a few milliseconds to take it."""
        for value in words[1:]:
            self.stage.send(words[0], self.topic, 0, value)
        self.stage.wait(20)

    def settle(self, words: Sequence[str]) -> str:
        """Wait for outcomes."""
        return self._settle(words[0], len(self.stage.ledger(words[0])))

    def _settle(self, name: str, already: int) -> str:
        is_settled = self.stage.wait_until(lambda: self.stage.unsettled(name) == 0, 2 * PATIENCE_MS)
        for entry in self.stage.ledger(name)[already:]:
            where = f" at offset {entry.offset}" if entry.offset >= 0 else ""
            after = f" after {entry.error}" if entry.error else ""
            self.say(f"{entry.value} {entry.outcome}{where}{after}")
        return "" if is_settled else f"{self.stage.unsettled(name)} records are not settled"

    def load(self, words: Sequence[str]) -> None:
        """Send at a rate, while time passes."""
        name, rate, _, duration = words
        per_second = int(rate.removesuffix("/s"))
        count = per_second * duration_ms(duration) // 1000
        number = len(self.stage.ledger(name)) + self.stage.unsettled(name)
        before = len(self.view().isr)
        partitions = len(self.stage.leaders(self.topic))
        for one in range(count):
            self.stage.send(name, self.topic, one % partitions, f"{name}{number + one}")
            self.stage.wait(1000 * (one + 1) // per_second - 1000 * one // per_second)
        counts = self.stage.counts(name)
        errors = ", ".join(f"{error} {times}" for error, times in sorted(counts.errors.items())) or "none"
        self.say(f"{count} records sent; errors so far: {errors}; retries so far: {counts.retries}")
        if before != len(self.view().isr):
            self.say(f"the ISR had {before} members and has {len(self.view().isr)}")

    def consumer(self, words: Sequence[str]) -> None:
        """Add one."""
        settings = _settings(words[1:])
        reports = settings.get("reports", "yes") == "yes"
        self.stage.add_consumer(words[0], settings.get("rack", ""), settings.get("group", ""), reports)
        self.seen[words[0]] = []

    def consume(self, words: Sequence[str]) -> None:
        """Read on."""
        answer = self.stage.consume(words[0], self.topic, 0)
        self.seen[words[0]] += answer.records
        self._answered(words[0], answer)

    def commit(self, words: Sequence[str]) -> None:
        """Commit what it has read."""
        self.stage.commit(words[0], self.topic, 0)

    def describe(self, words: Sequence[str]) -> None:
        """Show how far a group is."""
        for line in lanes.positions(self.stage.group_positions(words[0], self.topic, 0)):
            self.say(line)

    def fetch(self, words: Sequence[str]) -> None:
        """One Fetch to one node."""
        name, _, node, _, offset, *rest = words
        epoch = int(rest[rest.index("epoch") + 1]) if "epoch" in rest else -1
        self.stage.begin_fetch(name, self.node(node), self.topic, 0, int(offset), epoch)
        if "later" not in rest:
            self.answer([name])

    def answer(self, words: Sequence[str]) -> None:
        """Wait for the answer of a fetch."""
        self._answered(words[0], self.stage.end_fetch(words[0]))

    def _answered(self, name: str, answer: Fetched) -> None:
        self.answers[name] = answer
        what = " ".join(f"{one.offset}:{one.value}" for one in answer.records) or "no records"
        waited = f" after {answer.waited_ms // 100 * 100} ms" if answer.waited_ms >= 100 and not answer.records else ""
        if answer.error:
            self.say(f"{name} is told {answer.error}")
        else:
            self.say(f"{name} gets {what}{waited}, {lanes.committed(answer.high_watermark)}")

    def offsets_of(self, words: Sequence[str]) -> None:
        """ListOffsets for the latest, or for a time to come."""
        name, _, node, what, *rest = words
        version = int(rest[0].removeprefix("v")) if rest else 9
        at = -1 if what == "latest" else self.stage.now_ms + 3_600_000
        self.offsets[name] = self.stage.list_offset(name, self.node(node), self.topic, 0, at, version)
        self.say(f"{name} is told {self.offsets[name]}")

    # --- commands: the network ---

    def on_ways(self, words: Sequence[str], act: Callable[..., None], *more: Any) -> None:
        """Do something to each way that the first word names."""
        kind = next((word for word in words[1:] if word in KINDS), "both")
        for source, target in self.ways(words[0]):
            act(source, target, kind, *more)

    def let(self, words: Sequence[str]) -> None:
        """Deliver by hand, and tell what passed."""
        self.stage.wait(20)
        self.traffic += self.stage.take_traffic()
        already = len(self.traffic)
        count = next((int(word) for word in words[1:] if word.isdigit()), None)
        self.on_ways(words, self.stage.let, count)
        self.stage.wait(20)
        self.traffic += self.stage.take_traffic()
        for one in self.traffic[already:]:
            self.say(f"{one.source} -> {one.target}: {one.text}")

    def partition(self, words: Sequence[str]) -> None:
        """Cut every way between groups."""
        groups = [[self.place(word) for word in part.split()] for part in " ".join(words).split("/")]
        for number, group in enumerate(groups):
            for other in groups[number + 1 :]:
                for source in group:
                    for target in other:
                        self.stage.cut(source, target, "both")
                        self.stage.cut(target, source, "both")

    # --- commands: the rest ---

    def call(self, words: Sequence[str]) -> None:
        """Name a node, or the controller's epoch."""
        if words[1] == "controller-epoch":
            controller = self.stage.controller()
            self._names[words[0]] = -1 if controller is None else controller[1]
        else:
            self._names[words[0]] = self.node(words[1])
        self.say(f"{words[0]} is {self._names[words[0]]}")

    def mark(self, _words: Sequence[str]) -> None:
        """Forget what passed."""
        self.stage.take_traffic()
        self.traffic.clear()
        self.told.clear()

    def wait(self, words: Sequence[str]) -> str:
        """Let time pass."""
        if words[0] != "until":
            self.stage.wait(duration_ms(words[0]))
            return ""
        begun_ms = self.stage.now_ms
        found = ""

        def is_so() -> bool:
            nonlocal found
            self.told += self._peek_told()
            self.traffic += self.stage.take_traffic()
            outcome, found = judge(self, words[1:])
            # Others may know of a leader or an ISR before the leader does: what a script does next is meant for it.
            return outcome and (words[1] not in ("leader", "isr") or self.view().is_known_to_leader)

        if not self.stage.wait_until(is_so, PATIENCE_MS):
            return f"after {PATIENCE_MS // 1000} s it is still {found}"
        waited_ms = self.stage.now_ms - begun_ms
        self.say("at once" if waited_ms < 10 else f"within {_rounded(waited_ms)}")
        return ""

    def _peek_told(self) -> list[Told]:
        news = self.stage.take_told()
        for one in news:
            sentence = tell(one.kind, one.fields)
            if sentence is not None:
                who = f"node {one.node_id}: " if one.kind in OF_ONE_NODE else ""
                self._out.append(who + sentence)
        return news

    def show(self, _words: Sequence[str]) -> None:
        """Show the lanes even when they are as before."""
        self._shown = []

    def clock(self, words: Sequence[str]) -> None:
        """A machine's time goes wrong, by as much as is said."""
        self.stage.set_clock(self.node(words[0]), duration_ms(words[1].removeprefix("+")))

    def sweep(self, words: Sequence[str]) -> str:
        """A failure at every step of a workload, for one setting."""
        from tidelog.sim.sweep import sweep

        split = words.index("expect")
        outcome = sweep(_settings(words[:split]), self.script.seed)
        self.say(outcome.line)
        return "" if outcome.verdict == " ".join(words[split + 1 :]) else outcome.verdict


def _settings(words: Sequence[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def _rounded(duration: int) -> str:
    return f"{-(-duration // 1000)} s" if duration > 1000 else f"{-(-duration // 100) * 100} ms"


def _on_node(name: str) -> Callable[[Player, Sequence[str]], None]:
    def act(player: Player, words: Sequence[str]) -> None:
        for word in words:
            getattr(player.stage, name)(player.node(word))

    return act


def _on_ways(name: str) -> Callable[[Player, Sequence[str]], None]:
    return lambda player, words: player.on_ways(words, getattr(player.stage, name))


COMMANDS: dict[str, Callable[[Player, Sequence[str]], str | None]] = {
    "cluster": Player.cluster,
    "create": Player.create,
    "alter": Player.alter,
    "elect": Player.elect,
    "producer": Player.producer,
    "produce": Player.produce,
    "send": Player.send,
    "settle": Player.settle,
    "load": Player.load,
    "consumer": Player.consumer,
    "consume": Player.consume,
    "commit": Player.commit,
    "describe": Player.describe,
    "fetch": Player.fetch,
    "answer": Player.answer,
    "offsets": Player.offsets_of,
    "hold": _on_ways("hold"),
    "let": Player.let,
    "release": _on_ways("release"),
    "cut": _on_ways("cut"),
    "mend": _on_ways("mend"),
    "slow": lambda player, words: player.on_ways(words, player.stage.slow, duration_ms(words[1])),
    "partition": Player.partition,
    "heal": lambda player, _words: player.stage.heal(),
    "kill": _on_node("kill"),
    "power-off": _on_node("power_off"),
    "wipe": _on_node("wipe"),
    "start": _on_node("start_node"),
    "stop": _on_node("stop_node"),
    "pause": _on_node("pause"),
    "resume": _on_node("resume"),
    "clock": Player.clock,
    "call": Player.call,
    "mark": Player.mark,
    "wait": Player.wait,
    "show": Player.show,
    "sweep": Player.sweep,
}
