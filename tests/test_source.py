"""The source keeps to the design: import directions, pure rooms, documents, sizes. Each rule is shown to fail, too."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests import source_rules as rules
from tidelog.config import GroupConfig, NodeConfig, TopicConfig
from tidelog.config.others import NOT_USED, REFUSED, TOPIC_WITHOUT_EFFECT, WITHOUT_EFFECT
from tools import generate_settings_page

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tidelog"
GENERATED = ("src/tidelog/wire/messages/", "src/tidelog/wire/records/")

OVER_500_LINES: dict[str, str] = {}
"""Files over the bound, each with the reason."""


@cache
def tree() -> dict[str, str]:
    """Every text file of the project by its path: what git has, and what is new and not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    texts = {}
    for path in sorted(filter(None, listed)):
        file = ROOT / path
        if file.is_file():
            data = file.read_bytes()
            if b"\0" not in data:
                texts[path] = data.decode()
    return texts


def python_files(*folders: str) -> dict[str, str]:
    return {path: text for path, text in tree().items() if path.endswith(".py") and path.startswith(folders)}


def product_files() -> dict[str, str]:
    return {path: text for path, text in python_files("src/").items() if not path.startswith(GENERATED)}


def show(complaints: list[str]) -> str:
    return "\n" + "\n".join(complaints)


# --- the rules, held against the tree ---


def test_imports_go_one_way_and_the_pure_rooms_stay_pure() -> None:
    complaints: list[str] = []
    for path, text in python_files("src/tidelog/").items():
        complaints += rules.import_complaints(path.removeprefix("src/tidelog/"), text)
    assert not complaints, show(complaints)


def test_every_public_thing_has_a_docstring_that_says_something() -> None:
    files = {**product_files(), **python_files("tools/", "examples/")}
    inherited = rules.documented_methods(product_files().values())
    complaints: list[str] = []
    for path, text in files.items():
        complaints += rules.docstring_complaints(path, text, inherited)
    assert not complaints, show(complaints)


def test_no_file_is_over_500_lines_without_a_reason() -> None:
    files = {**product_files(), **python_files("tests/", "tools/", "examples/", "benchmarks/")}
    complaints = [f"{path}: there is no such file" for path in OVER_500_LINES if path not in files]
    for path, text in files.items():
        complaints += rules.length_complaints(path, text, OVER_500_LINES)
    assert not complaints, show(complaints)


def test_nothing_in_the_tree_belongs_to_one_machine_or_is_left_for_later() -> None:
    complaints: list[str] = []
    for path, text in tree().items():
        complaints += rules.text_complaints(path, text)
    assert not complaints, show(complaints)


