"""Messages and events in words, for people who watch a script being played."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.sim.network import Message
from tidelog.wire.api_table import ApiKey
from tidelog.wire.batch import iterate_batches

NameOf = Callable[[bytes], str]
SHOWN_ONE_BY_ONE = 8


def describe(message: Message, name_of: NameOf, topic: str, index: int) -> str | None:
    """What a message says about one partition; None when it is not a fetch, or says nothing about it."""
    if message.api_key != ApiKey.FETCH:
        return None
    topics = message.body.topics if message.is_request else message.body.responses
    for one in topics:
        if (one.topic or name_of(one.topic_id)) != topic:
            continue
        for partition in one.partitions:
            found = partition.partition if message.is_request else partition.partition_index
            if found == index:
                return _asked(partition) if message.is_request else _answered(partition)
    return None


def _asked(partition: Any) -> str:
    return f"fetch offset {partition.fetch_offset} epoch {partition.last_fetched_epoch}"


def _answered(partition: Any) -> str:
    if partition.error_code:
        return f"error {ErrorCode(partition.error_code).name}"
    if partition.diverging_epoch is not None and partition.diverging_epoch.epoch >= 0:
        return f"epoch {partition.diverging_epoch.epoch} ends at {partition.diverging_epoch.end_offset}"
    found = [
        (offset, batch.partition_leader_epoch)
        for batch in (iterate_batches(partition.records) if partition.records else ())
        for offset in range(batch.base_offset, batch.last_offset + 1)
    ]
    return f"records {runs(found) or 'none'}, HW {partition.high_watermark}"


def runs(found: Sequence[tuple[int, int]]) -> str:
    """Offsets with their epochs, in short: `0..2@1 3..6@2`."""
    return " ".join(
        f"{first}@{epoch}" if first == last else f"{first}..{last}@{epoch}" for epoch, first, last in epoch_runs(found)
    )


def epoch_runs(found: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(epoch, first offset, last offset) of each stretch of one epoch without a gap."""
    stretches: list[tuple[int, int, int]] = []
    for offset, epoch in found:
        if stretches and stretches[-1][0] == epoch and stretches[-1][2] == offset - 1:
            stretches[-1] = (epoch, stretches[-1][1], offset)
        else:
            stretches.append((epoch, offset, offset))
    return stretches


def tell(kind: str, fields: Mapping[str, Any]) -> str | None:
    """An event as a sentence; None for those that a reader of a script need not see."""
    sentence = _SENTENCES.get(kind)
    if sentence is None:
        return None
    return sentence(fields)


def _numbers(values: Any) -> str:
    return " ".join(map(str, values)) or "nobody"


def _elected(fields: Mapping[str, Any]) -> str:
    how = "uncleanly " if fields["unclean"] else ""
    return (
        f"node {fields['leader']} is {how}elected leader of {fields['topic']}-{fields['partition']}"
        f" with epoch {fields['leader_epoch']} ({fields['reason']})"
    )


def _lost_leader(fields: Mapping[str, Any]) -> str:
    eligible = f"; eligible: {_numbers(fields['elr'])}" if fields["elr"] else ""
    return f"{fields['topic']}-{fields['partition']} has no leader ({fields['reason']}){eligible}"


def _isr(fields: Mapping[str, Any]) -> str:
    eligible = f", ELR {_numbers(fields['elr'])}" if fields["elr"] else ""
    return (
        f"the ISR of {fields['topic']}-{fields['partition']} is {_numbers(fields['isr'])}{eligible}"
        f" ({fields['reason']})"
    )


_SENTENCES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "leader-elected": _elected,
    "leader-lost": _lost_leader,
    "isr-changed": _isr,
    "broker-fenced": lambda fields: f"broker {fields['broker']} is fenced: {fields['reason']}",
    "broker-unfenced": lambda fields: f"broker {fields['broker']} may serve: {fields['reason']}",
    "controller-active": lambda fields: f"node {fields['controller']} is the controller, epoch {fields['epoch']}",
    "controller-suspects-itself": lambda fields: f"the controller suspects itself: {fields['reason']}",
    "log-damaged": lambda fields: f"{fields['topic']}-{fields['partition']} is damaged ({fields['reason']})",
    "damaged-replica-discarded": lambda fields: (
        f"{fields['topic']}-{fields['partition']} is thrown away, to be copied again ({fields['reason']})"
    ),
    "log-truncated": lambda fields: (
        f"{fields['topic']}-{fields['partition']}: cut {fields['records']} record(s) from offset {fields['offset']} on"
        f" ({fields['reason']})"
    ),
    "config-changed": lambda fields: (
        f"settings of {fields['resource']} {fields['name'] or 'default'} changed: "
        + ", ".join(f"{name}={value}" for name, value in fields["changes"].items())
    ),
}
