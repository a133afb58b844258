"""Which transaction a query has open, kept where the driver's other processes find it.

Spark asks a new process to abort a batch, and tells it what the tasks told: nothing, where the query was stopped while
they wrote. Unless somebody then ends the transaction, it holds back readers of committed records until its timeout, a
quarter of an hour. So whoever begins one leaves a note in a folder of this user's. A note that is out of date does no
harm: an epoch that another has replaced cannot end anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from hashlib import sha256

from tidelog.client.shared_transaction import Identity


class OpenTransaction:
    """The note of one query; where notes cannot be kept, there is none, and the timeout has to do."""

    def __init__(self, *query: str) -> None:
        """`query` is what tells it from all others: where to, under which id, from which checkpoint."""
        folder = os.path.join(tempfile.gettempdir(), f"tidelog-sink-{os.getuid()}")
        self._path = os.path.join(folder, sha256(json.dumps(query).encode()).hexdigest()[:32])

    def note(self, identity: Identity) -> None:
        """It is begun."""
        folder = os.path.dirname(self._path)
        with contextlib.suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            if os.stat(folder, follow_symlinks=False).st_uid != os.getuid():
                return
            with open(f"{self._path}.{os.getpid()}", "w", encoding="utf-8") as file:
                json.dump(identity, file)
            os.replace(file.name, self._path)

    def read(self) -> Identity | None:
        """Who writes in it, if anybody does."""
        try:
            with open(self._path, encoding="utf-8") as file:
                if os.fstat(file.fileno()).st_uid != os.getuid():
                    return None
                transactional_id, producer_id, epoch, protocol = json.load(file)
        except (OSError, ValueError):
            return None
        return Identity(str(transactional_id), int(producer_id), int(epoch), int(protocol))

    def forget(self) -> None:
        """It is over."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)
