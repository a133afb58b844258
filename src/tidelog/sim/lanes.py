"""The replicas of a partition as lanes: who leads, what each holds, and how far is committed."""

from __future__ import annotations

from typing import Any

from tidelog.sim.stage import GroupPositions, PartitionView, ReplicaView
from tidelog.sim.wording import SHOWN_ONE_BY_ONE, epoch_runs


def committed(high_watermark: int | None) -> str:
    """The watermark as the protocol and as people say it: `HW 3 (committed through 2)`."""
    if high_watermark is None:
        return "HW unknown"
    return (
        f"HW {high_watermark} ({f'committed through {high_watermark - 1}' if high_watermark else 'nothing committed'})"
    )


def contents(lane: ReplicaView) -> str:
    """The offsets of a lane, by epoch: `epoch 1 [0 1 2] epoch 2 [3..60]`."""
    parts = []
    for epoch, first, last in epoch_runs([(one.offset, one.epoch) for one in lane.records]):
        if last - first < SHOWN_ONE_BY_ONE:
            offsets = " ".join(map(str, range(first, last + 1)))
        else:
            offsets = f"{first}..{last}"
        parts.append(f"epoch {epoch} [{offsets}]")
    return " ".join(parts) or "empty"


def text(view: PartitionView) -> list[str]:
    """The lanes as lines, in the order of the replicas."""
    leader = f"leader {view.leader}" if view.leader >= 0 else "no leader"
    isr = " ".join(map(str, sorted(view.isr))) or "empty"
    eligible = f", ELR {' '.join(map(str, view.eligible))}" if view.eligible else ""
    lines = [f"{view.topic}-{view.index}: {leader}, epoch {view.leader_epoch}, ISR {isr}{eligible}"]
    names = max(len(str(one.node_id)) for one in view.lanes)
    states = max(len(one.state) for one in view.lanes)
    held = max(len(contents(one)) for one in view.lanes)
    lines += [
        f"  {one.node_id:>{names}}  {one.state:<{states}}  {contents(one):<{held}}  {committed(one.high_watermark)}"
        for one in view.lanes
    ]
    return lines


def lags(found: GroupPositions) -> tuple[str, str, str]:
    """How far the committed and the current offset are behind the watermark, and the watermark behind the log end."""

    def behind(end: int | None, offset: int | None) -> str:
        return "unknown" if end is None or offset is None else str(end - offset)

    watermark = found.high_watermark
    return behind(watermark, found.committed), behind(watermark, found.current), behind(found.end_offset, watermark)


def positions(found: GroupPositions) -> list[str]:
    """The four positions of a group as lines."""
    committed, current, watermark = lags(found)
    nothing = "nothing" if found.committed is None else found.committed
    unknown = "unknown" if found.current is None else found.current
    return [
        f"last committed   {nothing!s:>7}  lag {committed}",
        f"current position {unknown!s:>7}  lag {current}",
        f"high watermark   {found.high_watermark!s:>7}  {watermark} not replicated yet",
        f"log end offset   {found.end_offset!s:>7}",
    ]


def document(view: PartitionView) -> dict[str, Any]:
    """The same for programs."""
    return {
        "partition": f"{view.topic}-{view.index}",
        "leader": view.leader,
        "leader_epoch": view.leader_epoch,
        "isr": sorted(view.isr),
        "elr": list(view.eligible),
        "replicas": [
            {
                "node": one.node_id,
                "state": one.state,
                "log": [
                    {"epoch": epoch, "first": first, "last": last}
                    for epoch, first, last in epoch_runs([(record.offset, record.epoch) for record in one.records])
                ],
                "end_offset": one.end_offset,
                "high_watermark": one.high_watermark,
            }
            for one in view.lanes
        ],
    }
