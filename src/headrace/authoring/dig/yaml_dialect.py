"""The YAML of `.dig` files: fewer implicit types than YAML 1.1, no duplicate keys, maps that know their lines."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from headrace.definition import Place
from headrace.errors import LoadError

INCLUDE_TAG = "!include"
MAX_VALUES = 1_000_000
"""Aliases may multiply; a file that unfolds into more values than this is refused."""

_PREFIX = "tag:yaml.org,2002:"
_INTEGER = r"[-+]?(?:0b_*[01][01_]*|0[0-7_]+|0|[1-9][0-9_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*)"
_FLOAT = (
    r"[-+]?(?:\.[0-9]+|[1-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
"""Unlike `10:00:00`, `10:00:00.5` is a number: of seconds."""
_RESOLVERS = (
    ("bool", r"true|True|false|False", "tTfF"),
    ("int", _INTEGER, "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
)


class Section(dict[str, Any]):
    """A map out of a file, in file order, that remembers where it and each of its keys were written."""

    __slots__ = ("place", "places")

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.places: dict[str, Place] = {}

    def put(self, key: str, value: Any, place: Place) -> None:
        """Set a key; one that was there keeps its position."""
        self[key] = value
        self.places[key] = place


class Include:
    """An `!include` entry, kept under a key of its own until the loader puts the file's entries in its place."""

    def __init__(self, path: str, place: Place) -> None:
        self.path = path
        self.place = place


def place_of(body: Mapping[str, Any], key: str, default: Place) -> Place:
    """Where a key was written, or the default for a map that no file holds (one that was made at run time)."""
    return body.places.get(key, default) if isinstance(body, Section) else default


