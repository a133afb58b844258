"""What a pipeline says of itself is what the command, spark-submit and the documentation are made from."""

from __future__ import annotations

import argparse
import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import TopicMaker
from tests.support.nodes import Node
from tidelog.cli import main
from tidelog.errors import ConfigError
from tidelog.spark.pipelines import NAMES, jars, land, load
from tidelog.spark.pipelines.declaration import Pipeline
from tidelog.spark.pipelines.failures import NOTHING_LOST, reason_and_advice, reason_of
from tidelog.spark.pipelines.launch import main as submitted
from tidelog.spark.pipelines.progress import LiveProgress, Step, line_of
from tidelog.spark.pipelines.streams import offsets_in

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", NAMES)
def test_every_option_has_words_and_the_page_has_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = load(name)
    assert pipeline.name == name
    page = (ROOT / "docs" / "pipelines.md").read_text()
    assert main(["pipeline", name, "--help"]) == 0
    text = capsys.readouterr().out
    for option in pipeline.options:
        assert option.flag in text
        assert f"`{option.flag}`" in page, f"{option.flag} of {name} is not in docs/pipelines.md"
    for table in pipeline.writes:
        assert f"`{table}`" in page


def test_an_unknown_option_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "land", "--topcs", "x"]) == 2
    assert "unknown option --topcs; did you mean '--topics'?" in capsys.readouterr().err
    assert submitted(land.PIPELINE, ["--pth", "x"]) == 2
    assert "unknown option --pth; did you mean '--path'?" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="no option chekpoint; did you mean 'checkpoint'"):
        land.PIPELINE.options_of(chekpoint="x")
    with pytest.raises(ConfigError, match="land needs --path"):
        land.PIPELINE.options_of()
    with pytest.raises(ConfigError, match="--format: 'detla' is not possible; did you mean 'delta'"):
        land.PIPELINE.options_of(path="x", format="detla")


def test_a_cluster_is_found_as_by_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDELOG_BOOTSTRAP", raising=False)
    assert land.PIPELINE.options_of(path="x").bootstrap == "127.0.0.1:9092"
    monkeypatch.setenv("TIDELOG_BOOTSTRAP", "elsewhere:9092")
    assert land.PIPELINE.options_of(path="x").bootstrap == "elsewhere:9092"
    assert land.PIPELINE.options_of(path="x", bootstrap="here:9092").bootstrap == "here:9092"
    parser = argparse.ArgumentParser()
    land.PIPELINE.add_to(parser)
    assert parser.parse_args(["--path", "x"]).bootstrap == "elsewhere:9092"


