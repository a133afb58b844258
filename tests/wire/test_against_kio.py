"""Every API, header and protocol message, byte for byte against kio: a second reading of Kafka's descriptions."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import importlib
import io
import uuid
from random import Random
from typing import Any

import pytest
from kio.serial import entity_reader, entity_writer

from tests.wire.values import classes_and_versions, draw_message
from tidelog.wire.codec import decode_exact, encode
from tidelog.wire.message import Message
from tidelog.wire.plan import FieldPlan, StructPlan, plan_message
from tools.generate_messages import OWN_TAG

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DRAWS = 3


def kio_class(cls: type[Message], version: int) -> Any:
    """The class of the same name and version, or None where kio has none (metadata and coordinator records)."""
    package, _, _ = cls.__module__.rpartition(".")
    name = cls.__module__.rpartition(".")[2]
    if name == "header":
        kind, name = "header", "request_header" if cls.__name__ == "RequestHeader" else "response_header"
    elif package.endswith("records"):
        kind, name = "data", name.replace("kraft", "k_raft")
    else:
        kind = "request" if cls.__name__.endswith("Request") else "response"
    try:
        module = importlib.import_module(f"kio.schema.{name}.v{version}.{kind}")
    except ModuleNotFoundError:
        return None
    return getattr(module, cls.__name__, None)


def clear_own(message: Message) -> None:
    """Leave out the tagged fields that are ours alone: kio, unlike Kafka, does not pass over what it does not know."""
    for name, _, _, _, tag, _, default, _ in message.FIELDS:
        value = getattr(message, name)
        if tag >= OWN_TAG:
            setattr(message, name, default)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Message):
                clear_own(inner)


def compare(ours: Any, theirs: Any, plan: StructPlan) -> None:
    """The same values in fields of the same order."""
    present = [field for field in plan.fields if field.present and field.tag < OWN_TAG]
    names = [field.name for field in dataclasses.fields(theirs)]
    assert len(present) == len(names), (plan.cls, names)
    for field, name in zip(present, names, strict=True):
        compare_value(getattr(ours, field.name), getattr(theirs, name), field)


def compare_value(ours: Any, theirs: Any, field: FieldPlan) -> None:
    element = field.element
    if isinstance(element, StructPlan) and field.kind == "struct":
        if ours is None and field.none_is_default:
            ours = element.cls()
        if ours is not None:
            compare(ours, theirs, element)
            return
    elif isinstance(element, StructPlan) and ours is not None:
        assert len(ours) == len(theirs)
        for our_item, their_item in zip(ours, theirs, strict=True):
            compare(our_item, their_item, element)
        return
    elif isinstance(element, FieldPlan) and ours is not None:
        assert ours == [plain(item, element) for item in theirs]
        return
    assert ours == plain(theirs, field), field.name


def plain(value: Any, field: FieldPlan) -> Any:
    """A value of kio's richer types as the number or bytes on the wire."""
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(milliseconds=1)
    if isinstance(value, dt.datetime):
        return (value - EPOCH) // dt.timedelta(milliseconds=1)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, uuid.UUID):
        return value.bytes
    if value is None and field.code == "16s":
        return bytes(16)
    if value is None and field.code == "q":
        return -1
    return value


def test_every_api_and_version_is_byte_for_byte_what_kio_writes() -> None:
    random = Random(20260101)
    compared = set()
    for cls, version in classes_and_versions():
        their_class = kio_class(cls, version)
        if their_class is None:
            continue
        read, write = entity_reader(their_class), entity_writer(their_class)
        plan = plan_message(cls, version)
        for _ in range(DRAWS):
            message = draw_message(cls, version, random, longest_list=2)
            clear_own(message)
            data = encode(message, version)
            theirs, size = read(data, 0)
            assert size == len(data), (cls, version)
            compare(message, theirs, plan)
            out = io.BytesIO()
            write(out, theirs)
            assert out.getvalue() == data, (cls, version, message)
            assert decode_exact(cls, version, data) == decode_exact(cls, version, out.getvalue())
        compared.add((cls.__name__, version))
    names = {name for name, _ in compared}
    assert len(compared) > 400
    assert {"ProduceRequest", "FetchResponse", "RequestHeader", "ConsumerProtocolSubscription"} <= names


@pytest.mark.parametrize("name", ["VoteRequest", "BrokerRegistrationRequest", "FetchSnapshotResponse"])
def test_the_controllers_apis_are_compared_too(name: str) -> None:
    assert any(cls.__name__ == name and kio_class(cls, version) for cls, version in classes_and_versions())
