"""Apache Kafka's command-line tools, many calls in one JVM: starting one for each call would cost most of the time.

said = shared().run("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", "127.0.0.1:9092", "--list")

The tool's own `main` runs with its own arguments; what it prints and the code it would have exited with are taken.
"""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
from types import TracebackType
from typing import Any, Self

from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError

from tests.support import java
from tests.support.java import ToolFailed


class _Exited(Exception):
    """Thrown through the tool where it would have ended its process."""


class _ExitProcedure:
    """Called by the tool instead of ending the JVM (`org.apache.kafka.common.utils.Exit` lets tests do that)."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.said_bytes: int | None = None
        """How much the tool had said by then; what comes later is about the end that did not come."""
        self._stream: Any = None
        self._file = ""

    def begin(self, stream: Any, file: str) -> None:
        """A tool is about to start; its words go through `stream` into `file`."""
        self._stream, self._file = stream, file
        self.said_bytes = self.code = None

    def execute(self, code: int, _message: str | None) -> None:
        """Only the first call counts: some tools catch what is thrown here, complain, and try to end once more."""
        if self.code is None:
            self.code = code
            self._stream.flush()
            self.said_bytes = os.path.getsize(self._file)
        raise _Exited(code)

    class Java:
        """What py4j wants to know."""

        implements: tuple[str, ...] = ("org.apache.kafka.common.utils.Exit$Procedure",)


class Toolbox:
    """One JVM with Kafka's jars; not for threads, since a JVM has one standard output."""

    def __enter__(self) -> Self:
        # py4j writes an error to its log for everything that a callback raises, and raising is what ours is for.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        self._directory = tempfile.TemporaryDirectory(prefix="toolbox-")
        self._words = tempfile.TemporaryFile()
        port, token, self._process = launch_gateway(
            classpath=java.kafka_class_path(),
            javaopts=[*java.QUICK_START, "-Xmx256m", f"-Dlog4j2.configurationFile={java.TOOL_LOGGING}"],
            java_path=java.java_executable(),
            die_on_exit=True,
            redirect_stdout=subprocess.DEVNULL,
            redirect_stderr=self._words,
            return_proc=True,
            enable_auth=True,
        )
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True),
            callback_server_parameters=CallbackServerParameters(port=0),
        )
        callback_port = self._gateway.get_callback_server().get_listening_port()
        client = self._gateway.java_gateway_server.getCallbackClient()
        self._gateway.java_gateway_server.resetCallbackClient(client.getAddress(), callback_port)
        self._jvm: Any = self._gateway.jvm
        self._exit = _ExitProcedure()
        exits = self._jvm.org.apache.kafka.common.utils.Exit
        exits.setExitProcedure(self._exit)
        exits.setHaltProcedure(self._exit)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gateway.shutdown()
        self._process.stdin.close()
        self._process.wait(60)
        self._words.close()
        self._directory.cleanup()

    def run(self, main_class: str, *arguments: str, expect_failure: bool = False) -> str:
        """What the tool printed, to either stream; ToolFailed when it ended with another verdict than expected."""
        file = os.path.join(self._directory.name, "said")  # a dump can be larger than a small heap
        stream = self._jvm.java.io.PrintStream(self._jvm.java.io.FileOutputStream(file))
        system = self._jvm.java.lang.System
        before = system.out, system.err
        words = self._gateway.new_array(self._jvm.java.lang.String, len(arguments))
        for position, argument in enumerate(arguments):
            words[position] = argument
        self._exit.begin(stream, file)
        failure = ""
        system.setOut(stream)
        system.setErr(stream)
        try:
            self._main_of(main_class)(words)
        except Py4JError as error:
            if self._exit.code is None:
                failure = str(error)
        finally:
            system.setOut(before[0])
            system.setErr(before[1])
            stream.close()
        with open(file, "rb") as words_said:
            said = words_said.read(-1 if self._exit.said_bytes is None else self._exit.said_bytes).decode()
        failed = bool(failure) or self._exit.code not in (None, 0)
        if failed != expect_failure:
            code = self._exit.code
            raise ToolFailed(f"{main_class} {' '.join(arguments)}: exit code {code}\n{said}{failure}")
        return said + failure

    def _main_of(self, main_class: str) -> Any:
        found = self._jvm
        for name in main_class.split("."):
            found = getattr(found, name)
        return found.main


_shared: list[Toolbox] = []


def shared() -> Toolbox:
    """The one JVM of this test run, started when it is first needed; `end_shared` ends it."""
    if not _shared:
        _shared.append(Toolbox().__enter__())
    return _shared[0]


def end_shared() -> None:
    """End it while the interpreter is whole: later py4j's threads would wait for a JVM that is gone."""
    while _shared:
        _shared.pop().__exit__(None, None, None)
