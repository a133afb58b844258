"""Names for new members: what the client is called, and something no other has."""

from __future__ import annotations

from tidelog.outbox import Chance


def new_member_id(chance: Chance, prefix: str) -> str:
    """As Kafka forms it: the client's name or the instance's, a dash, and a UUID in its long form."""
    digits = chance.uuid().hex()
    return f"{prefix}-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
