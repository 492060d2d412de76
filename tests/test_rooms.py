"""Draws the arrows between rooms from the imports and compares them with the table of ARCHITECTURE.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import headrace

PACKAGE = Path(headrace.__file__).parent

GROUND_FLOOR = {"errors", "clock", "metrics", "processes", "release", "trace_context", "user_environment"}
"""What every room may import."""

MAY_IMPORT = {
    # the public face and the ground floor
    "face": {"authoring.dag"},
    "errors": set(),
    "clock": set(),
    "airflow_config": set(),
    "settings": {"airflow_config"},
    "plugins": set(),
    "processes": set(),
    "metrics": {"errors", "release"},
    "release": set(),
    "trace_context": set(),
    "user_environment": set(),
    "archives": set(),
    # what the user wrote
    "definition": set(),
    "timetable": {"definition"},
    "template": set(),
    "authoring": {"definition"},
    "authoring.dag": {"airflow_config", "authoring", "definition", "timetable"},
    "authoring.dig": {"authoring", "definition", "timetable"},
    "compat": {"authoring", "authoring.dag", "definition", "operators"},
    "projects": {"archives", "authoring", "definition", "handoff", "settings", "store", "timetable"},
    # what is true
    "state": {"definition", "handoff", "timetable"},
    "store": {"definition", "state", "settings", "handoff"},
    # what moves it
    "scheduler": {"store", "state", "timetable", "definition"},
    "handoff": {"definition"},
    "executor": {"handoff", "logs", "definition", "settings", "plugins"},
    "agent": {
        *("archives", "store", "state", "executor", "handoff", "logs", "definition", "settings", "timetable"),
        "secrets",
    },
    "runner": {"handoff", "authoring", "authoring.dag", "authoring.dig", "operators", "definition", "template"},
    "triggerer": {"store", "state", "handoff", "executor", "logs", "definition", "settings"},
    "operators": {"authoring", "authoring.dag", "authoring.dig", "definition", "handoff", "template"},
    "logs": {"settings", "plugins"},
    "tracing": {"store"},
    "secrets": {"settings", "store", "logs"},
    # who asks and watches
    "actions": {
        *("archives", "authoring", "projects", "store", "state", "definition", "timetable", "settings", "secrets"),
        *(
            "agent",
            "scheduler",
            "tracing",
            "triggerer",
            "executor",
            "handoff",
            "logs",
        ),  # composed by `run` and `standalone`
    },
    "api": {"actions", "store", "logs"},
    "web": set(),
}
"""Which rooms each room may import besides itself and the ground floor. `cli` and `testing` may import all of these."""

EVERYTHING = set(MAY_IMPORT)
MAY_IMPORT["testing"] = EVERYTHING
MAY_IMPORT["cli"] = EVERYTHING | {"testing"}


class Arrow(NamedTuple):
    source: str
    target: str
    place: str
    is_hidden: bool
    """Not at the top level of the module: in a function, or behind a condition."""


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a dotted path below the package; the languages of `authoring` are rooms of their own."""
    if not parts or parts == ("__init__",):
        return "face"
    if parts[0] == "authoring" and len(parts) > 1 and (PACKAGE / "authoring" / parts[1]).is_dir():
        return f"authoring.{parts[1]}"
    return parts[0]


def arrows_of(path: Path) -> Iterator[Arrow]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = path.relative_to(PACKAGE).with_suffix("").parts
    for node in ast.walk(tree):
        for name in imported_names(node, own):
            place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
            yield Arrow(room_of(own), room_of(name), place, is_hidden=node not in tree.body)


def imported_names(node: ast.AST, own: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Modules of ours that a statement imports, as paths below the package."""
    if isinstance(node, ast.Import):
        modules = [alias.name.split(".") for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        above = ["headrace", *own[: len(own) - node.level]] if node.level else []
        module = [*above, *(node.module or "").split(".")]
        # `from headrace import settings` means the module, not the face.
        modules = [[*module, alias.name] if module == ["headrace"] else module for alias in node.names]
    else:
        return
    for module in modules:
        if module[0] == "headrace":
            below = tuple(module[1:])
            exists = below and any((PACKAGE / below[0]).with_suffix(suffix).exists() for suffix in ("", ".py"))
            yield below if exists else ()


@cache
def all_arrows() -> list[Arrow]:
    return [arrow for path in sorted(PACKAGE.rglob("*.py")) for arrow in arrows_of(path)]


def test_rooms_import_only_what_the_table_allows():
    forbidden = [
        f"{arrow.place}: {arrow.source} imports {arrow.target}"
        for arrow in all_arrows()
        if arrow.target not in {arrow.source, *GROUND_FLOOR, *MAY_IMPORT[arrow.source]}
    ]
    assert forbidden == []


def test_no_import_of_ours_is_hidden():
    assert [arrow.place for arrow in all_arrows() if arrow.is_hidden] == []


def test_every_room_is_in_the_table():
    rooms = {room_of(path.relative_to(PACKAGE).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
    assert rooms <= set(MAY_IMPORT)


def test_table_has_no_circles():
    def reachable(room: str, seen: frozenset[str] = frozenset()) -> set[str]:
        assert room not in seen, f"{room} can import itself by way of {seen}"
        below = MAY_IMPORT[room]
        return below.union(*(reachable(other, seen | {room}) for other in below)) if below else set()

    for room in MAY_IMPORT:
        reachable(room)


def test_forbidden_and_hidden_imports_are_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "store").mkdir()
    bad = tmp_path / "state" / "bad.py"
    bad.write_text(
        "import headrace.store.runs\n"
        "from headrace.store import runs\n"
        "from headrace import store\n"
        "from ..store import runs\n"
        "from headrace import DAG\n"
        "def f():\n    from headrace.state import rules\n"
    )
    arrows = list(arrows_of(bad))
    assert [arrow.target for arrow in arrows] == ["store", "store", "store", "store", "face", "state"]
    assert [arrow.place for arrow in arrows if arrow.is_hidden] == ["state/bad.py:7"]
