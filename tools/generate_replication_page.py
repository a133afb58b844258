"""Write docs/replication.md: every notion of replication in order, each with its scenario as it was just played.

--check changes nothing and exits 1 when the page is not what the scripts and the code say now.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tidelog.cli.scenario import known, load, text
from tidelog.sim.player import Player
from tidelog.sim.simulated_stage import SimulatedStage

PAGE = Path(__file__).resolve().parent.parent / "docs" / "replication.md"

HEAD = """\
# Replication, step by step

This page walks through how records are replicated, one notion after the other, each with a scenario that shows it.
The scenarios are scripts in [scenarios/](../scenarios), played on a simulated cluster of the nodes that are
shipped; what stands below is their output, made by `make docs`, and a test keeps it current. Play one yourself:

    tidelog scenario list
    tidelog scenario run divergence
    tidelog scenario run acks-one-loses --real

With `--real` the same script is played on node processes of this machine, with confluent-kafka as the client, where
that can be done; the others say that they are simulated only.

A script can only do what happens to a real cluster: produce, consume, hold or cut a link, kill, pause, restart,
change settings, ask for elections, let time pass. It cannot set a log, a high watermark, an ISR or an epoch. A line
that begins with `ok` was expected by the script, and was so.

**How to read a lane.** Below a step stand the replicas of the partition: who leads, what each log holds by leader
epoch, and how far it knows that records are committed. The protocol's high watermark (HW) is exclusive: HW 3 means
that offsets 0, 1 and 2 are committed. Both are shown: `HW 3 (committed through 2)`.

**The notes.** The stories come from five study notes on Kafka's replication, numbered 000 to 004. Where Kafka does
something else today than a note says, the scenario says so.

**Words of older texts.** ZooKeeper is gone from Kafka 4. Its duties (which broker is alive, who is the controller,
where changes of the ISR are written, who tells the brokers) belong to the quorum of controllers. Some texts say
that the leader keeps the ISR, others that the controller does: the leader proposes, and the controller decides
(AlterPartition, KIP-497).
"""

SECTIONS: list[tuple[str, str, list[str]]] = [
    (
        "Replicas, log end offset, high watermark",
        """\
A topic's partition is a log with copies on several brokers, its replicas. One of them leads and takes all writes;
the others follow. Each replica has a *log end offset* (LEO), the offset of the next record. The replicas that keep
up with the leader are its *in-sync replicas* (ISR), the leader among them. A record is *committed* when all of the
ISR have it, and the *high watermark* is where that ends: the least log end offset of the ISR. Consumers see what is
committed and nothing else, so that nobody is ever shown a record that a failure could take away.""",
        ["high-watermark"],
    ),
    (
        "Followers fetch, and that is all",
        """\
Followers pull. The offset in a follower's fetch says what it wants, and so what it has: it is the acknowledgement.
The answer carries records, and the watermark, which therefore reaches followers one round later than the leader
knows it.""",
        ["fetch-offset-is-the-ack", "commit-in-four-steps"],
    ),
    (
        "In sync, and not",
        """\
A follower that has not caught up for `replica.lag.time.max.ms` leaves the ISR, so that the watermark need not wait
for it, and re-enters when it has caught up. Kafka once judged by the number of records as well; the second scenario
shows why not.""",
        ["slow-follower", "lag-by-count-flaps"],
    ),
    (
        "acks, retries and idempotence",
        """\
`acks=all` is answered when the record is committed, `acks=1` when the leader's own log has it, `acks=0` never. A
producer that gets no answer cannot know whether its record is stored, and sends it again. What that leads to is a
matter of two settings.""",
        ["acks-all-duplicate", "acks-all-idempotent", "acks-one-loses", "order-without-idempotence"],
    ),
    (
        "min.insync.replicas",
        """\
All of the ISR may be one replica. `min.insync.replicas` says how many it must be for `acks=all` to be accepted, and
for the watermark to move at all. Its default is 1: the leader alone.""",
        ["min-insync-replicas", "visible-only-when-safe", "n-minus-one"],
    ),
    (
        "Leader epochs and truncation",
        """\
Each leader's reign has a number, the *leader epoch*, and every batch of records keeps the epoch that it was written
in, on every replica. When a leader fails, its followers may hold different records past the watermark. The epochs
tell where two logs part: a follower fetches with the last epoch it has, the leader answers where that epoch ended
in its own log, and the follower cuts there. Both sides of every node's history are in files: `leader-epoch-
checkpoint` and `replication-offset-checkpoint`.""",
        ["divergence", "old-leader-returns", "stale-high-watermark", "checkpoints-survive"],
    ),
    (
        "Elections that lose records, and those that wait",
        """\
A leader is elected from the ISR. When nobody there is alive, a replica outside it could lead, and what it does not
have would be lost. `unclean.leader.election.enable` is false by default: then the partition waits for one that had
everything. We act on a change of this setting at once; Kafka looks for such partitions every five minutes.""",
        ["unclean-election"],
    ),
    (
        "The controller, sessions, and a cut network",
        """\
One controller at a time is active, elected by the quorum with an epoch of its own. It keeps a session with every
broker: one that is silent for `broker.session.timeout.ms` is fenced, which takes it out of every ISR and every
leadership. (Where a broker's connection breaks, because its process died, we do not wait for that: see
`broker.connection.loss.grace.ms`. Kafka always waits.) A leader that does not know that it was replaced can do no
harm, because nothing it takes is committed.""",
        ["controller-fails", "session-timeout", "network-partition"],
    ),
    (
        "Preferred leaders",
        """\
The first replica of a partition is its preferred leader, and first replicas are spread evenly over the brokers.
After failures leadership goes back to them, by itself or on request, so that no broker leads more than its share.""",
        ["preferred-leader"],
    ),
    (
        "Reading from a follower nearby",
        """\
Consumers read from the leader, unless they name their rack and brokers are told to send them to a replica there.""",
        ["follower-reads"],
    ),
    (
        "Positions of a consumer",
        """\
A consumer's *position* is the offset it reads next. What its group has *committed* lies at or below it: from there
a successor goes on. The position lies at or below the high watermark, and that at or below the log end offset.
`tidelog groups describe GROUP` shows the four, with the lag of each.""",
        ["consumer-positions"],
    ),
    (
        "Which settings lose nothing",
        """\
To lose nothing: `replication.factor` of at least 3, `acks=all`, `min.insync.replicas` of at least 2. The last
scenario tries that and four weaker choices, with a failure at every step.""",
        ["safe-settings"],
    ),
]


def played(name: str) -> str:
    """A scenario's output; it must be as it expects."""
    script = load(name)
    lines: list[str] = []
    for happened in Player(script, SimulatedStage(script.seed)).play():
        lines += text(happened)
        if happened.failure:
            raise SystemExit(f"{name}, line {happened.line}: {happened.command}: it is {happened.failure}")
    return "\n".join(lines).strip("\n")


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    shown = []
    for heading, prose, names in SECTIONS:
        lines += [f"## {heading}", "", prose, ""]
        for name in names:
            script = load(name)
            lines += [f"### {script.title}", "", f"`tidelog scenario run {name}`", ""]
            lines += ["```text", played(name), "```", ""]
            shown.append(name)
    missing = sorted(set(known()) - set(shown))
    if missing:
        raise SystemExit(f"no section shows {', '.join(missing)}")
    return "\n".join(lines).rstrip("\n") + "\n"


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when the page is not current")
    if parser.parse_args().check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
            raise SystemExit("docs/replication.md is not current: run make docs")
        return
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
