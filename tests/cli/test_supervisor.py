"""Local clusters: where everything is put, and that only the right processes are ever touched."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tidelog
from tests.support.processes import wait_until
from tidelog.config import NodeConfig
from tidelog.errors import ConfigError, DirectoryError, TidelogError
from tidelog.quorum import snapshot
from tidelog.runtime.cluster_plan import ClusterPlan, check_ports, check_settings, plan_cluster
from tidelog.runtime.formatting import check_cluster, format_node, prepare_cluster
from tidelog.runtime.process_table import ProcessName, group_memory_bytes, name_process
from tidelog.runtime.supervisor import Supervisor, node_statuses, read_state, stop_cluster
from tidelog.verify.cluster import free_base_port

SLEEPER = (sys.executable, "-c", "import time; print('made it', flush=True); time.sleep(600)")


def test_three_nodes_get_ids_ports_and_directories(tmp_path: Path) -> None:
    plan = plan_cluster(str(tmp_path), 3, None, 20000)
    assert [(node.node_id, node.port) for node in plan.nodes] == [(1, 20000), (2, 20001), (3, 20002)]
    assert plan.bootstrap == "127.0.0.1:20000,127.0.0.1:20001,127.0.0.1:20002"
    ports = [port for node in plan.nodes for port in node.ports]
    assert len(set(ports)) == 6
    configs = check_cluster(plan, {"num.partitions": "7"})
    assert {config.num_partitions for config in configs} == {7}
    assert {config.default_replication_factor for config in configs} == {3}
    assert {config.is_broker and config.is_controller for config in configs} == {True}
    assert len({config.quorum_bootstrap_addresses for config in configs}) == 1


def test_separate_controllers(tmp_path: Path) -> None:
    plan = plan_cluster(str(tmp_path), 2, 3, 20000)
    assert [(node.node_id, "+".join(node.roles)) for node in plan.nodes] == [
        (1, "broker"),
        (2, "broker"),
        (101, "controller"),
        (102, "controller"),
        (103, "controller"),
    ]
    assert [config.is_controller for config in check_cluster(plan, {})] == [False, False, True, True, True]


def test_ports_near_the_end_and_taken_ones_are_avoided(tmp_path: Path) -> None:
    plan = plan_cluster(str(tmp_path), 2, None, 65000)
    assert all(1024 <= port <= 65535 for node in plan.nodes for port in node.ports)
    with pytest.raises(ConfigError, match="would need port 65536"):
        plan_cluster(str(tmp_path), 2, None, 65535)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        near = plan_cluster(str(tmp_path), 1, None, port - 10_000)
        assert near.nodes[0].controller_port != port
        with pytest.raises(TidelogError, match=f"port {port} .node 1. is in use by another program"):
            check_ports(plan_cluster(str(tmp_path), 1, None, port))


def test_a_directory_keeps_the_shape_of_its_cluster(tmp_path: Path) -> None:
    plan = plan_cluster(str(tmp_path), 3, None, 20000)
    prepare_cluster(plan, check_cluster(plan, {}))
    again = plan_cluster(str(tmp_path), None, None, None)
    assert again.nodes == plan.nodes
    moved = plan_cluster(str(tmp_path), 3, None, 21000)
    assert [node.port for node in moved.nodes] == [21000, 21001, 21002]
    assert [node.controller_port for node in moved.nodes] == [node.controller_port for node in plan.nodes]
    for nodes, controllers in ((1, None), (4, None), (3, 1)):
        with pytest.raises(DirectoryError, match="use --nodes 3, or another --dir"):
            plan_cluster(str(tmp_path), nodes, controllers, None)
    with pytest.raises(ConfigError, match="is a controller's in"):
        plan_cluster(str(tmp_path), None, None, plan.nodes[0].controller_port)


def test_every_node_of_a_cluster_is_formatted_alike(tmp_path: Path) -> None:
    plan = plan_cluster(str(tmp_path), 3, None, 20000)
    configs = check_cluster(plan, {})
    prepare_cluster(plan, configs)
    first, *others = [snapshot.read(path.read_bytes()) for path in tmp_path.rglob("0*-0000000000.checkpoint")]
    assert len(others) == 2
    assert all(other.controls == first.controls for other in others)
    assert [voter.voter_id for voter in first.controls[1].voters] == [1, 2, 3]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    prepare_cluster(plan, configs)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    for path in tmp_path.glob("node-2/data/meta.properties"):
        path.unlink()
    with pytest.raises(DirectoryError, match="node-2/data is not formatted although other nodes' directories are"):
        prepare_cluster(plan, configs)


def test_a_first_start_that_was_interrupted_can_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    formatted: list[int] = []

    def interrupted(config: NodeConfig, *arguments: Any) -> Any:
        if formatted:
            raise KeyboardInterrupt
        formatted.append(config.node_id)
        return format_node(config, *arguments)

    plan = plan_cluster(str(tmp_path), 3, None, 20000)
    configs = check_cluster(plan, {})
    with monkeypatch.context() as patched:
        patched.setattr("tidelog.runtime.formatting.format_node", interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepare_cluster(plan, configs)
    assert (tmp_path / "node-1/data/meta.properties").exists()
    again = plan_cluster(str(tmp_path), 2, None, 20000)
    prepare_cluster(again, check_cluster(again, {}))
    assert [node.node_id for node in plan_cluster(str(tmp_path), None, None, None).nodes] == [1, 2]
    metas = [path.read_text() for path in tmp_path.rglob("meta.properties")]
    assert len({line for meta in metas for line in meta.splitlines() if line.startswith("cluster.id")}) == 1
    assert len(metas) == 2
    first, other = [snapshot.read(path.read_bytes()) for path in tmp_path.rglob("0*-0000000000.checkpoint")]
    assert first.controls == other.controls


def test_what_makes_it_one_cluster_cannot_be_set(tmp_path: Path, tidelog: Tidelog) -> None:
    with pytest.raises(ConfigError, match="listeners is decided by tidelog up"):
        check_settings({"listeners": "PLAINTEXT://:1"})
    for setting, told in {
        "log.dirs=elsewhere": "log.dirs is decided by tidelog up and cannot be set",
        "num.partition=3": "num.partition: there is no such setting; did you mean num.partitions?",
        "num.partitions=0": "num.partitions: ",
    }.items():
        code, out, err = tidelog("up", "--dir", tmp_path / "x", "--port", free_base_port(1), "--set", setting)
        assert (code, out) == (2, "")
        assert err.startswith(f"tidelog up: {told}")
    assert not (tmp_path / "x").exists()


# --- processes; these sleep where a node would serve, so that only the supervisor is tested ---


@pytest.fixture
def plan(tmp_path: Path) -> ClusterPlan:
    plan = plan_cluster(str(tmp_path / "cluster"), 2, None, free_base_port(2))
    prepare_cluster(plan, check_cluster(plan, {}))
    return plan


@pytest.fixture
def supervisor(plan: ClusterPlan) -> Iterator[Supervisor]:
    supervisor = Supervisor(plan)
    supervisor.start(SLEEPER)
    yield supervisor
    for node in supervisor.state.nodes:
        node.process.kill_group()
    supervisor.stop(0)


def states(supervisor: Supervisor) -> list[str]:
    return [status.state for status in node_statuses(supervisor.state)]


def test_a_node_is_starting_until_it_listens(supervisor: Supervisor) -> None:
    assert states(supervisor) == ["starting", "starting"]
    with socket.create_server(("127.0.0.1", supervisor.plan.nodes[0].port or 0)):
        assert states(supervisor) == ["running", "starting"]


def test_a_killed_node_is_dead_with_its_last_line(supervisor: Supervisor, tidelog: Tidelog) -> None:
    victim = supervisor.state.nodes[0]
    wait_until(lambda: victim.last_line == "made it", 60, "the process has printed its line")
    os.kill(victim.process.pid, signal.SIGKILL)
    wait_until(supervisor.ended, 60, "the death is seen")
    assert [(node.node_id, how) for node, how in supervisor.ended()] == [(1, "killed by SIGKILL")]
    code, out, _ = tidelog("status", "--dir", supervisor.plan.directory, "--json")
    dead, alive = json.loads(out)
    assert code == 1
    assert (dead["state"], dead["memory_bytes"], dead["last_log_line"]) == ("dead", None, "made it")
    assert (alive["state"], alive["id"], "last_log_line" in alive) == ("starting", 2, False)
    assert alive["memory_bytes"] > 1_000_000
    text = tidelog("status", "--dir", supervisor.plan.directory).out
    assert "node 1 is dead; its last line: made it" in text
    assert text.splitlines()[0].split() == ["NODE", "ROLES", "PID", "PORT", "STATE", "BROKER", "QUORUM", "MEMORY"]


def test_a_paused_node_is_seen_and_can_be_stopped(supervisor: Supervisor) -> None:
    process = supervisor.state.nodes[0].process
    wait_until(lambda: all(node.last_line == "made it" for node in supervisor.state.nodes), 60, "both have begun")
    process.signal(signal.SIGSTOP)
    wait_until(lambda: process.state == "paused", 60, "the pause is seen")
    assert states(supervisor)[0] == "paused"
    assert supervisor.stop(10_000) == [
        "node 1 did not stop cleanly (killed by SIGTERM): made it",
        "node 2 did not stop cleanly (killed by SIGTERM): made it",
    ]


def test_one_that_is_busy_stands_still_when_it_is_said_to() -> None:
    """The system stops a process that runs a little after it was told to."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) as busy:
        try:
            process = name_process(busy.pid)
            for _ in range(100):
                assert process.pause_group(60_000)
                assert process.state == "paused"
                process.signal_group(signal.SIGCONT)
        finally:
            busy.kill()
    assert not process.pause_group(60_000), "it is gone"


