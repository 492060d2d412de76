"""Task groups: names in front of ids, default arguments, and a handle for edges. Groups leave no node behind."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headrace.authoring.dag import scope
from headrace.authoring.dag.edges import Linkable
from headrace.authoring.dag.exceptions import DuplicateTaskIdFound
from headrace.authoring.dag.naming import check_group_id
from headrace.authoring.dag.node import TaskNode


class TaskGroup(Linkable):
    """Tasks that are written, shown and linked together. Use it in a `with` block inside a DAG."""

    def __init__(
        self,
        group_id: str | None,
        *,
        group_display_name: str = "",
        prefix_group_id: bool = True,
        parent_group: TaskGroup | None = None,
        dag: Any = None,
        default_args: Mapping[str, Any] | None = None,
        tooltip: str = "",
        doc_md: str | None = None,
        ui_color: str = "CornflowerBlue",
        ui_fgcolor: str = "#000",
        add_suffix_on_collision: bool = False,
    ) -> None:
        self.group_display_name = group_display_name
        self.prefix_group_id = prefix_group_id
        self.tooltip = tooltip
        self.doc_md = doc_md
        self.ui_color = ui_color
        self.ui_fgcolor = ui_fgcolor
        self.children: dict[str, TaskNode | TaskGroup] = {}
        self._linked_upstream: list[Linkable] = []
        self._linked_downstream: list[Linkable] = []
        self.group_id: str | None = None
        self.parent_group: TaskGroup | None = None
        self.dag = dag
        self.default_args = dict(default_args or {})
        if group_id is not None:
            self._join(check_group_id(group_id), parent_group, add_suffix_on_collision)

    def _join(self, group_id: str, parent: TaskGroup | None, may_rename: bool) -> None:
        self.dag, self.parent_group = scope.home_of(self.dag, parent)
        if self.dag is None or self.parent_group is None:
            raise ValueError(f"task group `{group_id}` needs a DAG: create it in a `with DAG(...)` block")
        self.default_args = {**self.parent_group.default_args, **self.default_args}
        full_id = self.parent_group.child_id(group_id)
        self.group_id = self.dag.ids.free_variant(full_id) if may_rename else full_id
        self.dag.ids.claim("task group id", self.group_id)
        self.parent_group.add(self)

    @classmethod
    def root_of(cls, dag: Any) -> TaskGroup:
        """The group without a name that holds everything in a DAG."""
        return cls(None, dag=dag)

    @property
    def is_root(self) -> bool:
        return self.group_id is None

    @property
    def node_id(self) -> str | None:
        return self.group_id

    @property
    def mapped_group(self) -> Any:
        """The mapped group that this one is, or is inside of; None for most."""
        return None if self.parent_group is None else self.parent_group.mapped_group

    @property
    def label(self) -> str | None:
        if self.group_id is None or self.parent_group is None:
            return None
        return self.group_id.removeprefix(self.parent_group.child_prefix)

    @property
    def child_prefix(self) -> str:
        """What stands before the ids of direct children."""
        return f"{self.group_id}." if self.group_id is not None and self.prefix_group_id else ""

    def child_id(self, label: str) -> str:
        """The full id of a direct child. A group's own id carries its parents' prefixes even if it adds none itself."""
        return self.child_prefix + label

    def add(self, node: TaskNode | TaskGroup) -> None:
        """Take a task or group in."""
        key = node.node_id
        if key is None or key in self.children:
            raise DuplicateTaskIdFound(f"task group `{self.group_id}` already has `{key}`")
        self.children[key] = node

    def iter_tasks(self) -> Iterator[TaskNode]:
        """All tasks in this group and in the groups below it."""
        for child in self.children.values():
            if isinstance(child, TaskGroup):
                yield from child.iter_tasks()
            else:
                yield child

    def has_task(self, task: TaskNode) -> bool:
        return any(task is own for own in self.iter_tasks())

    def get_child_by_label(self, label: str) -> TaskNode | TaskGroup:
        return self.children[self.child_id(label)]

    def __getitem__(self, label: str) -> TaskNode | TaskGroup:
        return self.get_child_by_label(label)

    @property
    def roots(self) -> Sequence[TaskNode]:
        tasks = {task.task_id: task for task in self.iter_tasks()}
        if not tasks:
            return [root for thing in self._linked_downstream for root in thing.roots]
        return [task for task in tasks.values() if task.upstream_task_ids.isdisjoint(tasks)]

    @property
    def leaves(self) -> Sequence[TaskNode]:
        tasks = {task.task_id: task for task in self.iter_tasks()}
        if not tasks:
            return [leaf for thing in self._linked_upstream for leaf in thing.leaves]
        ends = [task for task in tasks.values() if task.downstream_task_ids.isdisjoint(tasks)]
        return list(_without_teardowns(ends, tasks))

    def get_roots(self) -> Sequence[TaskNode]:
        return self.roots

    def get_leaves(self) -> Sequence[TaskNode]:
        return self.leaves

    def linked_after(self, upstream: Linkable) -> None:
        self._linked_upstream.append(upstream)

    def linked_before(self, downstream: Linkable) -> None:
        self._linked_downstream.append(downstream)

    def __enter__(self) -> TaskGroup:
        scope.enter_group(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        scope.leave_group()


def _without_teardowns(ends: Sequence[TaskNode], inside: Mapping[str, TaskNode]) -> Iterator[TaskNode]:
    seen: set[str] = set()
    pending = list(reversed(ends))
    while pending:
        task = pending.pop()
        if task.task_id in seen:
            continue
        seen.add(task.task_id)
        if not task.is_teardown:
            yield task
            continue
        before = [inside[key] for key in sorted(task.upstream_task_ids) if key in inside]
        pending.extend(upstream for upstream in before if not upstream.is_setup)


class TaskGroupFunction:
    """A function whose tasks form a group; each call makes one more."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = function
        self.options = options
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with TaskGroup(**self.group_options) as group:
            value = self.function(*args, **kwargs)
        return group if value is None else value

    @property
    def group_options(self) -> dict[str, Any]:
        """What a group gets that is made of this function."""
        doc = inspect.getdoc(self.function) or ""
        names = {"group_id": self.function.__name__, "tooltip": doc, "doc_md": doc or None}
        return {**names, "add_suffix_on_collision": True, **self.options}


def group_maker(kind: Callable[..., Any], group_id: Any, options: dict[str, Any]) -> Any:
    """A decorator that may be used bare or with options; `kind` makes the group function."""
    if callable(group_id):
        return kind(group_id, options)
    if group_id is not None:
        options["group_id"] = group_id
    return lambda function: kind(function, options)
