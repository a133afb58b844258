"""CRC-32C, the checksum of a record batch, from the `crc32c` package's C extension.

The package's own `__init__` reads its version from the installed metadata, which costs ten times the extension itself
and a good part of a start; so the extension is loaded alone, and the package only where that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

from tidelog.wire.varints import Buffer


def _load() -> Callable[[Buffer, int], int]:
    try:
        package = PathFinder.find_spec("crc32c")
        locations = package.submodule_search_locations if package else None
        extension = PathFinder.find_spec("crc32c._crc32c", locations)
        if extension is not None and extension.loader is not None:
            module = module_from_spec(extension)
            extension.loader.exec_module(module)
            function: Callable[[Buffer, int], int] = module.crc32c
            if function(b"123456789", 0) == 0xE3069283:
                return function
    except (ImportError, AttributeError):
        pass
    from crc32c import crc32c as slow_to_import

    return slow_to_import


crc32c: Callable[[Buffer, int], int] = _load()
"""crc32c(data, value): the checksum of `data`, going on from `value`, which is 0 at the start."""
