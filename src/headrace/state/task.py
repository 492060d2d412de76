"""The states of a task, the table of legal moves, and a task as the engine sees it while it decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from headrace.definition import Isolation, Kind
from headrace.errors import IllegalMoveError


class State(StrEnum):
    NONE = "none"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    PLANNED = "planned"
    DEFERRED = "deferred"
    UP_FOR_RESCHEDULE = "up_for_reschedule"
    UP_FOR_RETRY = "up_for_retry"
    RESTARTING = "restarting"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    UPSTREAM_FAILED = "upstream_failed"
    CANCELED = "canceled"
    REMOVED = "removed"


class Actor(StrEnum):
    """Who may move a task."""

    ADVANCE = "advance"
    """Whoever commits something that others waited for."""
    CLAIM = "claim"
    """An agent that takes tasks for its free slots."""
    AGENT = "agent"
    """The agent that holds the task's lease."""
    TIMER = "timer"
    """A scheduler, because a time has come."""
    TRIGGERER = "triggerer"
    """The process that runs triggers, because one of them has fired, failed or ended its task."""
    RESCUER = "rescuer"
    """A scheduler, because the task's agent is gone."""
    USER = "user"
    """A person or a program that asked for it."""


FINISHED = frozenset({State.SUCCESS, State.FAILED, State.SKIPPED, State.UPSTREAM_FAILED, State.CANCELED, State.REMOVED})
FAILURES = frozenset({State.FAILED, State.UPSTREAM_FAILED, State.CANCELED})
HELD = frozenset({State.QUEUED, State.RUNNING, State.RESTARTING})
"""An agent holds them, under its lease."""
TIMED = frozenset({State.UP_FOR_RETRY, State.UP_FOR_RESCHEDULE, State.DEFERRED})
"""Wait for their due time without holding anything."""
UNFINISHED = frozenset(State) - FINISHED


class Move(NamedTuple):
    before: State
    after: State
    by: tuple[Actor, ...]
    when: str


