"""The records in the logs of replicas, as a stage shows them."""

from __future__ import annotations

from tidelog.sim.stage import StoredRecord
from tidelog.wire.batch import iterate_batches, iterate_records


class StoredRecords:
    """Parses the bytes of logs, and those of a replica again only when they have changed: a script looks often."""

    def __init__(self) -> None:
        self._parsed: dict[tuple[int, str, int], tuple[bytes, tuple[StoredRecord, ...]]] = {}

    def parse(self, node_id: int, topic: str, index: int, data: bytes) -> tuple[StoredRecord, ...]:
        """What a replica's log holds; a torn batch at its end is left out."""
        known = self._parsed.get((node_id, topic, index))
        if known is not None and known[0] == data:
            return known[1]
        records = tuple(
            StoredRecord(record.offset, batch.partition_leader_epoch, (record.value or b"").decode())
            for batch in iterate_batches(data, allow_partial=True)
            for record in iterate_records(batch)
        )
        self._parsed[node_id, topic, index] = (data, records)
        return records
