"""Write tidelog.wire's message classes from the message descriptions inside Apache Kafka's jars.

    python tools/generate_messages.py DIRECTORY_OF_KAFKA_JARS [--output src/tidelog/wire]

Run it again for a new Kafka version: `TAKEN_APIS` and `TAKEN_RECORDS` below say what is taken, the jars say the rest.
No text of the descriptions is copied, only names, types, versions, defaults and tags.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

TAKEN_APIS = """
Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat LeaveGroup SyncGroup
DescribeGroups ListGroups ApiVersions CreateTopics DeleteTopics DeleteRecords InitProducerId OffsetForLeaderEpoch
AddPartitionsToTxn AddOffsetsToTxn EndTxn WriteTxnMarkers TxnOffsetCommit DescribeConfigs AlterConfigs
AlterReplicaLogDirs DescribeLogDirs CreatePartitions DeleteGroups ElectLeaders IncrementalAlterConfigs
AlterPartitionReassignments ListPartitionReassignments OffsetDelete Vote BeginQuorumEpoch EndQuorumEpoch DescribeQuorum
AlterPartition UpdateFeatures Envelope FetchSnapshot DescribeCluster DescribeProducers BrokerRegistration
BrokerHeartbeat UnregisterBroker DescribeTransactions ListTransactions AllocateProducerIds ConsumerGroupHeartbeat
ConsumerGroupDescribe ControllerRegistration AssignReplicasToDirs DescribeTopicPartitions AddRaftVoter RemoveRaftVoter
UpdateRaftVoter
"""
API_NAMES = TAKEN_APIS.split()

TAKEN_RECORDS = """
LeaderChangeMessage SnapshotHeaderRecord SnapshotFooterRecord KRaftVersionRecord VotersRecord EndTxnMarker
ControlRecordTypeSchema QuorumStateData ConsumerProtocolSubscription ConsumerProtocolAssignment
"""
# Control records and other stored structures; metadata and coordinator records are found by their type instead.
RECORD_MESSAGES = TAKEN_RECORDS.split()

OWN_TAG = 10_000
# Tagged fields of our own, far from Kafka's: whoever does not know a tag passes over it (KIP-482).
OWN_FIELDS: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("AlterPartitionRequest", "PartitionData"): [
        {"name": "Reason", "type": "string", "versions": "2+", "taggedVersions": "2+", "tag": OWN_TAG, "default": ""}
    ],
}

SKIPPED_COORDINATOR_RECORDS = ("Share", "StreamsGroup")
MAX_VERSION = 32767
PYTHON_TYPES = {
    "bool": "bool",
    "int8": "int",
    "int16": "int",
    "uint16": "int",
    "int32": "int",
    "uint32": "int",
    "int64": "int",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "uuid": "bytes",
    "records": "Records",
}


def snake_case(name: str) -> str:
    """From timeoutMs and TimeoutMs to timeout_ms, and from KRaftVersion to kraft_version."""
    name = name.replace("KRaft", "Kraft")
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()


def parse_versions(text: str) -> tuple[int, int] | None:
    """(first, last), or None for "none"; an open end is MAX_VERSION."""
    if text in ("", "none"):
        return None
    if text.endswith("+"):
        return int(text[:-1]), MAX_VERSION
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def compact_versions(text: str) -> str:
    """The notation of the field tables: "" for none, else as Kafka writes it."""
    return "" if text in ("", "none") else text


def read_descriptions(jars: Path) -> dict[str, dict[str, Any]]:
    """Every message description of the jars, by message name."""
    descriptions: dict[str, dict[str, Any]] = {}
    for jar in sorted(jars.glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if not re.fullmatch(r"common/(message|metadata)/\w+\.json", entry):
                    continue
                text = archive.read(entry).decode()
                description = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
                if "fields" in description:
                    descriptions[description["name"]] = description
    for (message, struct), fields in OWN_FIELDS.items():
        if message in descriptions:
            _fields_of(descriptions[message]["fields"], struct).extend(fields)
    return descriptions


def _fields_of(fields: list[dict[str, Any]], struct: str) -> list[dict[str, Any]]:
    """The fields of a structure nested in others."""
    for field in fields:
        inner: list[dict[str, Any]] = field.get("fields", [])
        found = inner if field["type"].removeprefix("[]") == struct else _fields_of(inner, struct)
        if found:
            return found
    return []


class Struct:
    """One class to be written: a message, or a structure nested in one."""

    def __init__(self, name: str, origin: str, fields: list[dict[str, Any]], top: dict[str, Any] | None) -> None:
        self.name = name
        self.python_name = name
        self.origin = origin
        self.fields = fields
        self.top = top


def collect_structs(description: dict[str, Any]) -> list[Struct]:
    """The structures of one message, inner ones before those that use them, the message itself last."""
    name = description["name"]
    common = {struct["name"]: struct["fields"] for struct in description.get("commonStructs", [])}
    structs: dict[str, Struct] = {}

    def visit(fields: list[dict[str, Any]], owner: str) -> None:
        for field in fields:
            element = field["type"].removeprefix("[]")
            if element in PYTHON_TYPES or element in structs:
                continue
            inner = field.get("fields") or common[element]
            visit(inner, element)
            structs[element] = Struct(element, f"{owner}.{snake_case(field['name'])}", inner, None)

    visit(description["fields"], name)
    return [*structs.values(), Struct(name, name, description["fields"], description)]


class Module:
    """One generated file: one API's request and response, or one record (a key and its value together)."""

    def __init__(self, descriptions: list[dict[str, Any]]) -> None:
        self.structs: list[tuple[dict[str, Any], list[Struct]]] = []
        taken: dict[str, int] = {}
        for description in descriptions:
            structs = collect_structs(description)
            self.structs.append((description, structs))
            for struct in structs:
                taken[struct.name] = taken.get(struct.name, 0) + 1
        for description, structs in self.structs:
            for struct in structs:
                if taken[struct.name] > 1:
                    struct.python_name = description["name"] + struct.name

    def render(self) -> str:
        """The module's source."""
        body: list[str] = []
        for description, structs in self.structs:
            names = {struct.name: struct.python_name for struct in structs}
            for struct in structs:
                body += render_struct(struct, names, description)
        text = "\n".join(body)
        used = [
            name
            for name in ("EMPTY", "EMPTY_STRUCT", "ZERO_UUID", "Field", "Message", "Records")
            if re.search(rf"\b{name}\b", text)
        ]
        titles = " and ".join(description["name"] for description, _ in self.structs)
        head = [
            f'"""{titles}.\n\nWritten by tools/generate_messages.py: change that, not this.\n"""',
            "",
            "from __future__ import annotations",
            "",
            "from typing import ClassVar",
            "",
            f"from tidelog.wire.message import {', '.join(used)}",
            "",
        ]
        return "\n".join(head) + "\n" + text + "\n"


