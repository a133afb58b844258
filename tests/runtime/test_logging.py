"""One line an event, whatever is in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tidelog.errors import ErrorCode
from tidelog.runtime.logging import EventLog


def test_a_line_for_people(tmp_path: Path) -> None:
    log = EventLog.to_file(str(tmp_path / "log"))
    log.info("listening", listener="PLAINTEXT", port=9092)
    log.warning(
        "odd", name='two words\n"quoted"\x1b[31m', code=ErrorCode.NOT_CONTROLLER, id=bytes(16), isr=(1, 2), n=""
    )
    log.error("bad", raw=b"\x01\x02", none=None)
    first, second, third = (tmp_path / "log").read_text().splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} info    listening listener=PLAINTEXT port=9092", first)
    assert second.endswith(
        r'warning odd name="two words\n\"quoted\"\x1b[31m" code=NOT_CONTROLLER id=AAAAAAAAAAAAAAAAAAAAAA isr=[1,2] n=""'
    )
    assert third.endswith("error   bad raw=0102 none=None")


def test_a_line_for_programs(tmp_path: Path) -> None:
    log = EventLog.to_file(str(tmp_path / "log"), json=True)
    log.tell(
        "election", {"topic": "a\nb", "epoch": 3, "isr": [1, 2], "unclean": False, "level": "mine", "ids": {1: b"\x05"}}
    )
    (line,) = (tmp_path / "log").read_text().splitlines()
    found = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.pop("time"))
    assert found == {
        "level": "info",
        "event": "election",
        "topic": "a\nb",
        "epoch": 3,
        "isr": [1, 2],
        "unclean": False,
        "ids": {"1": "05"},
    }


def test_warnings_of_a_kind_are_limited_and_counted(tmp_path: Path, monkeypatch: object) -> None:
    log = EventLog.to_file(str(tmp_path / "log"), json=True)
    for number in range(500):
        log.warning("bad-client", number=number)
    log.warning("another-kind")
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    written = [line for line in lines if line["event"] == "bad-client"]
    assert 50 <= len(written) <= 150
    assert lines[-1]["event"] == "another-kind"
    log._recent["bad-client"][0] -= 1
    log.warning("bad-client", number=500)
    counted = sum(json.loads(line).get("left_out_before", 0) for line in (tmp_path / "log").read_text().splitlines())
    assert len(written) + 1 + counted == 501


def test_a_log_that_cannot_be_written_stops_nobody() -> None:
    EventLog(fd=9999).info("nobody hears this")
