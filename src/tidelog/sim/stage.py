"""What a script is played on. The simulated cluster is one stage; real processes with a real client can be another.

A stage can do what a script may do, and show what a script may look at. It has no way to set a log, a high watermark,
an ISR or an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidelog.ledger import Entry

Place = int | str
"""A node's id, or a client's name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The cluster a script asks for."""

    brokers: tuple[int, ...]
    controllers: tuple[int, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    racks: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record in a replica's log, committed or not."""

    offset: int
    epoch: int
    value: str


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One replica as it is now; of a node that is down, what its disk holds."""

    node_id: int
    state: str
    """leader, in sync, eligible, out of sync; of a node that is not up: down, paused, starting."""
    records: tuple[StoredRecord, ...]
    end_offset: int
    high_watermark: int | None
    """None where nobody is there to say."""


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition as the newest metadata and its replicas have it."""

    topic: str
    index: int
    replicas: tuple[int, ...]
    leader: int
    """-1 while there is none."""
    leader_epoch: int
    isr: tuple[int, ...]
    eligible: tuple[int, ...]
    lanes: tuple[ReplicaView, ...]
    is_known_to_leader: bool
    """Whether the leader itself has taken over what the metadata says; true where there is none."""

    def lane(self, node_id: int) -> ReplicaView:
        """The replica on one node."""
        return next(one for one in self.lanes if one.node_id == node_id)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch of a consumer brought."""

    error: str
    records: tuple[StoredRecord, ...]
    high_watermark: int
    waited_ms: int
    node_id: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """A message that passed between two places, in words."""

    source: Place
    target: Place
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """Something the nodes told people."""

    node_id: int
    kind: str
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a producer met on its way."""

    errors: Mapping[str, int]
    retries: int


@dataclass(frozen=True, slots=True)
class GroupPositions:
    """How far a group is in a partition. None stands for what is not there or not known."""

    committed: int | None
    current: int | None
    """What its consumer reported that it reads next: never guessed."""
    high_watermark: int | None
    end_offset: int | None


class Stage(Protocol):
    """A cluster, its network and its clients, as far as a script reaches."""

    now_ms: int
    patience_ms: int
    """How long something that is expected may take to be so; 0 where all that was caused has happened already."""

    def start(self, plan: Plan) -> None:
        """Make the cluster and wait until it may be used."""

    def wait(self, duration_ms: int) -> None:
        """Let time pass."""

    def wait_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        """Let time pass until something is so; False when it was not within the time."""

    # --- looking ---

    def partition(self, topic: str, index: int) -> PartitionView:
        """A partition and its replicas."""

    def leaders(self, topic: str) -> list[int]:
        """The leader of each partition of a topic."""

    def controller(self) -> tuple[int, int] | None:
        """Node and epoch of the active controller."""

    def is_serving(self, node_id: int) -> bool:
        """Whether a node is up and, a broker, not fenced."""

    def is_fenced(self, node_id: int) -> bool:
        """Whether the controller has taken a broker out of service, or never put it there."""

    def log_bytes(self, node_id: int, topic: str, index: int) -> bytes:
        """A replica's segments, one after the other."""

    def read_file(self, node_id: int, path: str) -> str:
        """A text file of a node's data directory."""

    def take_traffic(self) -> list[Traffic]:
        """Messages about partitions that passed between nodes since the last call."""

    def take_told(self) -> list[Told]:
        """What the nodes told people since the last call."""

    def epochs_that_went_back(self) -> list[str]:
        """Leader, partition and controller epochs that a node saw go back, in words; none is the only good answer."""

    # --- clients ---

    def create_topic(self, topic: str, assignment: Sequence[Sequence[int]], configs: Mapping[str, str]) -> str:
        """Make a topic; Kafka's name of the error, or an empty text."""

    def alter_topic(self, topic: str, configs: Mapping[str, str]) -> str:
        """Change settings of a topic; the error or an empty text."""

    def elect(self, kind: str, topic: str, partitions: Sequence[int]) -> str:
        """Ask for a `preferred` or an `unclean` election; the error or an empty text."""

    def add_producer(self, name: str, settings: Mapping[str, str]) -> None:
        """A producer with Kafka's settings."""

    def send(self, name: str, topic: str, partition: int, value: str) -> None:
        """Hand a record to a producer; it goes on by itself."""

    def ledger(self, name: str) -> Sequence[Entry]:
        """What a producer was told so far."""

    def unsettled(self, name: str) -> int:
        """Records of a producer whose fate is not known yet."""

    def counts(self, name: str) -> Counts:
        """Errors and retries of a producer."""

    def add_consumer(self, name: str, rack: str, group: str, reports: bool) -> None:
        """A consumer, in a rack or in none, of a group or of none; one of a group may report its position."""

    def consume(self, name: str, topic: str, partition: int) -> Fetched:
        """Read on until there is nothing more for now; the records read and the last answer's watermark."""

    def commit(self, name: str, topic: str, partition: int) -> None:
        """Commit for a consumer's group what it has read."""

    def group_positions(self, group: str, topic: str, partition: int) -> GroupPositions:
        """How far a group is, as `tidelog groups describe` tells it."""

    def begin_fetch(self, name: str, node_id: int, topic: str, partition: int, offset: int, epoch: int) -> None:
        """Send one Fetch to one node, naming a leader epoch where it is not -1."""

    def end_fetch(self, name: str) -> Fetched:
        """Wait for the answer to it."""

    def list_offset(self, name: str, node_id: int, topic: str, partition: int, at: int, version: int) -> str:
        """Ask one node for an offset (at -1: the latest); the offset, or the error's name."""

    # --- faults ---

    def hold(self, source: Place, target: Place, kind: str) -> None:
        """Keep back what goes one way; `kind` is data, control or both."""

    def let(self, source: Place, target: Place, kind: str, count: int | None) -> None:
        """Deliver what waits, at most `count` messages; the way stays held."""

    def release(self, source: Place, target: Place, kind: str) -> None:
        """Let a held way go on."""

    def cut(self, source: Place, target: Place, kind: str) -> None:
        """Let nothing pass one way."""

    def mend(self, source: Place, target: Place, kind: str) -> None:
        """Let a cut way work again."""

    def slow(self, source: Place, target: Place, kind: str, extra_ms: int) -> None:
        """Make everything one way take longer."""

    def heal(self) -> None:
        """Make the whole network as it should be."""

    def kill(self, node_id: int) -> None:
        """As kill -9."""

    def power_off(self, node_id: int) -> None:
        """The machine loses power, and what was not flushed."""

    def wipe(self, node_id: int) -> None:
        """A dead node's disk is replaced by an empty one."""

    def start_node(self, node_id: int) -> None:
        """Start a node that is not running."""

    def stop_node(self, node_id: int) -> None:
        """Stop a node cleanly, and wait until it has."""

    def pause(self, node_id: int) -> None:
        """As SIGSTOP."""

    def resume(self, node_id: int) -> None:
        """As SIGCONT."""

    def set_clock(self, node_id: int, by_ms: int) -> None:
        """Set a machine's clock forward or back."""
