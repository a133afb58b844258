"""The jars of Delta and Avro, which PySpark does not bring: where they are, and how they get there once.

PySpark ships Ivy, which knows where published artifacts live; this file names them, with their SHA-256. What PySpark
has already is not fetched again: of the 33 artifacts that Delta asks for, two are left. A session that is given these
by `spark.jars` starts without resolving anything, and works without a network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tidelog.errors import TidelogError

_PAUSE_S = 5.0
"""Between two tries."""


class Artifact(NamedTuple):
    """One published jar."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """What the jar is called."""
        return f"{self.name}-{self.version}.jar"


DELTA = (
    Artifact(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Artifact(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)
AVRO = (
    # Not published everywhere in Spark's own version; `from_avro` of this one works in it.
    Artifact(
        "org.apache.spark",
        "spark-avro_2.13",
        "4.1.1",
        "6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d",
    ),
)
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Spark's 50 tasks for reading a table's log are meant for tables of thousands of files: here they cost seconds.
    "spark.databricks.delta.snapshotPartitions": "2",
}
"""What Delta wants of a session."""


class FetchError(TidelogError):
    """A jar cannot be had here; the text says why and what to do."""


def directory() -> Path:
    """Where the jars live, whether or not they are there: TIDELOG_CACHE, else beside the source, else of the user."""
    configured = os.environ.get("TIDELOG_CACHE")
    if configured:
        return Path(configured) / "spark"
    tree = Path(__file__).resolve().parents[4]
    if (tree / "pyproject.toml").is_file() and (tree / "src" / "tidelog").is_dir():
        return tree / ".cache" / "spark"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidelog" / "spark"


def is_sound(jar: Path, sha256: str) -> bool:
    """Whether the file is there and is the one that was pinned."""
    return jar.is_file() and hashlib.sha256(jar.read_bytes()).hexdigest() == sha256


def find(artifacts: Iterable[Artifact], what: str) -> list[Path]:
    """The jars, which must be there; FetchError says how they get there. `what` needs them."""
    jars = [directory() / artifact.file_name for artifact in artifacts]
    missing = [jar.name for jar in jars if not jar.is_file()]
    if missing:
        raise FetchError(f"{what} needs {', '.join(missing)}, not in {directory()}: run `tidelog pipeline fetch` once")
    return jars


def fetch(artifacts: Sequence[Artifact], into: Path, tries: int = 1) -> list[Path]:
    """Make a directory of jars current and return them; nothing is asked of a network when they are there."""
    jars = [into / artifact.file_name for artifact in artifacts]
    if all(is_sound(jar, artifact.sha256) for jar, artifact in zip(jars, artifacts, strict=True)):
        return jars
    java = _java()
    spark = find_spec("pyspark")
    if java is None or spark is None or spark.origin is None:
        raise FetchError(
            "Java and PySpark are needed to fetch jars: pip install 'tidelog[spark]', and Java 17 or newer"
        )
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix="fetching-") as scratch:
        module = Path(scratch) / "ivy.xml"
        module.write_text(_ivy_module(artifacts))
        ivy = [java, "-cp", str(Path(spark.origin).parent / "jars" / "*"), "org.apache.ivy.Main"]
        places = ["-cache", f"{scratch}/cache", "-retrieve", f"{scratch}/[artifact]-[revision].[ext]"]
        command = [*ivy, "-ivy", str(module), "-confs", "default", *places]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        for _ in range(1, tries):  # a network has bad moments
            if outcome.returncode != 0:
                time.sleep(_PAUSE_S)
                outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            names = ", ".join(jar.name for jar in jars)
            raise FetchError(f"{names} could not be fetched (is there a network?): {_reason(outcome)}")
        for jar, artifact in zip(jars, artifacts, strict=True):
            fresh = Path(scratch) / jar.name
            if not is_sound(fresh, artifact.sha256):
                raise FetchError(f"{jar.name} is not the file that was pinned: refused")
            fresh.replace(jar)
    return jars


def _java() -> str | None:
    """The one of JAVA_HOME, the one beside this Python (`make setup` puts it there), or the one of the PATH."""
    for home in (os.environ.get("JAVA_HOME"), sys.prefix):
        if home and (Path(home) / "bin" / "java").is_file():
            return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def _ivy_module(artifacts: Iterable[Artifact]) -> str:
    wanted = "".join(
        f'<dependency org="{each.group}" name="{each.name}" rev="{each.version}" transitive="false"'
        ' conf="default->master"/>\n'
        for each in artifacts
    )
    return (
        '<ivy-module version="2.0"><info organisation="tidelog" module="jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>\n{wanted}</dependencies></ivy-module>\n'
    )


def _reason(outcome: subprocess.CompletedProcess[str]) -> str:
    """The line of Ivy's long answer that says what was wrong."""
    lines = [line.strip(" \t:") for line in (outcome.stdout + outcome.stderr).splitlines() if line.strip(" \t:")]
    telling = [line for line in lines if "not found" in line or "Exception" in line or "rror" in line]
    return (telling or lines or ["Ivy said nothing"])[-1]
