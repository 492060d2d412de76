"""The session of a local run: the same workflow for the same time goes on where it stopped before."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from headrace.actions.choosing import (
    alone,
    before,
    matching,
    tree_of_nodes,
    tree_of_tasks,
    up_to,
    with_grown,
)
from headrace.actions.params import settled
from headrace.actions.sessions import logical_time
from headrace.actions.trigger import create_manual_run
from headrace.clock import from_micros, iso, to_micros
from headrace.definition import Workflow
from headrace.errors import StateError, UsageError
from headrace.processes import is_alive, place
from headrace.state import Tree, around, following, preceding
from headrace.store import (
    AttemptPlan,
    RunGraph,
    RunRow,
    TaskRow,
    Transaction,
    add_attempt,
    cancel_attempt,
    get_run,
    list_edges,
    list_tasks,
    live_agents,
    live_processes,
    newest_logical_time,
    rescue_tasks,
    resign,
    run_for,
    running_runs,
    start_attempt,
)

_STARTING_MICROS = 60_000_000
LAST = "last"


class LocalWish(NamedTuple):
    """Which tasks of which session are to run. Tasks are named by the end of their names."""

    params: dict[str, Any] = {}
    session: str | None = None
    is_saved: bool = False
    """Go on with what was done for the same time; otherwise the run begins anew and is never gone on with."""
    is_rerun: bool = False
    """Run what was done before, too."""
    start: str | None = None
    """Run this task and all that does not come before it, even if it was done before."""
    goal: str | None = None
    """Run this task, done before or not, and what comes before it, and nothing else."""
    end: str | None = None
    """Run only what comes before this task."""
    task: str | None = None
    """Run this task alone."""
    is_dry: bool = False
    partition_key: str | None = None
    """The partition that a run is for which is not saved."""


def begin_local_run(
    tx: Transaction, workflow_id: int, workflow: Workflow, wish: LocalWish, now: datetime, *, is_private: bool
) -> RunRow:
    """Create a run and start it, or another attempt of the session's run."""
    wish = wish._replace(params=settled(workflow.language, wish.params))
    tree = tree_of_nodes(workflow.nodes)
    if wish.is_dry or not wish.is_saved:
        if wish.start is not None:
            raise UsageError("`--start` needs a session that was saved before", hint="leave out `--no-save`")
        plan = AttemptPlan(only=_only(tree, wish), is_dry=wish.is_dry)
        session = wish.session if wish.session != LAST else _session(tx, workflow_id, workflow, None, now)
        return create_manual_run(
            tx,
            workflow_id,
            workflow,
            now,
            wish.params,
            session,
            is_private=is_private,
            plan=plan,
            partition_key=wish.partition_key,
        )
    if wish.partition_key is not None:
        raise UsageError(f"workflow `{workflow.name}` has no partitions")
    session = _session(tx, workflow_id, workflow, wish.session, now)
    at = to_micros(logical_time(workflow, session, now))
    run_id = run_for(tx, workflow_id, at)
    if run_id is None:
        return _first(tx, workflow_id, workflow, wish, session, now)
    return _go_on(tx, run_id, tree, wish, to_micros(now))


def abandon_orphans(tx: Transaction, workflow_id: int, now: int) -> None:
    """Runs whose process was killed will never go on, and must not count against the workflow's limits."""
    _give_up_dead_agents(tx, now)
    for run in running_runs(tx, workflow_id):
        if not _is_served(tx, run, now):
            cancel_attempt(tx, run.attempt_id, now)


def _give_up_dead_agents(tx: Transaction, now: int) -> None:
    """What dead processes of this place held is free; nothing has to wait for their leases."""
    dead = [one.id for one in live_processes(tx, place()) if not is_alive(one.pid)]
    for agent_id in dead:
        resign(tx, agent_id, now)
    if dead:
        graph = RunGraph(tx, now)
        rescue_tasks(tx, graph)
        graph.flush_events()


def _is_served(tx: Transaction, run: RunRow, now: int) -> bool:
    """Whether a process works on a local run, or has just begun to."""
    if any(agent.name == f"run-{run.id}" for agent in live_agents(tx, now)):
        return True
    # A process that is starting has a run before it has an agent; one that had an agent and has none is dead.
    has_begun = any(task.agent_id is not None or task.fence for task in list_tasks(tx, run.attempt_id))
    return not has_begun and (run.started_at or run.created_at) >= now - _STARTING_MICROS


