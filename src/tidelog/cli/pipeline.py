"""`tidelog pipeline`: whole jobs on Spark, one subcommand each, made from the pipelines' own declarations."""

from __future__ import annotations

import argparse
from functools import partial

from tidelog.cli.frame import Exit, Parser, add_json
from tidelog.cli.output import print_json
from tidelog.spark.pipelines import NAMES, jars, load
from tidelog.spark.pipelines.launch import add_common, run_arguments

SUMMARY = "run a job on Spark: land, audit, compare replicas, draw a timeline, mirror"
EXAMPLES = """\
  tidelog pipeline land --topics orders --path ./lake --once
  tidelog pipeline audit --ledger ./ledger --topics orders --lake ./lake --report audit.html
  tidelog pipeline replicas --dir ./data --topics orders
  tidelog pipeline timeline --report timeline.html
  tidelog pipeline mirror --bootstrap old:9092 --to new:9092 --topics orders --checkpoint ./mirror
  tidelog pipeline fetch                    once, for Delta and Avro: bring their jars

They run on this machine (local[*]) unless --master names a Spark cluster; spark-submit takes their files, too."""


def configure(parser: Parser) -> None:
    """One subcommand a pipeline."""
    commands = parser.add_commands()
    for name in NAMES:
        pipeline = load(name)
        command = commands.add(name, pipeline.summary, pipeline.examples, partial(run_arguments, pipeline))
        pipeline.add_to(command)
        add_common(command)
    fetching = commands.add(
        "fetch",
        "bring the jars of Delta and Avro, once",
        "  tidelog pipeline fetch\n  spark-submit --jars $(tidelog pipeline fetch) land.py --topics orders --path lake",
        _fetch,
    )
    add_json(fetching)


def _fetch(arguments: argparse.Namespace) -> int:
    found = [str(jar) for jar in jars.fetch((*jars.DELTA, *jars.AVRO), jars.directory())]
    if arguments.json:
        print_json({"jars": found})
    else:
        print(",".join(found))
    return Exit.OK
