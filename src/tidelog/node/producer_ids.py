"""Producer ids for this node's clients, taken from blocks that the controller hands out (KIP-730)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from tidelog.errors import ErrorCode
from tidelog.node.controller_link import ControllerLink
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest

Given = Callable[[int | None, ErrorCode], None]
MAX_WAITING = 10_000
"""Requests that may wait for a block; a further one is told to try again."""


class ProducerIds:
    """Gives out ids; fetches the next block when one runs out, and lets requests wait for it."""

    def __init__(self, node_id: int, link: ControllerLink, broker_epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._link = link
        self._broker_epoch = broker_epoch
        self._next = 0
        self._end = 0
        self._waiting: deque[Given] = deque()
        self._asking = False

    def next(self, given: Given) -> None:
        """Call `given` with a fresh id, now or when a block has come."""
        if self._next < self._end:
            producer_id = self._next
            self._next += 1
            given(producer_id, ErrorCode.NONE)
            return
        if len(self._waiting) >= MAX_WAITING:
            given(None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return
        self._waiting.append(given)
        if not self._asking:
            self._asking = True
            request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
            self._link.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, request, self._allocated)

    def _allocated(self, response: Any, error: str | None) -> None:
        self._asking = False
        waiting, self._waiting = self._waiting, deque()
        if error is not None or response.error_code != ErrorCode.NONE:
            for given in waiting:  # a code that every client tries again on
                given(None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            return
        self._next = response.producer_id_start
        self._end = response.producer_id_start + response.producer_id_len
        for given in waiting:
            self.next(given)
