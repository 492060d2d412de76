"""W7: W1 and W2 in a store that is full of finished history and idle schedules, against an empty one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import text

from benchmarks import workloads
from benchmarks.bench import Bench
from benchmarks.comparing import Form, compare
from headrace.store import Store

_TASKS_PER_RUN = 100
_WORKFLOW = """
INSERT INTO workflow (project_id, name, file, current_version_id, is_paused, is_gone, created_at)
SELECT (SELECT min(id) FROM project), 'idle' || n, 'idle.py', (SELECT min(id) FROM workflow_version), false, false, 0
FROM {numbers}
"""
_SCHEDULE = """
INSERT INTO schedule (workflow_id, spec_digest, next_logical_at, next_run_at)
SELECT id, 'x', 4102444800000000 + id, 4102444800000000 + id FROM workflow WHERE file = 'idle.py'
"""
_RUN = """
INSERT INTO run (workflow_id, key, type, state, run_after, params, created_at, started_at, ended_at)
SELECT (SELECT min(id) FROM workflow WHERE file = 'idle.py'), 'old' || n, 'manual', 'success', 0, '{{}}', 0, 0, 0
FROM {numbers}
"""
_ATTEMPT = """
INSERT INTO attempt (run_id, number, name, workflow_id, workflow_version_id, state, is_cancel_requested, growth,
                     has_stores, max_active_tasks_scope, created_at, started_at, ended_at)
SELECT id, 1, '', workflow_id, (SELECT min(id) FROM workflow_version), 'success', false, 0, false, 'run', 0, 0, 0
FROM run WHERE key LIKE 'old%'
"""
_TASK = """
INSERT INTO task (id, attempt_id, origin_id, key, map_index, generation, kind, isolation, operator, trigger_rule,
    decides, priority, pool, pool_slots, queue, state, version, fence, try_number, max_tries, expected, succeeded,
    skipped, failed, upstream_failed, removed, setups, setups_succeeded, setups_skipped, children, children_open,
    children_failed, children_skipped, is_failing, is_superseded, started_at, ended_at)
SELECT 1000000000 + attempt.id * 1000 + n, attempt.id, 1000000000 + attempt.id * 1000 + n, 'old' || n, -1, 0, 'task',
    'process', 'python', 'all_success', true, 1, 'default_pool', 1, 'default', 'success', 4, 1, 1, 0, 1, 1, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, false, false, 0, 0
FROM attempt CROSS JOIN {numbers} WHERE attempt.run_id IN (SELECT id FROM run WHERE key LIKE 'old%')
"""
_EVENT = """
INSERT INTO event (attempt_id, task_id, before, after, actor, try_number, at)
SELECT attempt_id, id, 'running', 'success', 'agent', 1, 0 FROM task WHERE key LIKE 'old%'
"""


def measure(make: Callable[[], str], folder: Path, store: str, arguments: Namespace) -> Iterator[dict[str, Any]]:
    """Both stores have an agent of their own in this process, and take turns."""
    empty, full = (Bench(make(), folder, arguments.slots) for _ in range(2))
    full.save(workloads.python_chain(1, "process"))  # what the history belongs to
    fill(full.store, tasks=arguments.history, schedules=10_000)
    for mode in arguments.mode:
        for name, source in _files(mode).items():
            for form, figures in compare({"empty": Form(empty, source), name: Form(full, source)}, arguments.repeat):
                if form != "empty":
                    yield {"workload": f"W7/{form}", "store": store, "mode": mode, **figures}
    empty.close()
    full.close()


def _files(mode: str) -> dict[str, str]:
    return {
        "W1": workloads.python_chain(50, mode),
        "W2/mapped": workloads.python_fan(500, mode, is_mapped=True),
        "W2/static": workloads.python_fan(500, mode, is_mapped=False),
    }


def fill(store: Store, *, tasks: int, schedules: int) -> None:
    """Insert finished tasks (with runs, attempts and an event each) and workflows that are due in the far future."""
    runs = max(1, tasks // _TASKS_PER_RUN)
    with store.begin() as tx:
        for statement, count in (
            (_WORKFLOW, schedules),
            (_SCHEDULE, 0),
            (_RUN, runs),
            (_ATTEMPT, 0),
            (_TASK, _TASKS_PER_RUN),
            (_EVENT, 0),
        ):
            tx.execute(text(statement.format(numbers=_numbers(tx.dialect, count))))
    with store.read() as tx:
        tx.execute(text("ANALYZE"))


def _numbers(dialect: str, count: int) -> str:
    if dialect == "postgres":
        return f"generate_series(1, {count}) AS n"
    return (
        f"(WITH RECURSIVE counting(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < {count})"
        " SELECT n FROM counting)"
    )
