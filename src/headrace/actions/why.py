"""Why a run or a task is where it is: one sentence each, naming the rule, limit, timer or missing agent."""

from __future__ import annotations

from typing import NamedTuple

from headrace.actions import wording
from headrace.actions.finding import find_run, find_task
from headrace.actions.why_task import Reason, Situation, explain, placing
from headrace.actions.wording import instant, span
from headrace.clock import Clock, to_micros
from headrace.store import (
    RunRow,
    Store,
    TaskRow,
    Transaction,
    failed_tasks,
    get_backfill,
    list_tasks,
    live_agents,
    running_runs,
    unfinished_tasks,
)


class Explanation(NamedTuple):
    run: RunRow
    reasons: list[Reason]


def why(store: Store, clock: Clock, name: str, task: str | None = None) -> Explanation:
    """Explain a run: each of its tasks that waits or runs, or how it ended; or explain one of its tasks."""
    now = to_micros(clock.now())
    with store.read() as tx:
        run = find_run(tx, name)
        if task is not None:
            chosen = find_task(tx, run, task)
            situation = Situation(tx, run, now, _all(tx, run))
            return Explanation(run, [explain(situation, chosen), *placing(situation, chosen)])
        return Explanation(run, _of_run(tx, run, now))


def _all(tx: Transaction, run: RunRow) -> list[TaskRow]:
    return list_tasks(tx, run.attempt_id)


def _of_run(tx: Transaction, run: RunRow, now: int) -> list[Reason]:
    if run.state == "queued":
        return [explain_queued(tx, run, now)]
    if run.state == "running":
        return _running(tx, run, now)
    paused = [_paused(run)] if run.is_paused else []
    return [*paused, _ended(run), *(_failure(task) for task in _own_failures(tx, run))]


def explain_queued(tx: Transaction, run: RunRow, now: int) -> Reason:
    """The sentence for a run that has not started."""
    since = max(run.created_at, run.run_after)
    begin = f"run {run.id} of `{run.workflow}` waits"
    if run.is_paused:
        text = f"{begin} since {instant(run.created_at)}: the workflow is paused"
        return Reason(None, run.state, "paused", text, run.created_at, hint=f"`headrace unpause {run.workflow}`")
    if run.run_after > now:
        text = f"{begin} until {instant(run.run_after)} (in {span(now, run.run_after)}): it may not start earlier"
        return Reason(None, run.state, "run_after", text, run.created_at, run.run_after)
    backfill = None if run.backfill_id is None else get_backfill(tx, run.backfill_id)
    if backfill is not None and backfill.is_paused:
        text = f"{begin} since {instant(since)}: its backfill {backfill.id} is paused"
        return Reason(None, run.state, "paused", text, since, hint=f"`headrace backfill unpause {backfill.id}`")
    running = running_runs(tx, run.workflow_id, backfill_id=run.backfill_id)
    if run.max_active_runs is not None and len(running) >= run.max_active_runs:
        of_backfill = "" if backfill is None else f" of backfill {backfill.id}"
        text = (
            f"{begin} since {instant(since)}: max_active_runs{of_backfill} is {run.max_active_runs}"
            f" and {_run_names(running)} is not done"
        )
        return Reason(None, run.state, "max_active_runs", text, since)
    if not any(agent.kind == "scheduler" for agent in live_agents(tx, now)):
        text = f"{begin} since {instant(since)}: no scheduler is alive to start it"
        return Reason(None, run.state, "no_scheduler", text, since, hint="start one with `headrace standalone`")
    return Reason(
        None, run.state, "starting", f"{begin} since {instant(since)}: a scheduler is about to start it", since
    )


def _paused(run: RunRow) -> Reason:
    text = f"workflow `{run.workflow}` is paused: no run and no task of it starts"
    return Reason(None, run.state, "paused", text, hint=f"`headrace unpause {run.workflow}`")


def _run_names(runs: list[RunRow]) -> str:
    return f"run {runs[0].id}" if len(runs) == 1 else f"each of runs {', '.join(str(run.id) for run in runs)}"


def _running(tx: Transaction, run: RunRow, now: int) -> list[Reason]:
    situation = Situation(tx, run, now, unfinished_tasks(tx, run.attempt_id))
    reasons = [explain(situation, task) for task in situation.tasks if _speaks_for_itself(situation, task)]
    if run.is_paused and not any(reason.kind == "paused" for reason in reasons):
        reasons.insert(0, _paused(run))
    if run.is_cancel_requested:
        text = f"run {run.id} of `{run.workflow}` is being stopped: its agents end what still runs"
        reasons.insert(0, Reason(None, run.state, "stopping", text, run.started_at))
    if not reasons:
        text = f"run {run.id} of `{run.workflow}` has nothing left to wait for: a scheduler is about to end it"
        reasons.append(Reason(None, run.state, "ending", text, run.started_at))
    return reasons


def _speaks_for_itself(situation: Situation, task: TaskRow) -> bool:
    """Not a group whose tasks say it all, nor a task whose group has not opened."""
    if task.state == "planned":
        return False
    parent = situation.parent_of(task)
    return task.state != "none" or parent is None or parent.state == "planned"


def _ended(run: RunRow) -> Reason:
    took = span(run.started_at, run.ended_at)
    text = f"run {run.id} of `{run.workflow}` ended as {run.state} at {instant(run.ended_at)}"
    text += f" after {took}" if took else " before it started"
    reasons = {
        "timed_out": "it took longer than its workflow allows",
        "deadlocked": "no task could run any more",
        "marked_success": "somebody marked it so",
        "marked_failed": "somebody marked it so",
    }
    if run.reason:
        text += f": {reasons.get(run.reason, run.reason)}"
    return Reason(None, run.state, "ended", text, run.ended_at)


def _own_failures(tx: Transaction, run: RunRow) -> list[TaskRow]:
    """Failed tasks that did not fail because of a task below them."""
    failed = failed_tasks(tx, run.attempt_id)
    parents = {task.parent_id for task in failed}
    return [task for task in failed if task.id not in parents and task.is_listed]


def _failure(task: TaskRow) -> Reason:
    text = f"`{task.name}` failed at {instant(task.ended_at)} ({wording.tries(task)}): {wording.error_line(task)}"
    return Reason(task.name, task.state, "ended", text, task.ended_at)
