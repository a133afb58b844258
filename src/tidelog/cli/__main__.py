"""`python -m tidelog.cli`: the command without its installed script, as the supervisor starts nodes."""

from __future__ import annotations

import sys

from tidelog.cli import main

sys.exit(main())
