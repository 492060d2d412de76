"""Every metric that exists. `docs/operations/metrics.md` has a line for each, and a test compares the two."""

from __future__ import annotations

from headrace.metrics.instruments import BRIEF_SECONDS, Counter, Family, Gauge, Histogram

# ---- loops -------------------------------------------------------------------------------------------------------

TICK_SECONDS = Histogram(
    "headrace_tick_seconds", "How long one turn of a loop took that ended well.", ("service",), BRIEF_SECONDS
)
TICK_DONE = Counter("headrace_tick_done_total", "Things that a loop has found to do and done.", ("service",))
TICK_FAILURES = Counter("headrace_tick_failures_total", "Turns of a loop that ended with an error.", ("service",))
TICK_SUCCESS = Gauge(
    "headrace_tick_last_success_timestamp_seconds", "When a loop's last turn ended well.", ("service",)
)

# ---- runs and tries ----------------------------------------------------------------------------------------------

RUN_LAG = Histogram(
    "headrace_run_start_lag_seconds", "Between the time at which a run was due and its start.", ("type",)
)
RUNS_ENDED = Counter(
    "headrace_runs_ended_total", "Runs whose end this process has committed.", ("state",), ("success", "failed")
)
TASK_LAG = Histogram(
    "headrace_task_start_lag_seconds", "Between the time at which a task was ready and its start.", ("queue",)
)
TRIES_ENDED = Counter("headrace_tries_ended_total", "Tries whose result an agent has committed.", ("outcome",))
STALE_RESULTS = Counter("headrace_stale_results_total", "Results that bounced off the fence: their try was lost.")
ERRANDS_ENDED = Counter("headrace_errands_ended_total", "Callbacks and other errands that were run.", ("outcome",))
AGENT_SLOTS = Gauge("headrace_agent_slots", "Tasks and errands that this agent may run at the same time.")
AGENT_SLOTS_USED = Gauge("headrace_agent_slots_used", "Tasks and errands that this agent runs.")
AGENT_GIVES_WAY = Gauge(
    "headrace_agent_gives_way", "1 while it leaves tasks to another agent of its machine that keeps that busy, else 0."
)
RESULTS_WAITING = Gauge("headrace_agent_results_waiting", "Results that are not committed yet.")

# ---- leases ------------------------------------------------------------------------------------------------------

LEASES_RENEWED = Counter("headrace_leases_renewed_total", "Renewals of this process's own leases.", ("kind",))
RENEWALS_FAILED = Counter(
    "headrace_lease_renewals_failed_total", "Renewals that the database did not answer.", ("kind",)
)
LEASES_LOST = Counter("headrace_leases_lost_total", "Own leases that ran out and were taken by others.", ("kind",))
STOPPED_IN_TIME = Counter(
    "headrace_lease_stops_total", "Tasks and triggers that were stopped before an own lease ran out.", ("kind",)
)
PROCESSES_GIVEN_UP = Counter(
    "headrace_processes_given_up_total", "Other processes that this scheduler gave up.", ("reason",), ("silent", "dead")
)
TASKS_RESCUED = Counter("headrace_tasks_rescued_total", "Tasks that this process took from processes that are gone.")

# ---- task processes ----------------------------------------------------------------------------------------------

ZYGOTES = Gauge("headrace_zygotes", "Warm parents of task processes.")
ZYGOTES_STARTED = Counter("headrace_zygotes_started_total", "Warm parents that were started.")
FORKS = Counter("headrace_forks_total", "Task processes that were forked.")
FORKS_FAILED = Counter("headrace_forks_failed_total", "Task processes that could not be forked.")

# ---- triggers ----------------------------------------------------------------------------------------------------

TRIGGERS_RUNNING = Gauge("headrace_triggers_running", "Triggers that this triggerer runs.")
TRIGGERS_FIRED = Counter("headrace_triggers_fired_total", "Events of triggers that were committed.")
TRIGGER_PROCESSES_DIED = Counter("headrace_trigger_processes_died_total", "Processes of triggers that died.")

# ---- files -------------------------------------------------------------------------------------------------------

FILE_SECONDS = Histogram("headrace_file_load_seconds", "How long it took to load a workflow file.")
FILES_LOADED = Counter("headrace_files_loaded_total", "Workflow files that were loaded.", ("outcome",))

