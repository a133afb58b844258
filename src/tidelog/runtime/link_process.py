"""Starting the process of the links: which entrances a cluster needs, and which node is led through which of them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any, NamedTuple, Self

from tidelog.runtime.cluster_plan import HOST, ClusterPlan
from tidelog.runtime.doors import open_door
from tidelog.runtime.process_table import ProcessName, name_process

LOG_FILE = "links.log"


class LinksRecord(NamedTuple):
    """The links' process as the state file keeps it."""

    process: ProcessName
    control_port: int

    def as_json(self) -> dict[str, Any]:
        """For the state file."""
        return {"pid": self.process.pid, "started": self.process.started, "control_port": self.control_port}

    @classmethod
    def read(cls, document: dict[str, Any] | None) -> Self | None:
        """From the state file; None when the cluster has no such process."""
        if document is None:
            return None
        return cls(ProcessName(document["pid"], document["started"]), document["control_port"])


class OpenedLinks(NamedTuple):
    """A links' process just started."""

    child: subprocess.Popen[bytes]
    record: LinksRecord
    overrides: dict[int, str]
    """What each node must be given as peer.address.overrides."""


def open_links(plan: ClusterPlan, state_file: str | None = None) -> OpenedLinks:
    """Bind an entrance for every port of every other node, for each node, and start the process that serves them.

    The sockets are bound here and inherited: nobody can take a port in between, and nobody needs to wait. The process
    lives for as long as the state file names it, or, without one, for as long as the process that called this.
    """
    sockets: list[socket.socket] = []

    def listen() -> socket.socket:
        bound = open_door(HOST)
        sockets.append(bound)
        return bound

    try:
        control = listen()
        entrances = []
        addresses: dict[int, list[str]] = {node.node_id: [] for node in plan.nodes}
        for from_node in plan.nodes:
            for to_node in plan.nodes:
                for port in to_node.ports if from_node is not to_node else ():
                    entrance = listen()
                    entrances.append((from_node.node_id, to_node.node_id, port, entrance.fileno()))
                    leads_to = f"{HOST}:{entrance.getsockname()[1]}"
                    addresses[from_node.node_id].append(f"{HOST}:{port}={leads_to}")
        arguments = json.dumps(
            {
                "control": control.fileno(),
                "entrances": entrances,
                "state_file": state_file,
                "parent": os.getpid(),
            }
        )
        with open(os.path.join(plan.directory, LOG_FILE), "ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "tidelog.runtime.links", arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[one.fileno() for one in sockets],
                start_new_session=True,
            )
        record = LinksRecord(name_process(child.pid), control.getsockname()[1])
    finally:
        for one in sockets:
            one.close()
    return OpenedLinks(child, record, {node_id: ",".join(one) for node_id, one in addresses.items()})
