"""Bring the jars of Spark's own Kafka connector into a cache directory, once, without Maven.

    python tools/fetch_spark_connector.py      fetch what is missing, print the jars, comma-separated (for spark.jars)

PySpark ships Ivy, which knows where published artifacts live; this file names them, with their SHA-256. What PySpark
has already (codecs, logging) is not fetched again. A session given these by `spark.jars` starts without resolving
anything, and works without a network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ARTIFACTS = (
    (
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    # Only its configuration helper is used without Kerberos; not published everywhere in the connector's own version.
    (
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    (
        "org.apache.kafka",
        "kafka-clients",
        "3.9.2",
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    ),
    (
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
)
PROJECT_ROOT = Path(__file__).resolve().parent.parent


class FetchError(Exception):
    """The connector cannot be had here; the text says why."""


def cache_directory() -> Path:
    """Where the jars live, whether or not they are there yet."""
    configured = os.environ.get("TIDELOG_CACHE")
    return (Path(configured) if configured else PROJECT_ROOT / ".cache") / "spark"


def is_sound(jar: Path, sha256: str) -> bool:
    """Whether the file is there and is the one that was pinned."""
    return jar.is_file() and hashlib.sha256(jar.read_bytes()).hexdigest() == sha256


def fetch(directory: Path) -> list[Path]:
    """Make the cache current and return the jars."""
    jars = [directory / f"{name}-{version}.jar" for _, name, version, _ in ARTIFACTS]
    pinned = [sha256 for *_, sha256 in ARTIFACTS]
    if all(is_sound(jar, sha256) for jar, sha256 in zip(jars, pinned, strict=True)):
        return jars
    java = shutil.which("java")
    spark = find_spec("pyspark")
    if java is None or spark is None or spark.origin is None:
        raise FetchError("Java and PySpark are needed to fetch Spark's Kafka connector; make setup brings both")
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix="fetching-") as scratch:
        wanted = "".join(
            f'<dependency org="{group}" name="{name}" rev="{version}" transitive="false" conf="default->master"/>\n'
            for group, name, version, _ in ARTIFACTS
        )
        module = Path(scratch) / "ivy.xml"
        module.write_text(
            '<ivy-module version="2.0"><info organisation="tidelog" module="spark-connector"/>'
            '<configurations><conf name="default"/></configurations>'
            f"<dependencies>\n{wanted}</dependencies></ivy-module>\n"
        )
        ivy = [java, "-cp", str(Path(spark.origin).parent / "jars" / "*"), "org.apache.ivy.Main"]
        places = ["-cache", f"{scratch}/cache", "-retrieve", f"{scratch}/[artifact]-[revision].[ext]"]
        command = [*ivy, "-ivy", str(module), "-confs", "default", *places]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            reason = "\n".join((outcome.stdout + outcome.stderr).strip().splitlines()[-15:])
            raise FetchError(f"Ivy could not fetch Spark's Kafka connector:\n{reason}")
        for jar, sha256 in zip(jars, pinned, strict=True):
            fresh = Path(scratch) / jar.name
            if not is_sound(fresh, sha256):
                raise FetchError(f"{jar.name} is not the file that was pinned: refused")
            fresh.replace(jar)
    return jars


def main() -> int:
    """The command."""
    try:
        print(",".join(str(jar) for jar in fetch(cache_directory())))
    except FetchError as error:
        print(f"fetch_spark_connector: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
