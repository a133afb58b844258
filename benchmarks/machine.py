"""What was measured on, and with what."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
from pathlib import Path

import confluent_kafka

from tests.support import java
from tools import fetch_kafka

LEAST_UNUSED = 0.75
"""Of all cores' time; less is company."""


def describe() -> dict[str, str]:
    """The machine and the versions of everything that matters to a figure."""
    return {
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "memory": f"{memory_gib():.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": java_version(),
        "tidelog": tidelog_version(),
        "kafka": fetch_kafka.KAFKA_VERSION,
        "client": f"confluent-kafka {importlib.metadata.version('confluent-kafka')}"
        f" (librdkafka {confluent_kafka.libversion()[0]})",
    }


def is_busy() -> bool:
    """Whether others use this machine so much that a comparison would be unfair.

    A peer that needs more CPU suffers more from company: ratios taken on a busy machine flatter the lighter one. Looked
    at for two seconds in which this process does nothing: an average load would count the benchmark before this one.
    """
    before = _cpu_ticks()
    time.sleep(2)
    idle, total = (after - earlier for after, earlier in zip(_cpu_ticks(), before, strict=True))
    return idle < LEAST_UNUSED * total


def _cpu_ticks() -> tuple[int, int]:
    """Unused time and all time of all cores together since the machine was started (Linux)."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def processor() -> str:
    """The name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def memory_gib() -> float:
    """The machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def java_version() -> str:
    """The first line of `java -version`."""
    outcome = subprocess.run([java.java_executable(), "-version"], capture_output=True, text=True, check=True)
    return outcome.stderr.splitlines()[0]


def tidelog_version() -> str:
    """The version in the source tree, and the commit when there is one."""
    import tidelog

    version = getattr(tidelog, "__version__", "unreleased")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return f"{version} ({commit.stdout.strip()})" if commit.returncode == 0 else str(version)