def _moves() -> tuple[Move, ...]:
    s, a = State, Actor
    rows = [
        Move(s.NONE, s.SCHEDULED, (a.ADVANCE,), "its parent is open and its trigger rule holds"),
        Move(s.NONE, s.PLANNED, (a.ADVANCE,), "a group opens, or a mapped task is expanded"),
        Move(s.NONE, s.DEFERRED, (a.ADVANCE,), "as `scheduled`, and it starts by waiting for a trigger"),
        Move(s.NONE, s.SUCCESS, (a.ADVANCE,), "it has nothing to run"),
        Move(s.NONE, s.SKIPPED, (a.ADVANCE,), "its trigger rule, a branch or an empty mapping says so"),
        Move(s.NONE, s.UPSTREAM_FAILED, (a.ADVANCE,), "its trigger rule can no longer hold"),
        Move(s.UPSTREAM_FAILED, s.SKIPPED, (a.ADVANCE,), "a branch or a short circuit decided against it afterwards"),
        Move(s.SCHEDULED, s.QUEUED, (a.CLAIM,), "an agent took it, under its lease"),
        Move(s.SCHEDULED, s.SKIPPED, (a.ADVANCE,), "a short circuit reached it before an agent did"),
        Move(s.QUEUED, s.RUNNING, (a.CLAIM, a.AGENT), "a process (or an inline step) begins to work on it"),
        Move(s.QUEUED, s.SCHEDULED, (a.AGENT, a.RESCUER), "it was handed back before it ran; the try is kept"),
        Move(s.QUEUED, s.FAILED, (a.AGENT, a.RESCUER, a.TIMER), "it could not be started and no try is left"),
        Move(s.QUEUED, s.UP_FOR_RETRY, (a.AGENT, a.RESCUER, a.TIMER), "it could not be started, another try is left"),
        Move(s.QUEUED, s.PLANNED, (a.AGENT, a.RESCUER, a.TIMER), "it could not be started; its handlers run first"),
        Move(s.RUNNING, s.SCHEDULED, (a.AGENT,), "its agent hands it back: it stops, or has no slot; the try is kept"),
        Move(s.RUNNING, s.SUCCESS, (a.AGENT,), "the try succeeded"),
        Move(s.RUNNING, s.PLANNED, (a.AGENT, a.RESCUER, a.TIMER), "the try ended and added tasks that run first"),
        Move(s.RUNNING, s.SKIPPED, (a.AGENT,), "the try asked to be skipped"),
        Move(s.RUNNING, s.FAILED, (a.AGENT, a.RESCUER, a.TIMER), "the try failed and none is left"),
        Move(s.RUNNING, s.UP_FOR_RETRY, (a.AGENT, a.RESCUER, a.TIMER), "the try failed and another is left"),
        Move(s.RUNNING, s.UP_FOR_RESCHEDULE, (a.AGENT,), "the try asked to be called again later"),
        Move(s.RUNNING, s.DEFERRED, (a.AGENT,), "the try waits for a trigger"),
        Move(s.RUNNING, s.RESTARTING, (a.USER,), "it was cleared while it ran; its process is being stopped"),
        Move(s.QUEUED, s.RESTARTING, (a.USER,), "it was cleared while it waited for its process"),
        Move(s.RESTARTING, s.NONE, (a.AGENT, a.RESCUER, a.TIMER), "its process is gone"),
        Move(s.PLANNED, s.SUCCESS, (a.ADVANCE,), "its children ended well"),
        Move(s.PLANNED, s.FAILED, (a.ADVANCE,), "a child that decides failed and no try is left"),
        Move(s.PLANNED, s.SKIPPED, (a.ADVANCE,), "all its instances were skipped"),
        Move(s.PLANNED, s.UP_FOR_RETRY, (a.ADVANCE,), "a child failed and the group may be tried again"),
        Move(s.UP_FOR_RETRY, s.SCHEDULED, (a.TIMER,), "its retry is due"),
        Move(
            s.UP_FOR_RETRY,
            s.PLANNED,
            (a.TIMER, a.USER),
            "its retry is due: the next generation of its children opens; or a task below it was cleared",
        ),
        Move(s.UP_FOR_RETRY, s.DEFERRED, (a.TIMER,), "its retry is due and starts by waiting for a trigger"),
        Move(s.UP_FOR_RESCHEDULE, s.SCHEDULED, (a.TIMER,), "the time has come to call it again"),
        Move(
            s.DEFERRED,
            s.SCHEDULED,
            (a.TRIGGERER, a.TIMER, a.USER),
            "its trigger fired, failed or timed out; or a person answered",
        ),
        Move(s.DEFERRED, s.SUCCESS, (a.TRIGGERER,), "its trigger ended it"),
        Move(s.DEFERRED, s.SKIPPED, (a.TRIGGERER,), "its trigger ended it"),
        Move(s.DEFERRED, s.FAILED, (a.TRIGGERER,), "its trigger let it fail and no try is left"),
        Move(s.DEFERRED, s.UP_FOR_RETRY, (a.TRIGGERER,), "its trigger let it fail, another try is left"),
        Move(s.DEFERRED, s.PLANNED, (a.TRIGGERER,), "its trigger let it fail; its handlers run first"),
        Move(s.FAILED, s.PLANNED, (a.USER,), "a task below it was cleared"),
        Move(s.SUCCESS, s.PLANNED, (a.USER,), "a task below it was cleared"),
        Move(s.SKIPPED, s.PLANNED, (a.USER,), "a task below it was cleared"),
        Move(s.CANCELED, s.PLANNED, (a.USER,), "a task below it was cleared"),
        Move(s.REMOVED, s.NONE, (a.ADVANCE,), "the mapping grew again"),
        Move(s.RESTARTING, s.REMOVED, (a.ADVANCE,), "the mapping shrank"),
        Move(s.SUCCESS, s.REMOVED, (a.ADVANCE,), "the mapping shrank"),
        Move(s.FAILED, s.REMOVED, (a.ADVANCE,), "the mapping shrank"),
        Move(s.NONE, s.REMOVED, (a.ADVANCE,), "the mapping shrank, or its node is gone"),
        Move(s.SKIPPED, s.REMOVED, (a.ADVANCE,), "the mapping shrank"),
        Move(s.UPSTREAM_FAILED, s.REMOVED, (a.ADVANCE,), "the mapping shrank"),
        Move(s.CANCELED, s.REMOVED, (a.ADVANCE,), "the mapping shrank"),
    ]
    rows += [
        Move(before, s.NONE, (a.USER,), "it was cleared")
        for before in (
            s.SUCCESS, s.FAILED, s.SKIPPED, s.UPSTREAM_FAILED, s.CANCELED,
            s.SCHEDULED, s.UP_FOR_RETRY, s.UP_FOR_RESCHEDULE, s.DEFERRED, s.PLANNED,
        )
    ]  # fmt: skip
    open_states = (
        s.NONE, s.SCHEDULED, s.QUEUED, s.RUNNING, s.RESTARTING, s.PLANNED,
        s.UP_FOR_RETRY, s.UP_FOR_RESCHEDULE, s.DEFERRED,
    )  # fmt: skip
    rows += [
        Move(
            before,
            s.CANCELED,
            (a.USER, a.AGENT, a.ADVANCE, a.TIMER, a.RESCUER),
            "the run was asked to stop, or a newer generation took its place",
        )
        for before in open_states
    ]
    listed = {(row.before, row.after) for row in rows}
    rows += [
        Move(before, after, (a.TIMER,), "the run timed out")
        for after in (s.SKIPPED, s.FAILED)
        for before in open_states
        if (before, after) not in listed
    ]
    # Where the engine and the clock may both make a move, the table says so in one row.
    rows = [
        row._replace(by=(*row.by, a.TIMER), when=f"{row.when}; or the run timed out")
        if row.before in open_states and row.after in (s.SKIPPED, s.FAILED) and a.TIMER not in row.by
        else row
        for row in rows
    ]
    waiting = tuple(state for state in open_states if state not in HELD and state is not s.PLANNED)
    rows = _also(rows, HELD, (s.FAILED,), a.ADVANCE, "another task failed and the workflow fails fast")
    rows = _also(rows, waiting, (s.SKIPPED,), a.ADVANCE, "another task failed and the workflow fails fast")
    markable = tuple(state for state in s if state is not s.REMOVED)
    return tuple(_also(rows, markable, (s.SUCCESS, s.FAILED, s.SKIPPED), a.USER, "somebody marked it so"))


