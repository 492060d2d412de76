"""The tasks around a change, as decisions read and write them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from headrace.definition import Deferral, Node, Workflow
from headrace.handoff import Errand
from headrace.state.expansion import MapSource
from headrace.state.growth import Edge
from headrace.state.task import Attempt, Event, Task


class Link(NamedTuple):
    """An edge with the task at its other end."""

    near_id: int
    far: Task
    is_setup: bool


class Graph(Protocol):
    """The tasks around a change. Objects are shared: asking twice gives the same task.

    *Live* means not superseded; a removed instance is live. What was changed or added a moment ago is seen as such.
    """

    @property
    def now(self) -> int:
        """Microseconds since 1970."""
        ...

    def attempt(self, attempt_id: int) -> Attempt: ...

    def node(self, task: Task) -> Node:
        """What the task's definition says."""
        ...

    def workflow(self, attempt_id: int) -> Workflow:
        """What the attempt runs."""
        ...

    def tasks(self, ids: Iterable[int]) -> list[Task]: ...

    def downstream(self, ids: Collection[int]) -> list[Link]:
        """Live tasks that wait for these. The given ones need not be live."""
        ...

    def upstream(self, ids: Collection[int]) -> list[Link]:
        """Live tasks that these wait for; instances are not listed, only the mapped task that stands for them."""
        ...

    def children(self, ids: Collection[int]) -> list[Task]:
        """Live children."""
        ...

    def instances(self, mapped_ids: Collection[int], indexes: Collection[int]) -> list[Task]:
        """Live instances of mapped tasks that have one of these indexes."""
        ...

    def by_key(self, attempt_id: int, keys: Collection[str]) -> list[Task]:
        """Live tasks with these keys, without instances."""
        ...

    def unfinished(self, attempt_id: int) -> list[Task]: ...

    def map_sources(self, attempt_id: int, keys: Collection[str]) -> dict[str, MapSource]: ...

    def waits_for_past(self, task: Task, *, is_skipping: bool) -> bool:
        """Whether an earlier run holds the task up. If so, it is looked at again when that may have changed."""
        ...

    def new_ids(self, count: int) -> Sequence[int]:
        """Fresh task ids in ascending order, greater than every id handed out before."""
        ...

    def carry_over(self, tasks: Sequence[Task]) -> list[Task]:
        """Those of some tasks just added that are done, or have instances that are, in the attempt that is resumed."""
        ...

    def add(self, tasks: Sequence[Task], edges: Sequence[Edge]) -> None:
        """Insert tasks and edges; an edge may start or end at a task that was there before."""
        ...

    def add_trigger(self, task: Task, deferral: Deferral) -> None:
        """Have the deferral's trigger run, or its question stand, until the task leaves `deferred`."""
        ...

    def touch(self, task: Task) -> None:
        """Remember that this task changed."""
        ...

    def record(self, event: Event) -> None: ...

    def send(self, task: Task, errand: Errand) -> None:
        """Have an errand run once this is committed; about the task, or about the whole run if it is the root."""
        ...
