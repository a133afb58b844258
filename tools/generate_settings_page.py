"""Write docs/settings.md from the settings themselves; `--check` only says whether the page is current.

A setting that no code outside tidelog.config reads is marked, so that the page never promises what is not there.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tidelog.config.group import GroupConfig
from tidelog.config.node import NodeConfig
from tidelog.config.others import (
    REFUSED,
    REFUSED_PREFIXES,
    TOPIC_WITHOUT_EFFECT,
    WITHOUT_EFFECT,
    WITHOUT_EFFECT_PREFIXES,
    explained,
)
from tidelog.config.setting import INT32_MAX, INT64_MAX, Kind, Scope, Setting
from tidelog.config.topic import TopicConfig

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
SOURCE = ROOT / "src" / "tidelog"
SETTINGS_MODULES = (SOURCE / "config" / "node_settings.py", SOURCE / "config" / "coordinator_settings.py")

UNUSED = " ○"

HEAD = """# Settings

<!-- Made by `make docs` from src/tidelog/config; a test fails when this page is not current. -->

Names, types, defaults and ranges are those of Apache Kafka 4.3, so a Kafka properties file works as it is. Where
Tidelog differs, the line says so, with Kafka's default beside ours. An unknown name is refused with the nearest known
one, a value outside its range with the range; nothing is half-applied.

- **node**: in the properties file (`tidelog node --config FILE`, or `--set name=value` of `tidelog up`), fixed until
  the next start.
- **dynamic**: the same, and changed at run time for one broker or for all (`tidelog configs alter`, or any Kafka admin
  client).
- **topic**: on a topic; what is not given there comes from the broker's setting named in the last column.
- **group**: on a consumer group (KIP-848), the same.
- **○** marks a setting that is read and checked but that nothing uses; the line says what happens instead. A node that
  starts with another value than the default warns of it.
"""

DEFAULTS = {INT32_MAX: "2^31 - 1", INT64_MAX: "2^63 - 1"}


@cache
def attributes_read() -> frozenset[str]:
    """Every attribute name read anywhere in the product outside the settings themselves."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        if (SOURCE / "config") not in path.parents:
            found.update(re.findall(r"\.([a-z_0-9]+)\b", path.read_text(encoding="utf-8")))
    return frozenset(found)


# What the code reads under another name: a method of NodeConfig that says what follows from a setting, or a setting
# that it decides or bounds.
READ_THROUGH = {
    "advertised.listeners": "advertised_addresses",
    "broker.rack": "broker_rack",
    "controller.listener.names": "controller_addresses",
    "controller.quorum.bootstrap.servers": "quorum_bootstrap_addresses",
    "controller.quorum.voters": "voters",
    "group.consumer.max.assignment.interval.ms": "consumer_assignment_interval_ms",
    "group.consumer.max.heartbeat.interval.ms": "consumer_heartbeat_interval_ms",
    "group.consumer.max.session.timeout.ms": "consumer_session_timeout_ms",
    "group.consumer.min.assignment.interval.ms": "consumer_assignment_interval_ms",
    "group.consumer.min.heartbeat.interval.ms": "consumer_heartbeat_interval_ms",
    "group.consumer.min.session.timeout.ms": "consumer_session_timeout_ms",
    "inter.broker.listener.name": "inter_broker_listener",
    "internal.segment.bytes": "segment_bytes",
    "listener.security.protocol.map": "from_properties",
    "listeners": "listener_addresses",
    "log.dir": "log_dirs",
    "metadata.log.dir": "metadata_directory",
    "peer.address.overrides": "peer_addresses",
    "process.roles": "is_broker",
    "security.inter.broker.protocol": "from_properties",
    "transaction.two.phase.commit.enable": "from_properties",
}


def is_used(setting: Setting) -> bool:
    """Whether some code reads the setting, itself or as the broker's side of a topic setting."""
    read = attributes_read()
    if setting.attribute in read or READ_THROUGH.get(setting.name) in read:
        return True
    if setting.name == "cleanup.policy" and {"is_compacted", "is_deleted_by_retention"} & read:
        return True
    if setting.scope in (Scope.TOPIC, Scope.GROUP):
        return False
    others = (*TopicConfig.SETTINGS.values(), *GroupConfig.SETTINGS.values())
    return any(setting.name in other.synonyms and is_used(other) for other in others)


