"""Which operators a `.dig` file may name, so that a typing mistake is found when the file is loaded."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from headrace.definition import Place
from headrace.errors import DefinitionError, did_you_mean

OPERATOR_FILE = "dig_operators.py"
"""The file at the top of a project whose functions and classes are operators."""
ENTRY_POINTS = "headrace.dig_operators"
"""The group of entry points under which installed packages offer operators."""

_known = {
    *("asset", "bq", "bq_ddl", "bq_extract", "bq_load", "call", "call_dag", "echo", "embulk", "fail", "for_each"),
    *("for_range", "gcs_wait", "http", "http_call", "if", "loop", "mail", "notify", "param_get", "param_set", "pg"),
    *("py", "rb", "redshift", "redshift_load", "redshift_unload", "require", "s3_wait", "sh", "td", "td_ddl"),
    *("td_for_each", "td_load", "td_result_export", "td_run", "td_table_export", "td_wait", "td_wait_table", "wait"),
}

UNSUPPORTED = frozenset(
    (
        *("ecs_task.embulk", "ecs_task.py", "ecs_task.rb", "ecs_task.sh", "emr", "s3_copy", "s3_delete", "s3_move"),
        *("s3_touch", "snowflake", "td_partial_delete"),
    )
)
"""Operators that Digdag documents and that nobody has registered here."""
_HOW_TO_ADD = f"add it yourself: a function of that name in `{OPERATOR_FILE}`, or a package that offers it"

_project: ContextVar[Path | None] = ContextVar("project", default=None)


def declare_operator(name: str) -> None:
    """Let files name an operator."""
    _known.add(name)


def known_operators() -> frozenset[str]:
    """The operators that every project has."""
    return frozenset(_known)


@contextmanager
def operators_of_project(root: Path) -> Iterator[None]:
    """Inside, files may also name the operators of this project."""
    token = _project.set(root)
    try:
        yield
    finally:
        _project.reset(token)


def defined_operators(root: Path) -> dict[str, str]:
    """The operators that a project's own file defines, with what they are called there. The file is not run."""
    try:
        tree = ast.parse((root / OPERATOR_FILE).read_bytes())
    except (OSError, SyntaxError, ValueError):
        # The task that needs the file runs it and says what is wrong with it.
        return {}
    return {
        _operator_name(node.name): node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    }


@cache
def installed_operators() -> frozenset[str]:
    """The operators that installed packages offer."""
    # Only a file with an operator that is not ours asks, and it brings what reads e-mail and archives.
    from importlib.metadata import entry_points

    return frozenset(entry_points(group=ENTRY_POINTS).names)


def check_operator(name: str, owner: str, place: Place) -> None:
    """Refuse an operator that nobody could run. One that is computed (`${…}`) is looked at by the task."""
    if name in _known or "${" in name or name in (added := _added()):
        return
    if name in UNSUPPORTED:
        message = f"{owner}: operator `{name}>` is not supported"
        raise DefinitionError(message, hint=_HOW_TO_ADD, file=place.file, line=place.line)
    hint = did_you_mean(f"{name}>", [f"{one}>" for one in sorted(_known | UNSUPPORTED | added)])
    raise DefinitionError(
        f"{owner}: unknown operator `{name}>`", hint=hint or _HOW_TO_ADD, file=place.file, line=place.line
    )


def _added() -> frozenset[str]:
    root = _project.get()
    own = frozenset(defined_operators(root)) if root is not None else frozenset()
    return own | installed_operators()


def _operator_name(name: str) -> str:
    """`post_message` for a function `post_message` or a class `PostMessage`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
