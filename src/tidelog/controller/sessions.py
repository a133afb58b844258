"""Broker sessions: who was heard when, who is fenced for silence, and who sooner because its connection broke.

A session lasts broker.session.timeout.ms from the last heartbeat. A new controller gives every unfenced broker a fresh
one. Fast fencing (ours; Kafka has only the timeout): a broker whose control connection breaks, and who is not back
within broker.connection.loss.grace.ms, is fenced at once. Fencing a live broker moves its leaderships, so
    a broker that this controller has not heard yet gets no such grace, only its session, unless nobody listens at its
    address any more: then its process is gone, whoever was the controller when it went
    a controller that loses most brokers at once suspects itself, and waits for their sessions
A controller that finds a session's end late was itself asleep (paused, swapped out): heartbeats may lie unread before
it, so that nobody is fenced before it has listened again for as long as it was deaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidelog.config import NodeConfig
from tidelog.controller.decide.decision import Liveness
from tidelog.outbox import Outbox, Timer

LATE_MS = 50
"""A timer that runs later than this says that this node was not running."""
LISTEN_MS = 200
"""How long a controller that was asleep listens at least."""


class Session:
    """What is known of one broker beyond the records."""

    __slots__ = ("deadline_ms", "excused", "grace", "heard", "lost", "metadata_offset", "shutdown_offset", "timer")

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.heard = False
        """Whether this controller has heard it, rather than read of it."""
        self.lost = False
        """Its connection broke and it was not heard since."""
        self.excused = False
        """It was silent while this controller was deaf, and has had its second chance since it was last heard."""
        self.metadata_offset = -1
        """How far it has read the metadata, as it reported."""
        self.shutdown_offset: int | None = None
        """The last record of its controlled shutdown."""
        self.timer: Timer | None = None
        self.grace: Timer | None = None

    def cancel(self) -> None:
        """Let no timer of it run any more."""
        for timer in (self.timer, self.grace):
            if timer is not None:
                timer.cancel()


class Sessions:
    """The sessions of one active controller. `expired(broker_id, reason)` is called when one ends for silence."""

    def __init__(self, config: NodeConfig, outbox: Outbox, expired: Callable[[int, str], None]) -> None:
        self._config = config
        self._outbox = outbox
        self._expired = expired
        self._sessions: dict[int, Session] = {}

    def begin(self, broker_ids: Iterable[int]) -> None:
        """Give brokers that were read of a fresh session."""
        for broker_id in broker_ids:
            self._open(broker_id)

    def clear(self) -> None:
        """Forget everybody: another controller takes over."""
        for session in self._sessions.values():
            session.cancel()
        self._sessions.clear()

    def register(self, broker_id: int) -> None:
        """A new incarnation registered: its session begins, and what was known of the former is gone."""
        self.remove(broker_id)
        self._open(broker_id).heard = True

    def remove(self, broker_id: int) -> None:
        """The broker is unregistered or has stopped."""
        session = self._sessions.pop(broker_id, None)
        if session is not None:
            session.cancel()

    def touch(self, broker_id: int, metadata_offset: int) -> Session:
        """A broker was heard."""
        session = self._sessions.get(broker_id)
        if session is None:
            session = self._open(broker_id)
        session.deadline_ms = self._outbox.now_ms + self._config.broker_session_timeout_ms
        session.heard = True
        session.lost = False
        session.excused = False
        session.metadata_offset = metadata_offset
        if session.grace is not None:
            session.grace.cancel()
            session.grace = None
        return session

    def get(self, broker_id: int) -> Session | None:
        """The session of a broker, if it has one."""
        return self._sessions.get(broker_id)

    def liveness(self, broker_id: int) -> Liveness:
        """How sure it is that a broker's present incarnation lives."""
        session = self._sessions.get(broker_id)
        if session is None or session.deadline_ms <= self._outbox.now_ms:
            return Liveness.GONE
        return Liveness.ALIVE if session.heard and not session.lost else Liveness.PRESUMED

    def least_offset(self, broker_ids: Iterable[int]) -> int | None:
        """How far the slowest of these brokers has read the metadata; None when there are none."""
        offsets = [
            session.metadata_offset if (session := self._sessions.get(broker_id)) is not None else -1
            for broker_id in broker_ids
        ]
        return min(offsets, default=None)

    def connection_lost(self, broker_id: int, serving: Iterable[int]) -> None:
        """A broker's control connection broke, of those `serving` (unfenced and not stopping)."""
        session = self._sessions.get(broker_id)
        if session is not None and session.heard:
            self._lose(broker_id, session, serving)

    def connection_refused(self, broker_id: int, serving: Iterable[int]) -> None:
        """Nobody listens where a broker should, one that this controller has not heard: as if its connection broke."""
        session = self._sessions.get(broker_id)
        if session is not None and not session.heard:
            self._lose(broker_id, session, serving)

    def unheard(self, broker_ids: Iterable[int]) -> list[int]:
        """Of these brokers, those that this controller has only read of."""
        return [
            broker_id
            for broker_id in broker_ids
            if (session := self._sessions.get(broker_id)) is not None and not session.heard
        ]

    def _lose(self, broker_id: int, session: Session, serving: Iterable[int]) -> None:
        session.lost = True
        others = set(serving)
        if not self._config.broker_connection_loss_fencing_enable or broker_id not in others:
            return
        lost = [each for each in others if (known := self._sessions.get(each)) is not None and known.lost]
        if 2 * len(lost) > len(others):
            self._suspect_itself(lost, len(others))
            return
        if session.grace is None:
            grace_ms = self._config.broker_connection_loss_grace_ms
            self._give_grace(broker_id, session, grace_ms)

    def _suspect_itself(self, lost: list[int], serving_count: int) -> None:
        for each in lost:
            session = self._sessions[each]
            if session.grace is not None:
                session.grace.cancel()
                session.grace = None
        self._outbox.tell(
            "controller-suspects-itself",
            "warning",
            lost_brokers=sorted(lost),
            serving=serving_count,
            reason="most brokers' connections broke at once; they are fenced only when their sessions end",
        )

    def _give_grace(self, broker_id: int, session: Session, grace_ms: int) -> None:
        due_ms = self._outbox.now_ms + grace_ms
        session.grace = self._outbox.at(due_ms, lambda: self._grace_over(broker_id, session, due_ms))

    def _grace_over(self, broker_id: int, session: Session, due_ms: int) -> None:
        session.grace = None
        if self._sessions.get(broker_id) is session and session.lost:
            second_chance_ms = self._second_chance_ms(session, due_ms)
            if second_chance_ms:
                self._give_grace(broker_id, session, second_chance_ms)
                return
            self.remove(broker_id)
            self._expired(broker_id, "its connection broke and it did not come back")

    def _open(self, broker_id: int) -> Session:
        session = Session(self._outbox.now_ms + self._config.broker_session_timeout_ms)
        self._sessions[broker_id] = session
        self._watch(broker_id, session)
        return session

    def _watch(self, broker_id: int, session: Session) -> None:
        """One timer a session, set again when it finds that the deadline moved: a heartbeat costs no timer."""
        session.timer = self._outbox.at(session.deadline_ms, lambda: self._deadline(broker_id, session))

    def _deadline(self, broker_id: int, session: Session) -> None:
        if self._sessions.get(broker_id) is not session:
            return
        if session.deadline_ms > self._outbox.now_ms:
            self._watch(broker_id, session)
            return
        second_chance_ms = self._second_chance_ms(session, session.deadline_ms)
        if second_chance_ms:
            session.deadline_ms = self._outbox.now_ms + second_chance_ms
            self._watch(broker_id, session)
            return
        self.remove(broker_id)
        self._expired(broker_id, "its session timed out")

    def _second_chance_ms(self, session: Session, due_ms: int) -> int:
        """How much longer to listen for a broker whose time was up while this controller was not running; once."""
        late_ms = self._outbox.now_ms - due_ms
        if session.excused or late_ms <= LATE_MS:
            return 0
        session.excused = True
        return max(LISTEN_MS, min(late_ms, self._config.broker_session_timeout_ms))
