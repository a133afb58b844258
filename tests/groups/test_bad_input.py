"""Whatever a client sends to a group, the node goes on and every group still answers."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.groups.support import GROUP, ClassicMember, ConsumerMember, GroupNode
from tests.node.support import TOPIC
from tidelog.node import apis
from tidelog.wire.apis import ApiKey, request_class

KEYS = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.LIST_GROUPS,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
    ApiKey.FIND_COORDINATOR,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
)


class Nonsense:
    """Requests of the right form with the wrong content, now and then with the right one."""

    def __init__(self, seed: int, node: GroupNode) -> None:
        self._chance = random.Random(seed)
        self._node = node
        self.names = [
            "",
            GROUP,
            "mixed",
            "c",
            "static",
            "nobody",
            TOPIC,
            "x" * 300,
            "consumer",
            "range",
            "ev.*",
            "(",
            "ü",
        ]

    def value(self, name: str, kind: Any, nullable: str, version: int) -> Any:
        chance = self._chance
        if _has(nullable, version) and chance.random() < 0.3:
            return None
        if isinstance(kind, tuple):
            return [self.message(kind[0], version) for _ in range(chance.randrange(3))]
        if isinstance(kind, type):
            return self.message(kind, version)
        if kind.startswith("[]"):
            return [self.value(name, kind[2:], "", version) for _ in range(chance.randrange(3))]
        if kind == "string":
            return chance.choice(self.names)
        if kind == "uuid":
            return chance.choice([bytes(16), self._node.topic_id(TOPIC), chance.randbytes(16)])
        if kind == "bytes":
            return chance.randbytes(chance.randrange(12))
        if kind == "bool":
            return chance.random() < 0.5
        if name.endswith("timeout_ms"):
            return chance.choice([-1, 0, 6_000, 10_000, 2_000_000_000])
        small = chance.choice([-2, -1, 0, 0, 1, 2, 3, 100])
        return small if kind == "int8" or chance.random() < 0.9 else (1 << 15) - 1

    def message(self, cls: Any, version: int) -> Any:
        return cls(**{row[0]: self.value(row[0], row[1], row[3], version) for row in cls.FIELDS})


def _has(versions: str, version: int) -> bool:
    """Whether `3+` or `2-7` has a version."""
    low, _, high = versions.removesuffix("+").partition("-")
    return bool(low) and int(low) <= version <= int(high or (version if versions.endswith("+") else low))


@pytest.mark.parametrize("seed", range(4))
def test_nonsense_stops_nobody(seed: int) -> None:
    node = GroupNode(seed, group_max_size="5", group_consumer_max_size="5")
    member, modern = ClassicMember(node), ConsumerMember(node, "c", group="mixed")
    member.join()
    member.sync()
    modern.beat()
    nonsense = Nonsense(seed, node)
    nonsense.names.append(member.member_id)
    chance = random.Random(seed)
    for _ in range(400):
        api_key = chance.choice(KEYS)
        low, high = apis.BROKER_VERSIONS[api_key]
        connection = node.world.connect(1)  # a held join would hold up what comes after it
        assert connection is not None
        version = chance.randint(low, high)
        body = nonsense.message(request_class(api_key), version)
        node.world.request(connection, api_key, version, body, lambda _answer: None)
        node.pass_ms(chance.choice([5, 5, 5, 2_000]))
    node.pass_ms(700_000)
    assert node.process(1).alive
    for group in (GROUP, "mixed", "another"):
        fresh = ClassicMember(node, group=group)
        fresh.protocols = {"range": b"\0\0\0\0\0\0\xff\xff\xff\xff"}
        joined = fresh.join()
        assert fresh.sync({joined.member_id: b"all"}).error_code == 0
        assert fresh.commit({0: 1}) == {0: 0}
    node.restart()
    assert node.committed("another") == {0: 1}
