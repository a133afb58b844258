"""One cluster of three real nodes whose links can be cut, shared by the tests of this folder."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import SOURCE
from tidelog.cli import main
from tidelog.verify.cluster import free_base_port

SETTINGS = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "1500",
    "replica.lag.time.max.ms": "2000",
}
"""A silent broker is noticed soon; everything else is as shipped."""
PATIENCE_S = 60.0


class Said(NamedTuple):
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


def tidelog(*words: object) -> Said:
    """Run one command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return Said(int(code), out.getvalue(), err.getvalue())


class Cluster:
    """A local cluster and the commands about it."""

    def __init__(self, directory: str, port: int) -> None:
        self.directory = directory
        self.ports = {node: port + node - 1 for node in (1, 2, 3)}

    @property
    def nodes(self) -> list[int]:
        return list(self.ports)

    def bootstrap(self, *nodes: int) -> str:
        return ",".join(f"127.0.0.1:{self.ports[node]}" for node in nodes or self.ports)

    def ask(self, *words: object, via: int | None = None) -> Any:
        """A command's JSON, asked of one node or of all; None while it cannot be answered."""
        reached = self.bootstrap(*([] if via is None else [via]))
        said = tidelog(*words, "--json", "--bootstrap", reached, "--timeout", 5)
        return json.loads(said.out) if said.code == 0 else None

    def partition(self, topic: str, via: int | None = None) -> Any:
        """Partition 0 of a topic as `tidelog partitions describe` has it."""
        found = self.ask("partitions", "describe", topic, via=via)
        return found[0] if found else None

    def chaos(self, *words: object) -> Said:
        """A fault; it must work."""
        said = tidelog("chaos", "--dir", self.directory, *words)
        assert said.code == 0, said.err
        return said

    def create(self, topic: str, *replicas: int) -> None:
        """One partition; the first replica is the preferred leader."""
        assignment = ":".join(map(str, replicas))
        words = ["topics", "create", topic, "--assignment", assignment, "--config", "min.insync.replicas=2"]
        said = tidelog(*words, "--bootstrap", self.bootstrap())
        assert said.code == 0, said.err
        self.wait(lambda: self.has_isr(topic, 1, 2, 3), f"{topic} is replicated")

    def has_isr(self, topic: str, *brokers: int, via: int | None = None) -> bool:
        found = self.partition(topic, via=via)
        return found is not None and sorted(found["isr"]) == sorted(brokers)

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Until the condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}\n{self.describe()}"
            time.sleep(0.02)

    def describe(self) -> str:
        """Everything there is to know when a wait was in vain."""
        said = [tidelog("status", "--dir", self.directory).out]
        said.append(tidelog("topics", "describe", "--bootstrap", self.bootstrap(), "--timeout", 3).out)
        said.append(tidelog("events", "--since", "1m", "--bootstrap", self.bootstrap(), "--timeout", 3).out)
        return "\n".join(said)

    def write(self, topic: str, count: int, via: int) -> None:
        """Records with acks=all, through the view of one node."""
        from tidelog.client import Client, Producer

        with Client(self.bootstrap(via)) as client, Producer(client, acks=-1) as producer:
            for number in range(count):
                producer.send(topic, b"%d" % number)

    def heal_all(self) -> None:
        """Links, pauses and deaths: all as at the start."""
        self.chaos("heal")
        for node in json.loads(tidelog("status", "--dir", self.directory, "--json").out):
            if node["state"] == "paused":
                self.chaos("resume", node["id"])
            elif node["state"] == "dead":
                self.chaos("start", node["id"])
        self.wait(self._all_serve, "all brokers serve again")

    def _all_serve(self) -> bool:
        brokers = self.ask("brokers", "list") or []
        return [one["broker"] for one in brokers if one["state"] == "running" and not one["fenced"]] == self.nodes


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(str(tmp_path_factory.mktemp("chaos")), free_base_port(3))
    words = ["--nodes", 3, "--dir", cluster.directory, "--port", cluster.ports[1], "--chaos", "--detach"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", SOURCE)
        said = tidelog("up", *words, *(word for pair in SETTINGS.items() for word in ("--set", "=".join(pair))))
        assert said.code == 0, said.err
        yield cluster
        assert tidelog("down", "--dir", cluster.directory).code == 0


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """The cluster, whole before and after."""
    yield running
    running.heal_all()
