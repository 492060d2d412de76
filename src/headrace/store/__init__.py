"""What is true, in a database: the only room that knows SQL. Verbs in, plain data out.

The caller owns the transaction (`with store.begin() as tx:`) and passes time in as microseconds since 1970.
It may import `definition`, `state`, `handoff`, `clock` and `errors`.
"""

from headrace.store.agents import (
    Held,
    expire_leases,
    extend_lease,
    forget_agents,
    held_tasks,
    live_processes,
    register,
    rescue_tasks,
    resign,
)
from headrace.store.claims import Claim, claim_tasks
from headrace.store.database import Database, Transaction
from headrace.store.definitions import Definitions, Version
from headrace.store.projects import (
    FileError,
    SavedWorkflow,
    ensure_project,
    file_digests,
    remove_file,
    save_error,
    save_file,
)
from headrace.store.requests import Requests, RunInfo
from headrace.store.results import Committed, Report, record_results
from headrace.store.run_graph import RunGraph
from headrace.store.runs import (
    NewRun,
    add_attempt,
    cancel_attempt,
    clear_tasks,
    create_run,
    latest_attempt,
    start_queued_runs,
    time_out_attempt,
)
from headrace.store.schedules import (
    ScheduleRow,
    active_runs,
    delete_schedule,
    get_schedule,
    lock_due_schedules,
    save_schedule,
)
from headrace.store.store import Store
from headrace.store.timers import (
    next_due,
    overdue_attempts,
    revive_attempt,
    stalled_attempts,
    waiting_workflows,
    wake_due_tasks,
)
from headrace.store.values import (
    TaskValues,
    attempt_of_run,
    delete_variable,
    get_connection,
    get_variable,
    set_connection,
    set_value,
    set_variable,
    task_values,
)

__all__ = [
    "Claim",
    "Committed",
    "Database",
    "Definitions",
    "FileError",
    "Held",
    "NewRun",
    "Report",
    "Requests",
    "RunGraph",
    "RunInfo",
    "SavedWorkflow",
    "ScheduleRow",
    "Store",
    "TaskValues",
    "Transaction",
    "Version",
    "active_runs",
    "add_attempt",
    "attempt_of_run",
    "cancel_attempt",
    "claim_tasks",
    "clear_tasks",
    "create_run",
    "delete_schedule",
    "delete_variable",
    "ensure_project",
    "expire_leases",
    "extend_lease",
    "file_digests",
    "forget_agents",
    "get_connection",
    "get_schedule",
    "get_variable",
    "held_tasks",
    "latest_attempt",
    "live_processes",
    "lock_due_schedules",
    "next_due",
    "overdue_attempts",
    "record_results",
    "register",
    "remove_file",
    "rescue_tasks",
    "resign",
    "revive_attempt",
    "save_error",
    "save_file",
    "save_schedule",
    "set_connection",
    "set_value",
    "set_variable",
    "stalled_attempts",
    "start_queued_runs",
    "task_values",
    "time_out_attempt",
    "waiting_workflows",
    "wake_due_tasks",
]
