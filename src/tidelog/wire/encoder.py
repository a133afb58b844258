"""Compiles the encoder of one message class at one version.

As the decoder, it writes straight-line code: one struct call for neighbouring fields of fixed size, the length byte of
what follows and empty tagged sections. The compiled function returns the chunks of the message in order; records may
be among them as slices of files, to be sent and never read here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from tidelog.wire.decoder import MAX_STRING_BYTES
from tidelog.wire.message import Message
from tidelog.wire.plan import FieldPlan, StructPlan, plan_message
from tidelog.wire.uuids import ZERO_UUID
from tidelog.wire.varints import encode_unsigned

Encoder = Callable[[Any], list[Any]]


def compile_encoder(cls: type[Message], version: int) -> Encoder:
    """A function of a message to its chunks (bytes-like or Slice), which still have to be joined."""
    plan = plan_message(cls, version)
    source = _Source(f"{cls.__name__} v{version}")
    source.struct("m", plan)
    source.flush()
    return source.function()


def _string_length(length: int) -> bytes:
    """The compact length of a string whose length takes more than a byte."""
    if length > MAX_STRING_BYTES + 1:
        raise ValueError(f"a string of {length - 1} bytes is longer than Kafka's {MAX_STRING_BYTES}")
    return encode_unsigned(length)


class _Source:
    """The text under construction. Names in it: m the message, w appends a chunk, s n scratch, xN list elements."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.lines: list[str] = []
        self.indent = "    "
        self.writer = "w"
        self.run: list[tuple[str, str]] = []
        self.names: dict[str, Any] = {
            "varint": encode_unsigned,
            "string_length": _string_length,
            "pack": struct.pack,
            "join": b"".join,
            "Z": ZERO_UUID,
        }
        self.next_number = 0

    def function(self) -> Encoder:
        """Compile what was collected."""
        text = "\n".join(["def encode(m):", "    out = []", "    w = out.append", *self.lines, "    return out"])
        exec(compile(text, f"<encode {self.title}>", "exec"), self.names)  # noqa: S102 - the text is made above, from our own tables
        encoder: Encoder = self.names["encode"]
        return encoder

    def emit(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def number(self) -> int:
        self.next_number += 1
        return self.next_number

    def name_of(self, value: Any) -> str:
        name = f"D{self.number()}"
        self.names[name] = value
        return name

    def packed(self, run: list[tuple[str, str]]) -> str:
        """The expression that packs a run; a pad byte is a zero and takes no value."""
        codes = "".join(code for _, code in run)
        values = [value for value, code in run if code != "x"]
        if not values:
            return repr(bytes(len(codes)))
        name = "P_" + codes.replace("?", "o")
        if name not in self.names:
            self.names[name] = struct.Struct(">" + codes).pack
        return f"{name}({', '.join(values)})"

    def flush(self) -> None:
        """Write the pending run."""
        if self.run:
            self.emit(f"{self.writer}({self.packed(self.run)})")
            self.run = []

    def struct(self, target: str, plan: StructPlan) -> None:
        for field in plan.untagged:
            self.field(f"{target}.{field.name}", field)
        if plan.flexible:
            self.tags(target, plan)

    def length(self, field: FieldPlan) -> None:
        """Write the length in n (one too high, 0 is null) together with the pending run."""
        run, self.run = self.run, []
        if not field.compact:
            self.emit(f"{self.writer}({self.packed([*run, ('n - 1', 'h' if field.kind == 'string' else 'i')])})")
            return
        self.emit(f"if n < 128: {self.writer}({self.packed([*run, ('n', 'B')])})")
        slow = "string_length(n)" if field.kind == "string" else "varint(n)"
        prefix = f"{self.packed(run)} + " if run else ""
        self.emit(f"else: {self.writer}({prefix}{slow})")

    def field(self, target: str, field: FieldPlan) -> None:
        kind = field.kind
        if kind == "fixed":
            self.run.append((target, field.code))
        elif kind == "struct":
            self.single_struct(target, field)
        elif kind == "array":
            self.array(target, field)
        elif kind == "records":
            self.records(target, field)
        else:
            encoded = "s.encode()" if kind == "string" else "s"
            self.emit(f"s = {target}")
            if field.nullable:
                self.emit("if s is None: n = 0")
                self.emit(f"else: s = {encoded}; n = len(s) + 1")
            else:
                self.emit(f"s = {encoded}; n = len(s) + 1")
            self.length(field)
            self.emit(f"if n > 1: {self.writer}(s)")

    def records(self, target: str, field: FieldPlan) -> None:
        """Several parts have one length before them; slices are put among the chunks as they are."""
        self.emit(f"s = {target}")
        self.emit(f"if s is None: n = {0 if field.nullable else 1}")
        self.emit("elif type(s) is list: n = sum(map(len, s)) + 1")
        self.emit("else: n = len(s) + 1")
        self.length(field)
        self.emit("if n > 1:")
        self.emit("    if type(s) is list: out.extend(s)")
        self.emit("    else: w(s)")

    def single_struct(self, target: str, field: FieldPlan) -> None:
        assert isinstance(field.element, StructPlan)
        inner = f"x{self.number()}"
        if field.nullable:
            self.flush()
            self.emit(f"{inner} = {target}")
            self.emit(f"if {inner} is None: {self.writer}({'bytes(1)' if field.tag >= 0 else repr(bytes([255]))})")
            self.emit("else:")
            self.indent += "    "
            self.run.append(("1", "b"))
            self.struct(inner, field.element)
            self.flush()
            self.indent = self.indent[4:]
        else:
            self.emit(f"{inner} = {target}")
            self.struct(inner, field.element)

    def array(self, target: str, field: FieldPlan) -> None:
        element = field.element
        assert element is not None
        items = f"l{self.number()}"
        self.emit(f"{items} = {target}")
        if field.nullable:
            self.emit(f"n = 0 if {items} is None else len({items}) + 1")
        else:
            self.emit(f"n = len({items}) + 1")
        self.length(field)
        if isinstance(element, FieldPlan) and element.kind == "fixed":
            packed = f"join({items})" if element.code == "16s" else f"pack(f'>{{n - 1}}{element.code}', *{items})"
            self.emit(f"if n > 1: {self.writer}({packed})")
            return
        if field.nullable:
            self.emit("if n > 1:")
            self.indent += "    "
        item = f"x{self.number()}"
        self.emit(f"for {item} in {items}:")
        self.indent += "    "
        if isinstance(element, StructPlan):
            before = len(self.lines)
            self.struct(item, element)
            self.flush()
            if len(self.lines) == before:
                self.emit("pass")
        else:
            self.field(item, element)
        self.indent = self.indent[: -8 if field.nullable else -4]

    def tags(self, target: str, plan: StructPlan) -> None:
        """The tagged section: usually one zero byte, which joins the pending run."""
        if not plan.tagged:
            self.run.append(("", "x"))
            return
        pending, self.run = self.run, []
        conditions = [self.is_default(f"{target}.{field.name}", field) for field in plan.tagged]
        self.emit(f"if {' and '.join(conditions)}: {self.writer}({self.packed([*pending, ('', 'x')])})")
        self.emit("else:")
        self.indent += "    "
        self.run = pending
        self.flush()
        found = f"t{self.number()}"
        outer_writer = self.writer
        self.emit(f"{found} = []")
        for field, condition in zip(plan.tagged, conditions, strict=True):
            number = self.number()
            self.emit(f"if not ({condition}):")
            self.indent += "    "
            self.emit(f"c{number} = []; w{number} = c{number}.append")
            self.writer = f"w{number}"
            self.field(f"{target}.{field.name}", field)
            self.flush()
            self.emit(f"c{number} = join(c{number})")
            self.emit(f"{found}.append({encode_unsigned(field.tag)!r} + varint(len(c{number})) + c{number})")
            self.indent = self.indent[4:]
        self.writer = outer_writer
        self.emit(f"{self.writer}(varint(len({found}))); {self.writer}(join({found}))")
        self.indent = self.indent[4:]

    def is_default(self, target: str, field: FieldPlan) -> str:
        """The condition under which a tagged field is left out."""
        default = field.default
        if default is None:
            return f"{target} is None"
        if default == ():
            return f"{target} == []" if field.nullable else f"not {target}"
        if isinstance(default, type):
            equal = self.is_default_struct(target, default())
            return f"({target} is None or {equal})" if field.none_is_default else f"({target} is not None and {equal})"
        if default == ZERO_UUID:
            return f"{target} == Z"
        if default is False:
            return f"not {target}"
        return f"{target} == {default!r}"

    def is_default_struct(self, target: str, default: Message) -> str:
        """Field by field: a structure that is there differs in its first one, as a rule."""
        names = [row[0] for row in default.FIELDS]
        return " and ".join(f"{target}.{name} == {self.name_of(getattr(default, name))}" for name in names)
