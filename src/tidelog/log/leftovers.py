"""What a stop may have left in a log's directory: files half deleted, half compacted, or without their segment."""

from __future__ import annotations

from tidelog.errors import CorruptionError
from tidelog.log import names, scan
from tidelog.storage import Storage


class Found:
    """What a directory holds once it is tidy."""

    __slots__ = ("segments", "snapshot_offsets")

    def __init__(self, segments: list[tuple[int, bool]], snapshot_offsets: list[int]) -> None:
        self.segments = segments
        """Base offset of each, and whether it has a transaction index; in order."""
        self.snapshot_offsets = snapshot_offsets


def tidy(storage: Storage, directory: str) -> Found:
    """Finish or undo what was under way, delete what has no use, and say what is there."""
    files: dict[str, tuple[int, str]] = {}
    swaps: dict[str, tuple[int, str]] = {}
    cleaned: list[tuple[int, str]] = []
    for name in storage.list(directory):
        parsed = names.parse_file_name(name)
        if name.endswith(names.DELETED_SUFFIX) and not name.endswith(names.METADATA_SNAPSHOT_DELETED_SUFFIX):
            storage.delete(f"{directory}/{name}")
        elif parsed is None:
            continue
        elif name.endswith(names.CLEANED_SUFFIX):
            cleaned.append((parsed[0], name))
        elif name.endswith(names.SWAP_SUFFIX):
            swaps[name] = parsed
        else:
            files[name] = parsed
    _drop_unfinished(storage, directory, cleaned, swaps)
    _finish_swaps(storage, directory, swaps, files)
    by_suffix: dict[str, set[int]] = {}
    for offset, suffix in files.values():
        by_suffix.setdefault(suffix, set()).add(offset)
    base_offsets = by_suffix.get(names.LOG_SUFFIX, set())
    for suffix in names.SEGMENT_SUFFIXES[1:]:
        for orphan in by_suffix.get(suffix, set()) - base_offsets:
            storage.delete(f"{directory}/{names.file_name(orphan, suffix)}")
    with_txn_index = by_suffix.get(names.TXN_INDEX_SUFFIX, set())
    return Found(
        [(offset, offset in with_txn_index) for offset in sorted(base_offsets)],
        sorted(by_suffix.get(names.SNAPSHOT_SUFFIX, ())),
    )


def _drop_unfinished(
    storage: Storage, directory: str, cleaned: list[tuple[int, str]], swaps: dict[str, tuple[int, str]]
) -> None:
    """A `.cleaned` file was still being written, and so was every `.swap` of a split from there on (KAFKA-6264)."""
    if not cleaned:
        return
    first = min(offset for offset, _ in cleaned)
    for name in [name for name, (offset, _) in swaps.items() if offset >= first]:
        storage.delete(f"{directory}/{name}")
        del swaps[name]
    for _, name in cleaned:
        storage.delete(f"{directory}/{name}")


def _finish_swaps(
    storage: Storage, directory: str, swaps: dict[str, tuple[int, str]], files: dict[str, tuple[int, str]]
) -> None:
    """A `.swap` is complete: what it was made from goes, and it takes its name."""
    log_swaps = [(name, offset) for name, (offset, suffix) in swaps.items() if suffix.startswith(names.LOG_SUFFIX)]
    if log_swaps:
        first = min(offset for _, offset in log_swaps)
        end = max(_end_offset(storage, f"{directory}/{name}", offset) for name, offset in log_swaps)
        for name in [name for name, (offset, _) in files.items() if first <= offset < end]:
            storage.delete(f"{directory}/{name}")
            del files[name]
    for name, (offset, suffix) in swaps.items():
        target = name.removesuffix(names.SWAP_SUFFIX)
        storage.rename(f"{directory}/{name}", f"{directory}/{target}")
        files[target] = (offset, suffix.removesuffix(names.SWAP_SUFFIX))


def _end_offset(storage: Storage, path: str, base_offset: int) -> int:
    file = storage.open(path)
    end_offset = base_offset
    try:
        for _, header in scan.headers(file, 0, file.size, scan.WALK_BYTES):
            end_offset = header.next_offset
    except CorruptionError:
        pass  # flushed before it was named so: what follows its last whole batch is for recovery to judge
    finally:
        file.close()
    return end_offset