def _also(
    rows: Sequence[Move], befores: Iterable[State], afters: Iterable[State], actor: Actor, when: str
) -> list[Move]:
    """The rows, in which this actor may make these moves as well."""
    table = {(row.before, row.after): row for row in rows}
    for before, after in ((one, other) for one in sorted(befores) for other in afters if one != other):
        row = table.get((before, after))
        if row is None:
            table[before, after] = Move(before, after, (actor,), when)
        elif actor not in row.by:
            table[before, after] = row._replace(by=(*row.by, actor), when=f"{row.when}; or {when}")
    return list(table.values())


MOVES: dict[tuple[State, State], Move] = {(move.before, move.after): move for move in _moves()}


class Task(msgspec.Struct):
    """A node of an attempt, as loaded for a decision. The store writes back whatever the decision changed."""

    id: int
    attempt_id: int
    parent_id: int | None
    origin_id: int
    """The node whose edges it shares: the mapped node for an instance, itself otherwise."""
    grown_by: int | None
    """The node whose end added it; None for what the definition holds from the start."""
    key: str
    map_index: int
    generation: int
    kind: Kind
    isolation: Isolation
    operator: str
    trigger_rule: str
    decides: bool
    body: str | None
    """The node's JSON if it grew at run time; None if the workflow's definition holds it under `key`."""
    priority: int
    pool: str
    pool_slots: int
    queue: str
    timeout_seconds: float | None
    # What follows changes while the attempt runs.
    state: State
    version: int
    """Counts the changes of this row; every write names the version that it was decided for."""
    fence: int
    """Counts the claims; a result that names another one is stale."""
    agent_id: int | None
    try_number: int
    max_tries: int
    expected: int
    """How many upstream tasks it waits for; then how many of them ended how:"""
    succeeded: int
    skipped: int
    failed: int
    upstream_failed: int
    removed: int
    setups: int
    setups_succeeded: int
    setups_skipped: int
    children: int
    """How many live children it has; then how many of them …"""
    children_open: int
    children_failed: int
    """… have failed, of those that decide."""
    children_skipped: int
    is_failing: bool
    """Failed for good, but its failure handlers run first."""
    is_superseded: bool
    """A newer generation took its place."""
    due_at: int | None
    """Microseconds since 1970, as in the database: this row is read and written far more often than it is shown."""
    scheduled_at: int | None
    queued_at: int | None
    started_at: int | None
    first_started_at: int | None
    ended_at: int | None
    error: str | None
    """JSON of the TaskError of the newest failed try."""
    decision: str | None
    """JSON of what a branching task decided: {"followed": […]} or {"skipped": […]}."""
    poll_state: str | None
    resume: str | None
    """JSON of the Resume by which its next execution, in the same try, goes on."""

    @property
    def name(self) -> str:
        """The key as people see it, with the index of a mapped instance."""
        return self.key if self.map_index < 0 else f"{self.key}[{self.map_index}]"

    @property
    def is_instance(self) -> bool:
        return self.origin_id != self.id

    @property
    def is_expanded(self) -> bool:
        """A mapped node whose instances stand for it."""
        return self.kind == "mapped" and self.children > 0


