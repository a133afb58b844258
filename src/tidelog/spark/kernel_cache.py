"""Where compiled code is kept: in NUMBA_CACHE_DIR, else where Python keeps its own bytecode, else in the user's cache.

An executor may have none of these: a package that it may only read and a user without a home are usual in containers.
numba would refuse to compile there at all, so it is asked once, with a function that does nothing.
"""

# mypy: disable-error-code="no-untyped-call, attr-defined"

from __future__ import annotations

import os
import sys

from numba import config, njit

if sys.pycache_prefix and "NUMBA_CACHE_DIR" not in os.environ:
    # numba has read the variable already, and reads it again now and then.
    config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = os.path.join(sys.pycache_prefix, "numba")


def _nothing() -> None:
    """What is compiled to see whether it can be kept."""


def _can_be_kept() -> bool:
    try:
        njit("void()", cache=True)(_nothing)
    except (OSError, RuntimeError):
        return False
    return True


KEPT = _can_be_kept()
"""Whether there is a place. Without one every process that needs the loops compiles them, which takes seconds."""
