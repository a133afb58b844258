"""The generator: a description in a jar becomes a module that the codec can work from."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tidelog.wire.codec import decode_exact, encode
from tools.generate_messages import Module, parse_versions, read_descriptions, snake_case

REQUEST: dict[str, Any] = {
    "apiKey": 77,
    "type": "request",
    "name": "TideRequest",
    "validVersions": "1-3",
    "flexibleVersions": "2+",
    "fields": [
        {"name": "KRaftVersion", "type": "int16", "versions": "0+", "default": "-1"},
        {"name": "MaxBytes", "type": "int32", "versions": "3+", "default": "0x7fffffff"},
        {"name": "Names", "type": "[]string", "versions": "1+", "nullableVersions": "2+", "default": "null"},
        {
            "name": "Parts",
            "type": "[]Part",
            "versions": "1+",
            "fields": [{"name": "Id", "type": "uuid", "versions": "1+"}],
        },
        {"name": "Extra", "type": "Part2", "taggedVersions": "2+", "tag": 4, "fields": []},
    ],
}
REQUEST["fields"][4]["fields"] = [{"name": "Depth", "type": "int64", "versions": "2+", "default": "5"}]
RESPONSE: dict[str, Any] = {
    "apiKey": 77,
    "type": "response",
    "name": "TideResponse",
    "validVersions": "1-3",
    "flexibleVersions": "2+",
    "fields": [
        {
            "name": "Parts",
            "type": "[]Part",
            "versions": "1+",
            "fields": [{"name": "Ok", "type": "bool", "versions": "1+"}],
        }
    ],
}


@pytest.fixture(scope="module")
def tide() -> Any:
    module = ModuleType("tide")
    exec(compile(Module([REQUEST, RESPONSE]).render(), "tide", "exec"), vars(module))
    return module


def test_classes_have_kafkas_names_and_defaults(tide: Any) -> None:
    request = tide.TideRequest()
    assert (request.kraft_version, request.max_bytes, request.names, request.parts) == (-1, 2**31 - 1, None, [])
    assert request.extra is None
    assert tide.TideRequest.VERSIONS == (1, 3)
    assert tide.Part2().depth == 5


def test_structures_of_one_name_are_told_apart_by_their_message(tide: Any) -> None:
    assert tide.TideRequestPart().id == bytes(16)
    assert tide.TideResponsePart().ok is False
    assert not hasattr(tide, "Part")


def test_what_is_generated_can_be_encoded(tide: Any) -> None:
    request = tide.TideRequest(names=["a"], parts=[tide.TideRequestPart(id=b"x" * 16)], extra=tide.Part2(depth=6))
    assert decode_exact(tide.TideRequest, 3, encode(request, 3)) == request
    assert encode(request, 1).hex() == "ffff" + "00000001" + "000161" + "00000001" + "78" * 16


def test_descriptions_are_found_in_jars_comments_and_all(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "kafka-clients-9.9.jar", "w") as jar:
        jar.writestr("common/message/TideRequest.json", "// a licence\n{\n  // why\n" + json.dumps(REQUEST)[1:])
        jar.writestr("common/message/Removed.json", json.dumps({"name": "Removed", "validVersions": "none"}))
        jar.writestr("other.json", "not JSON")
    assert read_descriptions(tmp_path) == {"TideRequest": REQUEST}


def test_names_and_versions() -> None:
    assert [snake_case(name) for name in ("TimeoutMs", "timeoutMs", "KRaftVersion", "IsrWithEpochs", "TopicId")] == [
        "timeout_ms",
        "timeout_ms",
        "kraft_version",
        "isr_with_epochs",
        "topic_id",
    ]
    assert [parse_versions(text) for text in ("none", "", "3", "1-4", "2+")] == [None, None, (3, 3), (1, 4), (2, 32767)]
