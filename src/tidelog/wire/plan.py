"""A message class at one version: which of its fields are on the wire, in which form. The compilers work from this."""

from __future__ import annotations

from typing import Any

from tidelog.wire.message import Message

FIXED_CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""The struct module's code of every type that has a fixed size."""
CODE_SIZES = {"?": 1, "b": 1, "B": 1, "x": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}


def version_in(version: int, versions: str) -> bool:
    """Whether a version lies in a range written as Kafka does: "3+", "0-2", "4", "" for none."""
    if not versions:
        return False
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    first, _, last = versions.partition("-")
    return int(first) <= version <= int(last or first)


class FieldPlan:
    """One field at one version."""

    __slots__ = (
        "code",
        "compact",
        "default",
        "element",
        "kind",
        "name",
        "none_is_default",
        "nullable",
        "present",
        "tag",
    )

    def __init__(self, row: tuple[Any, ...], version: int, flexible: bool) -> None:
        name, kind, versions, nullable_versions, tag, tagged_versions, default, own_flexible_versions = row
        self.name: str = name
        self.default = default
        """A value, () for an empty list, or a class for a structure of defaults."""
        self.present = version_in(version, versions)
        self.nullable = version_in(version, nullable_versions)
        self.tag: int = tag if flexible and version_in(version, tagged_versions) else -1
        self.compact = flexible if own_flexible_versions is None else version_in(version, own_flexible_versions)
        self.element: FieldPlan | StructPlan | None = None
        """What a list holds, or the structure of a single one."""
        self.code = ""
        if isinstance(kind, tuple):
            self.kind = "array"
            self.element = StructPlan(kind[0], version, flexible)
        elif not isinstance(kind, str):
            self.kind = "struct"
            self.element = StructPlan(kind, version, flexible)
        elif kind.startswith("[]"):
            self.kind = "array"
            element_row = ("", kind[2:], versions, "", -1, "", None, own_flexible_versions)
            self.element = FieldPlan(element_row, version, flexible)
        elif kind in FIXED_CODES:
            self.kind = "fixed"
            self.code = FIXED_CODES[kind]
        else:
            self.kind = kind  # string, bytes, records
        self.none_is_default = self.kind == "struct" and tag >= 0 and not nullable_versions
        """A tagged structure that is never null: its attribute is None for Kafka's default, which is not sent."""

    @property
    def smallest_size(self) -> int:
        """The fewest bytes the field can take."""
        if self.kind == "fixed":
            return CODE_SIZES[self.code]
        if self.kind == "struct":
            assert isinstance(self.element, StructPlan)
            return 1 if self.nullable else self.element.smallest_size
        if self.compact:
            return 1
        return 2 if self.kind == "string" else 4


class StructPlan:
    """One structure at one version."""

    __slots__ = ("cls", "fields", "flexible")

    def __init__(self, cls: type[Message], version: int, flexible: bool) -> None:
        self.cls = cls
        self.flexible = flexible
        self.fields = [FieldPlan(row, version, flexible) for row in cls.FIELDS]

    @property
    def untagged(self) -> list[FieldPlan]:
        """The fields that stand one behind the other."""
        return [field for field in self.fields if field.present and field.tag < 0]

    @property
    def tagged(self) -> list[FieldPlan]:
        """The fields of the tagged section, by tag."""
        return sorted((field for field in self.fields if field.present and field.tag >= 0), key=lambda field: field.tag)

    @property
    def absent(self) -> list[FieldPlan]:
        """The fields that this version lacks."""
        return [field for field in self.fields if not field.present]

    @property
    def smallest_size(self) -> int:
        """The fewest bytes the structure can take; at least one, so that a count is always bounded by the input."""
        return max(1, sum(field.smallest_size for field in self.untagged) + (1 if self.flexible else 0))


def plan_message(cls: type[Message], version: int) -> StructPlan:
    """The plan of a whole message; ValueError when the class has no such version."""
    first, last = cls.VERSIONS
    if not first <= version <= last:
        raise ValueError(f"{cls.__name__} has no version {version}, only {first} to {last}")
    return StructPlan(cls, version, version_in(version, cls.FLEXIBLE_VERSIONS))
