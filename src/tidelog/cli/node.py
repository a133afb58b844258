"""`tidelog node`: one node in the foreground."""

from __future__ import annotations

import argparse

from tidelog.cli.frame import Parser, load_config

SUMMARY = "run one node from a properties file"
EXAMPLES = """\
  tidelog format --config server.properties --standalone
  tidelog node --config server.properties

  # server.properties, with Kafka's names
  node.id=1
  process.roles=broker,controller
  listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
  controller.listener.names=CONTROLLER
  controller.quorum.bootstrap.servers=127.0.0.1:9093
  log.dirs=/var/lib/tidelog

SIGTERM, Ctrl-C and the end of its terminal stop it cleanly: exit code 0. Anything else ends it with another code and a
line that says why."""


def configure(parser: Parser) -> None:
    """The options."""
    parser.add_argument("--config", required=True, metavar="FILE", help="a properties file with Kafka's names")
    parser.add_argument(
        "--log-format", choices=["human", "json"], default="human", help="one line an event, for people or programs"
    )
    parser.add_argument("--json", action="store_const", const="json", dest="log_format", help="--log-format json")


def run(arguments: argparse.Namespace) -> int:
    """Read the settings, then run until told to stop."""
    from tidelog.runtime.process import run_node

    return run_node(load_config(arguments.config), log_format=arguments.log_format)