def test_one_that_does_not_stop_is_killed(plan: ClusterPlan) -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    supervisor = Supervisor(plan)
    supervisor.start((sys.executable, "-c", stubborn))
    wait_until(lambda: all(node.last_line == "deaf" for node in supervisor.state.nodes), 60, "both are deaf")
    state = read_state(plan.directory)
    assert state is not None
    assert stop_cluster(state, 50) == [1, 2]
    assert not state.is_alive
    assert read_state(plan.directory) is None
    supervisor.stop(0)


def test_a_signal_in_the_middle_of_a_start_leaves_nobody_unknown(
    plan: ClusterPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StopAsked(Exception):
        pass

    def ask_to_stop(*_: object) -> None:
        raise StopAsked

    def name_in_time_for_a_signal(pid: int) -> ProcessName:
        signal.raise_signal(signal.SIGTERM)  # the process runs, and nobody has written that down
        return name_process(pid)

    supervisor = Supervisor(plan)
    monkeypatch.setattr("tidelog.runtime.supervisor.name_process", name_in_time_for_a_signal)
    before = signal.signal(signal.SIGTERM, ask_to_stop)
    try:
        with pytest.raises(StopAsked):
            supervisor.start(SLEEPER)
        assert signal.getsignal(signal.SIGTERM) is ask_to_stop
    finally:
        signal.signal(signal.SIGTERM, before)
        children = list(supervisor._children.values())
        known = [node.process.pid for node in supervisor.state.nodes]
        for child in children:
            child.kill()
    assert known == [child.pid for child in children]
    assert len(known) == 1
    supervisor.stop(0)


def test_a_second_supervisor_is_kept_out(supervisor: Supervisor) -> None:
    with pytest.raises(DirectoryError, match="; stop it with tidelog down --dir"):
        Supervisor(supervisor.plan)


def test_nodes_left_running_keep_others_out_too(plan: ClusterPlan) -> None:
    first = Supervisor(plan)
    first.start(SLEEPER)
    first.leave()
    with pytest.raises(DirectoryError, match="a cluster is running"):
        Supervisor(plan)
    state = read_state(plan.directory)
    assert state is not None
    state = state._replace(supervisor=ProcessName(1 << 22, "gone"))
    assert stop_cluster(state, 10_000) == []
    Supervisor(plan).stop(0)


def test_a_pid_that_was_given_to_another_process_is_left_alone(supervisor: Supervisor, tidelog: Tidelog) -> None:
    path = Path(supervisor.plan.directory) / "tidelog.json"
    bystander = supervisor.state.nodes[1].process
    document = json.loads(path.read_text())
    document["supervisor"] = {"pid": bystander.pid, "started": "another time"}
    for node in document["nodes"]:
        node["pid"], node["started"] = bystander.pid, "another time"
    path.write_text(json.dumps(document))
    assert [one["state"] for one in json.loads(tidelog("status", "--dir", path.parent, "--json").out)] == ["dead"] * 2
    assert tidelog("down", "--dir", path.parent).out == f"no cluster runs in {path.parent}\n"
    assert bystander.state == "running"
    assert not path.exists()


def test_helpers_of_a_node_count_as_its_memory(plan: ClusterPlan) -> None:
    helper = "import time; held = bytearray(40_000_000); print(1, flush=True); time.sleep(600)"
    node = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {helper!r}])"
    supervisor = Supervisor(plan)
    supervisor.start((sys.executable, "-c", node))
    try:
        wait_until(lambda: supervisor.state.nodes[0].last_line == "1", 60, "the helper has its memory")
        pid = supervisor.state.nodes[0].process.pid
        assert group_memory_bytes([pid])[pid] > 45_000_000
    finally:
        for node in supervisor.state.nodes:
            node.process.kill_group()
        supervisor.stop(0)


