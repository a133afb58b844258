"""Start Spark for a pipeline, run it, and turn whatever ends it into lines and an exit code.

`tidelog pipeline NAME` and `spark-submit …/NAME.py` both come through here. Spark's own log goes to a file, which a
failure names: on a terminal it would bury what the pipeline says.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidelog.errors import ConfigError, TidelogError
from tidelog.spark.pipelines.declaration import Options, Outcome, Pipeline, nearest
from tidelog.spark.pipelines.failures import PipelineError, reason_of
from tidelog.spark.pipelines.progress import LiveProgress, Progress, Silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options that every pipeline has."""
    parser.add_argument(
        "--master", metavar="URL", help="Spark's master (default: what spark-submit or the settings say, else local[*])"
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark; may be given again"
    )
    parser.add_argument("--spark-log", metavar="FILE", help="where Spark's own log goes (default: a temporary file)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run_arguments(pipeline: Pipeline, arguments: argparse.Namespace) -> int:
    """Run what a parser has read and print how it went; the exit code. TidelogError and its kinds are the caller's."""
    options = pipeline.options_from(arguments)
    settings = dict(_setting(text) for text in arguments.conf)
    if arguments.master:
        settings["spark.master"] = arguments.master
    progress: Progress = Silent() if arguments.json else LiveProgress(pipeline.name)
    outcome = execute(pipeline, options, progress, settings, arguments.spark_log)
    if arguments.json:
        print(json.dumps({"ok": outcome.ok, **outcome.details}, ensure_ascii=False, default=str))
    else:
        for line in outcome.lines:
            print(line)
    return 0 if outcome.ok else FAILED


def execute(
    pipeline: Pipeline,
    options: Options,
    progress: Progress,
    settings: Mapping[str, str] | None = None,
    spark_log: str | None = None,
) -> Outcome:
    """Open a session, run, stop the session."""
    wanted = {**pipeline.settings(options), **(settings or {})}
    descriptor, log = (
        (None, spark_log) if spark_log else tempfile.mkstemp(prefix=f"tidelog-{pipeline.name}-", suffix=".log")
    )
    if descriptor is not None:
        os.close(descriptor)
    try:
        spark = open_session(f"tidelog {pipeline.name}", wanted, log)
        try:
            outcome = pipeline.run(spark, options, progress)
        finally:
            progress.end()
            with contextlib.suppress(Exception):  # one that is gone cannot be stopped, and the reason is on its way
                spark.stop()
    except (TidelogError, KeyboardInterrupt, OSError):
        raise
    except Exception as error:
        raise PipelineError(f"{reason_of(error)} (Spark's log: {log})") from error
    if spark_log is None:
        Path(log).unlink(missing_ok=True)
    return outcome


def open_session(title: str, settings: Mapping[str, str], log: str) -> SparkSession:
    """A session that knows our formats; the log of the JVM it starts goes to a file."""
    try:
        import pyspark  # noqa: F401 - only to say in one line what is missing
    except ImportError:
        raise PipelineError("needs PySpark: pip install 'tidelog[spark]'") from None
    import tidelog.spark

    with _standard_error_into(log):
        spark = tidelog.spark.session(title, **settings)
    spark.sparkContext.setLogLevel("WARN")
    return spark


@contextlib.contextmanager
def _standard_error_into(log: str) -> Iterator[None]:
    """A process started meanwhile, such as Spark's JVM, keeps the file as its standard error."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(log, "ab") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--conf {text!r} is not NAME=VALUE")
    return name.strip(), value.strip()


class _Parser(argparse.ArgumentParser):
    """One line for a mistake, with the nearest known option."""

    def parse_whole(self, words: Sequence[str]) -> argparse.Namespace:
        arguments, extra = self.parse_known_args(list(words))
        if extra:
            unknown = extra[0].split("=")[0]
            raise ConfigError(f"unknown option {unknown}{nearest(unknown, self._option_string_actions)}")
        return arguments

    def error(self, message: str) -> Any:
        raise ConfigError(message)


def main(pipeline: Pipeline, words: Sequence[str] | None = None) -> int:
    """What spark-submit runs: the file of a pipeline with its options."""
    parser = _Parser(
        prog=f"{pipeline.name}.py",
        description=pipeline.summary[:1].upper() + pipeline.summary[1:] + ".",
        epilog="examples:\n" + pipeline.examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    pipeline.add_to(parser)
    add_common(parser)
    try:
        return run_arguments(pipeline, parser.parse_whole(sys.argv[1:] if words is None else words))
    except ConfigError as error:
        print(f"{pipeline.name}: {error}", file=sys.stderr)
        return USAGE
    except TidelogError as error:
        print(f"{pipeline.name}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