def _session(tx: Transaction, workflow_id: int, workflow: Workflow, text: str | None, now: datetime) -> str:
    """The time of the session as text; without one, that of the newest session, or the last scheduled one."""
    if text not in (None, LAST):
        return str(text) if text != "now" else now.replace(microsecond=0).isoformat()
    newest = newest_logical_time(tx, workflow_id)
    found = from_micros(newest) if newest is not None else logical_time(workflow, LAST, now)
    return found.isoformat()


def _first(
    tx: Transaction, workflow_id: int, workflow: Workflow, wish: LocalWish, session: str, now: datetime
) -> RunRow:
    only = _only(tree_of_nodes(workflow.nodes), wish)
    return create_manual_run(
        tx,
        workflow_id,
        workflow,
        now,
        wish.params,
        session,
        is_private=True,
        is_repeatable=False,
        plan=AttemptPlan(only=only),
    )


def _go_on(tx: Transaction, run_id: int, tree: Tree, wish: LocalWish, now: int) -> RunRow:
    run = get_run(tx, run_id)
    assert run is not None, "found a moment ago"
    if run.is_active:
        _give_up_orphan(tx, run, now)
    resumes = None if wish.is_rerun else run.attempt_id
    tasks = [] if wish.is_rerun else list_tasks(tx, run.attempt_id)
    carried = _carried(tx, run, tree, tasks, wish) if tasks else None
    only = _only(tree, wish)
    if only is not None:
        only = _with_done(tree, only, tasks, carried)
    plan = AttemptPlan(params=wish.params, only=only, carried=carried)
    attempt_id = add_attempt(tx, run.id, run.workflow_id, resumes, "", now, plan=plan)
    start_attempt(tx, attempt_id, now)
    return get_run(tx, run_id) or run


def _give_up_orphan(tx: Transaction, run: RunRow, now: int) -> None:
    if _is_served(tx, run, now):
        at = "" if run.logical_at is None else f" for {iso(from_micros(run.logical_at))}"
        raise StateError(
            f"another process is running `{run.workflow}`{at} at the moment: run {run.id}",
            hint="wait for it, name another `--session`, or use `--no-save` to run beside it",
        )
    cancel_attempt(tx, run.attempt_id, now)


def _only(tree: Tree, wish: LocalWish) -> tuple[str, ...] | None:
    """The tasks that take part. None: all."""
    chosen: set[str] | None = None
    for choose, pattern in ((alone, wish.task), (up_to, wish.goal), (before, wish.end)):
        if pattern is not None:
            found = set(choose(tree, pattern))
            chosen = found if chosen is None else chosen & found
    return None if chosen is None else tuple(name for name in tree if name in chosen)


def _carried(tx: Transaction, run: RunRow, tree: Tree, tasks: list[TaskRow], wish: LocalWish) -> tuple[str, ...]:
    """Keys of what need not run again if it succeeded: nothing that comes after something which is still to run."""
    ended = {task.key for task in tasks if task.state in ("success", "skipped") or task.kind == "group"}
    allowed = tree.keys() - following(tree, [name for name in tree if name not in ended])
    for pattern in (wish.start, wish.goal):
        if pattern is not None:
            allowed &= preceding(tree, matching(tree, pattern))
    done = tree_of_tasks(tasks, list_edges(tx, run.attempt_id))
    names = with_grown(tree, done, allowed)
    return tuple(sorted({task.key for task in tasks if task.name in names}))


def _with_done(
    tree: Tree, only: tuple[str, ...], tasks: list[TaskRow], carried: tuple[str, ...] | None
) -> tuple[str, ...]:
    """What was done before stays a part of the session, so that a later run can still go on from it."""
    done = {task.key for task in tasks if task.state == "success" and task.kind == "task" and task.try_number}
    done = {key for key in done if key in tree and (carried is None or key in carried)}
    chosen = {*only, *done, *(name for key in done for name in around(tree, key))}
    return tuple(name for name in tree if name in chosen)