def test_a_state_file_that_is_none(tmp_path: Path, tidelog: Tidelog) -> None:
    (tmp_path / "tidelog.json").write_text('{"version": 1}')
    code, _, err = tidelog("status", "--dir", tmp_path)
    assert code == 4
    assert err.startswith(f"tidelog status: {tmp_path}/tidelog.json is not a state file of tidelog up: ")


@pytest.mark.parametrize("content", ["", "\0" * 700])
def test_a_state_file_that_a_loss_of_power_left_empty_says_that_nobody_lives(plan: ClusterPlan, content: str) -> None:
    (Path(plan.directory) / "tidelog.json").write_text(content)
    supervisor = Supervisor(plan)
    assert not supervisor.stop(0)


def test_nothing_is_running(tmp_path: Path, tidelog: Tidelog) -> None:
    assert tidelog("status", "--dir", tmp_path) == (1, f"no cluster runs in {tmp_path}\n", "")
    assert tidelog("status", "--dir", tmp_path, "--json") == (1, "[]\n", "")
    assert tidelog("down", "--dir", tmp_path) == (0, f"no cluster runs in {tmp_path}\n", "")
    assert tidelog("down", "--dir", tmp_path, "--json") == (0, '{"stopped": [], "killed": []}\n', "")


def test_a_process_is_itself_and_no_other() -> None:
    me = name_process(os.getpid())
    assert me.state == "running"
    assert ProcessName(os.getpid(), "another time").state == "gone"
