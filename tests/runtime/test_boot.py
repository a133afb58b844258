"""What a real node says of its former life after kill -9, where the system tells which boot this is."""

from __future__ import annotations

from pathlib import Path

from tests.support.nodes import TidelogNode
from tidelog.runtime.boot import boot_id


def registrations(node: TidelogNode) -> list[str]:
    """The lines about the broker's registrations in the node's log, oldest first."""
    return [line for line in node.log_file.read_text().splitlines() if "broker-registered" in line]


def test_a_killed_node_comes_back_with_all_it_had(tmp_path: Path) -> None:
    node = TidelogNode(tmp_path)
    with node:
        before = len(registrations(node))
    node.start()
    node.kill()
    with node:
        lines = registrations(node)
    assert before == 1
    assert len(lines) == 3
    assert ("with all it had" if boot_id() is not None else "after an unclean stop") in lines[-1]


def test_a_system_that_does_not_tell_its_boot_is_no_error(tmp_path: Path) -> None:
    assert boot_id(str(tmp_path / "nowhere")) is None
    (tmp_path / "boot_id").write_text("0f3c\n")
    assert boot_id(str(tmp_path / "boot_id")) == "0f3c"
