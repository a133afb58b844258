"""`tidelog dump`: stored files, readable."""

from __future__ import annotations

import argparse
import mmap
import os
import re
import sys

from tidelog.cli.dumps import Damage, Reader
from tidelog.cli.frame import Exit, Parser, UsageError
from tidelog.cli.output import print_json

SUMMARY = "show a segment, index, snapshot or checkpoint file"
EXAMPLES = """\
  tidelog dump data/orders-0/00000000000000000000.log
  tidelog dump data/orders-0/*.index data/orders-0/*.timeindex
  tidelog dump data/__cluster_metadata-0/00000000000000000000.log --json
  tidelog dump data/recovery-point-offset-checkpoint data/meta.properties

Knows segments, .index, .timeindex, .txnindex, producer snapshots, the checkpoints of a log directory, leader epochs,
meta.properties, partition.metadata, quorum-state, and the metadata log with its snapshots, whose records are decoded.
Works on files of Apache Kafka as well, and beside a running node. @N is a position in the file. Indexes are held
against the segment beside them. With --json one object a line. Damage is told with its position: exit code 5."""


def configure(parser: Parser) -> None:
    """The options."""
    parser.add_argument("files", metavar="FILE", nargs="+")
    parser.add_argument("--kind", choices=sorted(_KINDS), help="what the files are, when their names do not tell")
    parser.add_argument("--json", action="store_true", help="print a JSON object a line")


def run(arguments: argparse.Namespace) -> int:
    """Show every file; damage in one does not keep the others from being shown."""
    kinds = [(path, arguments.kind or _kind_of(path)) for path in arguments.files]
    is_damaged = False
    for number, (path, kind) in enumerate(kinds):
        if not arguments.json:
            if number:
                print()
            print(f"{path}  ({_KINDS[kind][0]}, {os.path.getsize(path)} bytes)")
        is_damaged |= _show(path, _reader(kind), arguments.json)
    return Exit.DAMAGED if is_damaged else Exit.OK


def _show(path: str, reader: Reader, as_json: bool) -> bool:
    is_damaged = False
    with open(path, "rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.path.getsize(path) else b""
        for item in reader(memoryview(content), path):
            if isinstance(item, Damage):
                is_damaged = True
                if as_json:
                    print_json({"file": path, "damaged_at": item.position, "reason": item.reason})
                sys.stdout.flush()
                line = f"tidelog dump: {path}: damaged at byte {item.position}: {item.reason}"
                print(line, file=sys.stderr, flush=True)
            elif as_json:
                print_json({"file": path, **item.fields})
            else:
                print("  " + item.text.replace("\n", "\n  "))
    return is_damaged


_KINDS = {
    "segment": ("segment", "segment", "read_segment"),
    "metadata-snapshot": ("metadata snapshot", "segment", "read_segment"),
    "index": ("offset index", "indexes", "read_offset_index"),
    "timeindex": ("time index", "indexes", "read_time_index"),
    "txnindex": ("index of aborted transactions", "indexes", "read_transaction_index"),
    "snapshot": ("producer snapshot", "small", "read_producer_snapshot"),
    "checkpoint": ("offset checkpoint", "small", "read_offset_checkpoint"),
    "epochs": ("leader epochs", "small", "read_epoch_checkpoint"),
    "properties": ("properties", "small", "read_properties"),
    "json": ("JSON", "small", "read_json"),
}
"""What people call a kind, and the module and function that read it."""
_NAMES = [
    (r"\d{20}\.log", "segment"),
    (r"\d{20}\.index", "index"),
    (r"\d{20}\.timeindex", "timeindex"),
    (r"\d{20}\.txnindex", "txnindex"),
    (r"\d{20}\.snapshot", "snapshot"),
    (r"\d{20}-\d{10}\.checkpoint|bootstrap\.checkpoint", "metadata-snapshot"),
    (r"leader-epoch-checkpoint", "epochs"),
    (r"(replication-offset|recovery-point-offset|log-start-offset|cleaner-offset)-checkpoint", "checkpoint"),
    (r"meta\.properties|partition\.metadata", "properties"),
    (r"quorum-state|\.kafka_cleanshutdown|\.tidelog-registered", "json"),
]
_ON_THE_WAY = r"(\.(deleted|swap|cleaned|tmp|part))?"
"""Files that are being made or removed keep their kind."""


def _kind_of(path: str) -> str:
    if os.path.isdir(path):
        raise UsageError(f"tidelog dump: {path} is a directory; name the files in it")
    if not os.path.exists(path):
        raise UsageError(f"tidelog dump: there is no file {path}")
    name = os.path.basename(path)
    for pattern, kind in _NAMES:
        if re.fullmatch(f"({pattern}){_ON_THE_WAY}", name):
            return kind
    raise UsageError(f"tidelog dump: {path}: its name does not tell what it is; say it with --kind")


def _reader(kind: str) -> Reader:
    from importlib import import_module

    _, module, function = _KINDS[kind]
    reader: Reader = getattr(import_module(f"tidelog.cli.dumps.{module}"), function)
    return reader
