"""The counters of tasks, counted the slow way from nothing but states and edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from headrace.state import FAILURES, FINISHED, State, Task


class Violation(AssertionError):
    """Something is true in the store that no sequence of outcomes may lead to."""


_SEEN_AS = {
    State.SUCCESS: "succeeded",
    State.SKIPPED: "skipped",
    State.FAILED: "failed",
    State.CANCELED: "failed",
    State.UPSTREAM_FAILED: "upstream_failed",
    State.REMOVED: "removed",
}
COUNTERS = (
    "expected", "succeeded", "skipped", "failed", "upstream_failed", "removed", "setups", "setups_succeeded",
    "setups_skipped", "children", "children_open", "children_failed", "children_skipped",
)  # fmt: skip


def recount(tasks: dict[int, Task], edges: Iterable[tuple[int, int, bool]], lockstep: Mapping[int, str]) -> None:
    """Raise a Violation if a live task's counters differ from what its upstream tasks and children say.

    `lockstep` holds the word of each task that has one, by its id.
    """
    live = {task.id: task for task in tasks.values() if not task.is_superseded}
    children: dict[int, list[Task]] = {}
    for task in live.values():
        if task.parent_id is not None and task.state is not State.REMOVED:
            children.setdefault(task.parent_id, []).append(task)
    counted = {task_id: dict.fromkeys(COUNTERS, 0) for task_id in live}
    for upstream_id, downstream_id, is_setup in edges:
        if upstream_id in live and downstream_id in live:
            upstream = live[upstream_id]
            ends = (children.get(upstream_id, []) if upstream.kind == "mapped" else []) or [upstream]
            word = lockstep.get(downstream_id)
            is_in_step = word is not None and word == lockstep.get(upstream_id)
            instances = [one for one in children.get(downstream_id, []) if one.is_instance and word is not None]
            for waiting in (live[downstream_id], *instances):
                for end in ends:
                    if not (is_in_step and _are_apart(waiting, end)):
                        _see(counted[waiting.id], end, is_setup)
    for task_id, below in children.items():
        if task_id in counted:
            _count_children(counted[task_id], below)
    for task_id, task in live.items():
        actual = {name: getattr(task, name) for name in COUNTERS}
        if actual != counted[task_id]:
            wrong = {name: (actual[name], counted[task_id][name]) for name in COUNTERS}
            wrong = {name: both for name, both in wrong.items() if both[0] != both[1]}
            raise Violation(f"task `{task.name}` ({task_id}) has wrong counters (stored, recounted): {wrong}")


def _are_apart(one: Task, other: Task) -> bool:
    return one.is_instance and other.is_instance and one.map_index != other.map_index


def _see(counters: dict[str, int], end: Task, is_setup: bool) -> None:
    counters["expected"] += 1
    counters["setups"] += is_setup
    if end.state in FINISHED:
        seen_as = _SEEN_AS[end.state]
        counters[seen_as] += 1
        if is_setup and f"setups_{seen_as}" in counters:
            counters[f"setups_{seen_as}"] += 1


def _count_children(counters: dict[str, int], below: Sequence[Task]) -> None:
    counters["children"] = len(below)
    counters["children_open"] = sum(child.state not in FINISHED for child in below)
    counters["children_failed"] = sum(child.state in FAILURES and child.decides for child in below)
    counters["children_skipped"] = sum(child.state is State.SKIPPED for child in below)
