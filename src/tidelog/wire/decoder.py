"""Compiles the decoder of one message class at one version.

The source made here is straight-line code: neighbouring fields of fixed size, the length byte of what follows and the
count of tagged fields are read by one struct call, and nested structures are written out in place. Lengths longer than
a byte take a side path. Anything malformed ends in DecodeError, and no list or string is made before its bytes are
known to be there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from tidelog.errors import DecodeError
from tidelog.wire.message import Message
from tidelog.wire.plan import CODE_SIZES, FieldPlan, StructPlan, plan_message
from tidelog.wire.uuids import ZERO_UUID
from tidelog.wire.varints import Buffer, decode_unsigned

Decoder = Callable[[Buffer, int], tuple[Any, int]]
MAX_STRING_BYTES = 32767


def compile_decoder(cls: type[Message], version: int) -> Decoder:
    """A function of (buffer, offset) to (message, offset behind it)."""
    try:
        plan = plan_message(cls, version)
    except ValueError as error:
        raise DecodeError(str(error)) from None
    source = _Source(f"{cls.__name__} v{version}")
    result = source.struct(plan)
    source.flush()
    return source.function(result)


class _Source:
    """The text under construction. Names in it: b buffer, o offset, end its length, mN structures, n e c scratch."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.lines: list[str] = []
        self.indent = "        "
        self.run: list[tuple[str, str]] = []
        self.names: dict[str, Any] = {
            "new": object.__new__,
            "varint": decode_unsigned,
            "unpack_from": struct.unpack_from,
            "DecodeError": DecodeError,
            "Broken": (struct.error, IndexError, UnicodeDecodeError),
            "Z": ZERO_UUID,
        }
        self.next_number = 0

    def function(self, result: str) -> Decoder:
        """Compile what was collected."""
        head = ["def decode(b, o):", "    end = len(b)", "    try:"]
        tail = [
            f"        return {result}, o",
            "    except Broken as error:",
            f"        raise DecodeError(f'{self.title}: {{error}} near byte {{o}} of {{end}}') from None",
        ]
        text = "\n".join([*head, *self.lines, *tail])
        exec(compile(text, f"<decode {self.title}>", "exec"), self.names)  # noqa: S102 - the text is made above, from our own tables
        decoder: Decoder = self.names["decode"]
        return decoder

    def emit(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def number(self) -> int:
        self.next_number += 1
        return self.next_number

    def fail(self, reason: str) -> str:
        return f"raise DecodeError(f'{self.title}: {reason} near byte {{o}} of {{end}}')"

    def read_fixed(self, target: str, code: str) -> None:
        """Put off reading a value until the run of fixed-size values ends."""
        self.run.append((target, code))

    def flush(self) -> None:
        """Read the pending run with one call."""
        if not self.run:
            return
        run, self.run = self.run, []
        if len(run) == 1 and run[0][1] == "B":
            self.emit(f"{run[0][0]} = b[o]; o += 1")
            return
        codes = "".join(code for _, code in run)
        reader = "S_" + codes.replace("?", "o")
        if reader not in self.names:
            self.names[reader] = struct.Struct(">" + codes).unpack_from
        self.emit(f"{', '.join(target for target, _ in run)}, = {reader}(b, o); o += {self.size(run)}")

    @staticmethod
    def size(run: list[tuple[str, str]]) -> int:
        return sum(CODE_SIZES[code] for _, code in run)

    def struct(self, plan: StructPlan, assigned_to: str = "") -> str:
        """Read a structure into a new local variable and, if asked, into a target too; returns the variable."""
        constructor = f"C{self.number()}"
        self.names[constructor] = plan.cls
        variable = f"m{self.number()}"
        self.emit(f"{assigned_to}{' = ' if assigned_to else ''}{variable} = new({constructor})")
        for field in [*plan.absent, *plan.tagged]:
            self.emit(f"{variable}.{field.name} = {self.default(field)}")
        for field in plan.untagged:
            self.field(f"{variable}.{field.name}", field)
        if plan.flexible:
            self.tags(variable, plan)
        return variable

    def default(self, field: FieldPlan) -> str:
        """The expression of a field's default."""
        value = field.default
        if value == ():
            return "[]"
        if value == ZERO_UUID:
            return "Z"
        if not isinstance(value, type):
            return repr(value)
        if field.none_is_default:
            return "None"
        name = f"C{self.number()}"
        self.names[name] = value
        return f"{name}()"

    def length(self, field: FieldPlan) -> None:
        """Read a length into n, one too high as compact lengths are: 0 is null."""
        if field.compact:
            self.read_fixed("n", "B")
            self.flush()
            self.emit("if n > 127: n, o = varint(b, o - 1)")
        else:
            self.read_fixed("n", "h" if field.kind == "string" else "i")
            self.flush()
            self.emit("n += 1")
            self.emit(f"if n < 0: {self.fail('a negative length')}")

    def null_or(self, target: str, field: FieldPlan) -> None:
        """Start the branch for a value that is there; leaves the indent raised."""
        self.emit("if n == 0:")
        if field.nullable:
            self.emit(f"    {target} = None")
        else:
            self.emit(f"    {self.fail('null for ' + field.name)}")
        self.emit("else:")
        self.indent += "    "

    def field(self, target: str, field: FieldPlan) -> None:
        kind = field.kind
        if kind == "fixed":
            self.read_fixed(target, field.code)
        elif kind == "struct":
            self.single_struct(target, field)
        elif kind == "array":
            self.array(target, field)
        else:
            self.length(field)
            self.null_or(target, field)
            self.emit("e = o + n - 1")
            if kind == "string":
                self.emit(f"if e > end or n > {MAX_STRING_BYTES + 1}: {self.fail('a string too long')}")
                self.emit(f"{target} = str(b[o:e], 'utf-8'); o = e")
            else:
                self.emit(f"if e > end: {self.fail('bytes too long')}")
                self.emit(f"{target} = {'bytes(b[o:e])' if kind == 'bytes' else 'memoryview(b)[o:e]'}; o = e")
            self.indent = self.indent[4:]

    def single_struct(self, target: str, field: FieldPlan) -> None:
        assert isinstance(field.element, StructPlan)
        if not field.nullable:
            self.struct(field.element, target)
            return
        self.read_fixed("n", "b")
        self.flush()
        # Kafka's tagged form of a structure that may be null marks null with 0, the untagged one with -1.
        self.emit(f"if n {'<= 0' if field.tag >= 0 else '< 0'}:")
        self.emit(f"    {target} = None")
        self.emit("else:")
        self.indent += "    "
        self.struct(field.element, target)
        self.flush()
        self.indent = self.indent[4:]

    def array(self, target: str, field: FieldPlan) -> None:
        element = field.element
        assert element is not None
        self.length(field)
        self.null_or(target, field)
        if isinstance(element, FieldPlan) and element.kind == "fixed":
            self.emit(f"e = o + (n - 1) * {CODE_SIZES[element.code]}")
            self.emit(f"if e > end: {self.fail('a list too long')}")
            if element.code == "16s":
                self.emit(f"{target} = [bytes(b[i:i + 16]) for i in range(o, e, 16)]; o = e")
            else:
                self.emit(f"{target} = list(unpack_from(f'>{{n - 1}}{element.code}', b, o)) if n > 1 else []; o = e")
        else:
            items = f"l{self.number()}"
            self.emit(f"if n - 1 > (end - o) // {element.smallest_size}: {self.fail('a list too long')}")
            self.emit(f"{target} = {items} = []")
            self.emit("for _ in range(n - 1):")
            self.indent += "    "
            if isinstance(element, StructPlan):
                variable = self.struct(element)
                self.flush()
                self.emit(f"{items}.append({variable})")
            else:
                self.field("v", element)
                self.emit(f"{items}.append(v)")
            self.indent = self.indent[4:]
        self.indent = self.indent[4:]

    def tags(self, target: str, plan: StructPlan) -> None:
        """Read the tagged section: known tags into their fields, others are skipped."""
        count, tag, stop = (f"{letter}{self.number()}" for letter in "tgs")
        self.read_fixed(count, "B")
        self.flush()
        self.emit(f"if {count}:")
        self.indent += "    "
        self.emit(f"if {count} > 127: {count}, o = varint(b, o - 1)")
        self.emit(f"for _ in range({count}):")
        self.indent += "    "
        self.emit(f"{tag}, o = varint(b, o)")
        self.emit("n, o = varint(b, o)")
        self.emit(f"{stop} = o + n")
        self.emit(f"if {stop} > end: {self.fail('a tagged field too long')}")
        word = "if"
        for field in plan.tagged:
            self.emit(f"{word} {tag} == {field.tag}:")
            self.indent += "    "
            self.field(f"{target}.{field.name}", field)
            self.flush()
            self.emit(f"if o != {stop}: {self.fail('a wrong size of the tagged field ' + field.name)}")
            self.indent = self.indent[4:]
            word = "elif"
        if plan.tagged:
            self.emit("else:")
            self.emit(f"    o = {stop}")
        else:
            self.emit(f"o = {stop}")
        self.indent = self.indent[8:]
