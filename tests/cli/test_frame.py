"""A mistake gets one line, a hint and an exit code; nothing ever gets a traceback; help helps."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib import import_module

import pytest

from tests.cli.conftest import Tidelog
from tidelog.cli import COMMANDS
from tidelog.cli import status as status_command
from tidelog.cli.frame import Parser
from tidelog.cli.output import table
from tidelog.errors import CorruptionError, DirectoryError, ErrorCode, KafkaError, TidelogError

SUBCOMMANDS = {
    "topics": ["create", "list", "describe", "alter", "delete"],
    "configs": ["describe", "alter", "delete", "list"],
    "groups": ["list", "describe", "reset-offsets", "delete"],
    "transactions": ["list", "describe", "abort", "find-hanging"],
    "partitions": ["describe"],
    "brokers": ["list"],
    "quorum": ["describe", "add", "remove"],
    "elect": ["preferred", "unclean"],
    "reassign": ["start", "list", "cancel", "verify"],
    "scenario": ["list", "run"],
    "sim": ["run", "replay", "shrink", "mutants", "speed"],
    "pipeline": ["land", "audit", "replicas", "timeline", "mirror", "fetch"],
    "chaos": ["kill", "stop", "pause", "resume", "start", "wipe", "link", "partition", "slow", "heal", "status"],
}
EVERYTHING = [[name] for name in COMMANDS] + [[name, sub] for name, subs in SUBCOMMANDS.items() for sub in subs]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_tests_below_know_every_subcommand(name: str) -> None:
    parser = Parser(prog=name)
    import_module(f"tidelog.cli.{name}").configure(parser)
    known = [] if parser._chosen is None else sorted(parser._chosen.choices)
    assert known == sorted(SUBCOMMANDS.get(name, []))


def test_the_overview_names_every_command_and_exit_code(tidelog: Tidelog) -> None:
    code, out, err = tidelog("--help")
    assert (code, err) == (0, "")
    assert all(f"\n  {name} " in out for name in COMMANDS)
    assert all(f"\n  {number} " in out for number in (0, 1, 2, 3, 4, 5, 70, 130))
    assert tidelog().code == 2
    assert tidelog("help", "topics").out == tidelog("topics", "--help").out


@pytest.mark.parametrize("words", EVERYTHING, ids=" ".join)
def test_every_command_has_help_with_examples(tidelog: Tidelog, words: list[str]) -> None:
    code, out, err = tidelog(*words, "--help")
    assert (code, err) == (0, "")
    assert f"usage: tidelog {' '.join(words)}" in out
    assert "examples:\n  " in out
    assert f"tidelog {words[0]}" in out.partition("examples:")[2]


@pytest.mark.parametrize("words", [words for words in EVERYTHING if words[0] not in SUBCOMMANDS or len(words) == 2])
def test_json_is_everywhere(tidelog: Tidelog, words: list[str]) -> None:
    assert "--json" in tidelog(*words, "--help").out


MISTAKES = {
    "topic": "unknown command 'topic'; did you mean 'topics'?",
    "--jso": "unknown option '--jso'",
    "topics lst": "unknown command 'lst'; did you mean 'list'? (see tidelog topics --help)",
    "topics": "the following arguments are required: COMMAND (see tidelog topics --help)",
    "topics create x --partition 3": "unknown option --partition; did you mean '--partitions'? (see …)",
    "topics create x --partitions none": "argument --partitions: 'none' is not a number from 1 up (see …)",
    "topics create x --config retention.ms": "argument --config: 'retention.ms' is not name=value (see …)",
    "topics create x --assignment 1:a": "argument --assignment: '1:a' is not like 1:2,2:3 (broker ids) (see …)",
    "topics alter x": "nothing to do: give --partitions, --config or --remove-config",
    "configs alter --topic x": "nothing to do: give --set, --delete, --append or --subtract",
    "produce x --acks al": "argument --acks: 'al' is not possible; did you mean 'all'? (see …)",
    "produce x --json-lines --headers": "--json-lines has keys and headers of its own",
    "up --port 99999": "argument --port: '99999' is not a port from 1 to 65535 (see …)",
    "topics create x --partitions 9999999999": (
        "argument --partitions: '9999999999' is too large: the most is 2147483647 (see …)"
    ),
    "topics create x --replication-factor 40000": (
        "argument --replication-factor: '40000' is too large: the most is 32767 (see …)"
    ),
    "topics create x --assignment 1:9999999999": (
        "argument --assignment: '1:9999999999' is not like 1:2,2:3 (broker ids) (see …)"
    ),
    "topics list --timeout 1e10": "argument --timeout: '1e10' is too long: the most is 2147483 seconds (see …)",
    "quorum remove 9999999999": "argument NODE: '9999999999' is too large: the most is 2147483647 (see …)",
    "quorum remove 3 --directory-id x": "argument --directory-id: 'x' is not a directory id (see …)",
    "reassign start --topic x --brokers 1,9999999999": (
        "argument --brokers: '1,9999999999' is not different broker ids like 1,2,3 (see …)"
    ),
    "events --kind leader-electd": (
        "argument --kind: 'leader-electd' is not possible; did you mean 'leader-elected'? (see …)"
    ),
    "up --nodes 0": "argument --nodes: '0' is not a number from 1 up (see …)",
    "up --timeout soon": "argument --timeout: 'soon' is not a number of seconds (see …)",
    "status extra": "unexpected 'extra' (see …)",
    "node": "the following arguments are required: --config (see …)",
    "chaos link 1-2 hod": "argument verb: 'hod' is not possible; did you mean 'hold'? (see …)",
    "chaos link 12 cut": "argument A-B: '12' is not two nodes like 1-2 (see …)",
    "chaos partition 1,/2": "argument 1,2/3: '1,/2' is not groups of nodes like 1,2/3 (see …)",
    "elect unclean": "records can be lost: name the partitions, or say --all",
    "transactions abort": "give a TRANSACTIONAL-ID, or --topic, --partition and --start-offset together",
    "transactions find-hanging --partition 0": "--partition needs --topic",
    "events --since never": "argument --since: 'never' is not like 10m, 2026-11-15T10:00:00Z or @milliseconds (see …)",
    "dump nowhere.log": "there is no file nowhere.log",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_gets_one_line(tidelog: Tidelog, words: str) -> None:
    code, out, err = tidelog(*words.split())
    command, _, told = err.partition(": ")
    assert (code, out) == (2, "")
    assert (
        told.replace(f"(see {command} --help)", "(see …)")
        == MISTAKES[words].replace(f"(see {command} --help)", "(see …)") + "\n"
    )
    assert f"tidelog {words} ".startswith(f"{command} ") or command == "tidelog"


def test_a_cluster_that_is_not_there(tidelog: Tidelog) -> None:
    for words in (["topics", "list"], ["consume", "x"], ["produce", "x"], ["configs", "describe", "--brokers"]):
        code, _, err = tidelog(*words)
        assert code == 3
        assert "no broker answers: 127.0.0.1:1: connection refused\n" in err
    assert tidelog("topics", "list", "--bootstrap", "nothing") == (
        2,
        "",
        "tidelog topics list: bootstrap 'nothing' is not HOST:PORT\n",
    )


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KafkaError(ErrorCode.INVALID_CONFIG, "no\nsuch"), 1, "INVALID_CONFIG: no such"),
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too late"), 3, "too late"),
        (DirectoryError("not yours"), 4, "not yours"),
        (CorruptionError("bad bytes"), 5, "bad bytes"),
        (TidelogError("no"), 1, "no"),
        (FileNotFoundError(2, "No such file or directory", "x.txt"), 1, "x.txt: No such file or directory"),
        (ZeroDivisionError("oops"), 70, "fault in Tidelog: ZeroDivisionError: oops"),
    ],
)
def test_whatever_ends_a_command_is_one_line_and_a_code(
    tidelog: Tidelog, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, line: str
) -> None:
    def run(arguments: argparse.Namespace) -> int:
        raise error

    monkeypatch.delenv("TIDELOG_TRACEBACK", raising=False)
    monkeypatch.setattr(status_command, "run", run)
    assert tidelog("status") == (code, "", f"tidelog status: {line}\n")


def test_a_column_of_a_table_is_to_the_right_where_it_has_numbers() -> None:
    rows = [(1, None, "in", ""), (23, -4, "out", None)]
    assert table(["id", "lag", "isr", "why"], rows) == [
        "ID  LAG  ISR  WHY",
        " 1    -  in   -",
        "23   -4  out  -",
    ]


def test_an_interrupt_is_quiet(tidelog: Tidelog, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(status_command, "run", run)
    assert tidelog("status") == (130, "", "")


@pytest.mark.parametrize("words", [["configs", "list"], ["--help"], ["chaos", "--help"]], ids=" ".join)
def test_a_closed_pipe_is_quiet(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "tidelog", *words]
    outcome = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert outcome.stderr == b""
    assert outcome.returncode in (0, 141), "argparse takes it for done"


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (["--help"], {"argparse", "tidelog.wire", "tidelog.client", "asyncio", "socket", "tidelog.config"}),
        (["node", "--config", "nowhere"], {"tidelog.client", "tidelog.runtime.supervisor", "asyncio", "kio"}),
        (["status", "--dir", "nowhere"], {"tidelog.client", "tidelog.wire", "tidelog.node"}),
        (["topics", "list"], {"tidelog.node", "tidelog.runtime", "tidelog.log", "asyncio"}),
    ],
)
def test_a_command_loads_only_what_it_needs(words: list[str], unwanted: set[str]) -> None:
    code = f"import sys; from tidelog.cli import main; main({words!r}); print(*sys.modules, file=sys.stderr)"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert unwanted.isdisjoint(outcome.stderr.split())


def test_the_version(tidelog: Tidelog) -> None:
    from tidelog import __version__

    assert tidelog("--version") == (0, f"tidelog {__version__}\n", "")


def test_settings_can_be_looked_up_without_a_cluster(tidelog: Tidelog) -> None:
    code, out, _ = tidelog("configs", "list", "retention.ms", "--of", "topic")
    assert code == 0
    assert out.startswith("topic  delete.retention.ms=86400000; 0 to 9223372036854775807\n       ")
    assert tidelog("configs", "list", "no.such").err == "tidelog configs list: no setting has 'no.such' in its name\n"
