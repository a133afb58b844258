"""A node that compacts its logs: what it cleans and when, what may happen meanwhile, and crashes at every write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.node.support import TOPIC, OneNode, partitions_of
from tidelog.log import checkpoints, names
from tidelog.log.log import Log
from tidelog.sim.cluster import NoAnswer
from tidelog.sim.disk import NO_SPACE
from tidelog.wire.apis import ApiKey
from tidelog.wire.batch import Record, build_batch, iterate_batches, iterate_records
from tidelog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

DIRECTORY = f"{TOPIC}-0"
BACKOFF_MS = 500
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "400",
    "min.cleanable.dirty.ratio": "0.01",
    "flush.messages": "1",
    "file.delete.delay.ms": "1000",
}


class CleaningNode(OneNode):
    """A node with one compacted partition, written to by key."""

    def __init__(self, seed: int = 1, configs: dict[str, str] | None = None, **settings: str) -> None:
        super().__init__(
            seed, 1, {**COMPACTED, **(configs or {})}, **{"log_cleaner_backoff_ms": str(BACKOFF_MS), **settings}
        )

    @property
    def log(self) -> Log:
        return self.process(1).node.replicas.partitions[(TOPIC, 0)].log

    @property
    def disk(self) -> Any:
        return self.world.hosts[1].disks[0]

    def put(self, key: str, value: str | None) -> int:
        record = Record(0, self.world.now_ms, key.encode(), None if value is None else value.encode())
        answer = self.produce({0: build_batch([record])})[0]
        assert answer.error_code == 0, answer
        return int(answer.base_offset)

    def records(self) -> list[Record]:
        """Everything, as a consumer is given it."""
        found: list[Record] = []
        offset = self.log.log_start_offset
        while True:
            data = partitions_of(self.fetch({0: offset}))[0]
            assert data.error_code == 0, data
            batches = list(iterate_batches(data.records)) if data.records else []
            if not batches:
                return found
            for batch in batches:
                assert batch.last_offset >= offset
                found += [record for record in iterate_records(batch) if record.offset >= offset]
                offset = batch.next_offset

    def known(self) -> dict[str, str]:
        found: dict[str, str | None] = {}
        for record in self.records():
            assert record.key is not None
            found[record.key.decode()] = None if record.value is None else record.value.decode()
        return {key: value for key, value in found.items() if value is not None}

    def cleaned_to(self) -> int:
        return checkpoints.read(self.disk, checkpoints.CLEANER_OFFSETS).get((TOPIC, 0), 0)

    def wait(self, condition: Callable[[], bool], within_ms: int = 30_000) -> None:
        assert self.world.run_until(condition, within_ms)

    def leftovers(self) -> list[str]:
        return [name for name in self.disk.list(DIRECTORY) if name.endswith((".cleaned", ".swap", ".deleted"))]

    def set(self, name: str, value: str) -> None:
        resource = AlterConfigsResource(
            resource_type=2, resource_name=TOPIC, configs=[AlterableConfig(name=name, config_operation=0, value=value)]
        )
        answer = self.ask(1, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[resource]))
        assert answer.responses[0].error_code == 0, answer


def test_a_node_compacts_writes_the_checkpoint_and_deletes_what_is_out_of_use() -> None:
    node = CleaningNode()
    for number in range(40):
        node.put(f"k{number % 4}", str(number))
    size = node.log.size_bytes
    node.wait(lambda: node.cleaned_to() >= 30)
    assert node.cleaned_to() == node.log.active_segment.base_offset
    assert node.log.size_bytes < size / 2
    assert node.known() == {"k0": "36", "k1": "37", "k2": "38", "k3": "39"}
    assert node.leftovers(), "readers may still have the old files"
    node.world.run_for(2_000)
    assert not node.leftovers()
    text = node.disk.read_file(checkpoints.CLEANER_OFFSETS).decode()
    assert text == f"0\n1\n{TOPIC} 0 {node.cleaned_to()}\n"


def test_it_waits_for_the_dirty_share_or_the_largest_lag() -> None:
    node = CleaningNode(configs={"min.cleanable.dirty.ratio": "0.9", "max.compaction.lag.ms": "60000"})
    for number in range(20):
        node.put(f"k{number}", "x" * 100)
    node.wait(lambda: node.cleaned_to() > 0)  # all of it is dirty at first
    before = node.cleaned_to()
    for _ in range(8):
        node.put("k0", "x" * 100)
    assert node.log.active_segment.base_offset > before
    node.world.run_for(20 * BACKOFF_MS)
    assert node.cleaned_to() == before
    node.wait(lambda: node.cleaned_to() > before, 70_000)


@pytest.mark.parametrize("settings", [{"log_cleaner_enable": "false"}, {"log_cleaner_threads": "0"}])
def test_it_does_not_compact_when_told_not_to(settings: dict[str, str]) -> None:
    node = CleaningNode(1, None, **settings)
    for number in range(20):
        node.put("k", str(number))
    node.world.run_for(20 * BACKOFF_MS)
    assert node.cleaned_to() == 0
    assert len(node.records()) == 20


def test_from_delete_to_compact_and_back_at_run_time() -> None:
    node = CleaningNode(configs={"cleanup.policy": "delete"})
    for number in range(20):
        node.put("k", str(number))
    node.world.run_for(10 * BACKOFF_MS)
    assert len(node.records()) == 20
    node.set("cleanup.policy", "compact")
    node.wait(lambda: len(node.records()) < 10)
    node.set("cleanup.policy", "delete")
    count = len(node.records())
    for number in range(20):
        node.put("k", str(number))
    node.world.run_for(10 * BACKOFF_MS)
    assert len(node.records()) == count + 20
    node.world.kill(1)
    node.start_all()
    assert len(node.records()) == count + 20, "gaps in a log that is no longer compacted are no loss"


def test_compact_and_delete_does_both() -> None:
    node = CleaningNode(
        configs={"cleanup.policy": "compact,delete", "retention.ms": "60000"}, log_retention_check_interval_ms="1000"
    )
    for number in range(30):
        node.put(f"k{number % 3}", str(number))
    node.wait(lambda: node.cleaned_to() > 20)
    assert node.known() == {"k0": "27", "k1": "28", "k2": "29"}
    node.world.run_for(70_000)
    assert node.records() == []
    assert node.log.log_start_offset == 30
    node.put("k0", "again")
    assert node.known() == {"k0": "again"}


def test_a_damaged_log_is_left_alone_and_told() -> None:
    node = CleaningNode()
    for number in range(20):
        node.put("k", str(number))
    node.disk.flip_bit(f"{DIRECTORY}/{names.file_name(0, '.log')}", 90)
    node.world.run_for(10 * BACKOFF_MS)
    told = [one.fields["reason"] for _, _, one in node.world.told if one.kind == "log-uncleanable"]
    assert len(told) == 1
    assert "is damaged" in told[0]
    assert node.cleaned_to() == 0
    assert not node.leftovers()


def test_a_full_disk_puts_it_off() -> None:
    node = CleaningNode()
    for number in range(20):
        node.put("k", str(number))
    made = f"{DIRECTORY}/{names.file_name(0, '.log')}.cleaned"
    node.disk.fail("append", path_prefix=made, reason=NO_SPACE, times=2)
    node.world.run_for(3 * BACKOFF_MS)
    told = [one.fields["reason"] for _, _, one in node.world.told if one.kind == "cleaning-failed"]
    assert told
    assert NO_SPACE in told[0]
    assert node.process(1).node.replicas.directories[0].online
    node.wait(lambda: node.cleaned_to() > 10)
    assert node.known() == {"k": "19"}
    assert not [name for name in node.leftovers() if name.endswith(".cleaned")]


def test_several_segments_are_swapped_one_in_each_step() -> None:
    node = CleaningNode(configs={"internal.segment.bytes": "1000"}, log_cleaner_backoff_ms="5000")
    for number in range(200):
        node.put(f"k{number % 50}", "x" * (20 + number % 30))
    swaps: list[int] = []
    log = node.log
    before = node.world.steps

    def look(_process: object) -> None:
        count = sum(name.endswith(".log.deleted") for name in node.disk.list(DIRECTORY))
        if not swaps or swaps[-1] != count:
            swaps.append(count)

    node.world.on_step = look
    node.wait(lambda: node.cleaned_to() > 150, 60_000)
    assert len(swaps) > 4, "readers come in between"
    assert node.world.steps > before
    assert log is node.log
    assert len(node.known()) == 50


def _while_the_job_runs(node: CleaningNode, do: Callable[[], None]) -> None:
    """Do something between the job's reading and the installation of its result."""
    node.wait(lambda: any(name.endswith(".cleaned") for name in node.disk.list(DIRECTORY)))
    do()


