"""Records through standard input and output: what `consume` prints is what `produce` reads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Tidelog
from tests.client.fake_cluster import Close, Cluster, running
from tests.support.processes import wait_until
from tidelog.cli.records_text import json_fields, parse_json_line, shown, time_text
from tidelog.client import ConsumedRecord
from tidelog.errors import ErrorCode
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, build_batch, iterate_batches, iterate_records


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running(partitions=2) as started:
        yield started


def stored(cluster: Cluster) -> list[Record]:
    return [
        record
        for partition in cluster.partitions
        for data in partition.batches
        for batch in iterate_batches(data)
        for record in iterate_records(batch)
    ]


def test_lines_keys_headers_and_tombstones(tidelog: Tidelog, cluster: Cluster) -> None:
    where = ("--bootstrap", cluster.bootstrap, "--partition", "1")
    assert tidelog("produce", "t", *where, stdin=b"one\r\n\ntwo") == (0, "", "3 records written to t\n")
    assert tidelog("produce", "t", *where, "--key-separator", ":", stdin=b"k:v:w\n").code == 0
    assert tidelog("produce", "t", *where, "--headers", stdin=b"a:1,b:\tvalue\n\tnone\n").code == 0
    code = tidelog("produce", "t", *where, "--key-separator", "=", "--null-empty", stdin=b"gone=\n").code
    assert code == 0
    assert [(one.key, one.value, list(one.headers)) for one in stored(cluster)] == [
        (None, b"one", []),
        (None, b"", []),
        (None, b"two", []),
        (b"k", b"v:w", []),
        (None, b"value", [("a", b"1"), ("b", b"")]),
        (None, b"none", []),
        (b"gone", None, []),
    ]


def test_lines_do_not_wait_for_others_that_may_never_come(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "tidelog", "produce", "t", "--bootstrap", cluster.bootstrap, "--partition", "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"a\nb\nc\nhalf a ")
        process.stdin.flush()
        wait_until(lambda: [one.value for one in stored(cluster)] == [b"a", b"b", b"c"], 60, "whole lines are written")
        _, told = process.communicate(b"line")
        assert (process.returncode, told) == (0, b"4 records written to t\n")
    assert [one.value for one in stored(cluster)] == [b"a", b"b", b"c", b"half a line"]


def test_the_summary_in_json(tidelog: Tidelog, cluster: Cluster) -> None:
    lines = b'{"value": "a", "partition": 0}\n\n{"value": {"b": [1]}, "key": "k", "partition": 1, "timestamp": 77}\n'
    outcome = tidelog("produce", "t", "--bootstrap", cluster.bootstrap, "--json-lines", "--json", stdin=lines)
    assert outcome == (0, '{"topic": "t", "records": 2, "partitions": {"0": 1, "1": 1}}\n', "")
    assert [(one.key, one.value) for one in stored(cluster)] == [(None, b"a"), (b"k", b'{"b":[1]}')]
    assert stored(cluster)[1].timestamp == 77


@pytest.mark.parametrize(
    ("words", "line", "told"),
    [
        (["--json-lines"], b"nonsense", "line 2: not JSON: Expecting value: line 1 column 1 (char 0)"),
        (["--json-lines"], b"[1]", "line 2: not a JSON object"),
        (["--json-lines"], b'{"valu": 1}', "line 2: field 'valu' is not one of headers, key, "),
        (["--json-lines"], b'{"value": "x", "partition": "1"}', "line 2: partition '1' is not a whole number"),
        (["--json-lines"], b'{"value_base64": "?"}', "line 2: value_base64 is not base64"),
        (["--json-lines"], b'{"headers": 3}', "line 2: headers are neither an object nor a list of [name, value]"),
    ],
)
def test_a_line_that_is_no_record_is_named_and_those_before_it_are_written(
    tidelog: Tidelog, cluster: Cluster, words: list[str], line: bytes, told: str
) -> None:
    stdin = b'{"value": "first"}\n' + line + b'\n{"value": "third"}\n'
    code, _, err = tidelog("produce", "t", "--bootstrap", cluster.bootstrap, *words, stdin=stdin)
    assert code == 1
    assert err.splitlines()[0] == "1 record written to t"
    assert err.splitlines()[1].startswith(f"tidelog produce: {told}")
    assert [one.value for one in stored(cluster)] == [b"first"]


def test_a_line_without_its_key_or_headers(tidelog: Tidelog, cluster: Cluster) -> None:
    where = ("produce", "t", "--bootstrap", cluster.bootstrap)
    assert "line 1: no key separator ':' in it" in tidelog(*where, "--key-separator", ":", stdin=b"x\n").err
    assert "line 1: no tab after the headers" in tidelog(*where, "--headers", stdin=b"a:1 x\n").err
    assert "line 1: header 'a' is not name:value" in tidelog(*where, "--headers", stdin=b"a\tx\n").err


def test_a_refusal_is_told_with_what_got_through(tidelog: Tidelog, cluster: Cluster) -> None:
    cluster.fail(ApiKey.PRODUCE, *[lambda *_: Close] * 500)
    code, _, err = tidelog("produce", "t", "--bootstrap", cluster.bootstrap, "--timeout", "0.2", stdin=b"x\n")
    assert code == 3
    assert err.splitlines()[0] == "0 records written to t"


def fill(cluster: Cluster) -> None:
    records = [
        Record(0, 1_700_000_000_000, b"k", b"one", [("h", b"x"), ("h", None)]),
        Record(1, 1_700_000_000_500, None, b"\xff\x00"),
        Record(2, 1_700_000_001_000, b"\xfe", None, [("raw", b"\xfd")]),
    ]
    cluster.partitions[0].append(build_batch(records, compression=1))


def test_consume_in_lines_and_in_json(tidelog: Tidelog, cluster: Cluster) -> None:
    fill(cluster)
    where = ("consume", "t", "--bootstrap", cluster.bootstrap)
    assert tidelog(*where, "--max", "1") == (0, "one\n", "")
    assert tidelog(*where, "--max", "1", "--key-separator", " = ", "--headers").out == "h:x,h:\tk = one\n"
    code, out, err = tidelog(*where, "--json-lines")
    assert (code, err) == (0, "")
    assert [json.loads(line) for line in out.splitlines()] == [
        {
            "topic": "t",
            "partition": 0,
            "offset": 0,
            "timestamp": 1_700_000_000_000,
            "key": "k",
            "value": "one",
            "headers": [["h", "x"], ["h", None]],
        },
        {
            "topic": "t",
            "partition": 0,
            "offset": 1,
            "timestamp": 1_700_000_000_500,
            "key": None,
            "value_base64": "/wA=",
            "headers": [],
        },
        {
            "topic": "t",
            "partition": 0,
            "offset": 2,
            "timestamp": 1_700_000_001_000,
            "key_base64": "/g==",
            "value": None,
            "headers": [["raw", {"base64": "/Q=="}]],
        },
    ]


def test_where_to_begin(tidelog: Tidelog, cluster: Cluster) -> None:
    fill(cluster)
    where = ("consume", "t", "--bootstrap", cluster.bootstrap, "--json-lines")
    assert [json.loads(line)["offset"] for line in tidelog(*where, "--from", "1").out.splitlines()] == [1, 2]
    assert tidelog(*where, "--from", "latest").out == ""
    tidelog(*where, "--from", "2023-11-14T22:13:20.5Z")
    tidelog(*where, "--from", "@1700000000500")
    asked = [
        one.timestamp
        for body in cluster.of(ApiKey.LIST_OFFSETS)
        for topic in body.topics
        for one in topic.partitions
        if one.timestamp >= 0
    ]
    assert set(asked) == {1_700_000_000_500}
    code, _, err = tidelog(*where, "--from", "yesterday")
    assert code == 2
    assert "--from 'yesterday' is not earliest, latest, an offset, a time" in err
    assert tidelog(*where, "--partition", "7").err == "tidelog consume: t has no partition 7\n"


def test_what_consume_prints_produce_reads(tidelog: Tidelog, cluster: Cluster) -> None:
    fill(cluster)
    printed = tidelog("consume", "t", "--bootstrap", cluster.bootstrap, "--json-lines").out
    before = stored(cluster)
    words = ("produce", "t", "--bootstrap", cluster.bootstrap, "--json-lines", "--partition", "1")
    assert tidelog(*words, stdin=printed.encode()).code == 0
    after = stored(cluster)[len(before) :]
    assert after == before


def test_an_unknown_topic_is_an_error_of_the_cluster(tidelog: Tidelog, cluster: Cluster) -> None:
    code, out, err = tidelog("consume", "nothing", "--bootstrap", cluster.bootstrap)
    assert (code, out) == (1, "")
    assert err == f"tidelog consume: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name}: there is no topic 'nothing'\n"


contents = st.none() | st.binary(max_size=20) | st.text(max_size=10).map(str.encode)


@settings(max_examples=200)
@given(key=contents, value=contents, headers=st.lists(st.tuples(st.text(max_size=5), contents), max_size=3))
def test_json_lines_hold_every_record(key: Any, value: Any, headers: Any) -> None:
    record = ConsumedRecord("t", 3, 9, 12345, key, value, headers)
    parsed = parse_json_line(json.dumps(json_fields(record)).encode())
    assert parsed == (key, value, headers, 12345, 3)


def test_bytes_and_times_for_people() -> None:
    assert shown(None) == "null"
    assert shown(b"a\nb") == '"a\\nb"'
    assert shown(b"\xff") == "base64:/w=="
    assert shown(b"x" * 500, limit=10) == '"xxxxxxxxx… (500 bytes)'
    assert time_text(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert time_text(-1) == "-1"
    assert time_text(1 << 60) == str(1 << 60)
