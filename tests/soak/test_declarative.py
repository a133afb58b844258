"""The declarative project in examples/ runs, twice, and each record is in its table once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.clients import confluent
from tests.clients.conftest import TopicMaker, make_topic
from tests.clients.samples import Record
from tests.spark.conftest import scratch, spark
from tests.support.nodes import Node

__all__ = ["make_topic", "scratch", "spark"]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "declarative"


def run_pipeline(project: Path, *words: str) -> None:
    command = [str(Path(sys.executable).with_name("spark-pipelines")), "run", "--spec", "local.yml", *words]
    command += ["--conf", "spark.sql.catalogImplementation=hive", "--conf", "spark.ui.enabled=false"]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command, cwd=project, capture_output=True, text=True, timeout=600, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_the_project_lands_and_tells(spark: SparkSession, node: Node, make_topic: TopicMaker, tmp_path: Path) -> None:
    topic, project = make_topic(partitions=2), tmp_path / "declarative"
    shutil.copytree(EXAMPLE, project)
    text = (project / "spark-pipeline.yml").read_text().replace("STORAGE", f"file://{project}/storage")
    text = text.replace("127.0.0.1:9092", node.bootstrap).replace("topics: orders", f"topics: {topic}")
    (project / "local.yml").write_text(text)
    for turn in range(2):
        confluent.produce_all(
            node, topic, [Record(None, b"%d-%d" % (turn, each), 1) for each in range(50)], partition=turn
        )
        run_pipeline(project, *(["--refresh", "records"] if turn else []))
        landed = spark.read.parquet(str(project / "spark-warehouse" / "records")).collect()
        assert sorted((row.partition, row.offset) for row in landed) == [
            (partition, offset) for partition in range(turn + 1) for offset in range(50)
        ]
    told = spark.read.parquet(str(project / "spark-warehouse" / "replication_events"))
    assert told.where(f"kind = 'topic-created' and topic = '{topic}'").count() == 1
    led = spark.read.parquet(str(project / "spark-warehouse" / "leaderships")).where(f"topic = '{topic}'")
    assert {row.leader for row in led.collect()} == {1}
