"""Clusters of the verifier: what they call a clean stop, and ports that are still theirs after a kill."""

from __future__ import annotations

from pathlib import Path

from tests.support import ports
from tidelog.runtime.cluster_plan import plan_cluster
from tidelog.verify.cluster import LocalCluster, free_base_port


def test_a_process_that_has_only_begun_stops_cleanly(tmp_path: Path) -> None:
    """Nothing runs yet that could take the signal; on a busy machine that lasts for seconds."""
    with LocalCluster(str(tmp_path), 1) as cluster:
        cluster.start(1)
        assert cluster.stop(1) == 0
        cluster.start(1)
        cluster.wait_ready(60)
        assert cluster.stop(1) == 0


def test_no_outgoing_connection_takes_the_port_of_a_node_that_is_down(tmp_path: Path) -> None:
    """A connection to a dead node, made while it is down, was given its controller's port: it could not come back."""
    drawn_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(100):
        plan = plan_cluster(str(tmp_path), 5, None, free_base_port(5))
        used = [port for node in plan.nodes for port in node.ports]
        assert max(used) < drawn_from
        assert min(used) > ports.HIGHEST, "those are for whoever else listens in a test"
