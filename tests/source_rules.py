"""The rules a test holds the source to. Each takes texts and returns complaints, so that each can be shown to fail."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping

BOTTOM = frozenset({"errors", "config", "storage", "events", "effects", "outbox"})
COORDINATORS = frozenset({"groups", "transactions"})
CORE = frozenset({"quorum", "controller", "replica", "coordination"}) | COORDINATORS
_LOG = BOTTOM | {"wire", "log"}
_NODE = _LOG | CORE | {"node"}

MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "errors": frozenset(),
    "storage": frozenset({"errors"}),
    "config": frozenset({"errors"}),
    "events": frozenset({"errors", "storage"}),
    "effects": frozenset({"errors", "storage"}),
    "outbox": BOTTOM,
    "wire": BOTTOM,
    "log": BOTTOM | {"wire"},
    **dict.fromkeys(CORE, _LOG),
    "coordination": _LOG | {"replica"},
    **dict.fromkeys(COORDINATORS, _LOG | {"replica", "coordination"}),
    "ledger": BOTTOM,
    "node": _NODE,
    "client": BOTTOM | {"wire"},
    "runtime": _NODE,
    "sim": _NODE | {"client", "ledger"},
    "spark": _LOG | {"client", "ledger"},
    "verify": _NODE | {"client", "ledger", "runtime"},
    "realstage": _NODE | {"client", "ledger", "runtime", "sim", "verify"},
    "__main__": frozenset({"cli"}),
    "cli": _NODE | {"client", "runtime", "sim", "spark", "verify", "realstage"},
}
"""Which rooms a room may import from, besides itself. `tidelog` itself (its version) is open to all."""

PURE_ROOMS = frozenset(BOTTOM | CORE | {"wire", "log", "node"})
FORBIDDEN_IN_PURE_ROOMS = frozenset(
    {
        *("asyncio", "socket", "time", "datetime", "random", "uuid", "secrets", "threading", "multiprocessing"),
        *("concurrent", "subprocess", "select", "signal", "os", "pathlib", "io", "shutil", "tempfile", "selectors"),
    }
)
FORBIDDEN_CALLS_IN_PURE_ROOMS = frozenset({"open", "print", "input", "breakpoint"})

OUTSIDE_PACKAGES: Mapping[str, frozenset[str]] = {
    "wire": frozenset({"crc32c", "cramjam"}),
    "spark": frozenset({"pyspark", "pyarrow", "pandas", "numpy", "numba", "delta", "cramjam", "crc32c"}),
    "cli": frozenset({"confluent_kafka"}),
    "verify": frozenset({"confluent_kafka"}),
    "realstage": frozenset({"confluent_kafka"}),
}
"""Packages beyond the standard library, by room. The broker alone is to stay small."""


def room_of(path: str) -> str:
    """The room of a path below src/tidelog: its folder or, at the bottom, its module; empty for tidelog itself."""
    first, _, rest = path.partition("/")
    name = first if rest else first.removesuffix(".py")
    return "" if name == "__init__" else name


def imported_modules(tree: ast.Module, path: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a module imports, wherever in it."""
    package = ["tidelog", *path.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "tidelog":
                yield from ((node.lineno, f"tidelog.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module


def import_complaints(path: str, text: str) -> list[str]:
    """Imports against the direction, and what a room must not use at all. `path` is relative to src/tidelog."""
    room = room_of(path)
    if not room:
        return []
    if room not in MAY_IMPORT:
        return [f"{path}: the room {room} has no line in MAY_IMPORT"]
    tree = ast.parse(text)
    complaints = []
    for line, module in imported_modules(tree, path):
        top, _, rest = module.partition(".")
        other = rest.partition(".")[0]
        if top == "tidelog":
            if other not in ("", room, "__version__") and other not in MAY_IMPORT[room]:
                complaints.append(f"{path}:{line}: {room} must not import {other}")
        elif top in sys.stdlib_module_names:
            if room in PURE_ROOMS and top in FORBIDDEN_IN_PURE_ROOMS:
                complaints.append(f"{path}:{line}: {room} is pure and must not import {top}")
        elif top not in OUTSIDE_PACKAGES.get(room, frozenset()):
            complaints.append(f"{path}:{line}: {room} must not need the package {top}")
    if room in PURE_ROOMS:
        complaints += [
            f"{path}:{node.lineno}: {room} is pure and must not call {node.func.id}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in FORBIDDEN_CALLS_IN_PURE_ROOMS
        ]
    return complaints


# --- docstrings ---

FILLING = """
    a an the this that it its is are be of to in on for with from and or by as at class function method module
    return returns get gets set sets do does given value object instance self one
"""
EMPTY_WORDS = frozenset(FILLING.split())


def words(text: str) -> set[str]:
    """The words of a text, in small letters and without the endings that make a repetition look like news."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text)
    return {re.sub(r"(ing|ed|es|s|e)$", "", part.lower()) for part in parts}


def says_something(name: str, docstring: str) -> bool:
    """Whether a docstring has a word that is neither its thing's own name nor filling."""
    filling = {re.sub(r"(ing|ed|es|s|e)$", "", word) for word in EMPTY_WORDS}
    return bool(words(docstring) - words(name) - filling)


def documented_methods(texts: Iterable[str]) -> frozenset[str]:
    """Methods that a class here documents for others to implement or override: those need not repeat it.

    A method of an interface is there under its own name, since whoever implements it need not inherit; a method of any
    other class as Class.method, for classes that name it as their base.
    """
    found = set()
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                methods = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
                found |= {item.name for item in methods if _is_interface(node)}
                found |= {f"{node.name}.{item.name}" for item in methods if ast.get_docstring(item)}
    return frozenset(found)


def _is_interface(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id in ("Protocol", "ABC") for base in node.bases)


def docstring_complaints(path: str, text: str, inherited: frozenset[str] = frozenset()) -> list[str]:
    """Public modules, classes, functions and methods without a docstring, or with one that only repeats the name."""
    tree = ast.parse(text)
    complaints = []
    if tree.body and not ast.get_docstring(tree):
        complaints.append(f"{path}:1: the module has no docstring")
    for node, owner in _public_definitions(tree):
        name = f"{owner.name}.{node.name}" if owner else node.name
        docstring = ast.get_docstring(node)
        if docstring is None:
            if owner is not None and _is_said_elsewhere(node, owner, inherited):
                continue
            complaints.append(f"{path}:{node.lineno}: {name} has no docstring")
        elif not says_something(node.name, docstring):
            complaints.append(f"{path}:{node.lineno}: {name}: {docstring.splitlines()[0]!r} only repeats the name")
    return complaints


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _public_definitions(tree: ast.Module) -> Iterator[tuple[Definition, ast.ClassDef | None]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node, None
            if isinstance(node, ast.ClassDef):
                for item in node.body:
                    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and not item.name.startswith("_"):
                        yield item, node


def _is_said_elsewhere(node: Definition, owner: ast.ClassDef, inherited: frozenset[str]) -> bool:
    """Whether it is of an interface, or the second half of something documented: a setter, an overload, an override."""
    if _is_interface(owner) or node.name in inherited:
        return True
    if any(f"{ast.unparse(base).rpartition('.')[2]}.{node.name}" in inherited for base in owner.bases):
        return True
    names = {ast.unparse(decorator) for decorator in node.decorator_list}
    return any(name.endswith(".setter") or name in ("overload", "override", "typing.override") for name in names)


# --- texts ---


def _hidden(*parts: str) -> str:
    """A pattern put together, so that this file does not complain about itself."""
    return "".join(parts)


FORBIDDEN_TEXTS: tuple[tuple[str, str], ...] = (
    (_hidden(r"\b(TO", r"DO|FIX", r"ME|XX", r"X|HA", r"CK)\b"), "a note to do something later"),
    (_hidden(r"(/wo", r"rk/|/ro", r"ot/|/ho", r"me/|/Us", r"ers/|/op", r"t/wheels)"), "a path of one machine"),
    (_hidden(r"/tm", r"p/(?!kafka-logs)[A-Za-z]"), "a path of one machine"),
    (
        _hidden(
            r"https?://[^\s\"'<>)]*(py",
            r"pi|pythonhosted|artif",
            r"actory|nex",
            r"us|repo1?\.mav",
            r"en|regis",
            r"try)",
        ),
        "the address of a package registry",
    ),
    (_hidden(r"--(extra-)?index", r"-url"), "the address of a package registry"),
    (_hidden(r"\b[Ii]ssue", r" #?\d"), "a reference that only insiders can follow"),
)


def text_complaints(path: str, text: str) -> list[str]:
    """Lines that hold something that does not belong into the tree."""
    complaints = []
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, what in FORBIDDEN_TEXTS:
            match = re.search(pattern, line)
            if match:
                complaints.append(f"{path}:{number}: {what}: {match.group(0)!r}")
    return complaints


MOST_LINES = 500


def length_complaints(path: str, text: str, reasons: Mapping[str, str]) -> list[str]:
    """A file over the bound that has no reason, or a reason that is no longer needed."""
    lines = text.count("\n")
    if lines > MOST_LINES and path not in reasons:
        return [f"{path}: {lines} lines, more than {MOST_LINES}, and no reason is given"]
    if lines <= MOST_LINES and path in reasons:
        return [f"{path}: {lines} lines; it no longer needs its reason to be over {MOST_LINES}"]
    return []