def test_what_was_cut_while_a_job_ran_is_not_brought_back() -> None:
    node = CleaningNode(seed=3)
    for number in range(20):
        node.put(f"k{number % 4}", str(number))
    partition = node.process(1).node.replicas.partitions[(TOPIC, 0)]
    held: list[int] = []

    def cut() -> None:
        held.append(partition.log.truncate_to(6))
        partition.high_watermark = partition.log.log_end_offset

    _while_the_job_runs(node, cut)
    node.world.run_for(5 * BACKOFF_MS)
    assert partition.log.log_end_offset == held[0]
    assert {record.offset for record in node.records()} <= set(range(held[0]))
    assert node.cleaned_to() <= held[0]
    assert not [name for name in node.leftovers() if name.endswith((".cleaned", ".swap"))]
    for number in range(held[0], 40):
        node.put(f"k{number % 4}", f"new {number}")
    node.wait(lambda: node.cleaned_to() > 30)
    assert node.known() == {f"k{number % 4}": f"new {number}" for number in range(36, 40)}


def test_a_topic_deleted_and_made_again_while_a_job_ran_begins_with_nothing() -> None:
    node = CleaningNode(seed=4)
    for number in range(20):
        node.put("k", str(number))
    node.wait(lambda: node.cleaned_to() > 0)
    for number in range(20):
        node.put("k", str(number))

    def delete() -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=1_000)
        assert node.ask(1, ApiKey.DELETE_TOPICS, 6, request).responses[0].error_code == 0
        assert node.create(TOPIC, 1, COMPACTED).error_code == 0
        for number in range(3):
            node.put("new", str(number))

    _while_the_job_runs(node, delete)
    node.world.run_for(5 * BACKOFF_MS)
    assert node.known() == {"new": "2"}
    assert node.cleaned_to() <= node.log.log_end_offset
    node.world.kill(1)
    node.start_all()
    assert node.known() == {"new": "2"}


