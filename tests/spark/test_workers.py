"""What Spark's Python processes need not do: compile PySpark anew, and look for garbage among modules."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark import SparkContext, TaskContext
from pyspark.sql import SparkSession

import tidelog.spark
from tidelog.spark import home, workers


def test_workers_use_the_installed_pyspark_and_not_a_zip_without_bytecode(spark: SparkSession) -> None:
    """Half a second for every process, several times in a first query."""

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"file": [pyspark.__file__]})

    (row,) = spark.range(1).coalesce(1).mapInArrow(look, "file string").collect()
    assert row.file == pyspark.__file__


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        ({"spark.master": "spark://127.0.0.1:7077"}, {}),
        ({"spark.master": "local[2]", "spark.pyspark.python": "/usr/bin/python3"}, {}),
        ({"spark.master": "local[2]"}, {"PYSPARK_PYTHON": "/another/python"}),
        ({"spark.master": "local[2]"}, {"SPARK_HOME": "/opt/spark"}),
        ({"spark.master": "local[2]"}, {"PYSPARK_GATEWAY_PORT": "1"}),
    ],
)
def test_a_spark_that_may_run_on_another_python_keeps_its_own_folder(
    settings: dict[str, str], variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its zip, workers of a Python that has no PySpark could not start."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    for name in ("SPARK_HOME", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    before = os.environ.get("SPARK_HOME")
    with home.installed_files(settings):
        assert os.environ.get("SPARK_HOME") == before


def test_the_folder_has_all_of_pyspark_but_the_zip_and_is_named_only_while_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A program that the user starts later finds the Spark it always found."""
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("TIDELOG_CACHE", str(tmp_path))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    for _ in range(2):  # made, and found again
        with home.installed_files({"spark.master": "local[*]"}):
            folder = Path(os.environ["SPARK_HOME"])
            assert (folder / "bin" / "spark-submit").is_file()
            assert (folder / "jars").is_dir()
            assert not (folder / "python").exists()
        assert "SPARK_HOME" not in os.environ


def test_what_spark_was_told_before_goes_before_our_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A notebook's PYSPARK_SUBMIT_ARGS and a site's file of defaults: a session of ours would have run on local[*]."""
    monkeypatch.setattr(SparkContext, "_jvm", None)  # as before the first session
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    told = "# of this site\nspark.driver.memory  5g\nspark.ui.enabled=true\nspark.sql.session.timeZone: CET\n"
    (tmp_path / "spark-defaults.conf").write_text(told)
    words = "--master spark://somewhere:7077 --conf spark.ui.enabled=false -c 'spark.app.name=a b' pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", words)
    found = dict(tidelog.spark._settings({"spark.sql.session.timeZone": "UTC"}).getAll())
    assert found["spark.master"] == "spark://somewhere:7077"
    assert (found["spark.driver.memory"], found["spark.ui.enabled"], found["spark.app.name"]) == ("5g", "false", "a b")
    assert found["spark.sql.session.timeZone"] == "UTC", "what the caller gives goes before all"
    assert "spark.driver.host" not in found, "executors of other machines could not reach it"
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "none"))
    found = dict(tidelog.spark._settings({}).getAll())
    assert (found["spark.master"], found["spark.driver.host"]) == ("local[*]", "127.0.0.1")


def test_modules_are_left_out_of_collections_in_a_worker_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark collects after every task: 20 to 60 ms of a worker's time."""
    before = gc.get_freeze_count()
    monkeypatch.setattr(workers, "_settled_modules", 0)
    workers.settle()
    assert gc.get_freeze_count() == before, "in a user's own process nothing is changed"
    monkeypatch.setattr(TaskContext, "get", classmethod(lambda _: object()))
    try:
        workers.settle()
        assert gc.get_freeze_count() > before
        gc.unfreeze()
        workers.settle()
        assert gc.get_freeze_count() == 0, "once is enough while no module is loaded"
    finally:
        gc.unfreeze()


def test_loops_are_compiled_where_they_cannot_be_kept(tmp_path: Path) -> None:
    """A package that came with --py-files, or that may only be read, and a user without a home: usual in containers."""
    source = Path(home.__file__).parents[2]
    with zipfile.ZipFile(tmp_path / "tidelog.zip", "w") as package:
        for file in (source / "tidelog").rglob("*.py"):
            package.write(file, file.relative_to(source))
    nowhere = tmp_path / "file"
    nowhere.touch()
    unset = ("PYTHONPYCACHEPREFIX", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"HOME": str(nowhere / "home"), "PYTHONPATH": str(tmp_path / "tidelog.zip")}
    program = """if True:
        from tidelog.spark import decode, decode_kernels, writing
        assert "tidelog.zip" in writing.__file__
        print(decode.kernels(10**9).NAME, writing.kernels.NAME, decode_kernels.KEPT)
    """
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.stdout == "numba numba False\n", said.stderr