class Event(NamedTuple):
    """One applied change, as history, audit log and tests read it."""

    attempt_id: int
    task_id: int | None
    before: str | None
    after: str
    actor: str
    try_number: int
    at: int
    reason: str | None = None


class Attempt(msgspec.Struct):
    """One pass over a run, as loaded for a decision."""

    id: int
    run_id: int
    workflow_id: int
    workflow_version_id: int
    state: str
    is_cancel_requested: bool
    growth: int
    """Counts the growths of this attempt; each gives its tasks a generation of their own."""
    root_id: int | None
    started_at: int | None
    ended_at: int | None
    reason: str | None
    max_active_runs: int | None
    resumes_attempt_id: int | None = None
    """Finished tasks of that attempt are carried over."""
    is_changed: bool = False

    @property
    def has_never_been(self) -> bool:
        """It ended before it started, so that for later runs it is as if it had not been."""
        return self.root_id is None and self.state not in ("queued", "running")

    @property
    def marked_as(self) -> str | None:
        """How somebody decided that it ends, whatever its tasks say."""
        prefix, _, state = (self.reason or "").partition("_")
        return state if prefix == "marked" else None


def check_move(task: Task, after: State, actor: Actor) -> None:
    """Raise IllegalMoveError unless the table allows this actor to make this move."""
    move = MOVES.get((task.state, after))
    if move is None:
        raise IllegalMoveError(f"task `{task.name}` (id {task.id}) cannot go from `{task.state}` to `{after}`")
    if actor not in move.by:
        raise IllegalMoveError(
            f"task `{task.name}` (id {task.id}): `{actor}` may not move it from `{task.state}` to `{after}`,"
            f" only {' or '.join(f'`{by}`' for by in move.by)}"
        )


def accepts(task: Task, fence: int) -> bool:
    """Whether a report about this claim may still change the task."""
    return task.fence == fence and task.state in HELD
