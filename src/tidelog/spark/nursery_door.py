"""What Spark starts in place of Python when there is a nursery: a door to it. See `nursery`.

The text of this file, with the two names below filled in, is a program of its own: Python runs it without site
packages, so that it starts in a few milliseconds. What is no daemon, or what the nursery does not take, runs on Python
as ever.
"""

from __future__ import annotations

import os
import signal
import sys

PYTHON = ""
NURSERY = ""
WAIT_S = 30.0


def main() -> None:
    """Hand a daemon over and live as long as it does; else become Python itself."""
    arguments = sys.argv[1:]
    if arguments[:2] == ["-m", "pyspark.daemon"] and _hand_over(arguments[2:]):
        return
    os.execv(PYTHON, [PYTHON, *arguments])  # noqa: S606 - the very Python the user runs


def _hand_over(arguments: list[str]) -> bool:
    import json
    import socket

    request = {"arguments": arguments, "environment": dict(os.environ), "directory": os.getcwd()}
    message = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(WAIT_S)
        try:
            connection.connect(NURSERY)
            socket.send_fds(connection, [len(message).to_bytes(4, "big")], [0, 1, 2])
            connection.sendall(message)
            process = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
        except OSError:
            return False
        if not process:
            return False
        # Spark's end of the daemon's pipes is all that must be open: it reads its end there, and so does the daemon.
        for number in (0, 1):
            os.close(number)

        def end(*_: object) -> None:
            # Again every second: PySpark's daemon answers the first by an exception, which gets lost where it forks.
            signal.alarm(1)
            os.kill(process, signal.SIGTERM)

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGALRM, end)
        connection.settimeout(None)
        connection.recv(1)  # nothing is ever sent: this ends with the daemon
    return True


if __name__ == "__main__":
    main()
