"""The first questions to a cluster, and what a user reads when they are not answered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from tidelog.client.client import Client
from tidelog.client.metadata import TopicView
from tidelog.config.setting import nearest
from tidelog.errors import ConfigError, ErrorCode, KafkaError


@contextlib.contextmanager
def first_contact(bootstrap: str) -> Iterator[None]:
    """Where nobody answers: which brokers were asked, why each did not answer, and for how long."""
    begun_s = time.monotonic()
    try:
        yield
    except KafkaError as error:
        if error.code not in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT):
            raise
        waited_ms = int((time.monotonic() - begun_s) * 1000)
        raise KafkaError(error.code, f"option kafka.bootstrap.servers={bootstrap}: {error} ({waited_ms} ms)") from None


def require_topic(client: Client, name: str, bootstrap: str, timeout_ms: int | None = None) -> TopicView:
    """A topic that has to be there; ConfigError with the nearest name there is."""
    try:
        return client.topic(name, timeout_ms=timeout_ms)
    except KafkaError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        known = client.refresh(None).topics
        like = nearest(name, known)
        hint = f", did you mean {like!r}?" if like else f"; it has {len(known)} topics"
        raise ConfigError(f"the cluster at {bootstrap} has no topic {name!r}{hint}") from None
