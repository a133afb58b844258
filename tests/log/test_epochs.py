"""The history of leader epochs decides what a follower throws away: a wrong answer loses or keeps the wrong records."""

from __future__ import annotations

import pytest

from tidelog.log.epochs import EpochHistory
from tidelog.sim.disk import SimulatedDisk


def history(*entries: tuple[int, int]) -> EpochHistory:
    built = EpochHistory()
    for epoch, start in entries:
        assert built.assign(epoch, start)
    return built


def test_end_offsets() -> None:
    epochs = history((2, 10), (4, 20), (7, 30))
    assert epochs.end_offset_for(7, 45) == (7, 45)  # the newest ends with the log
    assert epochs.end_offset_for(4, 45) == (4, 30)
    assert epochs.end_offset_for(5, 45) == (4, 30)  # between two: the lower one, up to the next (KIP-279)
    assert epochs.end_offset_for(1, 45) == (1, 10)  # older than all: where the first known one starts
    assert epochs.end_offset_for(8, 45) == (-1, -1)
    assert epochs.end_offset_for(-1, 45) == (-1, -1)
    assert EpochHistory().end_offset_for(0, 0) == (-1, -1)


def test_what_epoch_wrote_an_offset() -> None:
    epochs = history((2, 10), (4, 20))
    assert [epochs.epoch_for_offset(offset) for offset in (9, 10, 19, 20, 99)] == [-1, 2, 2, 4, 4]


def test_a_new_entry_removes_what_it_contradicts() -> None:
    epochs = history((1, 0), (2, 10), (3, 20))
    assert not epochs.assign(3, 25)  # the epoch goes on
    assert epochs.assign(4, 20)  # epoch 3 wrote nothing
    assert epochs.entries == [(1, 0), (2, 10), (4, 20)]
    assert epochs.assign(2, 5)
    assert epochs.entries == [(1, 0), (2, 5)]
    with pytest.raises(ValueError, match="epoch -1"):
        epochs.assign(-1, 5)


def test_cutting_from_both_ends() -> None:
    epochs = history((1, 0), (2, 10), (3, 20))
    assert not epochs.truncate_from_end(21)
    assert epochs.truncate_from_end(20)
    assert epochs.entries == [(1, 0), (2, 10)]
    assert not epochs.truncate_from_start(0)
    assert epochs.truncate_from_start(12)  # the epoch in force at the new start starts there
    assert epochs.entries == [(2, 12)]
    assert not epochs.truncate_from_start(5)


def test_the_checkpoint_is_kafkas(disk: SimulatedDisk) -> None:
    epochs = history((1, 0), (2, 10))
    assert epochs.to_bytes() == b"0\n2\n1 0\n2 10\n"
    disk.replace("leader-epoch-checkpoint", epochs.to_bytes())
    found = EpochHistory.read(disk, "leader-epoch-checkpoint")
    assert found is not None
    assert found.entries == epochs.entries
    assert EpochHistory.read(disk, "missing") is None
