"""Faults for a running local cluster: its processes from outside, and the links between them.

Every fault works on the state file, so that it does not matter who started the cluster and whether that one still
runs. Two commands at once take turns.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import permutations

from tidelog.config import NodeConfig, parse_properties
from tidelog.errors import DirectoryError, TidelogError
from tidelog.runtime.formatting import format_node, read_meta_properties
from tidelog.runtime.links import CUT, PASSING, LinkChange, LinkStatus, change_links
from tidelog.runtime.process_table import name_process, wait_until_gone
from tidelog.runtime.supervisor import ClusterState, NodeRecord, listens, read_state, start_node

_POLL_SECONDS = 0.01
_KILL_TIMEOUT_MS = 10_000
_PAUSE_TIMEOUT_MS = 10_000


class NoSuchNode(TidelogError):
    """A node was named that the cluster does not have."""


@contextmanager
def cluster_in(directory: str) -> Iterator[ClusterState]:
    """The cluster that was started in a directory; while the block lasts no other fault touches it."""
    state = read_state(directory)
    if state is None or not state.nodes:
        raise DirectoryError(f"no cluster runs in {directory}")
    turn = os.open(state.nodes[0].directory, os.O_RDONLY)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        state = read_state(directory)
        if state is None:
            raise DirectoryError(f"no cluster runs in {directory}")
        yield state
    finally:
        os.close(turn)


def node_of(state: ClusterState, node_id: int) -> NodeRecord:
    """A node by its id."""
    for node in state.nodes:
        if node.node_id == node_id:
            return node
    known = ", ".join(str(node.node_id) for node in state.nodes)
    raise NoSuchNode(f"there is no node {node_id}; the cluster has {known}")


# --- processes ---


def kill(node: NodeRecord) -> None:
    """SIGKILL, as a crash would be."""
    _require_alive(node)
    node.process.kill_group()
    if wait_until_gone([node.process], _KILL_TIMEOUT_MS):
        raise TidelogError(f"node {node.node_id} is still there {_KILL_TIMEOUT_MS // 1000} s after SIGKILL")


def stop(node: NodeRecord, timeout_ms: int) -> None:
    """A clean stop: it hands its leaderships over."""
    _require_alive(node)
    node.process.signal_group(signal.SIGCONT)
    node.process.signal(signal.SIGTERM)
    if wait_until_gone([node.process], timeout_ms):
        raise TidelogError(f"node {node.node_id} has not stopped after {timeout_ms / 1000:g} s")


def pause(node: NodeRecord) -> None:
    """SIGSTOP: it lives, keeps its connections, and says nothing."""
    _require_alive(node)
    if not node.process.pause_group(_PAUSE_TIMEOUT_MS):
        raise TidelogError(f"node {node.node_id} still runs {_PAUSE_TIMEOUT_MS // 1000} s after SIGSTOP")


def resume(node: NodeRecord) -> None:
    """SIGCONT: it goes on, believing what it believed."""
    _require_alive(node)
    if node.process.state != "paused":
        raise TidelogError(f"node {node.node_id} is not paused")
    node.process.signal_group(signal.SIGCONT)


def start(state: ClusterState, node: NodeRecord, timeout_ms: int) -> NodeRecord:
    """Start a node that is dead, with the properties file it had, and wait until it takes connections."""
    if node.process.state != "gone":
        raise TidelogError(f"node {node.node_id} runs already")
    child = start_node(node.properties_path, node.log_path)
    started = node._replace(process=name_process(child.pid), started_at_ms=int(time.time() * 1000))
    state.nodes[state.nodes.index(node)] = started
    state.save()
    deadline = time.monotonic() + timeout_ms / 1000
    try:
        while not listens(node.port or node.controller_port or 0):
            if child.poll() is not None:
                raise TidelogError(f"node {node.node_id} ended at once: {started.last_line}")
            if time.monotonic() > deadline:
                raise TidelogError(f"node {node.node_id} takes no connections after {timeout_ms / 1000:g} s")
            time.sleep(_POLL_SECONDS)
    finally:
        child.returncode = 0  # it is to outlive us: nobody waits for it
    return started


def wipe(state: ClusterState, node: NodeRecord) -> None:
    """Kill a node and give it an empty disk: formatted for its cluster under its id, with a new directory id."""
    with open(node.properties_path, encoding="utf-8") as file:
        config = NodeConfig.from_properties(parse_properties(file.read()))
    found = [read_meta_properties(os.path.join(one.directory, "data")) for one in state.nodes]
    cluster_ids = [meta.cluster_id for meta in found if meta is not None]
    if not cluster_ids:
        raise DirectoryError(f"no directory of {state.directory} says which cluster it belongs to")
    if node.process.state != "gone":
        kill(node)
    for path in dict.fromkeys((config.metadata_directory, *config.log_dirs)):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    # Who votes is learnt from the others (KIP-853): a voter with an empty disk must not vote a second time.
    format_node(config, cluster_ids[0], None)


def _require_alive(node: NodeRecord) -> None:
    if node.process.state == "gone":
        raise TidelogError(f"node {node.node_id} is dead; tidelog chaos start {node.node_id} starts it")


# --- links ---


def links_of(state: ClusterState, changes: Iterable[LinkChange] = ()) -> list[LinkStatus]:
    """Change links and say how all of them are."""
    if state.links is None:
        raise TidelogError("the cluster has no links that can be changed: start it with tidelog up --chaos")
    return change_links(state.links.control_port, changes)


def set_link(state: ClusterState, one: int, other: int, link_state: str, *, one_way: bool) -> list[LinkStatus]:
    """Hold, cut or heal what goes between two nodes, or only what goes from `one` to `other`."""
    for node_id in (one, other):
        node_of(state, node_id)
    if one == other:
        raise TidelogError(f"node {one} has no link to itself")
    ways = [(one, other)] if one_way else [(one, other), (other, one)]
    delay_ms = 0 if link_state == PASSING else None
    return links_of(state, [LinkChange(*way, link_state, delay_ms) for way in ways])


def partition(state: ClusterState, groups: list[list[int]], link_state: str = CUT) -> list[LinkStatus]:
    """Let only nodes of one group talk to each other; nodes that are not named are a group of their own."""
    place: dict[int, int] = {}
    for number, group in enumerate(groups):
        for node_id in group:
            node_of(state, node_id)
            if node_id in place:
                raise TidelogError(f"node {node_id} is named twice")
            place[node_id] = number
    changes = []
    for one, other in permutations((node.node_id for node in state.nodes), 2):
        together = place.get(one, -1) == place.get(other, -1)
        changes.append(LinkChange(one, other, PASSING if together else link_state))
    return links_of(state, changes)


def slow(state: ClusterState, node_id: int, delay_ms: int) -> list[LinkStatus]:
    """Let everything to and from a node arrive later."""
    node_of(state, node_id)
    others = [node.node_id for node in state.nodes if node.node_id != node_id]
    ways = [way for other in others for way in ((node_id, other), (other, node_id))]
    return links_of(state, [LinkChange(*way, None, delay_ms) for way in ways])


def heal(state: ClusterState) -> list[LinkStatus]:
    """Every link as at the start. Paused and dead nodes stay what they are."""
    ways = permutations((node.node_id for node in state.nodes), 2)
    return links_of(state, [LinkChange(*way, PASSING, 0) for way in ways])
