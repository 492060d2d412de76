"""The first schema. Online: there is nothing before it."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)

revision = "0001"
down_revision = None

ID = BigInteger().with_variant(Integer, "sqlite")

RUN_STATES = "state IN ('queued', 'running', 'success', 'failed', 'canceled')"
TASK_STATES = (
    "state IN ('none', 'scheduled', 'queued', 'running', 'planned', 'deferred', 'up_for_reschedule', 'up_for_retry',"
    " 'restarting', 'success', 'failed', 'skipped', 'upstream_failed', 'canceled', 'removed')"
)


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE IF NOT EXISTS task_id_seq")
    _create_files()
    _create_runs()
    _create_backfills()
    _create_assets()
    _create_tasks()
    _create_others()
    op.execute("INSERT INTO counter (name, next) VALUES ('task', 1)")
    op.execute("INSERT INTO pool (name, slots, includes_deferred) VALUES ('default_pool', 128, false)")


def _create_files() -> None:
    op.create_table(
        "project",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("name", Text, nullable=False),
        Column("root", Text, nullable=False, comment="absolute path of the folder with the files; empty: it is pushed"),
        Column("created_at", BigInteger, nullable=False),
        Column("deleted_at", BigInteger, comment="its name is free again; its history stays"),
        PrimaryKeyConstraint("id", name="pk_project"),
    )
    op.create_index("uq_project_name", "project", ["name"], unique=True, **_where("deleted_at IS NULL"))
    op.create_table(
        "archive",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("project_id", ID, nullable=False),
        Column("name", Text, nullable=False, comment="what the pushed revision is called"),
        Column("digest", Text, nullable=False, comment="of the archive's bytes"),
        Column("size", Integer, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_archive_project_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_archive"),
        UniqueConstraint("project_id", "name", name="uq_archive_project_id_name"),
    )
    op.create_index("ix_archive_digest", "archive", ["digest"])
    op.create_table(
        "archive_chunk",
        Column("archive_id", ID, nullable=False),
        Column("number", Integer, nullable=False),
        Column("content", LargeBinary, nullable=False),
        ForeignKeyConstraint(["archive_id"], ["archive.id"], name="fk_archive_chunk_archive_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("archive_id", "number", name="pk_archive_chunk"),
    )
    op.create_table(
        "revision",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("project_id", ID, nullable=False),
        Column("file", Text, nullable=False, comment="relative to the project's root"),
        Column("digest", Text, nullable=False, comment="of the file's bytes"),
        Column("content", LargeBinary, comment="the file's bytes, compressed by zlib; NULL: not kept"),
        Column("archive_id", ID, comment="where a pushed file is kept"),
        Column("created_at", BigInteger, nullable=False),
        ForeignKeyConstraint(["archive_id"], ["archive.id"], name="fk_revision_archive_id", ondelete="CASCADE"),
        ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_revision_project_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_revision"),
    )
    op.create_index("ix_revision_file", "revision", ["project_id", "file", "id"])
    op.create_index("ix_revision_archive", "revision", ["archive_id"], **_where("archive_id IS NOT NULL"))
    op.create_table(
        "source_error",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("project_id", ID, nullable=False),
        Column("file", Text, nullable=False),
        Column("line", Integer),
        Column("message", Text, nullable=False),
        Column("hint", Text),
        Column("detail", Text),
        Column("at", BigInteger, nullable=False),
        ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_source_error_project_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_source_error"),
        UniqueConstraint("project_id", "file", name="uq_source_error_project_id_file"),
    )
    op.create_table(
        "workflow",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("project_id", ID, nullable=False),
        Column("name", Text, nullable=False),
        Column("file", Text, nullable=False),
        Column("current_version_id", ID, comment="the newest workflow_version"),
        Column("is_paused", Boolean, nullable=False),
        Column("is_gone", Boolean, nullable=False, comment="no file defines it any more"),
        Column("created_at", BigInteger, nullable=False),
        ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_workflow_project_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_workflow"),
        UniqueConstraint("project_id", "name", name="uq_workflow_project_id_name"),
    )
    op.create_index("ix_workflow_file", "workflow", ["project_id", "file"])
    op.create_index("ix_workflow_name", "workflow", ["name"])
    op.create_table(
        "workflow_version",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("workflow_id", ID, nullable=False),
        Column("revision_id", ID, nullable=False),
        Column("digest", Text, nullable=False, comment="of the definition"),
        Column("definition", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        ForeignKeyConstraint(
            ["revision_id"], ["revision.id"], name="fk_workflow_version_revision_id", ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_workflow_version_workflow_id", ondelete="CASCADE"
        ),
        PrimaryKeyConstraint("id", name="pk_workflow_version"),
    )
    op.create_index("ix_workflow_version_revision", "workflow_version", ["revision_id"])
    op.create_index("ix_workflow_version_workflow", "workflow_version", ["workflow_id", "id"])


def _create_runs() -> None:
    op.create_table(
        "schedule",
        Column("workflow_id", ID, nullable=False),
        Column("spec_digest", Text, nullable=False, comment="changes when the schedule itself changes"),
        Column("next_logical_at", BigInteger),
        Column("next_interval_start", BigInteger),
        Column("next_interval_end", BigInteger),
        Column("next_run_at", BigInteger, comment="when the next run is due; NULL: never"),
        Column("last_logical_at", BigInteger, comment="of the newest run that this schedule started"),
        Column("disabled_at", BigInteger, comment="it starts nothing until it is enabled again"),
        Column("last_interval_start", BigInteger),
        Column("last_interval_end", BigInteger),
        Column("slots_wanted_at", BigInteger, comment="when user code is to be asked for the next time"),
        ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_schedule_workflow_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("workflow_id", name="pk_schedule"),
    )
    op.create_index("ix_schedule_due", "schedule", ["next_run_at"], **_where("next_run_at IS NOT NULL"))
    op.create_index("ix_schedule_wanted", "schedule", ["slots_wanted_at"], **_where("slots_wanted_at IS NOT NULL"))
    op.create_table(
        "run",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("workflow_id", ID, nullable=False),
        Column("key", Text, nullable=False),
        Column("type", Text, nullable=False),
        Column("state", Text, nullable=False),
        Column("reason", Text),
        Column("logical_at", BigInteger),
        Column("unique_at", BigInteger, comment="its time, if a second run for it is refused, else NULL"),
        Column("interval_start", BigInteger),
        Column("interval_end", BigInteger),
        Column("run_after", BigInteger, nullable=False),
        Column("params", Text, nullable=False),
        Column("note", Text),
        Column("backfill_id", ID, comment="the backfill whose limit and order it obeys"),
        Column("backfill_order", Integer),
        Column("partition_key", Text, comment="the partition that it is for"),
        Column("partition_at", BigInteger, comment="when the period begins that the partition stands for"),
        Column("created_at", BigInteger, nullable=False),
        Column("started_at", BigInteger),
        Column("ended_at", BigInteger),
        CheckConstraint(RUN_STATES, name=op.f("ck_run_state")),
        ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_run_workflow_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_run"),
        UniqueConstraint("workflow_id", "key", name="uq_run_workflow_id_key"),
        UniqueConstraint("workflow_id", "unique_at", name="uq_run_workflow_id_unique_at"),
    )
    op.create_index(
        "ix_run_active", "run",
        [
            "workflow_id", "state", text("coalesce(backfill_id, 0)"), text("coalesce(backfill_order, 0)"),
            "run_after", "id",
        ],
        **_where("state IN ('queued', 'running')"),
    )  # fmt: skip
    op.create_index("ix_run_backfill", "run", ["backfill_id", "backfill_order"], **_where("backfill_id IS NOT NULL"))
    op.create_index("ix_run_ended", "run", ["ended_at"], **_where("ended_at IS NOT NULL"))
    op.create_index("ix_run_logical", "run", ["workflow_id", "logical_at"], **_where("logical_at IS NOT NULL"))
    op.create_index("ix_run_newest", "run", ["workflow_id", "id"], **_where("id >= 0"))
    op.create_index("ix_run_queued", "run", ["run_after"], **_where("state = 'queued' AND id > 0"))
    op.create_table(
        "attempt",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("run_id", ID, nullable=False),
        Column("number", Integer, nullable=False),
        Column("name", Text, nullable=False),
        Column("workflow_id", ID, nullable=False),
        Column("workflow_version_id", ID, nullable=False),
        Column("state", Text, nullable=False),
        Column("reason", Text),
        Column("is_cancel_requested", Boolean, nullable=False),
        Column("growth", Integer, nullable=False),
        Column("has_stores", Boolean, nullable=False, comment="some task left parameters for others"),
        Column("root_id", ID),
        Column("resumes_attempt_id", ID, comment="finished tasks of that attempt are carried over"),
        Column("plan", Text, comment="how this pass differs from an ordinary one; NULL: it does not"),
        Column("max_active_runs", Integer),
        Column("max_active_tasks", Integer),
        Column("max_active_tasks_scope", Text, nullable=False),
        Column("timeout_at", BigInteger, comment="when the run fails if it is still going"),
        Column("created_at", BigInteger, nullable=False),
        Column("started_at", BigInteger),
        Column("ended_at", BigInteger),
        CheckConstraint(RUN_STATES, name=op.f("ck_attempt_state")),
        ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_attempt_run_id", ondelete="CASCADE"),
        ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_attempt_workflow_id", ondelete="CASCADE"),
        ForeignKeyConstraint(
            ["workflow_version_id"], ["workflow_version.id"], name="fk_attempt_workflow_version_id", ondelete="CASCADE"
        ),
        PrimaryKeyConstraint("id", name="pk_attempt"),
        UniqueConstraint("run_id", "number", name="uq_attempt_run_id_number"),
    )
    op.create_index("ix_attempt_running", "attempt", ["id"], **_where("state = 'running'"))
    op.create_index(
        "ix_attempt_timeout", "attempt", ["timeout_at"], **_where("timeout_at IS NOT NULL AND state = 'running'")
    )
    op.create_index("ix_attempt_version", "attempt", ["workflow_version_id"])
    op.create_index("uq_attempt_name", "attempt", ["run_id", "name"], unique=True, **_where("name <> ''"))
    op.create_index("uq_attempt_active", "attempt", ["run_id"], unique=True, **_where("state IN ('queued', 'running')"))


def _create_backfills() -> None:
    op.create_table(
        "backfill",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("workflow_id", ID, nullable=False),
        Column("from_at", BigInteger, nullable=False),
        Column("to_at", BigInteger, nullable=False),
        Column("reprocess", Text, nullable=False, comment="none, failed or completed: which runs are run again"),
        Column("is_backwards", Boolean, nullable=False),
        Column("max_active_runs", Integer),
        Column("params", Text, nullable=False),
        Column("is_paused", Boolean, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("canceled_at", BigInteger),
        ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_backfill_workflow_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_backfill"),
    )
    op.create_index("ix_backfill_workflow", "backfill", ["workflow_id", "id"])


def _create_assets() -> None:
    op.create_table(
        "asset",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("name", Text, nullable=False),
        Column("uri", Text, nullable=False),
        Column("asset_group", Text, nullable=False),
        Column("extra", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("id", name="pk_asset"),
        UniqueConstraint("name", name="uq_asset_name"),
    )
    op.create_table(
        "asset_use",
        Column("workflow_id", ID, nullable=False),
        Column("key", Text, nullable=False, comment="asset:NAME or alias:NAME"),
        Column("role", Text, nullable=False, comment="schedule, outlet or inlet"),
        Column("task", Text, nullable=False),
        Column("by_partition", Boolean, nullable=False, comment="schedule: only events about a partition count"),
        ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_asset_use_workflow_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("workflow_id", "key", "role", "task", name="pk_asset_use"),
    )
    op.create_index("ix_asset_use_key", "asset_use", ["key", "role", "workflow_id"])
    op.create_table(
        "asset_watcher",
        Column("workflow_id", ID, nullable=False),
        Column("asset", Text, nullable=False),
        Column("digest", Text, nullable=False, comment="of what it is: the trigger's class and its arguments"),
        Column("name", Text, nullable=False),
        Column("path", Text, nullable=False, comment="of the trigger's class"),
        Column("arguments", Text, nullable=False),
        ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_asset_watcher_workflow_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("workflow_id", "asset", "digest", name="pk_asset_watcher"),
    )
    op.create_table(
        "asset_event",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("asset_id", ID, nullable=False),
        Column("at", BigInteger, nullable=False),
        Column("extra", Text, nullable=False),
        Column("aliases", Text, nullable=False, comment="a JSON list of the names that it was emitted through"),
        Column("run_id", ID),
        Column("workflow", Text, comment="the names of what caused it; NULL: somebody from outside"),
        Column("run_key", Text),
        Column("task", Text),
        Column("map_index", Integer),
        Column("partition_key", Text, comment="the partition that was updated; NULL: all of it"),
        Column("partition_at", BigInteger),
        ForeignKeyConstraint(["asset_id"], ["asset.id"], name="fk_asset_event_asset_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_asset_event"),
    )
    op.create_index("ix_asset_event_asset", "asset_event", ["asset_id", "id"])
    op.create_table(
        "asset_queue",
        Column("workflow_id", ID, nullable=False),
        Column("event_id", ID, nullable=False),
        Column("key", Text, nullable=False),
        ForeignKeyConstraint(["event_id"], ["asset_event.id"], name="fk_asset_queue_event_id", ondelete="CASCADE"),
        ForeignKeyConstraint(["workflow_id"], ["workflow.id"], name="fk_asset_queue_workflow_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("workflow_id", "event_id", "key", name="pk_asset_queue"),
    )
    op.create_index("ix_asset_queue_event", "asset_queue", ["event_id"])
    op.create_table(
        "partition_event",
        Column("workflow_id", ID, nullable=False),
        Column("partition_key", Text, nullable=False, comment="the partition of the workflow that waits for its run"),
        Column("event_id", ID, nullable=False),
        Column("key", Text, nullable=False, comment="what the schedule knows the event by"),
        Column("rules", Text, nullable=False, comment="digest of what the schedule said about partitions then"),
        ForeignKeyConstraint(["event_id"], ["asset_event.id"], name="fk_partition_event_event_id", ondelete="CASCADE"),
        ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_partition_event_workflow_id", ondelete="CASCADE"
        ),
        PrimaryKeyConstraint("workflow_id", "partition_key", "event_id", "key", name="pk_partition_event"),
    )
    op.create_index("ix_partition_event_event", "partition_event", ["event_id"])
    op.create_table(
        "run_asset_event",
        Column("run_id", ID, nullable=False),
        Column("event_id", ID, nullable=False),
        ForeignKeyConstraint(["event_id"], ["asset_event.id"], name="fk_run_asset_event_event_id", ondelete="CASCADE"),
        ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_run_asset_event_run_id", ondelete="CASCADE"),
        PrimaryKeyConstraint("run_id", "event_id", name="pk_run_asset_event"),
    )
    op.create_index("ix_run_asset_event_event", "run_asset_event", ["event_id"])


def _create_tasks() -> None:
    op.create_table(
        "task",
        Column("id", ID, autoincrement=False, nullable=False),
        Column("attempt_id", ID, nullable=False),
        Column("parent_id", ID),
        Column("origin_id", ID, nullable=False),
        Column("grown_by", ID),
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
        Column(
            "turn_at", BigInteger, nullable=False, server_default="0", comment="which run's turn is first among equals"
        ),
        Column("timeout_seconds", Float),
        Column("state", Text, nullable=False),
        Column("version", Integer, nullable=False),
        Column("fence", Integer, nullable=False),
        Column("agent_id", ID),
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
        Column("due_at", BigInteger),
        Column("scheduled_at", BigInteger),
        Column("queued_at", BigInteger),
        Column("started_at", BigInteger),
        Column("first_started_at", BigInteger),
        Column("ended_at", BigInteger),
        Column("error", Text),
        Column("decision", Text),
        Column("poll_state", Text),
        Column("resume", Text),
        CheckConstraint(TASK_STATES, name=op.f("ck_task_state")),
        PrimaryKeyConstraint("id", name="pk_task"),
    )
    op.create_index(
        "ix_task_active",
        "task",
        ["pool", "attempt_id", "pool_slots"],
        **_where("state IN ('queued', 'running', 'restarting')"),
    )
    op.create_index("ix_task_agent", "task", ["agent_id"], **_where("agent_id IS NOT NULL"))
    op.create_index(
        "ix_task_deferred", "task", ["pool", "pool_slots"], **_where("state = 'deferred' AND pool_slots > 0")
    )
    op.create_index(
        "ix_task_deferred_key", "task", ["key", "attempt_id"], **_where("state = 'deferred' AND map_index >= -1")
    )
    op.create_index("ix_task_due", "task", ["due_at"], **_where("due_at IS NOT NULL"))
    op.create_index("ix_task_parent", "task", ["parent_id"])
    op.create_index(
        "uq_task_live", "task", ["attempt_id", "key", "map_index"], unique=True, **_where("NOT is_superseded")
    )
    op.create_index(
        "ix_task_claimable", "task", ["queue", text("priority DESC"), "turn_at", "id"], **_where("state = 'scheduled'")
    )
    op.create_table(
        "edge",
        Column("upstream_id", ID, nullable=False),
        Column("downstream_id", ID, nullable=False),
        Column("is_setup", Boolean, nullable=False),
        PrimaryKeyConstraint("upstream_id", "downstream_id", name="pk_edge"),
    )
    op.create_index("ix_edge_downstream", "edge", ["downstream_id"])
    op.create_table(
        "try",
        Column("task_id", ID, nullable=False),
        Column("fence", Integer, nullable=False),
        Column("try_number", Integer, nullable=False),
        Column("agent_id", ID),
        Column("state", Text, nullable=False, comment="the state that this execution led to"),
        Column("started_at", BigInteger),
        Column("ended_at", BigInteger, nullable=False),
        Column("error", Text),
        Column("log", Text, comment="path below the logs folder"),
        PrimaryKeyConstraint("task_id", "fence", name="pk_try"),
    )
    op.create_table(
        "value",
        Column("task_id", ID, nullable=False),
        Column("name", Text, nullable=False),
        Column("attempt_id", ID, nullable=False),
        Column(
            "kind",
            Text,
            nullable=False,
            comment="result: by name · export, store: parameters for others · shown: for people",
        ),
        Column("document", Text, nullable=False),
        Column("length", Integer),
        PrimaryKeyConstraint("task_id", "kind", "name", name="pk_value"),
    )
    op.create_index("ix_value_params", "value", ["attempt_id", "task_id"], **_where("kind IN ('export', 'store')"))
    op.create_table(
        "trigger",
        Column("id", ID, autoincrement=False, nullable=False, comment="of one wait of one task, never used again"),
        Column("task_id", ID, comment="the task that waits for it; NULL: it watches an asset"),
        Column("attempt_id", ID),
        Column("workflow_id", ID, comment="watcher: whose file it is in"),
        Column("asset", Text, comment="watcher: the name of the asset"),
        Column("watcher", Text, comment="watcher: its digest"),
        Column("path", Text, nullable=False, comment="of the trigger's class"),
        Column("arguments", Text, nullable=False),
        Column("priority", Integer, nullable=False),
        Column("agent_id", ID, comment="the triggerer that runs it, under its lease"),
        Column("is_given_up", Boolean, nullable=False, comment="nobody waits; its work outside is still to be ended"),
        Column("created_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("id", name="pk_trigger"),
    )
    op.create_index("ix_trigger_agent", "trigger", ["agent_id"], **_where("agent_id IS NOT NULL"))
    op.create_index("ix_trigger_free", "trigger", ["id"], **_where("agent_id IS NULL"))
    op.create_index("uq_trigger_task", "trigger", ["task_id"], unique=True, **_where("NOT is_given_up"))
    op.create_index("uq_trigger_watcher", "trigger", ["asset", "watcher"], unique=True, **_where("asset IS NOT NULL"))


def _create_others() -> None:
    op.create_table(
        "question",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("task_id", ID, nullable=False),
        Column("attempt_id", ID, nullable=False),
        Column("document", Text, nullable=False, comment="what is asked, of whom, and what may be answered"),
        Column("asked_at", BigInteger, nullable=False),
        Column("due_at", BigInteger, comment="until when an answer is waited for; NULL: without end"),
        Column("closed_at", BigInteger, comment="NULL: it is open, and its task waits"),
        Column("outcome", Text, comment="answered, timed_out or withdrawn; NULL: it is open"),
        Column("answer", Text, comment="what was chosen and filled in, by whom"),
        PrimaryKeyConstraint("id", name="pk_question"),
        CheckConstraint("outcome IN ('answered', 'timed_out', 'withdrawn')", name=op.f("ck_question_outcome")),
    )
    op.create_index("uq_question_open", "question", ["task_id"], unique=True, **_where("closed_at IS NULL"))
    op.create_index("ix_question_attempt", "question", ["attempt_id"])
    op.create_table(
        "pool",
        Column("name", Text, nullable=False),
        Column("slots", Integer, nullable=False, comment="-1: without limit"),
        Column("includes_deferred", Boolean, nullable=False, comment="whether deferred tasks take slots"),
        PrimaryKeyConstraint("name", name="pk_pool"),
    )
    op.create_table(
        "agent",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("kind", Text, nullable=False, comment="agent, scheduler or triggerer"),
        Column("name", Text, nullable=False),
        Column("place", Text, nullable=False, comment="tells whether two processes see the same process ids"),
        Column("pid", Integer, nullable=False),
        Column("slots", Integer, nullable=False),
        Column("queues", Text, nullable=False),
        Column("started_at", BigInteger, nullable=False),
        Column("renewed_at", BigInteger, nullable=False),
        Column("lease_until", BigInteger, nullable=False),
        Column("is_lost", Boolean, nullable=False, comment="stopped, or its lease ran out and was taken"),
        Column("lost_at", BigInteger, comment="when others gave it up; NULL: it lives, or stopped by itself"),
        Column("stopping_at", BigInteger, comment="when it began to end what it holds; NULL: it takes more"),
        Column("version", Text, comment="of the release that it runs"),
        Column(
            "last_told", BigInteger, nullable=False, server_default="0", comment="triggerer: its last recorded event"
        ),
        Column(
            "projects", Text, nullable=False, server_default="{}", comment="scheduler: the folders it saves, by project"
        ),
        PrimaryKeyConstraint("id", name="pk_agent"),
    )
    op.create_index("ix_agent_lease", "agent", ["lease_until"], **_where("NOT is_lost"))
    op.create_table(
        "event",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("attempt_id", ID, nullable=False),
        Column("task_id", ID),
        Column("before", Text),
        Column("after", Text, nullable=False),
        Column("actor", Text, nullable=False),
        Column("try_number", Integer, nullable=False),
        Column("at", BigInteger, nullable=False),
        Column("reason", Text),
        PrimaryKeyConstraint("id", name="pk_event"),
    )
    op.create_index("ix_event_attempt", "event", ["attempt_id", "id"])
    op.create_table(
        "errand",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("attempt_id", ID, nullable=False),
        Column("task_id", ID, comment="the task that it is about, or that explains a run's end"),
        Column("try_number", Integer, nullable=False),
        Column("kind", Text, nullable=False),
        Column("payload", Text, nullable=False),
        Column("queue", Text, nullable=False),
        Column("state", Text, nullable=False),
        Column("fence", Integer, nullable=False, comment="counts the claims"),
        Column("tries", Integer, nullable=False),
        Column("agent_id", ID),
        Column("due_at", BigInteger, comment="not before"),
        Column("created_at", BigInteger, nullable=False),
        Column("started_at", BigInteger),
        Column("ended_at", BigInteger),
        Column("error", Text),
        Column("log", Text, comment="path below the logs folder"),
        CheckConstraint("state IN ('waiting', 'running', 'done', 'failed')", name=op.f("ck_errand_state")),
        PrimaryKeyConstraint("id", name="pk_errand"),
    )
    op.create_index("ix_errand_waiting", "errand", ["queue", "id"], **_where("state = 'waiting'"))
    op.create_index("ix_errand_agent", "errand", ["agent_id"], **_where("agent_id IS NOT NULL"))
    op.create_index("ix_errand_attempt", "errand", ["attempt_id"])
    op.create_table(
        "deadline",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("run_id", ID, nullable=False),
        Column("workflow_id", ID, nullable=False),
        Column("name", Text, nullable=False),
        Column("task", Text, nullable=False, comment="key of the task that is to be done; empty: the run"),
        Column("due_at", BigInteger, comment="NULL: has passed before the run began; looked at when it begins"),
        Column("missed_at", BigInteger, comment="NULL: not missed so far"),
        Column("is_told", Boolean, nullable=False, comment="user code was told of the miss"),
        Column("is_mailed", Boolean, nullable=False, comment="somebody got an e-mail about the miss"),
        PrimaryKeyConstraint("id", name="pk_deadline"),
    )
    op.create_index("uq_deadline_ahead", "deadline", ["run_id", "name"], unique=True, **_where("missed_at IS NULL"))
    op.create_index("ix_deadline_due", "deadline", ["due_at"], **_where("missed_at IS NULL"))
    op.create_index("ix_deadline_run", "deadline", ["run_id"])
    op.create_table(
        "nudge",
        Column("id", ID, autoincrement=True, nullable=False),
        Column("attempt_id", ID, nullable=False),
        Column(
            "key", Text, nullable=False, comment="of a task that later runs may have waited for, or that waits itself"
        ),
        PrimaryKeyConstraint("id", name="pk_nudge"),
    )
    op.create_table(
        "leftover",
        Column("attempt_id", ID, autoincrement=False, nullable=False, comment="of a run that was deleted"),
        Column("root_id", ID, comment="the root of what is still there of its tasks"),
        PrimaryKeyConstraint("attempt_id", name="pk_leftover"),
    )
    op.create_table(
        "kept",
        Column("kind", Text, nullable=False),
        Column("scope", Text, nullable=False, comment="a secret's project; empty for what belongs to the installation"),
        Column("name", Text, nullable=False),
        Column("document", Text, nullable=False, comment="JSON, or the sealed form of it"),
        Column("key_id", Text, comment="which key it is sealed with; NULL: with none"),
        Column("description", Text),
        Column("changed_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("kind", "scope", "name", name="pk_kept"),
        CheckConstraint("kind IN ('variable', 'connection', 'secret')", name=op.f("ck_kept_kind")),
    )
    op.create_table(
        "memo",
        Column("kind", Text, nullable=False, comment="task or asset"),
        Column("owner_id", ID, nullable=False, comment="task: its run · asset: the asset"),
        Column("task", Text, nullable=False, comment="the key of the task; empty for an asset"),
        Column("map_index", Integer, nullable=False),
        Column("name", Text, nullable=False),
        Column("document", Text, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
        Column("expires_at", BigInteger, comment="NULL: never"),
        PrimaryKeyConstraint("kind", "owner_id", "task", "map_index", "name", name="pk_memo"),
        CheckConstraint("kind IN ('task', 'asset')", name=op.f("ck_memo_kind")),
    )
    op.create_index("ix_memo_expires", "memo", ["expires_at"], **_where("expires_at IS NOT NULL"))
    op.create_table(
        "counter",
        Column("name", Text, nullable=False),
        Column("next", ID, nullable=False),
        PrimaryKeyConstraint("name", name="pk_counter"),
    )
