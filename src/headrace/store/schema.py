"""The tables. Instants are whole microseconds since 1970 (UTC), documents are JSON text.

Whatever must always hold is said here (foreign keys, unique and partial indexes, CHECKs), not hoped for in Python.
Every hot statement has an index of its own whose size follows what is active, never the finished history.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from headrace.state import State

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite gives a rowid of its own only to a column that is exactly INTEGER PRIMARY KEY.
Id = BigInteger().with_variant(Integer, "sqlite")
Instant = BigInteger()

ERRAND_STATES = ("waiting", "running", "done", "failed")
KEPT_KINDS = ("variable", "connection", "secret")
MEMO_KINDS = ("task", "asset")
QUESTION_OUTCOMES = ("answered", "timed_out", "withdrawn")
RUN_STATES = ("queued", "running", "success", "failed", "canceled")


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(str(value)) for value in values)})"


def _where(condition: str) -> dict[str, Any]:
    """What makes an index a partial one."""
    return {"info": {"where": condition}}


project = Table(
    "project",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("root", Text, nullable=False, comment="absolute path of the folder with the files; empty: it is pushed"),
    Column("created_at", Instant, nullable=False),
    Column("deleted_at", Instant, comment="its name is free again; its history stays"),
    Index("uq_project_name", "name", unique=True, **_where("deleted_at IS NULL")),
)

archive = Table(
    "archive",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("project_id", Id, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False, comment="what the pushed revision is called"),
    Column("digest", Text, nullable=False, comment="of the archive's bytes"),
    Column("size", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("project_id", "name"),
    Index("ix_archive_digest", "digest"),
)

archive_chunk = Table(
    "archive_chunk",
    metadata,
    Column("archive_id", Id, ForeignKey("archive.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("content", LargeBinary, nullable=False),
    PrimaryKeyConstraint("archive_id", "number"),
)

revision = Table(
    "revision",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("project_id", Id, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    Column("file", Text, nullable=False, comment="relative to the project's root"),
    Column("digest", Text, nullable=False, comment="of the file's bytes"),
    Column("content", LargeBinary, comment="the file's bytes, compressed by zlib; NULL: not kept"),
    Column("archive_id", Id, ForeignKey("archive.id", ondelete="CASCADE"), comment="where a pushed file is kept"),
    Column("created_at", Instant, nullable=False),
    Index("ix_revision_file", "project_id", "file", "id"),
    Index("ix_revision_archive", "archive_id", **_where("archive_id IS NOT NULL")),
)

source_error = Table(
    "source_error",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("project_id", Id, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    Column("file", Text, nullable=False),
    Column("line", Integer),
    Column("message", Text, nullable=False),
    Column("hint", Text),
    Column("detail", Text),
    Column("at", Instant, nullable=False),
    UniqueConstraint("project_id", "file"),
)

workflow = Table(
    "workflow",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("project_id", Id, ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("file", Text, nullable=False),
    Column("current_version_id", Id, comment="the newest workflow_version"),
    Column("is_paused", Boolean, nullable=False, default=False),
    Column("is_gone", Boolean, nullable=False, default=False, comment="no file defines it any more"),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("project_id", "name"),
    Index("ix_workflow_name", "name"),
    Index("ix_workflow_file", "project_id", "file"),
)

workflow_version = Table(
    "workflow_version",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("workflow_id", Id, ForeignKey("workflow.id", ondelete="CASCADE"), nullable=False),
    Column("revision_id", Id, ForeignKey("revision.id", ondelete="CASCADE"), nullable=False),
    Column("digest", Text, nullable=False, comment="of the definition"),
    Column("definition", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Index("ix_workflow_version_workflow", "workflow_id", "id"),
    Index("ix_workflow_version_revision", "revision_id"),
)

schedule = Table(
    "schedule",
    metadata,
    Column("workflow_id", Id, ForeignKey("workflow.id", ondelete="CASCADE"), primary_key=True),
    Column("spec_digest", Text, nullable=False, comment="changes when the schedule itself changes"),
    Column("next_logical_at", Instant),
    Column("next_interval_start", Instant),
    Column("next_interval_end", Instant),
    Column("next_run_at", Instant, comment="when the next run is due; NULL: never"),
    Column("last_logical_at", Instant, comment="of the newest run that this schedule started"),
    Column("disabled_at", Instant, comment="it starts nothing until it is enabled again"),
    Column("last_interval_start", Instant),
    Column("last_interval_end", Instant),
    Column("slots_wanted_at", Instant, comment="when user code is to be asked for the next time"),
    Index("ix_schedule_due", "next_run_at", **_where("next_run_at IS NOT NULL")),
    Index("ix_schedule_wanted", "slots_wanted_at", **_where("slots_wanted_at IS NOT NULL")),
)

backfill = Table(
    "backfill",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("workflow_id", Id, ForeignKey("workflow.id", ondelete="CASCADE"), nullable=False),
    Column("from_at", Instant, nullable=False),
    Column("to_at", Instant, nullable=False),
    Column("reprocess", Text, nullable=False, comment="none, failed or completed: which runs are run again"),
    Column("is_backwards", Boolean, nullable=False),
    Column("max_active_runs", Integer),
    Column("params", Text, nullable=False),
    Column("is_paused", Boolean, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("canceled_at", Instant),
    Index("ix_backfill_workflow", "workflow_id", "id"),
)

asset = Table(
    "asset",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("uri", Text, nullable=False),
    Column("asset_group", Text, nullable=False),
    Column("extra", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
)

asset_use = Table(
    "asset_use",
    metadata,
    Column("workflow_id", Id, ForeignKey("workflow.id", ondelete="CASCADE"), nullable=False),
    Column("key", Text, nullable=False, comment="asset:NAME or alias:NAME"),
    Column("role", Text, nullable=False, comment="schedule, outlet or inlet"),
    Column("task", Text, nullable=False),
    Column("by_partition", Boolean, nullable=False, comment="schedule: only events about a partition count"),
    PrimaryKeyConstraint("workflow_id", "key", "role", "task"),
    Index("ix_asset_use_key", "key", "role", "workflow_id"),
)

asset_watcher = Table(
    "asset_watcher",
    metadata,
    Column("workflow_id", Id, ForeignKey("workflow.id", ondelete="CASCADE"), nullable=False),
    Column("asset", Text, nullable=False),
    Column("digest", Text, nullable=False, comment="of what it is: the trigger's class and its arguments"),
    Column("name", Text, nullable=False),
    Column("path", Text, nullable=False, comment="of the trigger's class"),
    Column("arguments", Text, nullable=False),
    PrimaryKeyConstraint("workflow_id", "asset", "digest"),
)

asset_event = Table(
    "asset_event",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("asset_id", Id, ForeignKey("asset.id", ondelete="CASCADE"), nullable=False),
    Column("at", Instant, nullable=False),
    Column("extra", Text, nullable=False),
    Column("aliases", Text, nullable=False, comment="a JSON list of the names that it was emitted through"),
    # No foreign keys: an event outlives the run that caused it.
    Column("run_id", Id),
    Column("workflow", Text, comment="the names of what caused it; NULL: somebody from outside"),
    Column("run_key", Text),
    Column("task", Text),
    Column("map_index", Integer),
    Column("partition_key", Text, comment="the partition that was updated; NULL: all of it"),
    Column("partition_at", Instant),
    Index("ix_asset_event_asset", "asset_id", "id"),
)

asset_queue = Table(
    "asset_queue",
    metadata,
    Column("workflow_id", Id, ForeignKey("workflow.id", ondelete="CASCADE"), nullable=False),
    Column("event_id", Id, ForeignKey("asset_event.id", ondelete="CASCADE"), nullable=False),
    Column("key", Text, nullable=False),
    PrimaryKeyConstraint("workflow_id", "event_id", "key"),
    Index("ix_asset_queue_event", "event_id"),
)

partition_event = Table(
    "partition_event",
    metadata,
    Column("workflow_id", Id, ForeignKey("workflow.id", ondelete="CASCADE"), nullable=False),
    Column("partition_key", Text, nullable=False, comment="the partition of the workflow that waits for its run"),
    Column("event_id", Id, ForeignKey("asset_event.id", ondelete="CASCADE"), nullable=False),
    Column("key", Text, nullable=False, comment="what the schedule knows the event by"),
    Column("rules", Text, nullable=False, comment="digest of what the schedule said about partitions then"),
    PrimaryKeyConstraint("workflow_id", "partition_key", "event_id", "key"),
    Index("ix_partition_event_event", "event_id"),
)

run = Table(
    "run",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("workflow_id", Id, ForeignKey("workflow.id", ondelete="CASCADE"), nullable=False),
    Column("key", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("logical_at", Instant),
    Column("unique_at", Instant, comment="its time, if a second run for it is refused, else NULL"),
    Column("interval_start", Instant),
    Column("interval_end", Instant),
    Column("run_after", Instant, nullable=False),
    Column("params", Text, nullable=False),
    Column("note", Text),
    Column("backfill_id", Id, comment="the backfill whose limit and order it obeys"),
    Column("backfill_order", Integer),
    Column("partition_key", Text, comment="the partition that it is for"),
    Column("partition_at", Instant, comment="when the period begins that the partition stands for"),
    Column("created_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("ended_at", Instant),
    CheckConstraint(_one_of("state", RUN_STATES), name="state"),
    UniqueConstraint("workflow_id", "key"),
    UniqueConstraint("workflow_id", "unique_at"),
    Index(
        "ix_run_active",
        "workflow_id",
        "state",
        text("coalesce(backfill_id, 0)"),
        text("coalesce(backfill_order, 0)"),
        "run_after",
        "id",
        **_where("state IN ('queued', 'running')"),
    ),
    # Only for statements that say so, too: those about one workflow would read the waiting runs of all others by it.
    Index("ix_run_queued", "run_after", **_where("state = 'queued' AND id > 0")),
    Index("ix_run_logical", "workflow_id", "logical_at", **_where("logical_at IS NOT NULL")),
    # Only for lists of a workflow's runs, which say so, too: whoever looks for active ones has a smaller index.
    Index("ix_run_newest", "workflow_id", "id", **_where("id >= 0")),
    Index("ix_run_ended", "ended_at", **_where("ended_at IS NOT NULL")),
    Index("ix_run_backfill", "backfill_id", "backfill_order", **_where("backfill_id IS NOT NULL")),
)

run_asset_event = Table(
    "run_asset_event",
    metadata,
    Column("run_id", Id, ForeignKey("run.id", ondelete="CASCADE"), nullable=False),
    Column("event_id", Id, ForeignKey("asset_event.id", ondelete="CASCADE"), nullable=False),
    PrimaryKeyConstraint("run_id", "event_id"),
    Index("ix_run_asset_event_event", "event_id"),
)

attempt = Table(
    "attempt",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("run_id", Id, ForeignKey("run.id", ondelete="CASCADE"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("name", Text, nullable=False, default=""),
    Column("workflow_id", Id, ForeignKey("workflow.id", ondelete="CASCADE"), nullable=False),
    Column("workflow_version_id", Id, ForeignKey("workflow_version.id", ondelete="CASCADE"), nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("is_cancel_requested", Boolean, nullable=False, default=False),
    Column("growth", Integer, nullable=False, default=0),
    Column("has_stores", Boolean, nullable=False, default=False, comment="some task left parameters for others"),
    Column("root_id", Id),
    Column("resumes_attempt_id", Id, comment="finished tasks of that attempt are carried over"),
    Column("plan", Text, comment="how this pass differs from an ordinary one; NULL: it does not"),
    Column("max_active_runs", Integer),
    Column("max_active_tasks", Integer),
    Column("max_active_tasks_scope", Text, nullable=False, default="run"),
    Column("timeout_at", Instant, comment="when the run fails if it is still going"),
    Column("created_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("ended_at", Instant),
    CheckConstraint(_one_of("state", RUN_STATES), name="state"),
    UniqueConstraint("run_id", "number"),
    Index("uq_attempt_name", "run_id", "name", unique=True, **_where("name <> ''")),
    # At most one attempt of a run is going on at any time.
    Index("uq_attempt_active", "run_id", unique=True, **_where("state IN ('queued', 'running')")),
    Index("ix_attempt_running", "id", **_where("state = 'running'")),
    Index("ix_attempt_timeout", "timeout_at", **_where("timeout_at IS NOT NULL AND state = 'running'")),
    Index("ix_attempt_version", "workflow_version_id"),
)

task = Table(
    "task",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    # No foreign key: it would cost an index over all history, or a search of it for each attempt that is deleted.
    Column("attempt_id", Id, nullable=False),
    Column("parent_id", Id),
    Column("origin_id", Id, nullable=False),
    Column("grown_by", Id),
    Column("key", Text, nullable=False),
    Column("map_index", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("isolation", Text, nullable=False),
    Column("operator", Text, nullable=False),
    Column("trigger_rule", Text, nullable=False),
    Column("decides", Boolean, nullable=False),
    Column("body", Text),
    Column("priority", Integer, nullable=False),
    Column("pool", Text, nullable=False),
    Column("pool_slots", Integer, nullable=False),
    Column("queue", Text, nullable=False),
    Column("turn_at", Instant, nullable=False, server_default="0", comment="which run's turn is first among equals"),
    Column("timeout_seconds", Float),
    Column("state", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("agent_id", Id),
    Column("try_number", Integer, nullable=False),
    Column("max_tries", Integer, nullable=False),
    Column("expected", Integer, nullable=False),
    Column("succeeded", Integer, nullable=False),
    Column("skipped", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("upstream_failed", Integer, nullable=False),
    Column("removed", Integer, nullable=False),
    Column("setups", Integer, nullable=False),
    Column("setups_succeeded", Integer, nullable=False),
    Column("setups_skipped", Integer, nullable=False),
    Column("children", Integer, nullable=False),
    Column("children_open", Integer, nullable=False),
    Column("children_failed", Integer, nullable=False),
    Column("children_skipped", Integer, nullable=False),
    Column("is_failing", Boolean, nullable=False),
    Column("is_superseded", Boolean, nullable=False),
    Column("due_at", Instant),
    Column("scheduled_at", Instant),
    Column("queued_at", Instant),
    Column("started_at", Instant),
    Column("first_started_at", Instant),
    Column("ended_at", Instant),
    Column("error", Text),
    Column("decision", Text),
    Column("poll_state", Text),
    Column("resume", Text),
    CheckConstraint(_one_of("state", tuple(State)), name="state"),
    # One live row for each task of an attempt; superseded generations are history.
    Index("uq_task_live", "attempt_id", "key", "map_index", unique=True, **_where("NOT is_superseded")),
    Index("ix_task_parent", "parent_id"),
    Index("ix_task_claimable", "queue", text("priority DESC"), "turn_at", "id", **_where("state = 'scheduled'")),
    Index(
        "ix_task_active", "pool", "attempt_id", "pool_slots", **_where("state IN ('queued', 'running', 'restarting')")
    ),
    # Each has a condition that holds for every task and that only its own statement names: while nothing is deferred,
    # PostgreSQL takes the two for equally good, and keeps the plan.
    Index("ix_task_deferred", "pool", "pool_slots", **_where("state = 'deferred' AND pool_slots > 0")),
    Index("ix_task_deferred_key", "key", "attempt_id", **_where("state = 'deferred' AND map_index >= -1")),
    Index("ix_task_due", "due_at", **_where("due_at IS NOT NULL")),
    Index("ix_task_agent", "agent_id", **_where("agent_id IS NOT NULL")),
)

edge = Table(
    "edge",
    metadata,
    Column("upstream_id", Id, nullable=False),
    Column("downstream_id", Id, nullable=False),
    Column("is_setup", Boolean, nullable=False),
    PrimaryKeyConstraint("upstream_id", "downstream_id"),
    Index("ix_edge_downstream", "downstream_id"),
)

try_ = Table(
    "try",
    metadata,
    Column("task_id", Id, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("try_number", Integer, nullable=False),
    Column("agent_id", Id),
    Column("state", Text, nullable=False, comment="the state that this execution led to"),
    Column("started_at", Instant),
    Column("ended_at", Instant, nullable=False),
    Column("error", Text),
    Column("log", Text, comment="path below the logs folder"),
    PrimaryKeyConstraint("task_id", "fence"),
)

value = Table(
    "value",
    metadata,
    Column("task_id", Id, nullable=False),
    Column("name", Text, nullable=False),
    Column("attempt_id", Id, nullable=False),
    Column(
        "kind",
        Text,
        nullable=False,
        comment="result: by name · export, store: parameters for others · shown: for people",
    ),
    Column("document", Text, nullable=False),
    Column("length", Integer),
    PrimaryKeyConstraint("task_id", "kind", "name"),
    Index("ix_value_params", "attempt_id", "task_id", **_where("kind IN ('export', 'store')")),
)

trigger = Table(
    "trigger",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False, comment="of one wait of one task, never used again"),
    Column("task_id", Id, comment="the task that waits for it; NULL: it watches an asset"),
    Column("attempt_id", Id),
    Column("workflow_id", Id, comment="watcher: whose file it is in"),
    Column("asset", Text, comment="watcher: the name of the asset"),
    Column("watcher", Text, comment="watcher: its digest"),
    Column("path", Text, nullable=False, comment="of the trigger's class"),
    Column("arguments", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("agent_id", Id, comment="the triggerer that runs it, under its lease"),
    Column("is_given_up", Boolean, nullable=False, comment="nobody waits; its work outside is still to be ended"),
    Column("created_at", Instant, nullable=False),
    # A task waits for one trigger at a time.
    Index("uq_trigger_task", "task_id", unique=True, **_where("NOT is_given_up")),
    # An asset is watched once in the same way, by however many workflows.
    Index("uq_trigger_watcher", "asset", "watcher", unique=True, **_where("asset IS NOT NULL")),
    Index("ix_trigger_free", "id", **_where("agent_id IS NULL")),
    Index("ix_trigger_agent", "agent_id", **_where("agent_id IS NOT NULL")),
)

question = Table(
    "question",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("task_id", Id, nullable=False),
    Column("attempt_id", Id, nullable=False),
    Column("document", Text, nullable=False, comment="what is asked, of whom, and what may be answered"),
    Column("asked_at", Instant, nullable=False),
    Column("due_at", Instant, comment="until when an answer is waited for; NULL: without end"),
    Column("closed_at", Instant, comment="NULL: it is open, and its task waits"),
    Column("outcome", Text, comment="answered, timed_out or withdrawn; NULL: it is open"),
    Column("answer", Text, comment="what was chosen and filled in, by whom"),
    CheckConstraint(_one_of("outcome", QUESTION_OUTCOMES), name="outcome"),
    # A task waits for one answer at a time; what was asked before is history.
    Index("uq_question_open", "task_id", unique=True, **_where("closed_at IS NULL")),
    Index("ix_question_attempt", "attempt_id"),
)

pool = Table(
    "pool",
    metadata,
    Column("name", Text, primary_key=True),
    Column("slots", Integer, nullable=False, comment="-1: without limit"),
    Column(
        "includes_deferred",
        Boolean,
        nullable=False,
        default=False,
        comment="whether deferred tasks take slots",
    ),
)

agent = Table(
    "agent",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("kind", Text, nullable=False, comment="agent, scheduler or triggerer"),
    Column("name", Text, nullable=False),
    Column("place", Text, nullable=False, comment="tells whether two processes see the same process ids"),
    Column("pid", Integer, nullable=False),
    Column("slots", Integer, nullable=False, default=0),
    Column("queues", Text, nullable=False, default="[]"),
    Column("started_at", Instant, nullable=False),
    Column("renewed_at", Instant, nullable=False),
    Column("lease_until", Instant, nullable=False),
    Column("is_lost", Boolean, nullable=False, default=False, comment="stopped, or its lease ran out and was taken"),
    Column("lost_at", Instant, comment="when others gave it up; NULL: it lives, or stopped by itself"),
    Column("stopping_at", Instant, comment="when it began to end what it holds; NULL: it takes more"),
    Column("version", Text, comment="of the release that it runs"),
    Column("last_told", BigInteger, nullable=False, server_default="0", comment="triggerer: its last recorded event"),
    Column(
        "projects", Text, nullable=False, server_default="{}", comment="scheduler: the folders it saves, by project"
    ),
    Index("ix_agent_lease", "lease_until", **_where("NOT is_lost")),
)

event = Table(
    "event",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("attempt_id", Id, nullable=False),
    Column("task_id", Id),
    Column("before", Text),
    Column("after", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("try_number", Integer, nullable=False),
    Column("at", Instant, nullable=False),
    Column("reason", Text),
    Index("ix_event_attempt", "attempt_id", "id"),
)

errand = Table(
    "errand",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("attempt_id", Id, nullable=False),
    Column("task_id", Id, comment="the task that it is about, or that explains a run's end"),
    Column("try_number", Integer, nullable=False, default=0),
    Column("kind", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("fence", Integer, nullable=False, default=0, comment="counts the claims"),
    Column("tries", Integer, nullable=False, default=0),
    Column("agent_id", Id),
    Column("due_at", Instant, comment="not before"),
    Column("created_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("ended_at", Instant),
    Column("error", Text),
    Column("log", Text, comment="path below the logs folder"),
    CheckConstraint(_one_of("state", ERRAND_STATES), name="state"),
    Index("ix_errand_waiting", "queue", "id", **_where("state = 'waiting'")),
    Index("ix_errand_agent", "agent_id", **_where("agent_id IS NOT NULL")),
    Index("ix_errand_attempt", "attempt_id"),
)

deadline = Table(
    "deadline",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    # No foreign keys, as for tasks: what is deleted takes its deadlines along.
    Column("run_id", Id, nullable=False),
    Column("workflow_id", Id, nullable=False),
    Column("name", Text, nullable=False),
    Column("task", Text, nullable=False, comment="key of the task that is to be done; empty: the run"),
    Column("due_at", Instant, comment="NULL: has passed before the run began; looked at when it begins"),
    Column("missed_at", Instant, comment="NULL: not missed so far"),
    Column("is_told", Boolean, nullable=False, comment="user code was told of the miss"),
    Column("is_mailed", Boolean, nullable=False, comment="somebody got an e-mail about the miss"),
    # Several misses may be history, but a run has each deadline only once ahead of it.
    Index("uq_deadline_ahead", "run_id", "name", unique=True, **_where("missed_at IS NULL")),
    Index("ix_deadline_due", "due_at", **_where("missed_at IS NULL")),
    Index("ix_deadline_run", "run_id"),
)

nudge = Table(
    "nudge",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("attempt_id", Id, nullable=False),
    Column("key", Text, nullable=False, comment="of a task that later runs may have waited for, or that waits itself"),
)

leftover = Table(
    "leftover",
    metadata,
    Column("attempt_id", Id, primary_key=True, autoincrement=False, comment="of a run that was deleted"),
    Column("root_id", Id, comment="the root of what is still there of its tasks"),
)

kept = Table(
    "kept",
    metadata,
    Column("kind", Text, nullable=False),
    Column("scope", Text, nullable=False, comment="a secret's project; empty for what belongs to the installation"),
    Column("name", Text, nullable=False),
    Column("document", Text, nullable=False, comment="JSON, or the sealed form of it"),
    Column("key_id", Text, comment="which key it is sealed with; NULL: with none"),
    Column("description", Text),
    Column("changed_at", Instant, nullable=False),
    PrimaryKeyConstraint("kind", "scope", "name", name="pk_kept"),
    CheckConstraint(_one_of("kind", KEPT_KINDS), name="kind"),
)

memo = Table(
    "memo",
    metadata,
    Column("kind", Text, nullable=False, comment="task or asset"),
    Column("owner_id", Id, nullable=False, comment="task: its run · asset: the asset"),
    Column("task", Text, nullable=False, comment="the key of the task; empty for an asset"),
    Column("map_index", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("expires_at", Instant, comment="NULL: never"),
    PrimaryKeyConstraint("kind", "owner_id", "task", "map_index", "name"),
    CheckConstraint(_one_of("kind", MEMO_KINDS), name="kind"),
    Index("ix_memo_expires", "expires_at", **_where("expires_at IS NOT NULL")),
)

counter = Table(
    "counter",
    metadata,
    Column("name", Text, primary_key=True),
    Column("next", Id, nullable=False),
)

# The layout and the names that Alembic gives its version table.
schema_version = Table(
    "schema_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="schema_version_pkc"),
)

VERSIONS = ("0001",)
"""Every schema version that this release knows, oldest first; the last is the one it needs."""


def schema_for(dialect: str) -> MetaData:
    """The tables, ready to be created or compared in a database of this SQLAlchemy dialect."""
    for index in (index for table in metadata.tables.values() for index in table.indexes):
        if "where" in index.info:
            # Not where the index is made: to be told an option of a dialect, SQLAlchemy imports all its drivers.
            index.dialect_options[dialect]["where"] = text(index.info["where"])
    return metadata