def default_text(setting: Setting) -> str:
    """The default as the table shows it."""
    if setting.default is None:
        shown = "not set"
    elif setting.default in ((), ""):
        shown = "empty"
    elif setting.name == "node.id":
        shown = "none, must be set"
    elif isinstance(setting.default, int) and setting.default in DEFAULTS and setting.kind is not Kind.BOOLEAN:
        shown = DEFAULTS[setting.default]
    else:
        shown = f"`{setting.format(setting.default)}`"
    if setting.kafka_default is not None:
        shown += f" (Kafka: `{setting.kafka_default}`)"
    return shown


def allowed_text(setting: Setting) -> str:
    """The range as the table shows it."""
    text = setting.allowed
    for value, words in ((str(INT32_MAX), ""), (str(INT64_MAX), "")):
        text = text.replace(f" to {value}", f" or more{words}")
    return text


def row(setting: Setting) -> str:
    """One line of a table."""
    marks = "" if is_used(setting) else UNUSED
    doc = explained(setting)
    if setting.ours:
        doc = "*Tidelog's own.* " + doc
    if setting.internal:
        doc = "*Internal.* " + doc
    falls_back = setting.scope in (Scope.TOPIC, Scope.GROUP)
    last = ", ".join(f"`{name}`" for name in setting.synonyms) if falls_back else setting.scope.value
    cells = [
        f"`{setting.name}`{marks}",
        setting.kind.name.lower(),
        default_text(setting),
        allowed_text(setting),
        doc,
        last,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def sections() -> dict[str, list[Setting]]:
    """The node's settings under the headings their lines stand under in the source."""
    found: dict[str, list[Setting]] = {}
    heading = ""
    known = {setting.attribute: setting for setting in NodeConfig.SETTINGS.values()}
    for line in (line for module in SETTINGS_MODULES for line in module.read_text(encoding="utf-8").splitlines()):
        if match := re.match(r"    # --- (.+) ---$", line):
            heading = match.group(1)
        elif (match := re.match(r"    ([a-z_0-9]+): ", line)) and match.group(1) in known:
            found.setdefault(heading, []).append(known[match.group(1)])
    return found


def table(settings: Iterable[Setting], last: str) -> list[str]:
    """A table of settings."""
    head = f"| name | type | default | allowed | meaning | {last} |"
    return [head, "|---|---|---|---|---|---|", *(row(setting) for setting in settings), ""]


def page() -> str:
    """The whole page."""
    lines = [HEAD, "## Nodes", ""]
    for heading, settings in sections().items():
        lines += [f"### {heading[0].upper()}{heading[1:]}", "", *table(settings, "scope")]
    lines += ["## Topics", "", *table(TopicConfig.SETTINGS.values(), "falls back to")]
    lines += ["## Groups", "", *table(GroupConfig.SETTINGS.values(), "falls back to")]
    lines += ["## Accepted and without effect", "", "They are checked, so that a slip is found, and then not used.", ""]
    lines += ["| name | why |", "|---|---|"]
    others = [*WITHOUT_EFFECT.values(), *TOPIC_WITHOUT_EFFECT.values()]
    lines += [f"| `{setting.name}` | {setting.doc} |" for setting in others]
    lines += [f"| `{prefix}…` | {why} |" for prefix, why in WITHOUT_EFFECT_PREFIXES]
    lines += ["| `broker.id` | The old name of `node.id`; where both are given they must be the same. |", ""]
    lines += ["## Refused", ""]
    lines += ["They promise what Tidelog does not do; a node that ignored them would be a trap.", ""]
    lines += ["| name | unless it is | why |", "|---|---|---|"]
    for name, (accepted, reason) in sorted(REFUSED.items()):
        lines.append(f"| `{name}` | {', '.join(text or 'empty' for text in accepted)} | {reason} |")
    lines += [f"| `{prefix}…` | | {reason} |" for prefix, reason in REFUSED_PREFIXES]
    return "\n".join(lines) + "\n"


def is_current(written: str) -> bool:
    """Whether a page tells no more than is true: a mark that is no longer needed is modest, not wrong."""
    lines, wanted = written.splitlines(), page().splitlines()
    return len(lines) == len(wanted) and all(
        line in (new, new.replace("` |", f"`{UNUSED} |", 1)) for line, new in zip(lines, wanted, strict=True)
    )


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when the page is not current")
    if parser.parse_args().check:
        if not PAGE.exists() or not is_current(PAGE.read_text(encoding="utf-8")):
            raise SystemExit("docs/settings.md is not current: run make docs")
        return
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
