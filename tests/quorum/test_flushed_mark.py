"""The mark that tells a start how much of the metadata log there was."""

from __future__ import annotations

from tidelog.effects import Flush
from tidelog.outbox import Chance, Outbox
from tidelog.quorum.flushed_mark import FILE_NAME, REWRITE_BYTES, FlushedMark
from tidelog.sim.disk import SimulatedDisk

PATH = f"d/{FILE_NAME}"


class Machine:
    """A disk and whoever uses the mark on it."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.disk.make_directory("d")
        assert self.disk.apply_flush(Flush(0, self.disk, directories=[""])) is None
        self.failures: list[str] = []
        self.open()

    def open(self) -> None:
        self.outbox = Outbox(1)
        self.mark = FlushedMark(self.outbox, self.disk, "d", self.failures.append)

    def flush(self) -> None:
        while flushes := [effect for effect in self.outbox.take_effects() if isinstance(effect, Flush)]:
            for effect in flushes:
                self.outbox.resume(effect.token, self.disk.apply_flush(effect))

    def restart(self, *, power_loss: bool = False) -> int:
        if power_loss:
            self.disk.power_loss(Chance(7))
        else:
            self.disk.kill()
        self.open()
        return self.mark.offset


def test_the_mark_survives_a_kill_at_once_and_a_power_loss_when_flushed() -> None:
    machine = Machine()
    machine.mark.raise_to(5)
    machine.flush()
    machine.mark.raise_to(9)
    assert machine.restart() == 9
    machine.flush()
    assert machine.restart(power_loss=True) in (5, 9)


def test_the_mark_goes_down_only_durably() -> None:
    machine = Machine()
    machine.mark.raise_to(9)
    machine.flush()
    lowered: list[int] = []
    machine.mark.lower_to(4, lambda: lowered.append(4))
    assert lowered == []
    machine.flush()
    assert lowered == [4]
    assert machine.restart(power_loss=True) == 4


def test_lowering_to_what_it_is_or_more_waits_for_nothing() -> None:
    machine = Machine()
    machine.mark.raise_to(4)
    lowered: list[int] = []
    machine.mark.lower_to(4, lambda: lowered.append(4))
    assert lowered == [4]


def test_a_torn_entry_does_not_count() -> None:
    machine = Machine()
    machine.mark.raise_to(5)
    machine.flush()
    machine.disk.open(PATH).append(b"\0" * 17)
    assert machine.restart() == 5
    machine.mark.raise_to(6)
    assert machine.restart() == 6


def test_the_file_is_written_anew_before_it_grows_large() -> None:
    machine = Machine()
    for offset in range(1, 12_001):
        machine.mark.raise_to(offset)
        machine.flush()
        assert machine.disk.size(PATH) <= REWRITE_BYTES + 24
    assert machine.failures == []
    assert machine.restart(power_loss=True) == 12_000


def test_a_disk_that_fails_is_told() -> None:
    machine = Machine()
    machine.disk.fail("flush")
    machine.mark.raise_to(5)
    machine.flush()
    assert len(machine.failures) == 1
