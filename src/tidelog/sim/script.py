"""Scripts: readable lines, each a command; lines below it say what is expected of it.

    title     what it is about                          the first line
    note      000 003                                   the study notes that tell this story
    real      yes                                       played on real processes too
    # text                                              for the reader; printed as it stands
    cluster   brokers 1 2 3 controllers 9 name=value …  without controllers each node is both
    create    TOPIC replicas 1 2 3, 2 3 1 name=value …  one list of replicas a partition
    alter     TOPIC name=value …
    elect     preferred | unclean
    producer  NAME name=value …                         Kafka's settings
    produce   NAME VALUE …                              one record a request; waits until each is settled
    send      NAME VALUE …                              the same without waiting
    settle    NAME                                      wait until all it has sent is settled
    load      NAME 10/s for 6s                          a record at each beat while time passes
    consumer  NAME [rack=R] [group=G [reports=no]]      reports=no: it does not say where it is, as Kafka's clients
    consume   NAME                                      read on until there is nothing more for now
    commit    NAME                                      commit for its group what it has read
    describe  GROUP                                     how far it is, as tidelog groups describe tells it
    fetch     NAME from NODE at 5 [epoch 2] [later]     one Fetch; `later` does not wait for the answer
    answer    NAME                                      wait for the answer of such a fetch
    offsets   NAME from NODE latest | future [v4]       ListOffsets
    hold, let, release   A->B [data | control] [N]      keep back what goes one way; let it pass by hand, N messages
    cut, mend            A->B | A-B [data | control]
    slow                 A->B | A-B 500ms
    partition            1 p / 2 3 q                    cut every way between the groups
    heal                                                the network is as it should be
    kill, power-off, wipe, start, stop, pause, resume  NODE
    clock     NODE +5s
    call      NAME controller | leader                  give who is it now a name
    mark                                                what passed and was told before is no longer looked at
    wait      500ms                                     let time pass
    wait      until EXPECTATION                         … until something is so
    expect    EXPECTATION                               assert it; see expectations.py
    show                                                the lanes of the replicas
    sweep     name=value … expect …                     see sweep.py

A node is its number, `leader`, `controller`, or a name given by `call`. There is no command that sets a log, a high
watermark, an ISR or an epoch: a script reaches its state by acting.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.errors import TidelogError

HEADERS = ("title", "note", "real", "seed")


class ScriptError(TidelogError):
    """A line that is no command, or a command that cannot be carried out."""

    def __init__(self, name: str, line: int, message: str) -> None:
        super().__init__(f"{name}, line {line}: {message}")


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a script."""

    line: int
    text: str
    words: tuple[str, ...]

    @property
    def is_comment(self) -> bool:
        """Whether it is for the reader."""
        return self.text.startswith("#")


@dataclass(frozen=True, slots=True)
class Script:
    """A scenario: its head and its steps."""

    name: str
    title: str
    notes: tuple[str, ...]
    is_real: bool
    seed: int
    steps: tuple[Step, ...]


def parse(name: str, text: str) -> Script:
    """Read a script; ScriptError for a head that is not one."""
    head: dict[str, str] = {}
    steps: list[Step] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line:
            continue
        word, _, rest = line.partition(" ")
        if word in HEADERS and not steps:
            head[word] = rest.strip()
            continue
        if line.startswith("#"):
            if steps and steps[-1].is_comment and steps[-1].line == number - 1:  # a paragraph is one comment
                line = f"{steps.pop().text} {line.lstrip('# ')}"
            steps.append(Step(number, line, ()))
        else:
            words = tuple(line.split())
            steps.append(Step(number, " ".join(words), words))
    if "title" not in head:
        raise ScriptError(name, 1, "a script begins with its title")
    return Script(
        name,
        head["title"],
        tuple(head.get("note", "").split()),
        head.get("real") == "yes",
        int(head.get("seed", "1")),
        tuple(steps),
    )


def duration_ms(text: str) -> int:
    """`500ms`, `10s`, `-2s` or `3m` in milliseconds; ValueError for anything else."""
    for unit, factor in (("ms", 1), ("s", 1000), ("m", 60_000)):
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    raise ValueError(f"{text!r} is no time; write 500ms, 10s or 3m")