def test_every_setting_is_documented_and_the_page_is_current() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([a-z0-9.]+)`", page, re.MULTILINE))
    given = (*NodeConfig.SETTINGS, *TopicConfig.SETTINGS, *GroupConfig.SETTINGS)
    settings = {*given, *WITHOUT_EFFECT, *TOPIC_WITHOUT_EFFECT, *REFUSED}
    assert documented - {"broker.id", "super.users"} == settings
    check_generated_page("generate_settings_page.py")


def test_of_every_setting_that_nothing_uses_it_is_said_what_happens_instead() -> None:
    settings = (*NodeConfig.SETTINGS.values(), *TopicConfig.SETTINGS.values(), *GroupConfig.SETTINGS.values())
    assert {one.name for one in settings if not generate_settings_page.is_used(one)} == set(NOT_USED)


def test_the_settings_page_may_be_too_modest_but_never_too_bold() -> None:
    page = generate_settings_page.page()
    modest = page.replace("| `node.id` |", "| `node.id` ○ |")
    assert modest != page
    assert generate_settings_page.is_current(page)
    assert generate_settings_page.is_current(modest)
    assert not generate_settings_page.is_current(page.replace("`preallocate` ○", "`preallocate`"))
    assert not generate_settings_page.is_current(page.replace("unique in its cluster", "unique"))


def test_the_page_of_requests_is_current() -> None:
    check_generated_page("generate_protocol_page.py")


def check_generated_page(tool: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / tool), "--check"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_every_link_in_the_documents_leads_somewhere() -> None:
    complaints = []
    for path, text in tree().items():
        if path.endswith(".md"):
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
                if not (ROOT / path).parent.joinpath(target).exists():
                    complaints.append(f"{path}: {target} does not exist")
    assert not complaints, show(complaints)


def test_the_broker_alone_imports_nothing_that_it_does_not_need() -> None:
    """What `tidelog --version` loads is what every command pays for."""
    program = "import sys, tidelog.cli; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(answer.stdout.split())
    assert not loaded & {"kio", "confluent_kafka", "pyspark", "numpy", "pandas", "pyarrow", "hypothesis", "pytest"}


# --- the rules, shown to fail ---


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("log/segment.py", "import time", "log is pure and must not import time"),
        ("log/segment.py", "def f():\n    import os.path", "log is pure and must not import os"),
        ("outbox.py", "from random import choice", "outbox is pure and must not import random"),
        ("config/node.py", "import pathlib", "config is pure and must not import pathlib"),
        ("log/segment.py", "from tidelog.node import Node", "log must not import node"),
        ("log/segment.py", "from tidelog import replica", "log must not import replica"),
        ("log/segment.py", "from ..runtime import files", "log must not import runtime"),
        ("log/segment.py", "from .. import runtime", "log must not import runtime"),
        ("replica/leader.py", "import tidelog.quorum", "replica must not import quorum"),
        ("errors.py", "import tidelog.config", "errors must not import config"),
        ("client/client.py", "import tidelog.log", "client must not import log"),
        ("runtime/server.py", "import tidelog.cli", "runtime must not import cli"),
        ("node/node.py", "import kio", "node must not need the package kio"),
        ("node/node.py", "print('x')", "node is pure and must not call print"),
        ("attic/old.py", "", "the room attic has no line"),
    ],
)
def test_the_import_rule_finds(path: str, text: str, said: str) -> None:
    complaints = rules.import_complaints(path, text)
    assert len(complaints) == 1, complaints
    assert said in complaints[0]


def test_the_import_rule_lets_pass_what_is_right() -> None:
    good = "from __future__ import annotations\nimport struct\nfrom tidelog.wire import batch\nfrom . import names\n"
    assert rules.import_complaints("log/segment.py", good) == []
    assert rules.import_complaints("runtime/server.py", "import asyncio, os\nfrom tidelog import __version__") == []
    assert rules.import_complaints("wire/checksum.py", "import crc32c") == []
    assert rules.import_complaints("__init__.py", "import anything") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "the module has no docstring"),
        ('"""About x."""\ndef read(): ...', "read has no docstring"),
        ('"""About x."""\ndef read_file():\n    """Reads the file."""', "only repeats the name"),
        ('"""About x."""\nclass SegmentIndex:\n    """A segment index."""', "only repeats the name"),
        (
            '"""About x."""\nclass A:\n    """First."""\n    def close(self):\n        return 1',
            "A.close has no docstring",
        ),
        (
            '"""About x."""\nclass A(B):\n    """First."""\n    def close(self):\n        return 1',
            "A.close has no docstring",
        ),
        ('"""About x."""\nclass A:\n    """First."""\n    async def go(self):\n        """Go."""', "only repeats"),
    ],
)
def test_the_docstring_rule_finds(text: str, said: str) -> None:
    complaints = rules.docstring_complaints("x.py", text)
    assert len(complaints) == 1, complaints
    assert said in complaints[0]


def test_the_docstring_rule_lets_pass_what_is_right() -> None:
    text = (
        '"""About x."""\n'
        "class Disk(Protocol):\n"
        '    """What a disk can do."""\n'
        "    def size(self) -> int: ...\n"
        "class RealDisk:\n"
        '    """Files of the machine."""\n'
        "    def __init__(self): ...\n"
        "    def _private(self): ...\n"
        "    def size(self) -> int:\n"
        "        return 1\n"
        "    @property\n"
        "    def name(self):\n"
        '        """What people call it."""\n'
        "    @name.setter\n"
        "    def name(self, value): ...\n"
        "def _helper(): ...\n"
        "class Checker:\n"
        '    """Looks on."""\n'
        "    def at_end(self):\n"
        '        """Called when all is over."""\n'
        "class Loss(Checker):\n"
        '    """Nothing is lost."""\n'
        "    def at_end(self): ...\n"
    )
    assert rules.docstring_complaints("x.py", text, rules.documented_methods([text])) == []


@pytest.mark.parametrize(
    "line",
    [
        "# TO" + "DO: later",
        "x = '/ro" + "ot/data'",
        "path = '/tm" + "p/x'",
        "index = 'https://py" + "pi.example.org/simple'",
        "https://repo.mav" + "en.apache.org/x",
        "--index" + "-url https://example.org",
        "see is" + "sue 12",
    ],
)
def test_the_text_rule_finds(line: str) -> None:
    assert len(rules.text_complaints("x", "fine\n" + line)) >= 1


def test_the_text_rule_lets_pass_what_is_right() -> None:
    text = "https://kafka.apache.org/protocol\n/tm" + "p/kafka-logs is Kafka's default\nthe issue is 5 bytes\n"
    assert rules.text_complaints("x", text) == []


def test_the_length_rule_finds_both_ways() -> None:
    long, short = "x\n" * 501, "x\n" * 500
    assert "501 lines" in rules.length_complaints("a.py", long, {})[0]
    assert rules.length_complaints("a.py", long, {"a.py": "one table"}) == []
    assert "no longer needs" in rules.length_complaints("a.py", short, {"a.py": "one table"})[0]
    assert rules.length_complaints("a.py", short, {}) == []
