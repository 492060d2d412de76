"""What must hold in every settled attempt, computed the slow way from nothing but states and edges."""

from __future__ import annotations

from headrace.state import FAILURES, FINISHED, MOVES, TIMED, State, Task, Verdict, decide, source_keys, tally_of
from headrace.state.needing import verdict_about_needs

COUNTERS = (
    "expected", "succeeded", "skipped", "failed", "upstream_failed", "removed", "setups", "setups_succeeded",
    "setups_skipped", "children", "children_open", "children_failed", "children_skipped",
)  # fmt: skip
_SEEN_AS = {
    State.SUCCESS: "succeeded",
    State.SKIPPED: "skipped",
    State.FAILED: "failed",
    State.CANCELED: "failed",
    State.UPSTREAM_FAILED: "upstream_failed",
}


def check(engine) -> None:
    """Raise an AssertionError if the attempt is in a state that no sequence of outcomes may lead to."""
    for task in engine.graph.live:
        actual = {name: getattr(task, name) for name in COUNTERS}
        assert actual == recount(engine, task), task.name
        check_task(engine, task)
    check_events(engine)
    check_attempt(engine)


def recount(engine, task: Task) -> dict[str, int]:
    """The counters that a task should have."""
    counters = dict.fromkeys(COUNTERS, 0)
    lockstep = engine.graph.node(task).lockstep
    waits = not task.is_instance or (lockstep and task.state is not State.REMOVED)
    for edge in engine.graph.edges if waits else []:
        upstream = engine.graph.all[edge.upstream_id]
        if edge.downstream_id != task.origin_id or upstream.is_superseded:
            continue
        ends = (_present(engine, upstream) if upstream.kind == "mapped" else []) or [upstream]
        if task.is_instance and ends[0].is_instance and engine.graph.node(upstream).lockstep == lockstep:
            ends = [end for end in ends if end.map_index == task.map_index]
        for end in ends:
            counters["expected"] += 1
            counters["setups"] += edge.is_setup
            if end.state in FINISHED:
                seen_as = _SEEN_AS[end.state]
                counters[seen_as] += 1
                if edge.is_setup and f"setups_{seen_as}" in counters:
                    counters[f"setups_{seen_as}"] += 1
    for child in _present(engine, task):
        counters["children"] += 1
        counters["children_open"] += child.state not in FINISHED
        counters["children_failed"] += child.state in FAILURES and child.decides
        counters["children_skipped"] += child.state is State.SKIPPED
    return counters


def _present(engine, parent: Task) -> list[Task]:
    return [t for t in engine.graph.live if t.parent_id == parent.id and t.state is not State.REMOVED]


def check_task(engine, task: Task) -> None:
    parent = engine.graph.all[task.parent_id] if task.parent_id is not None else None
    assert parent is None or task.id > parent.id
    assert task.state not in TIMED or task.due_at is not None or task.state is State.DEFERRED
    assert (task.state is State.DEFERRED) <= (task.resume is not None)
    if task.state in FINISHED:
        assert all(child.state in FINISHED for child in _present(engine, task)) or engine.attempt.reason == "deadlocked"
    if parent is not None and parent.state is State.PLANNED and task.state is State.NONE:
        verdicts = decide(task.trigger_rule, tally_of(task)), verdict_about_needs(engine.graph, task)
        assert Verdict.WAIT in verdicts or _awaits_source(engine, task), task.name


def _awaits_source(engine, task: Task) -> bool:
    if task.kind != "mapped":
        return False
    sources = engine.graph.by_key(1, set(source_keys(engine.graph.node(task).expand)))
    waited_for = [*(link.far for link in engine.graph.upstream([task.id])), *sources]
    return any(one.state not in FINISHED for one in waited_for)


def check_events(engine) -> None:
    """Every change has one event, legal and in an unbroken chain."""
    last: dict[int | None, str] = {None: "queued"}
    for event in engine.graph.events:
        assert event.before == last.get(event.task_id, State.NONE), event
        last[event.task_id] = event.after
        if event.task_id is not None:
            assert event.actor in MOVES[State(event.before), State(event.after)].by, event
    assert last[None] == engine.attempt.state
    for task in engine.graph.all.values():
        assert last.get(task.id, task.state) == task.state, task.name
        assert not task.is_superseded or task.state in FINISHED, task.name


def check_attempt(engine) -> None:
    """An attempt runs exactly as long as somebody else has something to do for it."""
    has_work = bool(engine.claimable or engine.held or engine.waiting)
    if engine.attempt.reason != "deadlocked":
        assert has_work == (engine.attempt.state == "running"), engine.states()
    assert (engine.root.state in FINISHED) == (engine.attempt.state != "running")
