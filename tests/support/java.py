"""Java and the jars of Apache Kafka, for the tests and benchmarks that need the real thing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import py4j.java_gateway
import py4j.protocol
import pytest

from tools import fetch_kafka

SUPPORT = Path(__file__).resolve().parent
TOOL_LOGGING = SUPPORT / "log4j2-tools.properties"
BROKER_LOGGING = SUPPORT / "log4j2-broker.properties"
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""A tool lives a second or two: no time for the optimising compiler."""
RELEASE_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
"""What a release of Apache Kafka starts its broker with (kafka-run-class.sh)."""


def java_executable() -> str:
    """The `java` to run: of JAVA_HOME, or of the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return str(Path(home) / "bin" / "java")
    found = shutil.which("java")
    if found is None:
        raise FileNotFoundError("Java 17 or newer is needed to run Apache Kafka, and no java is on the PATH")
    return found


def kafka_class_path() -> str:
    """The jars of Apache Kafka, fetched when they are missing."""
    return str(fetch_kafka.fetch(fetch_kafka.cache_directory()) / "*")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Errors of Java as py4j raises them: PySpark, once used in a process, replaces that by a way of its own that needs
    a running Spark.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value)
        yield


class ToolFailed(AssertionError):
    """A tool of Apache Kafka ended with an error; the text has all it said."""


def run_tool(
    main_class: str,
    *arguments: str,
    standard_input: str | None = None,
    timeout_s: float = 120.0,
    expect_failure: bool = False,
) -> str:
    """Run one of Apache Kafka's command-line tools and return its standard output and error together."""
    outcome = subprocess.run(
        tool_command(main_class, arguments),
        input=standard_input,
        stdin=subprocess.DEVNULL if standard_input is None else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if (outcome.returncode != 0) != expect_failure:
        raise ToolFailed(f"{main_class} {' '.join(arguments)}: exit code {outcome.returncode}\n{outcome.stdout}")
    return outcome.stdout


def tool_command(main_class: str, arguments: Sequence[str]) -> list[str]:
    """The command line of one tool."""
    return [
        java_executable(),
        *QUICK_START,
        "-Xmx256m",
        f"-Dlog4j2.configurationFile={TOOL_LOGGING}",
        "-cp",
        kafka_class_path(),
        main_class,
        *arguments,
    ]
