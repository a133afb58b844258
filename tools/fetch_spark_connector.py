"""Bring the jars of Spark's own Kafka connector into a cache directory, once, without Maven.

    python tools/fetch_spark_connector.py      fetch what is missing, print the jars, comma-separated (for spark.jars)

Tidelog needs none of them: they are for the tests and benchmarks, where the official connector is judge and peer.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tidelog.spark.pipelines import jars
from tidelog.spark.pipelines.jars import Artifact, FetchError

__all__ = ["ARTIFACTS", "FetchError", "cache_directory", "fetch"]

ARTIFACTS = (
    Artifact(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    # Only its configuration helper is used without Kerberos; not published everywhere in the connector's own version.
    Artifact(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Artifact(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.2",
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    ),
    Artifact(
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
)


def cache_directory() -> Path:
    """Where the jars live, whether or not they are there yet."""
    return jars.directory()


def fetch(directory: Path) -> list[Path]:
    """Make the cache current and return the jars."""
    return jars.fetch(ARTIFACTS, directory, tries=3)


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