def python_default(field: dict[str, Any], names: dict[str, str]) -> str:
    """The default of a field as an expression for the field table; Kafka reads a JSON null as no default at all."""
    kind = field["type"]
    given = field.get("default")
    text = "" if given is None else str(given)
    if text == "null":
        return "None"
    if kind.startswith("[]"):
        return "()"
    if kind == "bool":
        return "True" if text.lower() == "true" else "False"
    if kind == "string":
        return repr(text).replace("'", '"')
    if kind == "uuid":
        return "ZERO_UUID"
    if kind == "bytes":
        return 'b""'
    if kind == "records":
        return "None"
    if kind == "float64":
        return repr(float(text or "0"))
    if kind in PYTHON_TYPES:
        return str(int(text or "0", 0))
    return names[kind]


def python_annotation(field: dict[str, Any], names: dict[str, str]) -> str:
    """The attribute's type. A tagged structure that is not nullable is None when it has Kafka's default."""
    kind = field["type"]
    element = kind.removeprefix("[]")
    annotation = PYTHON_TYPES.get(element) or names[element]
    if kind.startswith("[]"):
        annotation = f"list[{annotation}]"
    nullable = parse_versions(field.get("nullableVersions", "none")) is not None or field.get("default") == "null"
    if kind != "records" and (nullable or absent_as_none(field)):
        annotation += " | None"
    return annotation


def is_struct(field: dict[str, Any]) -> bool:
    """Whether the field holds one nested structure (not a list of them)."""
    return not field["type"].startswith("[]") and field["type"] not in PYTHON_TYPES


def absent_as_none(field: dict[str, Any]) -> bool:
    """A tagged structure that cannot be null: None stands for Kafka's default, which is not sent."""
    return is_struct(field) and "tag" in field and "nullableVersions" not in field


