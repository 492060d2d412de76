"""Which DAG and which group a new task belongs to while a file is executed, and the DAGs that were met on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_dags: list[Any] = []
_groups: list[Any] = []
_collectors: list[list[Any]] = []


def enter_dag(dag: Any) -> None:
    """New tasks belong to this DAG until `leave_dag`."""
    _dags.append(dag)
    _groups.append(dag.task_group)
    if _collectors and dag.auto_register:
        _collectors[-1].append(dag)


def leave_dag() -> None:
    _dags.pop()
    _groups.pop()


def enter_group(group: Any) -> None:
    """New tasks belong to this group until `leave_group`."""
    _groups.append(group)


def leave_group() -> None:
    _groups.pop()


def current_dag() -> Any:
    """The innermost open DAG, or None."""
    return _dags[-1] if _dags else None


def home_of(dag: Any, group: Any) -> tuple[Any, Any]:
    """The DAG and group that a new task goes to, given what was said explicitly (None: nothing)."""
    if group is not None:
        return group.dag, group
    if dag is None:
        dag = current_dag()
    if dag is None:
        return None, None
    if _groups and _groups[-1].dag is dag:
        return dag, _groups[-1]
    return dag, dag.task_group


def defaults_for(dag: Any, group: Any, own: Mapping[str, Any] | None) -> dict[str, Any]:
    """Default arguments of a new task: its own over its group's over its DAG's."""
    dag, group = home_of(dag, group)
    defaults: dict[str, Any] = dict(dag.default_args) if dag is not None else {}
    if group is not None:
        defaults.update(group.default_args)
    defaults.update(own or {})
    return defaults


@contextmanager
def outside() -> Iterator[None]:
    """Tasks that are made inside belong to no DAG."""
    saved = _dags[:], _groups[:]
    _dags.clear()
    _groups.clear()
    try:
        yield
    finally:
        _dags[:], _groups[:] = saved


@contextmanager
def collecting() -> Iterator[list[Any]]:
    """Gather the DAGs that are entered while a file is executed."""
    found: list[Any] = []
    _collectors.append(found)
    try:
        with outside():
            yield found
    finally:
        _collectors.pop()