def _workload(node: CleaningNode, acknowledged: dict[str, str | None]) -> dict[str, set[str | None]]:
    """Writes while the cleaner works. Returns what may or may not have been stored when the power went."""
    try:
        for number in range(30):
            key, value = f"k{number % 5}", None if number % 11 == 10 else str(number)
            uncertain: dict[str, set[str | None]] = {key: {acknowledged.get(key), value}}
            node.put(key, value)
            acknowledged[key] = value
            node.world.run_for(120)
        uncertain = {}
        node.world.run_for(4 * BACKOFF_MS)
    except NoAnswer:
        return uncertain
    return {}


@pytest.mark.parametrize("seed", range(2))
def test_power_loss_at_every_write_of_a_node_that_cleans(seed: int) -> None:
    """The last acknowledged value of every key is there, whatever was being renamed, written or flushed."""
    config = {"delete.retention.ms": "500"}
    node = CleaningNode(seed=50 + seed, configs=config)
    first = node.disk.writes
    _workload(node, {})
    assert node.cleaned_to() > 15
    last = node.disk.writes
    assert last - first > 200
    for write in range(1 + seed, last - first + 1, 2):
        node = CleaningNode(seed=50 + seed, configs=config)
        node.disk.cut_power_at_write = node.disk.writes + write
        acknowledged: dict[str, str | None] = {}
        uncertain = _workload(node, acknowledged)
        if node.process(1).alive:
            node.world.power_loss(1)
        node.start_all()
        found = node.known()
        for key, value in acknowledged.items():
            assert found.get(key) in uncertain.get(key, {value}), f"power lost at write {write}: {key}"
        node.put("k0", "after")
        node.world.run_for(4 * BACKOFF_MS)
        assert {**found, "k0": "after"} == node.known(), f"power lost at write {write}"


@pytest.mark.parametrize("seed", range(8))
def test_kills_while_the_helper_works(seed: int) -> None:
    node = CleaningNode(seed=seed, configs={"delete.retention.ms": "500"})
    acknowledged: dict[str, str] = {}
    chance = node.world.chance
    for number in range(120):
        key = f"k{chance.below(6)}"
        node.put(key, str(number))
        acknowledged[key] = str(number)
        node.world.run_for(chance.below(60))
        if chance.below(12) == 0:
            (node.world.kill if chance.below(2) else node.world.power_loss)(1)
            node.start_all()
            assert node.known() == acknowledged
    node.world.run_for(4 * BACKOFF_MS)
    assert node.cleaned_to() > 0
    assert node.known() == acknowledged
