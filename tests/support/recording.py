"""Record the requests real clients send, for the fuzzer to start from.

    python -m tests.support.recording tests/support/recorded_frames.txt

Starts Apache Kafka behind a proxy, lets confluent-kafka, aiokafka, kafka-python and Kafka's Java tools work through it,
and writes a few small requests of every API, version and client: `api version client-id hex`, one a line.
"""

from __future__ import annotations

import shutil
import socket
import struct
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path

from tests.support import java, probe
from tests.support.nodes import KafkaNode, Node
from tests.support.ports import free_ports

LARGEST_FRAME_BYTES = 1_500
FRAMES_OF_A_KIND = 2


class RecordingProxy:
    """Passes bytes both ways and keeps every request."""

    def __init__(self, port: int, target_port: int) -> None:
        self.frames: list[bytes] = []
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self._target_port))
            threading.Thread(target=self._record, args=(client, broker), daemon=True).start()
            threading.Thread(target=self._pass, args=(broker, client), daemon=True).start()

    def _record(self, client: socket.socket, broker: socket.socket) -> None:
        try:
            while True:
                frame = probe.read_frame(client)
                self.frames.append(frame)
                broker.sendall(struct.pack(">i", len(frame)) + frame)
        except (OSError, EOFError):
            broker.close()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while piece := source.recv(65_536):
                target.sendall(piece)
        except OSError:
            pass
        target.close()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()


def exercise(node: Node) -> None:
    """Let every client do a little of everything."""
    from tests.clients import confluent, samples, test_admin, test_aiokafka, test_kafka_python
    from tests.clients.samples import Record

    records = samples.every_shape()[:8]
    for codec in samples.CODECS:
        topic = f"fuzz-{codec}"
        confluent.create_topic(node, topic, 2)
        confluent.produce_all(node, topic, records, compression_type=codec, enable_idempotence=codec == "lz4")
        confluent.consume_all(node, topic, len(records))
        test_kafka_python.produce_all(node, topic, test_kafka_python.writable()[:8])
        test_kafka_python.consume_all(node, topic, 5)
        test_aiokafka.run(test_aiokafka.produce_all(node, topic, test_aiokafka.writable()[:8]))
        test_aiokafka.run(test_aiokafka.consume_all(node, topic, 5))
    test_aiokafka.test_admin_calls(node)
    test_kafka_python.test_admin_calls(node)
    client = confluent.admin(node)
    numbers = iter(range(100))

    def make_topic(partitions: int = 1, **config: str) -> str:
        name = f"fuzz-admin-{next(numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        confluent.create_topic(node, name, partitions, settings)
        return name

    test_admin.test_a_topic_is_made_described_and_deleted(client, make_topic)
    test_admin.test_partitions_are_added_never_taken(node, client, make_topic)
    test_admin.test_a_changed_setting_works_at_once(node, client, make_topic)
    test_admin.test_deleted_records_are_gone(node, client, make_topic)
    test_admin.test_offsets_are_listed_by_every_rule(node, client, make_topic)
    test_admin.test_the_cluster_describes_itself(node, client)
    server = ("--bootstrap-server", node.bootstrap)
    confluent.produce_all(node, "fuzz-java", [Record(None, b"one", 1)])
    java.run_tool("org.apache.kafka.tools.ConsoleProducer", *server, "--topic", "fuzz-java", standard_input="a\nb\n")
    java.run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *server,
        *("--topic", "fuzz-java", "--partition", "0", "--offset", "0", "--max-messages", "3"),
    )
    java.run_tool("org.apache.kafka.tools.TopicCommand", *server, "--describe")
    java.run_tool("org.apache.kafka.tools.GetOffsetShell", *server)
    java.run_tool("org.apache.kafka.tools.LogDirsCommand", *server, "--describe")
    java.run_tool("kafka.admin.ConfigCommand", *server, "--describe", "--entity-type", "brokers", "--all")


def main() -> int:
    """The command."""
    scratch = Path(tempfile.mkdtemp(prefix="recording-"))
    (proxy_port,) = free_ports(1)
    node = KafkaNode(scratch, properties={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy_port}"})
    try:
        with node:
            proxy = RecordingProxy(proxy_port, node.client_port)
            node.client_port = proxy_port
            exercise(node)
            proxy.close()
    finally:
        shutil.rmtree(scratch)
    kept: dict[tuple[int, int, str], set[bytes]] = defaultdict(set)
    for frame in proxy.frames:
        api_key, api_version, _, name_length = struct.unpack_from(">hhih", frame)
        client_id = frame[10 : 10 + max(name_length, 0)].decode().rstrip("0123456789-") or "none"
        kind = kept[api_key, api_version, client_id]
        if len(frame) <= LARGEST_FRAME_BYTES and len(kind) < FRAMES_OF_A_KIND:
            kind.add(frame)
    with Path(sys.argv[1]).open("w") as output:
        for (api_key, api_version, client_id), frames in sorted(kept.items()):
            for frame in sorted(frames):
                print(api_key, api_version, client_id, frame.hex(), file=output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
