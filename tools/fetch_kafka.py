"""Bring Apache Kafka, its command-line tools and all they need from Maven into a cache directory, once.

    python tools/fetch_kafka.py            fetch what is missing, print the directory of the jars
    python tools/fetch_kafka.py --check    exit 1 when the cache is not current, fetch nothing

The cache is `.cache/kafka` in the project, or `$TIDELOG_CACHE/kafka`. Whatever mirror Maven is configured to use on a
machine is used: this file names artifacts only.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.sax.saxutils import escape

KAFKA_VERSION = "4.3.1"
LOG4J_VERSION = "2.25.4"
ARTIFACTS = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    # Kafka's release adds this binding beside its declared dependencies; without it the broker logs nothing at all.
    ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
)
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
PROJECT_ROOT = Path(__file__).resolve().parent.parent


class FetchError(Exception):
    """Apache Kafka cannot be had here; the text says why and what to do."""


def cache_directory() -> Path:
    """Where the jars live, whether or not they are there yet."""
    configured = os.environ.get("TIDELOG_CACHE")
    return (Path(configured) if configured else PROJECT_ROOT / ".cache") / "kafka"


def project_model() -> str:
    """A Maven project whose only content is what we want copied."""
    dependencies = "".join(
        f"<dependency><groupId>{escape(group)}</groupId><artifactId>{escape(artifact)}</artifactId>"
        f"<version>{escape(version)}</version></dependency>\n"
        for group, artifact, version in ARTIFACTS
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>tidelog.cache</groupId><artifactId>kafka</artifactId>"
        f"<version>1</version><dependencies>\n{dependencies}</dependencies></project>\n"
    )


def fingerprint() -> str:
    """Changes whenever the list of artifacts does, so that an old cache is not taken for a current one."""
    return hashlib.sha256(project_model().encode()).hexdigest()


def is_current(directory: Path) -> bool:
    """Whether the cache holds exactly what this file asks for."""
    stamp = directory / "fingerprint"
    libraries = directory / "libs"
    return (
        stamp.is_file()
        and stamp.read_text() == fingerprint()
        and (libraries / f"kafka_2.13-{KAFKA_VERSION}.jar").is_file()
    )


def fetch(directory: Path) -> Path:
    """Make the cache current and return the directory of the jars."""
    libraries = directory / "libs"
    if is_current(directory):
        return libraries
    maven = shutil.which("mvn")
    if maven is None:
        raise FetchError(
            "Apache Kafka is fetched with Maven and no mvn is on the PATH: install Maven (and Java 17 or newer),"
            " or put the jars of an existing cache where TIDELOG_CACHE points"
        )
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix="fetching-") as scratch:
        (Path(scratch) / "pom.xml").write_text(project_model())
        fresh = Path(scratch) / "libs"
        command = [maven, "-q", "-B", "-ntp", DEPENDENCY_PLUGIN, f"-DoutputDirectory={fresh}"]
        for pause_s in (5, 20, 0):  # a network has bad moments; Maven keeps what it has
            outcome = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
            if outcome.returncode == 0:
                break
            time.sleep(pause_s)
        if outcome.returncode != 0:
            reason = "\n".join((outcome.stdout + outcome.stderr).strip().splitlines()[-15:])
            raise FetchError(f"Maven could not fetch Apache Kafka {KAFKA_VERSION}:\n{reason}")
        if libraries.exists():
            shutil.rmtree(libraries)
        fresh.rename(libraries)
    (directory / "fingerprint").write_text(fingerprint())
    return libraries


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=f"Fetch Apache Kafka {KAFKA_VERSION} and its tools into a cache.")
    parser.add_argument("--check", action="store_true", help="fetch nothing; exit 1 when the cache is not current")
    arguments = parser.parse_args()
    directory = cache_directory()
    if arguments.check:
        return 0 if is_current(directory) else 1
    try:
        print(fetch(directory))
    except FetchError as error:
        print(f"fetch_kafka: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
