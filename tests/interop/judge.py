"""Apache Kafka's DumpLogSegments as a judge of files. It exits 0 whatever it finds: its words are what counts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.interop.toolbox import Toolbox

COMPLAINTS = (
    "Mismatches in",
    " is followed by ",  # under the heading "Non-consecutive offsets"
    "Found .*mismatch",
    "out of order",
    "invalid bytes",
    "isvalid: false",
    "[Cc]orrupt",
    "failed schema validation",
    "Exception",
)
COMPLAINT = re.compile("|".join(COMPLAINTS))
NOT_CONSECUTIVE = re.compile(r"^Non-consecutive offsets in .*?(\d+)\.log$")
DUMPING = re.compile(r"^Dumping (.*)$")
RECORD = re.compile(r"^\| offset: (\d+) ")
FILES_A_RUN = 150


def dump(tools: Toolbox, files: Iterable[Path], *options: str) -> str:
    """What DumpLogSegments says about these files."""
    names = [str(each) for each in files]
    assert names, "nothing to judge"
    said = []
    for start in range(0, len(names), FILES_A_RUN):
        group = ",".join(names[start : start + FILES_A_RUN])
        said.append(tools.run("org.apache.kafka.tools.DumpLogSegments", "--files", group, *options))
    return "\n".join(said)


def complaints(said: str) -> list[str]:
    """The lines of a dump that find fault with a file; a record's own content cannot look like one.

    One complaint of the tool is its own mistake: that the first record of a segment follows offset -1.
    """
    found = []
    base_offset = ""
    for line in said.splitlines():
        if (heading := NOT_CONSECUTIVE.match(line)) is not None:
            base_offset = str(int(heading[1]))
        elif line.strip() == f"-1 is followed by {base_offset}":
            continue
        elif not line.startswith("| offset:") and COMPLAINT.search(line):
            found.append(line)
    return found


def record_offsets(said: str) -> dict[str, list[int]]:
    """From a dump with `--print-data-log`: the offsets of the records in each file."""
    offsets: dict[str, list[int]] = defaultdict(list)
    current = ""
    for line in said.splitlines():
        if (dumping := DUMPING.match(line)) is not None:
            current = dumping[1]
        elif (record := RECORD.match(line)) is not None:
            offsets[current].append(int(record[1]))
    return offsets


def files_of(directory: Path, suffixes: Sequence[str], *, metadata: bool) -> list[Path]:
    """All files with one of these endings, of partitions or of the metadata log; not of what waits to be deleted."""
    return sorted(
        each
        for each in directory.glob("*/*")
        if each.name.endswith(tuple(suffixes))
        and (each.parent.name == "__cluster_metadata-0") is metadata
        and not each.parent.name.endswith("-delete")
    )


def check(said: str) -> None:
    """AssertionError with the complaints, when there are any."""
    found = complaints(said)
    assert not found, "DumpLogSegments complains:\n" + "\n".join(line[:300] for line in found[:20])


def judge_everything(tools: Toolbox, directory: Path) -> dict[str, list[int]]:
    """Judge every file of a data directory the tool can read; the offsets it found in each segment."""
    segments = files_of(directory, [".log"], metadata=False)
    said = dump(tools, segments, "--deep-iteration", "--print-data-log")
    check(said)
    indexes = files_of(directory, [".index", ".timeindex"], metadata=False)
    for options in (("--verify-index-only",), ("--index-sanity-check",)):
        check(dump(tools, indexes, *options))
    producers = files_of(directory, [".snapshot"], metadata=False)
    if producers:
        check(dump(tools, producers))
    metadata = files_of(directory, [".log", ".checkpoint"], metadata=True)
    decoded = dump(tools, metadata, "--cluster-metadata-decoder", "--deep-iteration")
    check(decoded)
    assert '"type":"REGISTER_BROKER_RECORD"' in decoded
    metadata_indexes = files_of(directory, [".index", ".timeindex"], metadata=True)
    for options in (("--verify-index-only",), ("--index-sanity-check",)):
        check(dump(tools, metadata_indexes, *options))
    return record_offsets(said)
