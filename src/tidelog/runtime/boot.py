"""Which boot of the machine this is: as long as it is the same, the page cache has not been lost."""

from __future__ import annotations

BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""Linux draws it anew at every boot; containers see that of their machine, which is the one that counts."""


def boot_id(path: str = BOOT_ID) -> str | None:
    """The id of this boot, or None where the system does not tell."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip() or None
    except (OSError, ValueError):
        return None
