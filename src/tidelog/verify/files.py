"""A replica's segment files, read without a node."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from tidelog.errors import CorruptionError, KafkaError
from tidelog.verify.judge import StoredBatch
from tidelog.wire.batch import check_crc, iterate_batches


def stored_batches(data_directory: str, topic: str, partition: int) -> list[StoredBatch]:
    """Every batch of a partition in the order of its segments; CorruptionError where the bytes are no batches."""
    directory = os.path.join(data_directory, f"{topic}-{partition}")
    found = []
    for name in sorted(name for name in os.listdir(directory) if name.endswith(".log")):
        with open(os.path.join(directory, name), "rb") as file:
            data = memoryview(file.read())
        try:
            for header in iterate_batches(data):
                check_crc(header)
                digest = hashlib.blake2b(header.data, digest_size=16).digest()
                found.append(StoredBatch(header.base_offset, header.last_offset, digest))
        except KafkaError as error:
            raise CorruptionError(f"{directory}/{name}: {error}") from None
    return found


def stored_replicas(data_directories: Mapping[int, str], topic: str, partition: int) -> dict[int, list[StoredBatch]]:
    """The same for every node that holds the partition, by node id."""
    return {
        node_id: stored_batches(directory, topic, partition)
        for node_id, directory in data_directories.items()
        if os.path.isdir(os.path.join(directory, f"{topic}-{partition}"))
    }
