"""`tidelog chaos`: break a running local cluster."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidelog.cli.frame import Exit, Parser, add_json
from tidelog.cli.output import print_json
from tidelog.cli.values import identifier, seconds_as_ms

if TYPE_CHECKING:
    from tidelog.runtime.links import LinkStatus
    from tidelog.runtime.supervisor import ClusterState, NodeRecord

SUMMARY = "break a running local cluster: kill, pause, cut, slow, heal"
EXAMPLES = """\
  tidelog up --nodes 3 --dir ./data --chaos --detach
  tidelog chaos --dir ./data kill 2                    kill -9; tidelog chaos --dir ./data start 2 brings it back
  tidelog chaos --dir ./data pause 1                   it lives and says nothing, until resume
  tidelog chaos --dir ./data link 1-2 cut              connections are reset, new ones too
  tidelog chaos --dir ./data link 1-2 hold --one-way   what 1 sends to 2 waits, in order
  tidelog chaos --dir ./data partition 1,2/3           node 3 alone; clients still reach every node
  tidelog chaos --dir ./data slow 3 100                all to and from node 3 comes 100 ms later
  tidelog chaos --dir ./data heal                      every link as at the start

Links can be changed in a cluster that was started with tidelog up --chaos; processes in any."""

_LINK_VERBS = {"hold": "held", "cut": "cut", "heal": "passing"}
_PROCESS_VERBS = {
    "kill": ("end a node at once, as a crash would", "killed"),
    "stop": ("stop a node in order: it hands its leaderships over", "stopped"),
    "pause": ("freeze a node: it keeps its connections and says nothing", "paused"),
    "resume": ("let a paused node go on", "resumed"),
    "start": ("start a node that is dead", "started"),
    "wipe": ("kill a node and empty its disk; it comes back under its id, with nothing", "wiped"),
}


def configure(parser: Parser) -> None:
    """The options of each fault."""
    parser.add_argument("--dir", default="tidelog-data", metavar="DIR", help="default: tidelog-data")
    commands = parser.add_commands()
    for verb, (summary, _) in _PROCESS_VERBS.items():
        one = commands.add(verb, summary, f"  tidelog chaos --dir ./data {verb} 2", _process)
        one.add_argument("node", metavar="NODE", type=identifier, help="its id")
        if verb in ("stop", "start"):
            one.add_argument(
                "--timeout", dest="timeout_ms", type=seconds_as_ms, default=30_000, metavar="SECONDS", help="(30)"
            )
    link = commands.add(
        "link",
        "hold, cut or heal what goes between two nodes",
        "  tidelog chaos --dir ./data link 1-2 hold\n  tidelog chaos --dir ./data link 1-2 cut --one-way",
        _link,
    )
    link.add_argument("pair", metavar="A-B", type=_pair, help="two nodes by their ids")
    link.add_argument("verb", choices=list(_LINK_VERBS), help="hold: bytes wait; cut: connections are reset")
    link.add_argument("--one-way", action="store_true", help="only what A sends to B")
    divide = commands.add(
        "partition",
        "let only nodes of one group talk to each other",
        "  tidelog chaos --dir ./data partition 1,2/3\n  tidelog chaos --dir ./data partition 3 --hold",
        _partition,
    )
    divide.add_argument(
        "groups", metavar="1,2/3", type=_groups, help="groups by /, nodes by commas; the rest is a group of its own"
    )
    divide.add_argument("--hold", action="store_true", help="hold instead of cut: nobody is told, time has to tell")
    slow = commands.add(
        "slow",
        "let everything to and from a node arrive later",
        "  tidelog chaos --dir ./data slow 3 100\n  tidelog chaos --dir ./data slow 3 0",
        _slow,
    )
    slow.add_argument("node", metavar="NODE", type=identifier, help="its id")
    slow.add_argument("delay_ms", metavar="MS", type=identifier, help="one way, in milliseconds; 0 ends it")
    commands.add(
        "heal",
        "every link as at the start; nodes stay as they are",
        "  tidelog chaos --dir ./data heal",
        _heal,
    )
    commands.add("status", "show nodes and links", "  tidelog chaos --dir ./data status --json", _status)
    commands.share(_add_directory, add_json)


def _add_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", default=argparse.SUPPRESS, metavar="DIR", help="the cluster's directory")


def _process(arguments: argparse.Namespace) -> int:
    from tidelog.runtime import chaos

    verb = arguments.subcommand
    with chaos.cluster_in(arguments.dir) as state:
        node: NodeRecord = chaos.node_of(state, arguments.node)
        if verb == "start":
            node = chaos.start(state, node, arguments.timeout_ms)
        elif verb == "stop":
            chaos.stop(node, arguments.timeout_ms)
        elif verb == "wipe":
            chaos.wipe(state, node)
        else:
            {"kill": chaos.kill, "pause": chaos.pause, "resume": chaos.resume}[verb](node)
        now = node.process.state
    if arguments.json:
        print_json({"node": node.node_id, "did": verb, "pid": node.process.pid, "state": _STATE_WORDS.get(now, now)})
    else:
        print(f"{_PROCESS_VERBS[verb][1]} node {node.node_id}")
    return Exit.OK


_STATE_WORDS = {"gone": "dead"}


def _link(arguments: argparse.Namespace) -> int:
    one, other = arguments.pair

    def change(chaos: Any, state: ClusterState) -> list[LinkStatus]:
        changed: list[LinkStatus] = chaos.set_link(
            state, one, other, _LINK_VERBS[arguments.verb], one_way=arguments.one_way
        )
        return changed

    return _change(arguments, change)


def _partition(arguments: argparse.Namespace) -> int:
    link_state = _LINK_VERBS["hold" if arguments.hold else "cut"]
    return _change(arguments, lambda chaos, state: chaos.partition(state, arguments.groups, link_state))


def _slow(arguments: argparse.Namespace) -> int:
    return _change(arguments, lambda chaos, state: chaos.slow(state, arguments.node, arguments.delay_ms))


def _heal(arguments: argparse.Namespace) -> int:
    return _change(arguments, lambda chaos, state: chaos.heal(state))


def _change(arguments: argparse.Namespace, change: Callable[[Any, ClusterState], list[LinkStatus]]) -> int:
    from tidelog.runtime import chaos

    with chaos.cluster_in(arguments.dir) as state:
        links = change(chaos, state)
    if arguments.json:
        print_json([link._asdict() for link in links])
    else:
        print(links_text(links))
    return Exit.OK


def _status(arguments: argparse.Namespace) -> int:
    from tidelog.cli import status

    return status.run(arguments)


def links_text(links: list[LinkStatus]) -> str:
    """What is not as it should be, in one line: both ways of a pair are one where they are alike."""
    kinds = {(link.from_node, link.to_node): _kind(link) for link in links}
    told = []
    for (one, other), kind in kinds.items():
        back = kinds.get((other, one))
        if not kind or (back == kind and other < one):
            continue
        told.append(f"{one}-{other} {kind}" if back == kind else f"{one}->{other} {kind}")
    return "links: " + (", ".join(told) if told else "all pass")


def _kind(link: LinkStatus) -> str:
    words = [] if link.state == "passing" else [link.state]
    words += [f"{link.delay_ms} ms later"] if link.delay_ms else []
    return " and ".join(words)


def _pair(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)-(\d+)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not two nodes like 1-2")
    return int(match[1]), int(match[2])


def _groups(text: str) -> list[list[int]]:
    if not re.fullmatch(r"\d+([,/]\d+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not groups of nodes like 1,2/3")
    return [[int(word) for word in group.split(",")] for group in text.split("/")]
