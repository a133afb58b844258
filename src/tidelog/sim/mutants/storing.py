"""Bugs of what a replica makes of its files: after a stop, after a failover, after a topic of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.log import partition_metadata, recovery
from tidelog.log.log import Log
from tidelog.log.segment import Segment
from tidelog.replica import copying
from tidelog.replica.partition import Partition
from tidelog.replica.replicas import Replicas
from tidelog.sim.mutants.base import Hit, Mutant, Original
from tidelog.storage import Storage


def _checkpoint_trusted(original: Original, hit: Hit) -> Original:
    def init(self: Partition, *arguments: Any) -> None:
        original(self, *arguments)
        log, high_watermark = arguments[4], arguments[6]
        if high_watermark > log.log_end_offset:
            hit()
            self.high_watermark = high_watermark

    return init


def _tail_stays(original: Original, hit: Hit) -> Original:
    def scan(self: Any, segment: Segment, *about: Any) -> tuple[int, int]:
        expected, valid_bytes = original(self, segment, *about)
        if valid_bytes < segment.size:
            hit()
        return expected, segment.size

    return scan


def _producers_forgotten(original: Original, hit: Hit) -> Original:
    def open_log(self: Any, *how: Any) -> Log:
        log: Log = original(self, *how)
        if log.producers.producers:
            hit()
            log.producers.producers.clear()
        return log

    return open_log


def _followers_know_no_producers(original: Original, hit: Hit) -> Original:
    def append_as_follower(self: Log, *what: Any) -> Any:
        appended = original(self, *what)
        if self.producers.producers:
            hit()
            self.producers.producers.clear()
        return appended

    return append_as_follower


def _log_kept(original: Original, hit: Hit) -> Original:
    def start_within(
        replicas: Replicas, partition: Partition, leader_start_offset: int, end_offset: int, then: Callable[[], None]
    ) -> None:
        if partition.log.log_end_offset < leader_start_offset:
            hit()
            then()
        else:
            original(replicas, partition, leader_start_offset, end_offset, then)

    return start_within


def _any_topic_is_the_same(original: Original, hit: Hit) -> Original:
    def read(storage: Storage, directory: str) -> None:
        if original(storage, directory) is not None:
            hit()

    return read


def _files_stay(original: Original, hit: Hit) -> Original:
    def remove(self: Replicas, partition: Partition) -> None:
        hit()
        del self.partitions[(partition.topic, partition.index)]
        partition.go_offline()
        partition.log.close()

    return remove


MUTANTS = (
    Mutant(
        "watermark-checkpoint-trusted",
        "the watermark's checkpoint is believed although it is ahead of the log",
        [(Partition, "__init__", _checkpoint_trusted)],
    ),
    Mutant(
        "torn-tail-served",
        "what an unclean stop tore stays in the log, and new records come behind it",
        [(recovery._Opening, "_scan", _tail_stays)],
    ),
    Mutant(
        "producers-forgotten-on-restart",
        "a broker that restarts does not know what producers wrote before",
        [(recovery._Opening, "open", _producers_forgotten)],
    ),
    Mutant(
        "duplicate-after-failover",
        "followers take no note of producers, so that a new leader accepts a sequence again",
        [(Log, "append_as_follower", _followers_know_no_producers)],
    ),
    Mutant(
        "log-kept-before-leader-start",
        "a follower keeps its log although the leader's starts later",
        [(copying, "start_within", _log_kept)],
    ),
    Mutant(
        "old-files-read-again",
        "a topic made again under the name of a deleted one begins with its files",
        [(partition_metadata, "read", _any_topic_is_the_same), (Replicas, "remove", _files_stay)],
    ),
)
