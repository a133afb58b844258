"""`python -m tidelog` is the `tidelog` command."""

from __future__ import annotations

import sys

from tidelog.cli import main

if __name__ == "__main__":
    sys.exit(main())