def render_struct(struct: Struct, names: dict[str, str], description: dict[str, Any]) -> list[str]:
    """The lines of one class."""
    arguments: list[str] = []
    assignments: list[str] = []
    table: list[str] = []
    attributes: list[str] = []
    for field in struct.fields:
        name = snake_case(field["name"])
        attributes.append(name)
        kind = field["type"]
        element = kind.removeprefix("[]")
        default = python_default(field, names)
        annotation = python_annotation(field, names)
        argument_default, value = default, name
        if default == "()":
            argument_default, value = "EMPTY", f"[] if {name} is EMPTY else {name}"
        elif is_struct(field) and default != "None":
            argument_default = "None"
            if not absent_as_none(field):
                value = f"{default}() if {name} is None else {name}"
                if "nullableVersions" in field:
                    argument_default, value = "EMPTY_STRUCT", f"{default}() if {name} is EMPTY_STRUCT else {name}"
        if is_struct(field) and argument_default == "None" and not annotation.endswith("| None"):
            arguments.append(f"        {name}: {annotation} | None = None,")
        else:
            arguments.append(f"        {name}: {annotation} = {argument_default},")
        assignments.append(f"        self.{name} = {value}")
        if element in PYTHON_TYPES:
            table_type = f'"{kind}"'
        else:
            table_type = f"({names[element]},)" if kind.startswith("[]") else names[element]
        flexible = field.get("flexibleVersions")
        row = [
            f'"{name}"',
            table_type,
            f'"{compact_versions(field.get("versions", field.get("taggedVersions", "")))}"',
            f'"{compact_versions(field.get("nullableVersions", ""))}"',
            str(field.get("tag", -1)),
            f'"{compact_versions(field.get("taggedVersions", ""))}"',
            default,
            "None" if flexible is None else f'"{compact_versions(flexible)}"',
        ]
        table.append(f"        ({', '.join(row)}),")
    lines = ["", f"class {struct.python_name}(Message):"]
    if struct.top is None:
        lines.append(f'    """What {struct.origin} holds."""')
    else:
        lines.append(f'    """Kafka\'s {struct.name}, versions {struct.top["validVersions"]}."""')
    slots = ", ".join(f'"{name}"' for name in sorted(attributes))
    lines += ["", f"    __slots__ = ({slots}{',' if len(attributes) == 1 else ''})"]
    if struct.top is not None:
        first, last = parse_versions(struct.top["validVersions"]) or (0, 0)
        lines.append(f"    VERSIONS: ClassVar[tuple[int, int]] = ({first}, {last})")
        lines.append(f'    FLEXIBLE_VERSIONS: ClassVar[str] = "{compact_versions(struct.top["flexibleVersions"])}"')
        if "apiKey" in struct.top:
            lines.append(f"    API_KEY: ClassVar[int] = {struct.top['apiKey']}")
    lines += ["    FIELDS: ClassVar[tuple[Field, ...]] = (", *table, "    )"]
    if struct.fields:
        lines += ["", "    def __init__(", "        self,", "        *,", *arguments, "    ) -> None:", *assignments]
    lines.append("")
    return lines


def render_api_table(descriptions: dict[str, dict[str, Any]]) -> str:
    """wire/api_table.py: what is known of each API without importing its messages."""
    keys: list[str] = []
    rows: list[str] = []
    for name in sorted(API_NAMES, key=lambda name: int(descriptions[name + "Request"]["apiKey"])):
        request, response = descriptions[name + "Request"], descriptions[name + "Response"]
        first, last = parse_versions(request["validVersions"]) or (0, -1)
        if request.get("latestVersionUnstable"):
            last -= 1
        flexible_request = (parse_versions(request["flexibleVersions"]) or (MAX_VERSION, 0))[0]
        flexible_response = (parse_versions(response["flexibleVersions"]) or (MAX_VERSION, 0))[0]
        listeners = ", ".join(f'"{listener}"' for listener in sorted(request.get("listeners", [])))
        listeners = f"({listeners},)" if listeners else "()"
        keys.append(f"    {snake_case(name).upper()} = {request['apiKey']}")
        rows.append(
            f'    {request["apiKey"]}: ("{name}", "{snake_case(name)}", {first}, {last}, '
            f"{flexible_request}, {flexible_response}, {listeners}),"
        )
    return "\n".join(
        [
            '"""Every API, written by tools/generate_messages.py: change that, not this."""',
            "",
            "from __future__ import annotations",
            "",
            "from enum import IntEnum",
            "",
            "",
            "class ApiKey(IntEnum):",
            '    """The number of a request, as it stands in its header."""',
            "",
            *keys,
            "",
            "",
            "API_TABLE: dict[int, tuple[str, str, int, int, int, int, tuple[str, ...]]] = {",
            *rows,
            "}",
            '"""Name, module, first and last stable version, first flexible one of each, listeners."""',
            "",
        ]
    )


