"""What plain and mapped tasks have in common: an id, a place in a DAG, and edges."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from headrace.authoring.dag import setup_scope
from headrace.authoring.dag.edges import Linkable
from headrace.authoring.dag.rules import TriggerRule

_creation = itertools.count()
_PACKAGE = str(Path(__file__).resolve().parents[2]) + "/"


class Graph(Protocol):
    """What a task needs to know of its DAG."""

    dag_id: str
    edge_labels: dict[tuple[str, str], str]

    @property
    def task_dict(self) -> dict[str, Any]: ...

    def add_task(self, task: Any) -> None: ...


class TaskNode(Linkable):
    """One task of a DAG, as edges and groups see it."""

    task_id: str
    task_group: Any
    dag: Any
    upstream_task_ids: set[str]
    downstream_task_ids: set[str]
    created: int
    trigger_rule: TriggerRule
    is_mapped = False
    is_setup = False
    is_teardown = False
    on_failure_fail_dagrun = False

    def prepare_processes(self) -> None:
        """Find out, before processes are forked for tries of this task, what each of them would find out again."""

    def join_graph(self, dag: Any, group: Any) -> None:
        """Become a task of this DAG and group; either may be None for a task that joins a DAG by its first edge."""
        self.dag = None
        self.task_group = group
        self.created = next(_creation)
        self.upstream_task_ids = set()
        self.downstream_task_ids = set()
        if dag is not None:
            dag.add_task(self)
        if group is not None:
            group.add(self)
        if dag is not None:
            setup_scope.register(self)

    def __enter__(self) -> setup_scope.SetupScope:
        return setup_scope.enter([self])

    def __exit__(self, *exc_info: object) -> None:
        setup_scope.leave()

    @property
    def mapped_group(self) -> Any:
        """The mapped group that this task is multiplied with; None for most."""
        return None if self.task_group is None else self.task_group.mapped_group

    @property
    def has_instances(self) -> bool:
        """Whether it is one task in the file and many when it runs."""
        return self.is_mapped or self.mapped_group is not None

    @property
    def dag_id(self) -> str:
        return self.dag.dag_id if self.dag is not None else "(none)"

    @property
    def node_id(self) -> str:
        return self.task_id

    @property
    def label(self) -> str:
        """The id without the prefix of the group."""
        prefix = getattr(self.task_group, "child_prefix", "")
        return self.task_id.removeprefix(prefix)

    @property
    def roots(self) -> Sequence[TaskNode]:
        return [self]

    @property
    def leaves(self) -> Sequence[TaskNode]:
        return [self]

    @property
    def upstream_list(self) -> list[Any]:
        return self._tasks(self.upstream_task_ids)

    @property
    def downstream_list(self) -> list[Any]:
        return self._tasks(self.downstream_task_ids)

    def get_direct_relative_ids(self, upstream: bool = False) -> set[str]:
        return self.upstream_task_ids if upstream else self.downstream_task_ids

    def get_direct_relatives(self, upstream: bool = False) -> list[Any]:
        return self.upstream_list if upstream else self.downstream_list

    def get_flat_relative_ids(self, upstream: bool = False) -> set[str]:
        """The ids of everything before or after this task, at any distance."""
        found: set[str] = set()
        pending = list(self.get_direct_relative_ids(upstream))
        while pending:
            task_id = pending.pop()
            if task_id not in found:
                found.add(task_id)
                pending.extend(self.dag.task_dict[task_id].get_direct_relative_ids(upstream))
        return found

    def get_flat_relatives(self, upstream: bool = False) -> list[Any]:
        return self._tasks(self.get_flat_relative_ids(upstream))

    def connect(self, downstream: TaskNode, label: str | None = None) -> None:
        """Make another task wait for this one."""
        dag = _shared_dag(self, downstream)
        self.downstream_task_ids.add(downstream.task_id)
        downstream.upstream_task_ids.add(self.task_id)
        if label is not None:
            dag.edge_labels[(self.task_id, downstream.task_id)] = label

    def as_setup(self) -> TaskNode:
        """Mark this task as one that prepares what others need."""
        if self.is_teardown:
            raise ValueError(f"task `{self.task_id}` is a teardown, so it cannot be a setup too")
        self.is_setup = True
        return self

    def as_teardown(self, setups: Any = None, on_failure_fail_dagrun: bool | None = None) -> TaskNode:
        """Mark this task as one that cleans up after its setups, whatever happened in between."""
        if self.is_setup:
            raise ValueError(f"task `{self.task_id}` is a setup, so it cannot be a teardown too")
        self.is_teardown = True
        self.trigger_rule = TriggerRule.ALL_DONE_SETUP_SUCCESS
        if on_failure_fail_dagrun is not None:
            self.on_failure_fail_dagrun = on_failure_fail_dagrun
        for setup in [setups] if isinstance(setups, Linkable) else setups or ():
            for task in setup.leaves:
                task.as_setup()
            setup.set_downstream(self)
        return self

    def _tasks(self, ids: Iterable[str]) -> list[Any]:
        return [self.dag.task_dict[task_id] for task_id in sorted(ids)]


def _shared_dag(upstream: TaskNode, downstream: TaskNode) -> Graph:
    dags: list[Graph] = [task.dag for task in (upstream, downstream) if task.dag is not None]
    if not dags:
        raise ValueError(f"tasks `{upstream.task_id}` and `{downstream.task_id}` need a DAG before they can be linked")
    if dags[0] is not dags[-1]:
        raise RuntimeError(
            f"task `{upstream.task_id}` of DAG `{dags[0].dag_id}` cannot be linked to"
            f" task `{downstream.task_id}` of DAG `{dags[-1].dag_id}`"
        )
    for task in (upstream, downstream):
        if task.dag is None:
            dags[0].add_task(task)
    return dags[0]


def written_at() -> tuple[str, int]:
    """File and line of the user's statement that is being executed: the first frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


Callback = Callable[[Any], Any]


def callbacks(value: Callback | Sequence[Callback] | None) -> list[Callback]:
    """One callback, several or none, as a list."""
    if value is None:
        return []
    return [value] if callable(value) else list(value)
