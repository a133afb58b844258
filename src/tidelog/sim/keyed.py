"""Somebody who writes a compacted topic: a few keys at a time, some of them deleted, none of them ever again."""

from __future__ import annotations

from tidelog.ledger import ACKNOWLEDGED, Entry
from tidelog.sim.producer import Producer

SEND_EVERY_MS = 40
KEYS_AT_A_TIME = 4
WRITES_OF_A_KEY = 12
MOST_WAITING = 30


class KeyedWriter:
    """Writes through a producer of its own, and knows what each key may be in the end."""

    def __init__(self, producer: Producer, topic: str, index: int) -> None:
        self.producer = producer
        self.topic = topic
        self.index = index
        self.is_sending = True
        self._writes: dict[bytes, list[Entry | str]] = {}
        """Of each key, in order: what became of a write, or its value while nobody knows."""
        self._sent = 0
        producer.on_settled = self._settled

    def send_on(self) -> None:
        """Write, and again after a pause, until it is enough."""
        if not self.is_sending:
            return
        if self.producer.waiting_count < MOST_WAITING:
            number = self._sent
            self._sent += 1
            turn, within = divmod(number, KEYS_AT_A_TIME * WRITES_OF_A_KEY)
            key = b"%d.%d" % (turn, within % KEYS_AT_A_TIME)
            is_last = within >= KEYS_AT_A_TIME * (WRITES_OF_A_KEY - 1)
            value = "" if is_last and within % 2 else f"value {number}"
            self._writes.setdefault(key, []).append(value)
            self.producer.send(self.topic, self.index, value, key)
        self.producer.after(SEND_EVERY_MS, self.send_on)

    def _settled(self, entry: Entry) -> None:
        turn, within = divmod(entry.sequence, KEYS_AT_A_TIME * WRITES_OF_A_KEY)
        key = b"%d.%d" % (turn, within % KEYS_AT_A_TIME)
        self._writes[key][within // KEYS_AT_A_TIME] = entry

    def allowed(self) -> dict[bytes, list[str]]:
        """What each key may be in the end, "" for deleted: the value of its last acknowledged write, or of one after
        it that nobody knows the end of.
        """
        found: dict[bytes, list[str]] = {}
        for key, writes in self._writes.items():
            allowed = [""]
            for write in writes:
                if isinstance(write, Entry) and write.outcome == ACKNOWLEDGED:
                    allowed = []
                allowed.append(write.value if isinstance(write, Entry) else write)
            found[key] = allowed
        return found
