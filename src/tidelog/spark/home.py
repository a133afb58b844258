"""Spark's folder for a local session: PySpark's own, without the zip of its Python files.

Spark puts `python/lib/pyspark.zip` before all else on the path of every Python process it starts, for machines that
have no PySpark. The zip has no bytecode: each of these processes compiles some three hundred files anew, half a second
of work, and a first query starts five of them one after the other. Where the workers run on this very Python, the
installed files with their bytecode do as well: a folder of links, all but the zip, lets Spark find those.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

_ZIP_FOLDER = "python"


@contextlib.contextmanager
def installed_files(settings: Mapping[str, str]) -> Iterator[None]:
    """Spark that is started in this block finds PySpark's installed files, if that is sure to be right."""
    home = _make_home() if is_sure(settings) else None
    if home is None:
        yield
        return
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def is_sure(settings: Mapping[str, str]) -> bool:
    """Only workers on this machine, on this Python, of a Spark that nobody else has started or placed."""
    elsewhere = ("SPARK_HOME", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
    return (
        os.name == "posix"
        and settings.get("spark.master", "").startswith("local")
        and os.environ.get("PYSPARK_PYTHON") == sys.executable
        and not any(name in settings for name in ("spark.pyspark.python", "spark.pyspark.driver.python"))
        and not any(os.environ.get(name) for name in elsewhere)
    )


def _make_home() -> Path | None:
    """The folder of links, made once; None where it cannot be made, or PySpark is no folder."""
    from tidelog.spark.pipelines.jars import directory

    found = find_spec("pyspark")
    installed = Path(found.origin).parent if found is not None and found.origin else None
    if installed is None or not (installed / "jars").is_dir():
        return None
    home = directory() / f"home-{zlib.crc32(str(installed).encode()):08x}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        for entry in installed.iterdir():
            if entry.name != _ZIP_FOLDER and not (home / entry.name).exists():
                with contextlib.suppress(FileExistsError):  # another process made it just now
                    (home / entry.name).symlink_to(entry)
    except OSError:
        return None
    return home
