"""A node as a process: from settings to an exit code.

    directories locked -> sockets bound -> node made -> clients let in -> … -> stopped

Whatever refuses to start does so before anything was changed, with a TidelogError whose text is one line. SIGTERM,
SIGINT and SIGHUP (a terminal that is closed) ask for a clean stop; a second one ends the process on the spot.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

from tidelog.config import Listener, NodeConfig
from tidelog.errors import StorageError, TidelogError
from tidelog.runtime.boot import boot_id
from tidelog.runtime.cautions import cautions
from tidelog.runtime.clock import Clock
from tidelog.runtime.descriptors import Descriptors, raise_descriptor_limit
from tidelog.runtime.files import DirectoryStorage
from tidelog.runtime.host import Host, NodeDoor
from tidelog.runtime.logging import EventLog
from tidelog.runtime.loop import Loop
from tidelog.runtime.peers import PeerSettings
from tidelog.runtime.resolver import told_host
from tidelog.runtime.server import Limits, Server
from tidelog.storage import Storage

LARGEST_BATCH_BYTES = 104_857_600
"""A leader has taken no larger one, unless its socket.request.max.bytes was raised."""
NodeFactory = Callable[[NodeConfig, Sequence[Storage], int, int], NodeDoor]
"""Makes a node of its settings (with the ports it really has), its directories, a seed and the time."""
SHARE_OF_DESCRIPTORS_FOR_FILES = 2
"""One in so many; most of the rest is for clients' connections."""
SHARE_OF_DESCRIPTORS_KEPT = 8
"""One in so many is for neither: other nodes, small files, directories on their way to the disk. Without them a disk
would seem to fail whenever clients have taken all there is."""
MIN_DESCRIPTORS_KEPT = 32


def run_node(
    config: NodeConfig,
    *,
    log_format: str = "human",
    log: EventLog | None = None,
    node_factory: NodeFactory | None = None,
    started: Callable[[Host, NodeConfig], None] | None = None,
    handle_signals: bool = True,
) -> int:
    """Run a node until it stops, and return the process's exit code.

    `started` is called once clients are let in, with the settings as they turned out (ports instead of 0).
    """
    log = EventLog(json=log_format == "json") if log is None else log
    descriptors = raise_descriptor_limit()
    files_limit = descriptors // SHARE_OF_DESCRIPTORS_FOR_FILES
    kept = max(MIN_DESCRIPTORS_KEPT, descriptors // SHARE_OF_DESCRIPTORS_KEPT)
    with _locked_directories(config, Descriptors(files_limit)) as storages:
        loop = Loop(Clock())
        server = Server(loop, Limits.of(config), log)
        server.max_descriptors = max(1, descriptors - files_limit - kept)
        host = Host(loop, server, log, _peer_settings(config))
        host.flusher.max_descriptors = min(host.flusher.max_descriptors, kept // 2)
        try:
            config = _listen(config, server, log)
            for caution in cautions(config):
                log.warning("caution", setting=caution.setting, reason=caution.reason)
            node = (node_factory or _default_factory())(
                config, storages, int.from_bytes(os.urandom(8), "big"), loop.clock.now_ms()
            )
            gc.freeze()  # modules and tables made so far will not become garbage: do not look through them again
            with _signals(host, log) if handle_signals else _no_signals():
                host.start(node)
                if started is not None:
                    started(host, config)
                if host.halt is None:
                    loop.run()
        finally:
            host.close()
            loop.close()
    assert host.halt is not None
    log.tell(
        "stopped",
        {"reason": host.halt.reason, "exit_code": host.halt.exit_code},
        "error" if host.halt.exit_code else "info",
    )
    return host.halt.exit_code


@contextmanager
def _locked_directories(config: NodeConfig, descriptors: Descriptors) -> Iterator[list[Storage]]:
    """Every log directory, nobody else's for as long as this lasts."""
    opened: list[DirectoryStorage] = []
    try:
        for path in dict.fromkeys((*config.log_dirs, config.metadata_directory)):
            storage = DirectoryStorage(path, descriptors)
            opened.append(storage)
            with suppress(StorageError):  # nothing can be done with it then, and whether that matters the node decides
                storage.lock()
        yield list(opened)
    except TidelogError:
        for storage in opened:
            storage.close(untouched=True)
        raise
    finally:
        for storage in opened:
            storage.close()


def _listen(config: NodeConfig, server: Server, log: EventLog) -> NodeConfig:
    """Bind every listener, and put what they turned out to be into the settings."""
    bound: dict[str, Listener] = {}
    for listener in config.listener_addresses:
        bound[listener.name] = server.listen(listener)
    # Only where there is another listener for clients: otherwise nothing would be limited.
    protected = set(config.controller_listener_set)
    if len(config.broker_addresses) > 1:
        protected.add(config.inter_broker_listener)
    server.unlimited_listeners = frozenset(protected)
    for listener in bound.values():
        log.info("listening", listener=listener.name, host=listener.host, port=listener.port)
    advertised = [
        entry._replace(host=told_host(entry.host), port=entry.port or bound[entry.name].port)
        for entry in (*config.advertised_addresses, *config.controller_addresses)
    ]
    return config.replace(
        listeners=tuple(str(entry._replace(port=bound[entry.name].port)) for entry in config.listener_addresses),
        advertised_listeners=tuple(str(entry) for entry in advertised) if advertised else None,
    )


def _peer_settings(config: NodeConfig) -> PeerSettings:
    max_idle_ms = config.connections_max_idle_ms
    if max_idle_ms >= 0:
        # A controller takes the end of the connection that heartbeats come by for the end of the broker.
        max_idle_ms = max(max_idle_ms, 2 * config.broker_heartbeat_interval_ms)
    return PeerSettings(
        client_id=f"tidelog-node-{config.node_id}",
        # What is fetched at once, and one batch more: a bound on requests, which may be small, is none on answers.
        max_answer_bytes=max(LARGEST_BATCH_BYTES, config.socket_request_max_bytes)
        + config.replica_fetch_response_max_bytes,
        max_idle_ms=max_idle_ms,
        address_overrides=config.peer_addresses,
    )


def _default_factory() -> NodeFactory:
    from tidelog.node.node import Node  # tests of the runtime bring their own

    return partial(Node, boot_id=boot_id())


@contextmanager
def _signals(host: Host, log: EventLog) -> Iterator[None]:
    """Turn SIGTERM, SIGINT and SIGHUP into a clean stop, the second one into an end at once."""
    received: list[int] = []
    delivered: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received and number == signal.SIGHUP:  # a terminal that goes is told of by the system and by the shell
            return
        if received:
            log.error("killed", signal=signal.Signals(number).name, reason="a second signal while stopping")
            os._exit(128 + number)
        received.append(number)
        host.loop.wake()

    def deliver() -> None:
        if received and not delivered:
            delivered.append(received[0])
            log.info("stop-requested", signal=signal.Signals(received[0]).name)
            host.request_stop()

    asking = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        asking.append(signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in asking}
    host.loop.on_wake.append(deliver)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _no_signals() -> Iterator[None]:
    yield