def render_record_table(metadata: dict[int, str], group: dict[int, str], transaction: dict[int, str]) -> str:
    """wire/record_table.py: which class a stored record's type number means."""

    def rows(table: dict[int, str], suffixes: tuple[str, ...]) -> list[str]:
        lines = []
        for key, name in sorted(table.items()):
            classes = ", ".join(f'"{name}{suffix}"' for suffix in suffixes)
            lines.append(f'    {key}: ("{snake_case(name)}", {classes}),')
        return lines

    return "\n".join(
        [
            '"""Every stored record\'s number, written by tools/generate_messages.py: change that, not this."""',
            "",
            "from __future__ import annotations",
            "",
            "METADATA_RECORDS: dict[int, tuple[str, str]] = {",
            *rows(metadata, ("",)),
            "}",
            '"""Record type of `__cluster_metadata`: module in wire.records, class."""',
            "",
            "GROUP_RECORDS: dict[int, tuple[str, str, str]] = {",
            *rows(group, ("Key", "Value")),
            "}",
            '"""Record type of `__consumer_offsets` (the number before its key): module, key and value class."""',
            "",
            "TRANSACTION_RECORDS: dict[int, tuple[str, str, str]] = {",
            *rows(transaction, ("Key", "Value")),
            "}",
            '"""Record type of `__transaction_state` (the number before its key): module, key and value class."""',
            "",
        ]
    )


def write_all(jars: Path, output: Path) -> list[Path]:
    """Write every module; files of messages that no longer exist are removed."""
    descriptions = read_descriptions(jars)
    files: dict[Path, str] = {}
    for name in API_NAMES:
        module = Module([descriptions[name + "Request"], descriptions[name + "Response"]])
        files[output / "messages" / f"{snake_case(name)}.py"] = module.render()
    headers = Module([descriptions["RequestHeader"], descriptions["ResponseHeader"]])
    files[output / "messages" / "header.py"] = headers.render()
    for name in RECORD_MESSAGES:
        files[output / "records" / f"{snake_case(name)}.py"] = Module([descriptions[name]]).render()
    metadata: dict[int, str] = {}
    tables: dict[str, dict[int, str]] = {"group": {}, "transaction": {}}
    for name, description in descriptions.items():
        if description["type"] == "metadata":
            metadata[description["apiKey"]] = name
            files[output / "records" / f"{snake_case(name)}.py"] = Module([description]).render()
        elif description["type"] == "coordinator-key":
            stem = name.removesuffix("Key")
            if stem.startswith(SKIPPED_COORDINATOR_RECORDS) or stem + "Value" not in descriptions:
                continue
            tables["transaction" if stem == "TransactionLog" else "group"][description["apiKey"]] = stem
            module = Module([description, descriptions[stem + "Value"]])
            files[output / "records" / f"{snake_case(stem)}.py"] = module.render()
    files[output / "api_table.py"] = render_api_table(descriptions)
    files[output / "record_table.py"] = render_record_table(metadata, tables["group"], tables["transaction"])
    for folder in ("messages", "records"):
        for old in (output / folder).glob("*.py"):
            if old not in files and old.name != "__init__.py":
                old.unlink()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return sorted(files)


def main() -> int:
    """Generate, then format, so that the result is stable under the project's own style."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("jars", type=Path, help="a directory with Apache Kafka's jars")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent.parent / "src" / "tidelog" / "wire")
    arguments = parser.parse_args()
    written = write_all(arguments.jars, arguments.output)
    ruff = Path(sys.executable).with_name("ruff")
    command = str(ruff) if ruff.exists() else shutil.which("ruff")
    if command is None:
        sys.exit("the files are written but not formatted: ruff is not installed")
    names = [str(path) for path in written]
    subprocess.run([command, "format", "--quiet", "--line-length", "120", *names], check=True)
    print(f"{len(written)} files in {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
