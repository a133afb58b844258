"""`tidelog format`: prepare the directories of a node."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tidelog.cli.frame import Exit, Parser, add_json, load_config
from tidelog.cli.output import print_json
from tidelog.cli.values import name_and_value
from tidelog.errors import ConfigError, TidelogError

if TYPE_CHECKING:
    from tidelog.config import NodeConfig
    from tidelog.quorum.voters import VoterSet

SUMMARY = "prepare the directories of a node"
EXAMPLES = """\
  tidelog format --config server.properties                              a cluster of one node
  tidelog format --config server.properties --cluster-id ID --initial-controllers \\
      1@host1:9093:DIRECTORY-ID,2@host2:9093:DIRECTORY-ID,3@host3:9093:DIRECTORY-ID
  tidelog format --config broker.properties --cluster-id ID              a broker, or a controller to be added later
  tidelog format --random-uuid                                           print a new id for a cluster or a directory

A directory of another cluster or node is refused and left as it is."""


def configure(parser: Parser) -> None:
    """The options."""
    parser.add_argument("--config", metavar="FILE", help="the node's properties file")
    parser.add_argument("--cluster-id", metavar="ID", help="default: a new one, which is printed")
    voters = parser.add_mutually_exclusive_group()
    voters.add_argument(
        "--standalone",
        action="store_true",
        help="this node is the only voter (the default where no other node is named in the properties file)",
    )
    voters.add_argument(
        "--initial-controllers",
        metavar="ID@HOST:PORT:DIRECTORY-ID,…",
        help="the first voters; the same text on each of them",
    )
    voters.add_argument(
        "--no-initial-controllers", action="store_true", help="not a voter; it learns the voters from the others"
    )
    parser.add_argument(
        "--feature", type=name_and_value, action="append", default=[], metavar="NAME=LEVEL", help="a first level"
    )
    parser.add_argument("--ignore-formatted", action="store_true", help="format only directories that are not yet")
    parser.add_argument("--random-uuid", action="store_true", help="print a new id and do nothing else")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Format, or refuse untouched."""
    from tidelog.controller.bootstrap import format_records
    from tidelog.runtime.formatting import format_node, new_uuid, read_meta_properties
    from tidelog.wire.uuids import to_text

    if arguments.random_uuid:
        identifier = to_text(new_uuid())
        print_json({"uuid": identifier}) if arguments.json else print(identifier)
        return Exit.OK
    if arguments.config is None:
        raise ConfigError("--config FILE is needed")
    config = load_config(arguments.config)
    cluster_id = arguments.cluster_id
    if cluster_id is None:
        # Where one directory has been formatted before, the others belong to the same cluster.
        before = [read_meta_properties(path) for path in (config.metadata_directory, *config.log_dirs)]
        cluster_id = next((meta.cluster_id for meta in before if meta), None) or to_text(new_uuid())
    elif not cluster_id.strip() or any(letter.isspace() for letter in cluster_id):
        raise ConfigError(f"--cluster-id {cluster_id!r} is empty or has blanks in it")
    features = {name: _level(name, text) for name, text in arguments.feature}
    try:
        format_records(features)
    except TidelogError as error:
        raise ConfigError(f"--feature: {error}") from None
    voters = _voters(config, arguments)
    directories = format_node(
        config, cluster_id, voters, features=features, ignore_formatted=arguments.ignore_formatted
    )
    if arguments.json:
        print_json(
            {
                "cluster_id": cluster_id,
                "node_id": config.node_id,
                "directories": [
                    {"path": one.path, "directory_id": to_text(one.directory_id), "formatted": one.is_new}
                    for one in directories
                ],
            }
        )
        return Exit.OK
    for one in directories:
        if one.is_new:
            print(
                f"formatted {one.path}: cluster {cluster_id}, node {config.node_id}, "
                f"directory {to_text(one.directory_id)}"
            )
        else:
            print(f"left {one.path}, which is formatted already")
    return Exit.OK


def _voters(config: NodeConfig, arguments: argparse.Namespace) -> VoterSet | None:
    from tidelog.quorum.bootstrap import initial_controllers
    from tidelog.runtime.formatting import standalone_voters

    chosen = arguments.standalone or arguments.initial_controllers or arguments.no_initial_controllers
    if config.voters:
        if chosen:
            raise ConfigError("controller.quorum.voters names the voters already; leave out the one or the other")
        return None
    if arguments.initial_controllers:
        listener = next(iter(config.controller_listener_names), "CONTROLLER")
        return initial_controllers(arguments.initial_controllers.split(","), listener)
    if arguments.standalone:
        return standalone_voters(config)
    if arguments.no_initial_controllers or not config.is_controller:
        return None
    own = {(entry.host, entry.port) for entry in config.controller_addresses}
    if not own.issuperset(config.quorum_bootstrap_addresses):
        raise ConfigError(
            "the quorum has other nodes: give --initial-controllers, --no-initial-controllers or --standalone"
        )
    return standalone_voters(config)


def _level(name: str, text: str) -> int:
    if not text.isdigit():
        raise ConfigError(f"--feature {name}: {text!r} is not a level")
    return int(text)
