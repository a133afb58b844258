"""Scripts: a command, a line `----`, and what happened. `REWRITE_SCRIPTS=1` writes down what happens now.

Commands:
    voters 1 2 3 [static] [NAME=VALUE]   the machines, formatted, and settings; must come first
    machine 4 [broker]         one more, not a voter
    slow 1 2000                its disk takes so many ms to flush
    start 1 2 | kill 1 | power-loss 1 | wipe 1 | pause 1 | resume 1
    damage 1                   a bit of the last batch of its log turns around
    cut 1-2 | silence 1-2      break a link, with or without the ends noticing (1>2: one way); heal mends all
    run 500                    let 500 ms pass
    leader [30000]             let time pass until a leader may serve, at most so long
    append 1 a=1 b=2           have node 1 append records
    snapshot 1 | clean 1       have it write a snapshot of its state; have its log begin after the newest one
    resign 1 | lost 1          a clean stop; the connection to its leader broke
    campaign 5                 have it ask for votes now, without asking first
    add 1 4 | remove 1 3       ask node 1 to make node 4 a voter; to remove node 3
    describe 1 | state | log | messages on|off
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.quorum.machines import record
from tests.quorum.world import World
from tidelog.errors import ErrorCode, TidelogError
from tidelog.quorum import QuorumSettings, RoleName
from tidelog.quorum.metadata_log import DIRECTORY, TOPIC
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages import describe_quorum

REWRITE = bool(os.environ.get("REWRITE_SCRIPTS"))


class Script:
    """Plays the commands of a file."""

    def __init__(self) -> None:
        self.world: World

    def play(self, command: str) -> list[str]:
        """What happened, line by line."""
        name, *arguments = command.split()
        if name == "voters":
            pairs = [text.split("=") for text in arguments if "=" in text]
            values: dict[str, Any] = {name: int(value) for name, value in pairs}
            settings = QuorumSettings(**values)
            node_ids = [int(text) for text in arguments if text.isdigit()]
            self.world = World(1, node_ids, static="static" in arguments, settings=settings)
            self.world.delay_ms = self.world.flush_delay_ms = (1, 1)
            return []
        self.world.lines = []
        try:
            shown = getattr(self, f"do_{name.replace('-', '_')}")(*arguments)
        except TidelogError as error:
            shown = [f"refused: {error}"]
        return self.world.lines + (shown or [])

    # --- machines and links ---

    def do_machine(self, node_id: str, kind: str = "") -> None:
        self.world.add_machine(int(node_id), broker=kind == "broker")

    def do_start(self, *node_ids: str) -> None:
        self.world.start(*map(int, node_ids))

    def do_kill(self, *node_ids: str) -> None:
        for node_id in node_ids:
            self.world.kill(int(node_id))

    def do_power_loss(self, *node_ids: str) -> None:
        for node_id in node_ids:
            self.world.kill(int(node_id), power=True)

    def do_wipe(self, node_id: str) -> None:
        self.world.wipe(int(node_id))

    def do_slow(self, node_id: str, delay_ms: str) -> None:
        self.world.nodes[int(node_id)].flush_delay_ms = (int(delay_ms), int(delay_ms))

    def do_damage(self, node_id: str) -> None:
        disk = self.world.nodes[int(node_id)].disk
        path = f"{DIRECTORY}/00000000000000000000.log"
        disk.flip_bit(path, disk.size(path) - 3)

    def do_pause(self, node_id: str) -> None:
        self.world.nodes[int(node_id)].paused = True

    def do_resume(self, node_id: str) -> None:
        self.world.nodes[int(node_id)].resume()

    def do_cut(self, *links: str) -> None:
        for link in links:
            self.world.cut_link(*map(int, link.split("-")))

    def do_silence(self, *links: str) -> None:
        for link in links:
            if ">" in link:
                self.world.cut.add(tuple(map(int, link.split(">"))))  # type: ignore[arg-type]
            else:
                self.world.cut_link(*map(int, link.split("-")), silently=True)

    def do_heal(self) -> None:
        self.world.heal()

    # --- time ---

    def do_run(self, duration_ms: str) -> None:
        self.world.run(int(duration_ms))

    def do_leader(self, limit_ms: str = "30000") -> list[str]:
        self.world.run(int(limit_ms), until=lambda: self.world.leader() is not None)
        leader = self.world.leader()
        return ["no leader"] if leader is None else [f"leader is {leader.id}"]

    # --- what nodes are asked ---

    def do_append(self, node_id: str, *pairs: str) -> list[str]:
        node = self.world.nodes[int(node_id)]
        shown: list[str] = []
        records = [record(*pair.split("=")) for pair in pairs]
        node.step(lambda: shown.append(f"last offset {node.quorum.append(records)}"))
        return shown

    def do_snapshot(self, node_id: str) -> list[str]:
        node = self.world.nodes[int(node_id)]
        records = [record(key, value) for key, value in sorted(node.listener.state.items())]
        shown: list[str] = []
        node.step(lambda: shown.append(str(node.quorum.write_snapshot(records, node.listener.next_offset))))
        self.world.run(50)
        return [f"snapshot {shown[0]}"]

    def do_clean(self, node_id: str) -> list[str]:
        node = self.world.nodes[int(node_id)]
        latest = node.quorum.latest_snapshot
        assert latest is not None
        node.step(lambda: node.quorum._core.log.raise_start_to(latest))
        return [f"log begins at {node.quorum.log_start_offset}"]

    def do_resign(self, node_id: str) -> None:
        node = self.world.nodes[int(node_id)]
        node.step(lambda: node.quorum.resign(lambda: self.world.say(f"{node.id} has resigned")))

    def do_lost(self, node_id: str) -> None:
        node = self.world.nodes[int(node_id)]
        node.step(node.quorum.leader_connection_lost)

    def do_campaign(self, node_id: str) -> None:
        node = self.world.nodes[int(node_id)]

        def stand() -> None:
            elections = node.quorum._elections
            elections._become_prospective(None)
            if node.quorum.role is RoleName.PROSPECTIVE:
                elections._become_candidate()

        node.step(stand)

    def do_add(self, node_id: str, voter_id: str) -> list[str]:
        return self._answer(self.world.add_voter(int(node_id), self.world.nodes[int(voter_id)]))

    def do_remove(self, node_id: str, voter_id: str) -> list[str]:
        voter = self.world.nodes[int(node_id)].quorum.voters.get(int(voter_id))
        assert voter is not None
        return self._answer(self.world.remove_voter(int(node_id), voter.key))

    def _answer(self, answers: list[Any]) -> list[str]:
        self.world.run(5000, until=lambda: bool(answers))
        if not answers:
            return ["no answer"]
        message = getattr(answers[0], "error_message", None)
        return [ErrorCode(answers[0].error_code).name + (f": {message}" if message else "")]

    def do_describe(self, node_id: str) -> list[str]:
        body = describe_quorum.DescribeQuorumRequest(
            topics=[
                describe_quorum.DescribeQuorumRequestTopicData(
                    topic_name=TOPIC, partitions=[describe_quorum.DescribeQuorumRequestPartitionData()]
                )
            ]
        )
        answers = self.world.request(int(node_id), ApiKey.DESCRIBE_QUORUM, 2, body)
        self.world.run(1000, until=lambda: bool(answers))
        partition = answers[0].topics[0].partitions[0]
        if partition.error_code:
            return [ErrorCode(partition.error_code).name]
        lines = [
            f"leader {partition.leader_id} epoch {partition.leader_epoch} high watermark {partition.high_watermark}"
        ]
        for kind, states in (("voter", partition.current_voters), ("observer", partition.observers)):
            lines += [f"{kind} {state.replica_id} log end {state.log_end_offset}" for state in states]
        return lines

    # --- looking ---

    def do_state(self) -> list[str]:
        lines = []
        for node in self.world.nodes.values():
            if not node.up or node.halted:
                lines.append(f"{node.id}: down")
                continue
            quorum = node.quorum
            leader = "none" if quorum.leader_id is None else quorum.leader_id
            lines.append(
                f"{node.id}: {quorum.role.value} epoch {quorum.epoch} leader {leader} log {quorum.log_start_offset}"
                f"..{quorum.log_end_offset} committed {quorum.high_watermark} voters {quorum.voters.ids} "
                f"state {' '.join(f'{k}={v}' for k, v in sorted(node.listener.state.items())) or '-'}"
            )
        return lines

    def do_log(self) -> list[str]:
        lines = []
        for node in self.world.nodes.values():
            if node.up and not node.halted:
                entries = " ".join(f"{epoch}:{content}" for epoch, content in node.log())
                lines.append(f"{node.id}: {entries}")
        return lines

    def do_messages(self, switch: str) -> None:
        self.world.show_messages = switch == "on"


def play_file(path: Path) -> tuple[str, str]:
    """The script as it is, and as it would be if it were written now."""
    text = path.read_text()
    played: list[str] = []
    script = Script()
    commands: list[str] = []
    expecting = False
    for line in text.splitlines():
        if expecting and line:
            continue
        if expecting:
            expecting = False
        if line == "----":
            played.append(line)
            for command in commands:
                played += script.play(command)
            commands = []
            expecting = True
            continue
        if line and not line.startswith("#"):
            commands.append(line)
        played.append(line)
    return text, "\n".join(played).rstrip("\n") + "\n"