def test_nothing_but_a_run_loads_spark() -> None:
    program = (
        "import sys, tidelog.cli; tidelog.cli.main(['pipeline', 'land', '--help']); print('pyspark' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "False"


def test_spark_submit_takes_the_file_of_a_pipeline(node: Node, make_topic: TopicMaker, tmp_path: Path) -> None:
    """Its options are read; that there is no such topic is said in one line, by the file itself.

    What spark-submit was told holds: a pipeline of ours would have run on the driver's machine, whatever the master.
    """
    topic, events = make_topic(), tmp_path / "events"
    events.mkdir()
    submit = Path(sys.executable).with_name("spark-submit")
    command = [str(submit), "--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=7"]
    for name, value in {"enabled": "true", "dir": str(events), "compress": "false"}.items():
        command += ["--conf", f"spark.eventLog.{name}={value}"]
    command.append(land.__file__)
    command += [
        "--bootstrap",
        node.bootstrap,
        "--topics",
        f"{topic}s",
        "--path",
        str(tmp_path / "lake"),
        "--format",
        "parquet",
    ]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    answer = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert answer.returncode == 1, answer.stderr
    # spark-submit puts all that a Python program prints on its own standard output.
    assert f"land: there is no topic '{topic}s'; did you mean '{topic}'?" in answer.stdout.splitlines()
    told = "".join(file.read_text() for file in events.rglob("events_*"))
    for setting in ('"spark.master":"local[1]"', '"spark.sql.shuffle.partitions":"7"', '"spark.ui.enabled":"false"'):
        assert setting in told


def test_missing_jars_are_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDELOG_CACHE", str(tmp_path))
    assert main(["pipeline", "land", "--topics", "x", "--path", str(tmp_path / "lake")]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--format parquet does without" in said
    assert "run `tidelog pipeline fetch` once" in said


def test_jars_that_cannot_be_fetched_or_are_others_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    def java_does(script: str) -> None:
        java.write_text("#!/bin/sh\n" + script)
        java.chmod(java.stat().st_mode | stat.S_IXUSR)

    monkeypatch.setattr(jars, "_PAUSE_S", 0.0)
    java_does(f'echo x >> {tmp_path}/tried; echo ":: UNRESOLVED DEPENDENCIES: not found"; exit 1')
    with pytest.raises(jars.FetchError, match=r"could not be fetched .*not found"):
        jars.fetch(jars.DELTA, tmp_path / "jars", tries=3)
    assert (tmp_path / "tried").read_text().split() == ["x"] * 3
    java_does(f'for word do last=$word; done; for name in {" ".join(each.file_name for each in jars.DELTA)}; do '
              'echo forged > "$(dirname "$last")/$name"; done')  # fmt: skip
    with pytest.raises(jars.FetchError, match="is not the file that was pinned"):
        jars.fetch(jars.DELTA, tmp_path / "jars")
    assert not list((tmp_path / "jars").glob("*.jar"))


def test_progress_is_a_bar_where_the_end_is_known() -> None:
    assert line_of(Step(50, 12.4, total=200, lag=150, batches=1)) == (
        "██████░░░░░░░░░░░░░░░░░░  25%  50 of 200 records  12/s  lag 150  1 batch"
    )
    assert line_of(Step(5_000, batches=2, note="x")) == "5,000 records  2 batches  x"
    assert line_of(Step(0, total=0)).startswith("████████████████████████ 100%")
    stream = io.StringIO()
    progress = LiveProgress("land", stream)
    for number in range(5):
        progress.show(Step(number))
    progress.say("stays")
    assert stream.getvalue() == "land  0 records\nstays\n", "into a file: one line every ten seconds"


def test_offsets_are_found_in_the_reports_of_both_sources() -> None:
    assert offsets_in('{"orders": {"0": 5, "1": 7}}') == {("orders", 0): 5, ("orders", 1): 7}
    ours = {"orders": {"0": 5}, "#topicIds": {"orders": "AAAA"}}
    assert offsets_in(ours) == {("orders", 0): 5}
    assert offsets_in(None) == offsets_in("nothing") == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Job aborted\njava.io.IOException: No space left on device\n\tat x", "the disk is full"),
        ("[A_B.C] Something is wrong. SQLSTATE: 1\nmore", "Something is wrong. SQLSTATE: 1 [A_B.C]"),
        ("x\nCaused by: a.b.OneException: first\n\tat x\nCaused by: c.d.TwoError: second", "TwoError: second"),
        ("trace\ntidelog.errors.ConfigError: option x is wrong\n", "option x is wrong"),
        ("plain\n\tat x", "plain"),
    ],
)
def test_the_reason_is_found_in_a_trace(text: str, reason: str) -> None:
    assert reason_of(RuntimeError(text)) == reason


@pytest.mark.parametrize("name", ["transactions.CheckpointError", "fetching.DataLossError"])
def test_nobody_is_told_to_start_again_what_would_end_the_same_way(name: str) -> None:
    assert reason_and_advice(RuntimeError(f"trace\ntidelog.spark.{name}: records are gone\n")) == "records are gone"
    assert reason_and_advice(RuntimeError("plain"), " here") == f"plain here; {NOTHING_LOST}"


def test_declarations_fit_what_runs() -> None:
    for name in NAMES:
        pipeline = load(name)
        assert isinstance(pipeline, Pipeline)
        assert len({option.name for option in pipeline.options}) == len(pipeline.options)
        assert pipeline.reads
        assert pipeline.writes
