"""`with teardown_task:` and `with setup_task:`: tasks made inside run between the setups and the teardowns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.authoring.dag.exceptions import AirflowException

_open: list[SetupScope] = []


class SetupScope:
    """What is between some setups and their teardowns. `add_task` takes in a task that was made elsewhere."""

    def __init__(self, setups: Sequence[Any], teardowns: Sequence[Any]) -> None:
        self.setups = list(setups)
        self.teardowns = list(teardowns)
        self._tasks: dict[int, Any] = {}

    def add_task(self, task: Any) -> None:
        """Put a task, a task's result or a group between the setups and the teardowns."""
        members = task.iter_tasks() if hasattr(task, "iter_tasks") else task.roots
        for member in members:
            if not any(member is edge for edge in (*self.setups, *self.teardowns)):
                self._tasks[id(member)] = member

    def close(self) -> None:
        """Link the setups to the first tasks inside, and the last tasks inside to the teardowns."""
        inside = {task.task_id for task in self._tasks.values()}
        for task in self._tasks.values():
            if task.upstream_task_ids.isdisjoint(inside):
                for setup in self.setups:
                    setup.connect(task)
            if task.downstream_task_ids.isdisjoint(inside):
                for teardown in self.teardowns:
                    task.connect(teardown)

    @property
    def everything(self) -> Iterable[Any]:
        return (*self.setups, *self._tasks.values(), *self.teardowns)


def enter(tasks: Sequence[Any]) -> SetupScope:
    """Open the scope of setups or teardowns; new tasks belong to it until `leave`."""
    for task in tasks:
        if not task.is_setup and not task.is_teardown:
            raise AirflowException(
                f"task `{task.task_id}` is neither a setup nor a teardown, so it cannot be used in a `with` block"
            )
    setups = [task for task in tasks if task.is_setup]
    teardowns = [task for task in tasks if task.is_teardown]
    setups += [one for task in teardowns for one in task.upstream_list if one.is_setup and one not in setups]
    teardowns += [one for task in setups for one in task.downstream_list if one.is_teardown and one not in teardowns]
    _open.append(SetupScope(setups, teardowns))
    return _open[-1]


def leave() -> None:
    """Close the innermost scope; what is in it is also in the one around it."""
    scope = _open.pop()
    scope.close()
    if _open:
        for task in scope.everything:
            _open[-1].add_task(task)


def register(task: Any) -> None:
    """A task was made."""
    if _open:
        _open[-1].add_task(task)


def work_before(teardown: Any) -> set[str]:
    """Ids of everything between the setups of a teardown and itself, which it waits for, directly linked or not.

    A task in the middle may be given up while another one next to it still runs.
    """
    setups = [one for one in teardown.upstream_list if one.is_setup] if teardown.is_teardown else []
    if not setups:
        return set()
    after = set().union(*(setup.get_flat_relative_ids(upstream=False) for setup in setups))
    before = teardown.get_flat_relative_ids(upstream=True)
    return {key for key in after & before if not teardown.dag.task_dict[key].is_teardown}


def setups_at_a_distance(tasks: Iterable[Any]) -> dict[str, set[str]]:
    """Which setups the tasks in their scopes need besides those that they follow directly; by the task's id.

    The scope of a setup ends at its teardowns. A task that waits for nothing (`always`) needs nothing either.
    """
    needs: dict[str, set[str]] = {}
    for setup in (one for one in tasks if one.is_setup):
        teardowns = [one for one in setup.downstream_list if one.is_teardown]
        scope = setup.get_flat_relative_ids(upstream=False)
        if teardowns:
            scope &= set().union(*(one.get_flat_relative_ids(upstream=True) for one in teardowns))
        for key in scope - setup.downstream_task_ids:
            task = setup.dag.task_dict[key]
            if not task.is_teardown and task.trigger_rule != "always":
                needs.setdefault(key, set()).add(setup.task_id)
    return needs
