"""Directories are prepared as Kafka's own tool does it, and those of others are left as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Tidelog
from tidelog.config import parse_properties
from tidelog.quorum import snapshot
from tidelog.wire.uuids import from_text

CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    write(path, "log.dirs", f"{tmp_path}/a,{tmp_path}/b")
    return path


def write(path: Path, *changes: str) -> None:
    settings = {
        "node.id": "1",
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    }
    if path.exists():
        settings = parse_properties(path.read_text())
    settings |= dict(zip(changes[::2], changes[1::2], strict=True))
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items() if value))


def meta(directory: Path) -> dict[str, str]:
    return parse_properties((directory / "meta.properties").read_text())


def everything_in(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def test_a_cluster_of_one_node(tidelog: Tidelog, config: Path, tmp_path: Path) -> None:
    code, out, err = tidelog("format", "--config", config)
    assert (code, err, out.count("formatted ")) == (0, "", 2)
    first, second = meta(tmp_path / "a"), meta(tmp_path / "b")
    assert first["version"] == first["node.id"] == "1"
    assert first["cluster.id"] == second["cluster.id"]
    assert first["directory.id"] != second["directory.id"]
    voters = snapshot.read((tmp_path / "a" / CHECKPOINT).read_bytes()).controls
    assert voters[0].kraft_version == 1
    (voter,) = voters[1].voters
    assert (voter.voter_id, voter.voter_directory_id) == (1, from_text(first["directory.id"]))
    assert [(one.name, one.host, one.port) for one in voter.endpoints] == [("CONTROLLER", "127.0.0.1", 9093)]
    for directory in ("a", "b"):
        records = snapshot.read((tmp_path / directory / "bootstrap.checkpoint").read_bytes()).records
        levels = {record.name: record.feature_level for record in records}
        assert levels["metadata.version"] == 30
    assert not (tmp_path / "b" / "__cluster_metadata-0").exists()


def test_the_first_controllers_of_a_larger_cluster(tidelog: Tidelog, config: Path, tmp_path: Path) -> None:
    ids = [tidelog("format", "--random-uuid").out.strip() for _ in range(3)]
    controllers = ",".join(f"{number}@host{number}:9093:{ids[number - 1]}" for number in (1, 2, 3))
    write(config, "controller.quorum.bootstrap.servers", "host1:9093,host2:9093")
    code, _, err = tidelog("format", "--config", config)
    assert code == 2
    assert "give --initial-controllers, --no-initial-controllers or --standalone" in err
    words = ("format", "--config", config, "--cluster-id", "c", "--json", "--initial-controllers", controllers)
    result = json.loads(tidelog(*words).out)
    assert result["cluster_id"] == "c"
    assert result["directories"][0]["directory_id"] == ids[0]
    voters = snapshot.read((tmp_path / "a" / CHECKPOINT).read_bytes()).controls[1].voters
    assert [voter.voter_id for voter in voters] == [1, 2, 3]


def test_a_broker_or_a_later_controller_brings_no_voters(tidelog: Tidelog, config: Path, tmp_path: Path) -> None:
    assert tidelog("format", "--config", config, "--no-initial-controllers").code == 0
    assert not (tmp_path / "a" / CHECKPOINT).exists()


def test_what_is_formatted_is_not_formatted_again(tidelog: Tidelog, config: Path, tmp_path: Path) -> None:
    tidelog("format", "--config", config)
    before = everything_in(tmp_path)
    assert tidelog("format", "--config", config) == (
        4,
        "",
        f"tidelog format: {tmp_path}/a is formatted already (--ignore-formatted formats only those that are not)\n",
    )
    cluster_id = meta(tmp_path / "a")["cluster.id"]
    assert tidelog("format", "--config", config, "--cluster-id", "other", "--ignore-formatted").err == (
        f"tidelog format: {tmp_path}/a belongs to cluster {cluster_id}, not to other\n"
    )
    write(config, "node.id", "2")
    assert tidelog("format", "--config", config, "--ignore-formatted").err == (
        f"tidelog format: {tmp_path}/a belongs to node 1, not to node 2\n"
    )
    write(config, "node.id", "1")
    assert everything_in(tmp_path) == before


def test_a_new_directory_joins_those_there_are(tidelog: Tidelog, config: Path, tmp_path: Path) -> None:
    tidelog("format", "--config", config)
    before = everything_in(tmp_path / "a")
    write(config, "log.dirs", f"{tmp_path}/a,{tmp_path}/b,{tmp_path}/c")
    code, out, _ = tidelog("format", "--config", config, "--ignore-formatted")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["left", "left", "formatted"]
    assert meta(tmp_path / "c")["cluster.id"] == meta(tmp_path / "a")["cluster.id"]
    assert everything_in(tmp_path / "a") == before


def test_a_damaged_meta_properties_is_refused(tidelog: Tidelog, config: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "meta.properties").write_text("version=1\n")
    code, _, err = tidelog("format", "--config", config)
    assert code == 4
    assert "meta.properties is damaged" in err
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["log.dirs", ""], "log.dirs: "),
        (["log.dris", "x"], "log.dris: there is no such setting; did you mean log.dirs?"),
        (["log.segment.bytes", "many"], "log.segment.bytes: 'many' is not a whole number"),
        (["node.id", "-5"], "node.id: "),
    ],
)
def test_a_bad_setting_is_named_with_its_file(
    tidelog: Tidelog, config: Path, tmp_path: Path, changes: list[str], told: str
) -> None:
    write(config, *changes)
    for command in ("format", "node"):
        code, out, err = tidelog(command, "--config", config)
        assert (code, out) == (2, "")
        assert err.startswith(f"tidelog {command}: {config}: {told}")
        assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [config.name]


def test_words_that_contradict_the_file(tidelog: Tidelog, config: Path) -> None:
    cases = {
        ("--cluster-id", "a b"): "--cluster-id 'a b' is empty or has blanks in it",
        ("--feature", "metadata.version=high"): "--feature metadata.version: 'high' is not a level",
        ("--feature", "metadata.version=99"): "metadata.version",
        ("--feature", "speed=1"): "feature 'speed' is not known here",
        ("--initial-controllers", "1@host"): "--initial-controllers: not of the form",
    }
    for words, told in cases.items():
        code, _, err = tidelog("format", "--config", config, *words)
        assert code == 2
        assert told in err
    assert tidelog("format").err == "tidelog format: --config FILE is needed\n"
    assert tidelog("format", "--config", "nowhere").err == "tidelog format: there is no file nowhere\n"
    write(config, "controller.quorum.bootstrap.servers", "", "controller.quorum.voters", "1@127.0.0.1:9093")
    told = tidelog("format", "--config", config, "--standalone").err
    assert "controller.quorum.voters names the voters already" in told


def test_a_node_refuses_a_directory_that_is_not_its_own(tidelog: Tidelog, config: Path, tmp_path: Path) -> None:
    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
    write(config, "listeners", "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0")
    code, _, err = tidelog("node", "--config", config)
    assert code == 4
    assert f"{tmp_path}/a is not formatted" in err
    assert everything_in(tmp_path).keys() == {str(config)}
