"""What people ask of a simulated cluster: runs, backfills, cancels, clears, retries, pauses."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

from headrace.clock import to_micros
from headrace.projects import ParsedFile
from headrace.projects.saving import save_parsed
from headrace.state import State
from headrace.store import (
    NewBackfill,
    NewRun,
    News,
    Transaction,
    add_attempt,
    cancel_attempt,
    clear_tasks,
    create_run,
    delete_schedule,
    disable_schedule,
    emit_events,
    enable_schedule,
    insert_backfill,
    lock_schedule,
    mark_attempt,
    mark_tasks,
    set_backfill_paused,
    set_paused,
    start_queued_runs,
)
from headrace.store.sql import Sql
from headrace.testing.cluster import Cluster
from headrace.testing.nodes import START
from headrace.testing.past_check import held_up_attempts
from headrace.testing.random_assets import random_event
from headrace.testing.random_workflows import POOLS, random_workflow
from headrace.testing.recounting import Violation

ADD_POOL = Sql("INSERT INTO pool (name, slots, includes_deferred) VALUES (:name, :slots, false)")
ACTIVE = Sql("SELECT id, run_id, workflow_id FROM attempt WHERE state IN ('queued', 'running') ORDER BY id")
_NEWEST = "SELECT max(id) FROM attempt GROUP BY run_id"
ENDED = Sql(
    f"""
    SELECT id, run_id, workflow_id FROM attempt
    WHERE state NOT IN ('queued', 'running') AND id IN ({_NEWEST}) ORDER BY id
    """
)
CLEARABLE = Sql(
    f"""
    SELECT id, attempt_id FROM task
    WHERE NOT is_superseded AND parent_id IS NOT NULL AND attempt_id IN ({_NEWEST}) ORDER BY id
    """
)
BACKFILLS = Sql("SELECT id FROM backfill ORDER BY id")
SCHEDULED = Sql("SELECT workflow_id, logical_at FROM run WHERE type = 'scheduled' ORDER BY workflow_id, logical_at")

_LONG_AGO = to_micros(START - timedelta(days=1))


class People:
    """Everybody who changes something from outside."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._random = cluster.random
        self._runs = 0

    def bring_workflows(self) -> None:
        """Save one to three workflows, and start a run of each."""
        flows = [random_workflow(self._random, f"w{number}") for number in range(self._random.randint(1, 3))]
        parsed = ParsedFile(file="f.py", digest="1", workflows=tuple(flows))
        store = self._cluster.user.store
        self._cluster.ask(self._add_pools)
        (saved,) = save_parsed(store, "p", Path("/p"), [parsed], self._cluster.clock.now())
        for one, flow in zip(saved.workflows, flows, strict=True):
            self._cluster.checker.workflows[one.id] = flow
        for one in saved.workflows:
            self._cluster.ask(partial(self._start, workflow_id=one.id))

    def _add_pools(self, tx: Transaction) -> None:
        for name, slots in POOLS.items():
            tx.change(ADD_POOL, {"name": name, "slots": slots})

    # ---- one request ---------------------------------------------------------------------------------------------

    def act(self) -> None:
        """Somebody asks for something."""
        requests = [self._start_one, self._cancel, self._clear, self._clear, self._retry, self._pause]
        requests += [self._mark, self._mark_run, self._fill_in, self._pause_backfill]
        requests += [self._update_asset, self._update_asset, self._update_asset, self._switch_schedule]
        request = self._random.choice(requests)
        self._cluster.note(f"somebody asks: {request.__name__.strip('_')}")
        self._cluster.ask(request)

    def _start_one(self, tx: Transaction) -> None:
        self._start(tx, self._random.choice(list(self._cluster.checker.workflows)))

    def _start(self, tx: Transaction, workflow_id: int) -> None:
        self._runs += 1
        logical_at = self._cluster.now + self._runs if self._random.random() < 0.5 else None
        run_after = self._cluster.now + self._random.choice((0, 0, 0, 0, 4_000_000))
        new = NewRun(workflow_id, f"manual-{self._runs}", logical_at=logical_at, run_after=run_after)
        create_run(tx, new, self._cluster.now)
        if self._random.random() < 0.7:
            start_queued_runs(tx, workflow_id, self._cluster.now)
        tx.tell(News.PLANS)

    def _cancel(self, tx: Transaction) -> None:
        rows = tx.run(ACTIVE)
        if rows:
            cancel_attempt(tx, self._random.choice(rows)[0], self._cluster.now)

    def _clear(self, tx: Transaction) -> None:
        rows = tx.run(CLEARABLE)
        if rows:
            task_id, attempt_id = self._random.choice(rows)
            same = [row[0] for row in rows if row[1] == attempt_id]
            ids = {task_id, *self._random.sample(same, min(len(same), self._random.randint(0, 2)))}
            clear_tasks(tx, attempt_id, sorted(ids), self._cluster.now)

    def _mark(self, tx: Transaction) -> None:
        rows = tx.run(CLEARABLE)
        if rows:
            task_id, attempt_id = self._random.choice(rows)
            state = State(self._random.choice(("success", "failed", "skipped")))
            mark_tasks(tx, attempt_id, [task_id], state, self._cluster.now, [])

    def _mark_run(self, tx: Transaction) -> None:
        rows = tx.run(ACTIVE)
        if rows:
            state = State(self._random.choice(("success", "failed")))
            mark_attempt(tx, self._random.choice(rows)[0], state, self._cluster.now)

    def _retry(self, tx: Transaction) -> None:
        rows = tx.run(ENDED)
        if rows:
            attempt_id, run_id, workflow_id = self._random.choice(rows)
            resumes = attempt_id if self._random.random() < 0.6 else None
            add_attempt(tx, run_id, workflow_id, resumes, "", self._cluster.now)
            tx.tell()

    def _pause(self, tx: Transaction) -> None:
        workflow_id = self._random.choice(list(self._cluster.checker.workflows))
        set_paused(tx, workflow_id, self._random.random() < 0.5)

    def _fill_in(self, tx: Transaction) -> None:
        """Begin a backfill. There may be others of its workflow, as when runs of one that ended were opened again."""
        workflow_id, now = self._random.choice(list(self._cluster.checker.workflows)), self._cluster.now
        limit = self._random.choice((None, 1, 1, 2))
        backfill_id = insert_backfill(tx, NewBackfill(workflow_id, 0, now, max_active_runs=limit), now)
        for order in range(self._random.randint(1, 3)):
            self._runs += 1
            key, at = f"backfill-{self._runs}", _LONG_AGO + self._runs
            new = NewRun(workflow_id, key, "backfill", logical_at=at, run_after=at)
            create_run(tx, new._replace(backfill_id=backfill_id, backfill_order=order), now)
        start_queued_runs(tx, workflow_id, now)
        tx.tell(News.PLANS)

    def _pause_backfill(self, tx: Transaction) -> None:
        rows = tx.run(BACKFILLS)
        if rows:
            set_backfill_paused(tx, self._random.choice(rows)[0], self._random.random() < 0.5)

    def _update_asset(self, tx: Transaction) -> None:
        emit_events(tx, [(random_event(self._random), None)], self._cluster.now)

    def _switch_schedule(self, tx: Transaction) -> None:
        """A schedule on assets starts nothing for a while, or goes on."""
        rows = [row for one in self._asset_workflows() if (row := lock_schedule(tx, one)) is not None]
        if rows:
            row = self._random.choice(rows)
            if row.disabled_at is None:
                disable_schedule(tx, row.workflow_id, self._cluster.now)
            else:
                enable_schedule(tx, row.workflow_id)

    def _asset_workflows(self) -> list[int]:
        flows = self._cluster.checker.workflows.items()
        return [one for one, flow in flows if flow.schedule is not None and flow.schedule.type == "assets"]

    # ---- the end -------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Nothing is paused any more, and no clock starts another run; events that have come still do."""
        self._cluster.ask(self._settle)

    def _settle(self, tx: Transaction) -> None:
        for workflow_id in self._cluster.checker.workflows:
            set_paused(tx, workflow_id, False)
            if workflow_id not in self._asset_workflows():
                delete_schedule(tx, workflow_id)
            else:
                enable_schedule(tx, workflow_id)
        for (backfill_id,) in tx.run(BACKFILLS):
            set_backfill_paused(tx, backfill_id, False)

    def stop_held_up(self) -> bool:
        """Somebody gives up runs that an earlier one holds up for good. False: there are none."""
        held_up = held_up_attempts(self._cluster.user.store.database, self._cluster.checker.workflows)
        for attempt_id in held_up:
            self._cluster.ask(partial(self._stop, attempt_id=attempt_id))
        return bool(held_up)

    def _stop(self, tx: Transaction, attempt_id: int) -> None:
        cancel_attempt(tx, attempt_id, self._cluster.now)

    def check_schedules(self) -> None:
        """Every logical time up to the newest has exactly one run."""
        with self._cluster.user.store.database.read() as tx:
            rows = tx.run(SCHEDULED)
        for workflow_id, flow in self._cluster.checker.workflows.items():
            times = [logical_at for of, logical_at in rows if of == workflow_id]
            if flow.schedule is None or flow.schedule.type == "assets" or not times:
                continue
            step = flow.schedule.spec["seconds"] * 1_000_000
            if times != list(range(times[0], times[0] + step * len(times), step)):
                raise Violation(f"the runs of workflow {workflow_id} are not one for each logical time: {times}")
