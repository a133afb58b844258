"""How a message gets from one simulated machine to another: through bytes, as on a wire, or handed over as it is.

Handing over is several times cheaper. It is only right because nobody changes a message after sending it, apart from
the batches in it: a leader stamps what it was given in place, and slices are read when the bytes leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidelog.errors import StorageError
from tidelog.storage import Slice
from tidelog.wire import frames
from tidelog.wire.api_table import ApiKey
from tidelog.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tidelog.wire.messages.produce import ProduceRequest


def pass_request(api_key: int, api_version: int, body: Any, supported: Mapping[int, tuple[int, int]]) -> Any:
    """What arrives of a request that goes through bytes."""
    frame = b"".join(_bytes(frames.encode_request(api_key, api_version, 0, "sim", body)))
    return frames.decode_request(memoryview(bytearray(frame[4:])), supported).body


def hand_over_batches(body: ProduceRequest) -> None:
    """Give a request to produce batches of its own: they are stamped where they are."""
    for topic in body.topic_data:
        for partition in topic.partition_data:
            partition.records = memoryview(bytearray(partition.records))


def pass_response(api_key: int, api_version: int, body: Any, *, through_bytes: bool) -> Any:
    """What arrives of an answer whose bytes leave now; ConnectionAbortedError when a log was cut under it."""
    if api_key == ApiKey.FETCH and not through_bytes:
        return _fetched(body)
    if api_key == ApiKey.FETCH_SNAPSHOT or through_bytes:
        frame = b"".join(_bytes(frames.encode_response(api_key, api_version, 0, body)))
        return frames.decode_response(api_key, api_version, memoryview(frame)[4:])[1]
    return body


def record_bytes(api_key: int, body: Any) -> bytes | None:
    """The records in an answer as the files have them now; None where it has none, or they were cut."""
    if api_key != ApiKey.FETCH or body is None:
        return None
    parts = []
    for topic in body.responses:
        for partition in topic.partitions:
            records = partition.records
            parts += [] if records is None else records if isinstance(records, list) else [records]
    try:
        return b"".join(_bytes(parts))
    except (ConnectionAbortedError, StorageError):
        return None


def _fetched(body: FetchResponse) -> FetchResponse:
    """The answer with its slices read; what holds them is not changed, because a node may look at it again."""
    if not _has_records(body):
        return body
    responses = []
    for topic in body.responses:
        partitions = []
        for one in topic.partitions:
            if one.records:
                parts = one.records if isinstance(one.records, list) else [one.records]
                one = PartitionData(
                    partition_index=one.partition_index,
                    error_code=one.error_code,
                    high_watermark=one.high_watermark,
                    last_stable_offset=one.last_stable_offset,
                    log_start_offset=one.log_start_offset,
                    diverging_epoch=one.diverging_epoch,
                    current_leader=one.current_leader,
                    snapshot_id=one.snapshot_id,
                    aborted_transactions=one.aborted_transactions,
                    preferred_read_replica=one.preferred_read_replica,
                    records=memoryview(b"".join(_bytes(parts))),
                )
            partitions.append(one)
        responses.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions))
    return FetchResponse(
        throttle_time_ms=body.throttle_time_ms,
        error_code=body.error_code,
        session_id=body.session_id,
        responses=responses,
        node_endpoints=body.node_endpoints,
    )


def _has_records(body: FetchResponse) -> bool:
    for topic in body.responses:
        for partition in topic.partitions:
            if partition.records:
                return True
    return False


def _bytes(parts: Sequence[Any]) -> list[bytes]:
    pieces = []
    for part in parts:
        if isinstance(part, Slice):
            if not part.valid:
                raise ConnectionAbortedError("the log was cut under a slice")
            pieces.append(part.read())
        else:
            pieces.append(part)
    return pieces