# ---- traces ------------------------------------------------------------------------------------------------------

TRACES_SENT = Counter("headrace_traces_sent_total", "Ended runs whose spans were handed to the exporter.")
TRACES_DROPPED = Counter("headrace_traces_dropped_total", "Ended runs whose spans could not be made.")

# ---- the database, as this process sees it -----------------------------------------------------------------------

STATEMENTS = Family("headrace_database_statements_total", "counter", "Statements that were asked.")
COMMITS = Family("headrace_database_commits_total", "counter", "Transactions that were committed.")
CONNECTIONS = Counter("headrace_database_connections_total", "Connections that were opened.")
OUTAGE_SECONDS = Family(
    "headrace_database_outage_seconds", "gauge", "How long the database has been away for this process; 0: it is there."
)
DATABASE_ERRORS = Counter(
    "headrace_database_errors_total",
    "Transactions that the database refused or broke off.",
    ("kind",),
    ("conflict", "unreachable", "locked"),
)

# ---- what is in the store: read when somebody asks, the same from every scheduler --------------------------------

STORE_REACHABLE = Family("headrace_store_reachable", "gauge", "Whether the store could be read for this answer.")
TASKS_READY = Family(
    "headrace_tasks_ready", "gauge", "Tasks that could run and that no agent has taken.", ("pool", "queue")
)
TASKS_READY_SECONDS = Family(
    "headrace_tasks_ready_oldest_seconds", "gauge", "How long the oldest of them has been ready.", ("pool", "queue")
)
TASKS_RUNNING = Family("headrace_tasks_running", "gauge", "Tasks that agents hold.", ("pool", "queue"))
POOL_SLOTS = Family("headrace_pool_slots", "gauge", "Slots of a pool; -1: without limit.", ("pool",))
POOL_SLOTS_USED = Family("headrace_pool_slots_used", "gauge", "Slots of a pool that are taken.", ("pool",))
RUNS_ACTIVE = Family("headrace_runs_active", "gauge", "Runs that are queued or running.", ("state",))
SCHEDULES_DUE = Family("headrace_schedules_due", "gauge", "Schedules that are due and were not served.")
SCHEDULES_DUE_SECONDS = Family(
    "headrace_schedules_due_oldest_seconds", "gauge", "How long the oldest of them has been due."
)
TIMERS_DUE_SECONDS = Family(
    "headrace_timers_due_oldest_seconds",
    "gauge",
    "How long the oldest timer of a task has been due.",
)
TRIGGERS_WAITING = Family("headrace_triggers_waiting", "gauge", "Triggers that no triggerer runs.")
ERRANDS_WAITING = Family("headrace_errands_waiting", "gauge", "Errands that no agent has taken.")
SOURCE_ERRORS = Family("headrace_source_errors", "gauge", "Workflow files that could not be loaded.")
PROCESSES_ALIVE = Family(
    "headrace_processes_alive",
    "gauge",
    "Processes whose lease has not run out, without those that are stopping.",
    ("kind",),
)
PROCESSES_STOPPING = Family(
    "headrace_processes_stopping", "gauge", "Processes that only end what they hold and take nothing more.", ("kind",)
)
STORE_BYTES = Family("headrace_store_bytes", "gauge", "Size of the database.")
TABLE_ROWS = Family("headrace_table_rows", "gauge", "About how many rows a table has.", ("table",))

# ---- this process, under the names that Prometheus's own clients use ---------------------------------------------

INFO = Family("headrace_info", "gauge", "Always 1; the label tells the version.", ("version",))
MEMORY = Family("process_resident_memory_bytes", "gauge", "Memory of this process, without its children.")
DESCRIPTORS = Family("process_open_fds", "gauge", "Files that this process has open.")
MAX_DESCRIPTORS = Family("process_max_fds", "gauge", "Files that this process may have open.")
CPU_SECONDS = Family("process_cpu_seconds_total", "counter", "Time that this process has computed.")
STARTED = Family("process_start_time_seconds", "gauge", "When this process began to count.")

FAMILIES: tuple[Family, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Family))
"""All of them, in this order."""