def plain(value: Any) -> Any:
    """The same value made of ordinary dicts and lists."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def parse(text: str, file: str) -> Any:
    """The JSON-like content of a `.dig` text. Includes stay in it as `Include` values under unprintable keys."""
    try:
        # The loader only composes nodes here; no tag can construct an object.
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # What is missing at the end is reported one line behind it.
        lines = text.splitlines() or [""]
        line = None if mark is None else min(mark.line + 1, len(lines))
        hint = _hint("" if line is None else lines[line - 1], error.problem or "")
        raise LoadError(f"`{file}` is not valid YAML: {_problem(error)}", hint=hint, file=file, line=line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise LoadError(f"`{file}` is not valid YAML: {error.reason}", file=file, line=line) from None
    return None if root is None else _Builder(file).build(root)


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem, context = error.problem or "", error.context or ""
    # Some are the second half of a sentence.
    return f"{context}, {problem}" if problem.startswith("but ") else problem or context


def _hint(line: str, problem: str) -> str | None:
    if line.lstrip(" ").startswith("\t"):
        return "indent with spaces: YAML takes no tabs there"
    # The first one is behind the key.
    has_another = problem.startswith("mapping values are not allowed") and line.count(": ") > 1
    return "quote the value: it contains `: `" if has_another else None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Resolves plain scalars by the table above and by nothing else."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


for _name, _pattern, _first in _RESOLVERS:
    _Loader.add_implicit_resolver(_PREFIX + _name, re.compile(rf"(?:{_pattern})\Z"), list(_first))


class _Builder:
    """Turns composed YAML nodes into sections, lists and scalars."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._open: set[int] = set()
        self._values = 0

    def build(self, node: Node) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._error(f"`{self._file}` unfolds into more than {MAX_VALUES} values by its aliases", node)
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            raise self._error("an alias must not contain itself", node)
        self._open.add(id(node))
        value = self._map_or_set(node) if isinstance(node, MappingNode) else self._sequence(node)
        self._open.discard(id(node))
        return value

    def _sequence(self, node: Node) -> list[Any]:
        if not isinstance(node, SequenceNode) or node.tag != _PREFIX + "seq":
            raise self._unknown_tag(node)
        return [self.build(item) for item in node.value]

    def _map_or_set(self, node: MappingNode) -> Section | list[str]:
        if node.tag == _PREFIX + "set":
            return [self._key(key) for key, _ in node.value]
        return self._mapping(node)

    def _mapping(self, node: MappingNode) -> Section:
        if node.tag != _PREFIX + "map":
            raise self._unknown_tag(node)
        section = Section(self._place(node))
        self._refuse_duplicates(node)
        self._fill(section, node, merged=False)
        return section

    def _fill(self, section: Section, node: MappingNode, *, merged: bool) -> None:
        for key_node, value_node in node.value:
            if key_node.tag == _PREFIX + "merge":
                for source in self._merge_sources(key_node, value_node):
                    self._fill(section, source, merged=True)
            elif key_node.tag == INCLUDE_TAG:
                place = self._place(key_node)
                section[f"{INCLUDE_TAG}\0{len(section)}"] = Include(self._include_path(value_node), place)
            else:
                key = self._key(key_node)
                # A key of the map itself wins over a merged one, and of merged maps the first one wins.
                if not (merged and key in section):
                    section.put(key, self.build(value_node), self._place(key_node))

    def _merge_sources(self, key: Node, node: Node) -> list[MappingNode]:
        sources = node.value if isinstance(node, SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, MappingNode):
                raise self._error("expected `<<` to name a map or a list of maps", key)
            if id(source) in self._open:
                raise self._error("an alias must not contain itself", key)
        return list(sources)

    def _refuse_duplicates(self, node: MappingNode) -> None:
        first: dict[str, int] = {}
        for key_node, _ in node.value:
            if key_node.tag in (INCLUDE_TAG, _PREFIX + "merge"):
                continue
            key = self._key(key_node)
            line = key_node.start_mark.line + 1
            if key in first:
                raise self._error(f"the key `{key}` is written twice in one map, first in line {first[key]}", key_node)
            first[key] = line

    def _include_path(self, node: Node) -> str:
        path = self.build(node)
        if not isinstance(path, str) or not path:
            raise self._error("expected `!include` to be followed by the path of a file", node)
        return path

    def _key(self, node: Node) -> str:
        value = self.build(node)
        if isinstance(value, str):
            return value
        if isinstance(value, dict | list):
            raise self._error("a key must be a text, not a map or a list", node)
        return json.dumps(value)

    def _scalar(self, node: ScalarNode) -> Any:
        convert = _SCALARS.get(node.tag)
        if convert is None:
            raise self._unknown_tag(node)
        try:
            return convert(node.value)
        except (ValueError, KeyError):
            kind = node.tag.removeprefix(_PREFIX)
            raise self._error(f"expected a value of type {kind}, got: `{node.value}`", node) from None

    def _unknown_tag(self, node: Node) -> LoadError:
        hint = "write `!include : 'path'` as an entry of a map, with a space before the colon"
        if node.tag == INCLUDE_TAG:
            return self._error("`!include` cannot be used as a value", node, hint)
        is_near = node.tag.startswith(INCLUDE_TAG)
        return self._error(
            f"the YAML tag `{node.tag.replace(_PREFIX, '!!')}` is not known", node, hint if is_near else None
        )

    def _place(self, node: Node) -> Place:
        return Place(file=self._file, line=node.start_mark.line + 1)

    def _error(self, message: str, node: Node, hint: str | None = None) -> LoadError:
        return LoadError(message, hint=hint, file=self._file, line=node.start_mark.line + 1)


def _integer(text: str) -> int:
    digits = text.replace("_", "").lower()
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if digits.startswith(("0x", "0b")):
        return sign * int(digits, 0)
    return sign * int(digits, 8 if len(digits) > 1 and digits.startswith("0") else 10)


def _float(text: str) -> float | str:
    """A number; what JSON has no number for becomes a text, as Digdag writes it."""
    digits = text.replace("_", "").lower()
    if digits.lstrip("+-") in (".inf", ".nan"):
        return {".nan": "NaN", "-.inf": "-Infinity"}.get(digits, "Infinity")
    value = 0.0
    for part in digits.lstrip("+-").split(":"):
        value = value * 60 + float(part)
    if value == float("inf") or value != value:
        raise ValueError("not a JSON number")
    return -value if digits.startswith("-") else value


_SCALARS: dict[str, Callable[[str], Any]] = {
    _PREFIX + "str": str,
    _PREFIX + "merge": str,
    _PREFIX + "bool": {"true": True, "false": False, "True": True, "False": False}.__getitem__,
    _PREFIX + "int": _integer,
    _PREFIX + "float": _float,
    _PREFIX + "null": lambda text: None,
    # JSON has no bytes: they stay in the letters in which they were written.
    _PREFIX + "binary": lambda text: base64.b64encode(base64.b64decode("".join(text.split()), validate=True)).decode(),
}
