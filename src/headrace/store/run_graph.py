"""The tasks around a change, read lazily and in sets from a transaction, and written back at its end.

Locking order: the attempts first, in the order of their ids, then everything below them. Whoever holds an attempt's row
is the only one that advances it; agents that claim tasks at the same time are found by the tasks' versions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from headrace.definition import Deferral, Node, Workflow
from headrace.handoff import RETURN_VALUE, Errand
from headrace.state import (
    FINE,
    FINISHED,
    HELD,
    TIMED,
    Actor,
    Attempt,
    Edge,
    Event,
    Link,
    MapSource,
    State,
    Task,
    is_met,
    source_of,
)
from headrace.store.attempt_plans import AttemptPlan, plan_from_json
from headrace.store.database import Reply, Transaction
from headrace.store.deadline_rows import drop_met
from headrace.store.definitions import Definitions, Version
from headrace.store.errands import NewErrand, explained, send_errands
from headrace.store.news import News
from headrace.store.past_reading import insert_nudges, run_before
from headrace.store.pausing import pause_after_failures
from headrace.store.question_rows import close_questions, insert_questions
from headrace.store.resuming import find_carried_over
from headrace.store.run_endings import RunEndings
from headrace.store.run_facts import RunFacts
from headrace.store.sql import Sql
from headrace.store.task_rows import SELECTED, insert_events, insert_tasks, to_task, update_tasks
from headrace.store.trigger_rows import insert_triggers, release_triggers

LOCKED = """
    attempt.id, attempt.run_id, attempt.workflow_id, attempt.workflow_version_id, attempt.state,
    attempt.is_cancel_requested, attempt.growth, attempt.root_id, attempt.started_at, attempt.ended_at, attempt.reason,
    attempt.max_active_runs, attempt.resumes_attempt_id, attempt.plan,
    attempt.max_active_tasks, attempt.max_active_tasks_scope, attempt.has_stores,
    (SELECT coalesce(run.logical_at, run.run_after) FROM run WHERE run.id = attempt.run_id),
    (SELECT workflow.is_paused FROM workflow WHERE workflow.id = attempt.workflow_id)
    """
"""What a graph wants to know of an attempt that the transaction has locked."""
LOCK_ATTEMPTS = Sql(
    f"SELECT {LOCKED} FROM attempt WHERE attempt.id IN :ids[] ORDER BY attempt.id [[postgres: FOR UPDATE]]"
)
UPDATE_ATTEMPTS = Sql(
    """
    UPDATE attempt SET state = r.state, is_cancel_requested = r.is_cancel_requested, growth = r.growth,
           root_id = r.root_id, started_at = r.started_at, ended_at = r.ended_at, reason = r.reason
    FROM (SELECT * FROM ROWS(:rows)) AS r WHERE attempt.id = r.id
    """,
    rows=(
        ("id", "bigint"), ("state", "text"), ("is_cancel_requested", "boolean"), ("growth", "integer"),
        ("root_id", "bigint"), ("started_at", "bigint"), ("ended_at", "bigint"), ("reason", "text"),
    ),
)  # fmt: skip
UPDATE_RUNS = Sql(
    """
    UPDATE run SET state = r.state, started_at = coalesce(run.started_at, r.started_at), ended_at = r.ended_at,
           reason = r.reason
    FROM (SELECT * FROM ROWS(:rows)) AS r WHERE run.id = r.run_id
    """,
    rows=(
        ("run_id", "bigint"), ("state", "text"), ("started_at", "bigint"), ("ended_at", "bigint"), ("reason", "text"),
    ),
)  # fmt: skip
TASKS = Sql(f"SELECT {SELECTED} FROM task WHERE id IN :ids[]")
TASKS_AND_PARENTS = Sql(
    f"""
    SELECT {SELECTED} FROM task WHERE id IN :ids[]
    UNION ALL
    SELECT {SELECTED} FROM task WHERE id IN (SELECT child.parent_id FROM task AS child WHERE child.id IN :ids[])
    """
)
# PostgreSQL keeps the plan that it made when the tables were empty; this form leaves it no other one than edges first.
_NEIGHBOURS = """
    SELECT edge.{near}, edge.is_setup, {selected}
    FROM edge [[sqlite: JOIN task ON task.id = edge.{far}]]
    [[postgres: CROSS JOIN LATERAL (SELECT * FROM task WHERE task.id = edge.{far} OFFSET 0) AS task]]
    WHERE edge.{near} {among} AND NOT task.is_superseded
    """
DOWNSTREAM = Sql(_NEIGHBOURS.format(near="upstream_id", far="downstream_id", among="IN :ids[]", selected=SELECTED))
UPSTREAM = Sql(_NEIGHBOURS.format(near="downstream_id", far="upstream_id", among="IN :ids[]", selected=SELECTED))
# Instances have the edges of the mapped task, and of many that end together it is asked for once.
_ORIGINS = "SELECT ended.origin_id FROM task AS ended WHERE ended.id IN :ids[]"
DOWNSTREAM_OF_ENDED = Sql(
    _NEIGHBOURS.format(
        near="upstream_id",
        far="downstream_id",
        # As an array, because a join would begin with all edges if the server believes that there are few.
        among=f"[[sqlite: IN ({_ORIGINS})]][[postgres: = ANY(ARRAY({_ORIGINS}))]]",
        selected=SELECTED,
    )
)
CHILDREN = Sql(f"SELECT {SELECTED} FROM task WHERE parent_id IN :ids[] AND NOT is_superseded ORDER BY id")
INSTANCES = Sql(
    f"""
    SELECT {SELECTED} FROM task
    WHERE parent_id IN :ids[] AND map_index IN :indexes[] AND origin_id = parent_id AND NOT is_superseded
    """
)
BY_KEY = Sql(
    f"""
    SELECT {SELECTED} FROM task
    WHERE attempt_id = :attempt_id AND key IN :keys[] AND map_index = -1 AND NOT is_superseded
    """
)
OF_ATTEMPT = Sql(f"SELECT {SELECTED} FROM task WHERE attempt_id = :attempt_id AND NOT is_superseded ORDER BY id")
RESULT_LENGTHS = Sql(
    """
    SELECT task.origin_id, count(*), max(value.length), max(task.map_index)
    FROM task JOIN value ON value.task_id = task.id AND value.kind = 'result' AND value.name = :name
    WHERE task.attempt_id = :attempt_id AND task.key IN :keys[] AND NOT task.is_superseded
    GROUP BY task.origin_id
    """
)
LENGTHS = Sql("SELECT task_id, length FROM value WHERE task_id IN :ids[] AND kind = 'result' AND name = :name")
NEW_IDS_POSTGRES = Sql("SELECT nextval('task_id_seq') FROM generate_series(1, :count)")
NEW_IDS_SQLITE = Sql("UPDATE counter SET next = next + :count WHERE name = 'task' RETURNING next")


_OF_ATTEMPT = 13
"""How many of the LOCKED are fields of `Attempt`; then comes the plan, then the terms."""


class Terms(NamedTuple):
    """What it depends on whether an attempt's tasks may be claimed, and when."""

    max_active_tasks: int | None
    max_active_tasks_scope: str
    has_stores: bool
    turn_at: int
    is_paused: bool


class RunGraph:
    """Implements `state.Graph` on a transaction. Call `flush()` before the transaction ends."""

    def __init__(self, tx: Transaction, now: int, *, is_following: bool = False) -> None:
        """Who follows nudges leaves none for what still waits: it was there to be found."""
        self._tx = tx
        self._is_following = is_following
        self._definitions = tx.shared(Definitions)
        self._now = now
        self._attempts: dict[int, Attempt] = {}
        self._plans: dict[int, str | None] = {}
        self._facts: dict[int, RunFacts] = {}
        self._terms: dict[int, Terms] = {}
        self._with_stores: set[int] = set()
        self._scheduled: dict[int, None] = {}
        self._tasks: dict[int, Task] = {}
        self._dirty: dict[int, Task] = {}
        self._added: dict[int, Task] = {}
        self._edges: list[Edge] = []
        self._events: list[Event] = []
        self._errands: list[NewErrand] = []
        self._written_events = 0
        self._has_sent_errands = False
        self._nudges: set[tuple[int, str]] = set()
        self._seen_events = 0
        self.is_held_up = False
        """Whether some task was found to wait for an earlier run."""
        self.has_nudged = False
        """Whether tasks of this or a later run are to look again once this is committed."""
        self._triggers: list[tuple[Task, Deferral]] = []
        self._released: list[Event] = []
        self._downstream: dict[int, list[Link]] = {}
        self._children: dict[int, list[int]] = {}
        self._expected_ids: Reply | None = None

    @property
    def now(self) -> int:
        return self._now

    @property
    def has_changes(self) -> bool:
        """Whether anything was decided that is not written yet."""
        return bool(self._dirty or self._added)

    @property
    def has_sent_errands(self) -> bool:
        """Whether errands were written that an agent with a free slot may take."""
        return self._has_sent_errands

    @property
    def has_unsent_errands(self) -> bool:
        """Whether there are errands that the next flush will write."""
        return bool(self._errands)

    @property
    def may_decide_by_past(self) -> bool:
        """Whether some task of the locked attempts waits for earlier runs, which are looked up in the database."""
        return any(self._version(attempt).past is not None for attempt in self._attempts.values())

    @property
    def has_timers(self) -> bool:
        """Whether some task now waits for a time, which a scheduler must know of."""
        timed = [event.task_id for event in self._events if event.after in TIMED and event.task_id is not None]
        return any(self._tasks[task_id].due_at is not None for task_id in timed)

    def lock(self, attempt_ids: Iterable[int]) -> None:
        """Become the only one that advances these attempts until the transaction ends."""
        for row in self._ask_to_lock(attempt_ids).rows():
            self.take_locked(row)

    def plan(self, attempt_id: int) -> AttemptPlan:
        """What was asked for when the attempt was made."""
        return plan_from_json(self._plans.get(attempt_id))

    def facts(self, attempt_id: int) -> RunFacts | None:
        """What tasks are told of their run, if it was read when the attempt was locked."""
        facts = self._facts.get(attempt_id)
        return None if facts is None else facts._replace(started_at=self._attempts[attempt_id].started_at)

    def terms(self, attempt_id: int) -> Terms | None:
        """On which the tasks of an attempt that was locked may be claimed."""
        return self._terms.get(attempt_id)

    def scheduled(self) -> list[Task]:
        """What was scheduled by this transaction and still is."""
        tasks = [self._tasks[task_id] for task_id in self._scheduled]
        return [task for task in tasks if task.state is State.SCHEDULED and not task.is_superseded]

    @property
    def written_moves(self) -> int:
        """How many events there were when everything was last written."""
        return self._seen_events

    def moved(self, since: int) -> list[tuple[Task, str | None]]:
        """The tasks that have changed their state after so many events, each with the state that it had before."""
        before: dict[int, str | None] = {}
        for event in self._events[since:]:
            if event.task_id is not None:
                before.setdefault(event.task_id, event.before)
        return [(self._tasks[task_id], state) for task_id, state in before.items()]

    def note_stores(self, attempt_ids: Iterable[int]) -> None:
        """Tasks of these attempts have left parameters for others."""
        self._with_stores.update(attempt_ids)

    def has_stores(self, task: Task) -> bool:
        """Whether it was noted that some task of the same attempt has left parameters."""
        return task.attempt_id in self._with_stores

    def load_with_parents(
        self, ids: Collection[int], *, locking: Iterable[int] = (), asking: Callable[[], None] | None = None
    ) -> list[Task]:
        """Read tasks that end, with the parents and the downstream tasks that will hear of it.

        The attempts in `locking` are locked first. Sent together: the server reads the tasks when it has the lock.
        `asking` is called before anything is sent, for whoever has to ask for more at once.
        """
        ids, locking = list(ids), list(locking)
        locked = self._ask_to_lock(locking) if locking else None
        tasks = self._tx.ask(TASKS_AND_PARENTS, {"ids": ids})
        downstream = self._tx.ask(DOWNSTREAM_OF_ENDED, {"ids": ids})
        if asking is not None:
            asking()
        if locked is not None:
            for row in locked.rows():
                self.take_locked(row)
        for row in tasks.rows():
            self.known(to_task(row))
        found = [self._tasks[task_id] for task_id in ids if task_id in self._tasks]
        self._link({task.origin_id for task in found}, downstream)
        return found

    def _ask_to_lock(self, attempt_ids: Iterable[int]) -> Reply:
        return self._tx.ask(LOCK_ATTEMPTS, {"ids": sorted(set(attempt_ids) - self._attempts.keys())})

    def take_locked(self, row: Sequence[Any], facts: RunFacts | None = None) -> None:
        """The LOCKED of an attempt that the transaction has locked itself, with what else was read of its run."""
        if facts is not None:
            self._facts[row[0]] = facts
        if row[0] not in self._attempts:
            self._attempts[row[0]] = Attempt(*row[:_OF_ATTEMPT])
            self._plans[row[0]] = row[_OF_ATTEMPT]
            self._terms[row[0]] = Terms(*row[_OF_ATTEMPT + 1 :])

    # ---- state.Graph -------------------------------------------------------------------------------------------

    def attempt(self, attempt_id: int) -> Attempt:
        return self._attempts[attempt_id]

    @property
    def attempts(self) -> Collection[Attempt]:
        """All that were locked."""
        return self._attempts.values()

    def known_attempt(self, attempt_id: int) -> Attempt | None:
        """The attempt if it was locked before; else None."""
        return self._attempts.get(attempt_id)

    def add_attempt(self, attempt: Attempt) -> None:
        self._attempts[attempt.id] = attempt

    def node(self, task: Task) -> Node:
        return self._definitions.node(self._tx, self._attempts[task.attempt_id].workflow_version_id, task)

    def workflow(self, attempt_id: int) -> Workflow:
        return self._version(self._attempts[attempt_id]).workflow

    def _version(self, attempt: Attempt) -> Version:
        return self._definitions.version(self._tx, attempt.workflow_version_id)

    def tasks(self, ids: Iterable[int]) -> list[Task]:
        ids = list(ids)
        missing = [task_id for task_id in ids if task_id not in self._tasks]
        if missing:
            for row in self._tx.run(TASKS, {"ids": missing}):
                self.known(to_task(row))
        return [self._tasks[task_id] for task_id in ids]

    def downstream(self, ids: Collection[int]) -> list[Link]:
        missing = [task_id for task_id in ids if task_id not in self._downstream]
        stored = [task_id for task_id in missing if task_id not in self._added and not self._is_root(task_id)]
        for task_id in missing:
            self._downstream[task_id] = []
        if stored:
            self._link(stored, self._tx.ask(DOWNSTREAM, {"ids": stored}))
        if missing and self._edges:
            self._link_unwritten(set(missing))
        return [link for task_id in ids for link in self._downstream[task_id] if not link.far.is_superseded]

    def _is_root(self, task_id: int) -> bool:
        """Nothing comes after a root."""
        task = self._tasks.get(task_id)
        return task is not None and task.parent_id is None

    def upstream(self, ids: Collection[int]) -> list[Link]:
        rows = self._tx.run(UPSTREAM, {"ids": list(ids)})
        links = [Link(near_id, self.known(to_task(row)), bool(is_setup)) for near_id, is_setup, *row in rows]
        wanted = set(ids)
        links += [Link(e.downstream_id, self._tasks[e.upstream_id], e.is_setup) for e in self._edges if e[1] in wanted]
        return [link for link in links if not link.far.is_superseded]

    def children(self, ids: Collection[int]) -> list[Task]:
        stored = [task_id for task_id in ids if task_id not in self._added]
        found: list[Task] = []
        if stored:
            found = [self.known(to_task(row)) for row in self._tx.run(CHILDREN, {"ids": stored})]
        for task_id in ids:
            found += [self._tasks[child_id] for child_id in self._children.get(task_id, ())]
        return [task for task in found if not task.is_superseded]

    def instances(self, mapped_ids: Collection[int], indexes: Collection[int]) -> list[Task]:
        added = [self._tasks[child_id] for task_id in mapped_ids for child_id in self._children.get(task_id, ())]
        found = [task for task in added if task.map_index in indexes and task.is_instance]
        stored = [task_id for task_id in mapped_ids if task_id not in self._added]
        if stored:
            rows = self._tx.run(INSTANCES, {"ids": stored, "indexes": list(indexes)})
            found += [self.known(to_task(row)) for row in rows]
        return [task for task in found if not task.is_superseded]

    def by_key(self, attempt_id: int, keys: Collection[str]) -> list[Task]:
        rows = self._tx.run(BY_KEY, {"attempt_id": attempt_id, "keys": list(keys)})
        found = [self.known(to_task(row)) for row in rows]
        found += [task for task in self._added.values() if task.attempt_id == attempt_id and _is_called(task, keys)]
        return [task for task in found if not task.is_superseded]

    def unfinished(self, attempt_id: int) -> list[Task]:
        tasks = [self.known(to_task(row)) for row in self._tx.run(OF_ATTEMPT, {"attempt_id": attempt_id})]
        return [task for task in tasks if task.state not in FINISHED]

    def map_sources(self, attempt_id: int, keys: Collection[str]) -> dict[str, MapSource]:
        tasks = {task.key: task for task in self.by_key(attempt_id, keys)}
        parameters = {"attempt_id": attempt_id, "keys": list(keys), "name": RETURN_VALUE}
        # Results are written before the advance that they cause, so they are all in the database by now.
        lengths = {row[0]: row for row in self._tx.run(RESULT_LENGTHS, parameters)}
        lengths |= self._lengths_of_added([task for task in tasks.values() if task.id in self._added])
        sources = {}
        for key, task in tasks.items():
            _, count, length, _ = lengths.get(task.id, (0, 0, None, -1))
            sources[key] = source_of(task, count, length)
        return sources

    def waits_for_past(self, task: Task, *, is_skipping: bool) -> bool:
        rules = self._version(self._attempts[task.attempt_id]).past
        past = rules.of.get(task.key) if rules is not None and task.body is None else None
        if rules is None or past is None or (is_skipping and not past.before_skipping):
            return False
        if is_met(past, run_before(self._tx, task.attempt_id, rules, task.key)):
            return False
        self.is_held_up = True
        if not self._is_following:
            self._nudges.add((task.attempt_id, task.key))
        return True

    def _lengths_of_added(self, tasks: Sequence[Task]) -> dict[int, tuple[int, int, int | None, int]]:
        """As RESULT_LENGTHS, for tasks that were carried over: their results are written, but they are not."""
        members = {one.id: one for task in tasks for one in (task, *self.children([task.id]))}
        found: dict[int, tuple[int, int, int | None, int]] = {}
        for task_id, length in self._tx.run(LENGTHS, {"ids": list(members), "name": RETURN_VALUE}) if members else ():
            one = members[task_id]
            _, count, _, map_index = found.get(one.origin_id, (0, 0, None, -1))
            found[one.origin_id] = (one.origin_id, count + 1, length, max(map_index, one.map_index))
        return found

    def expect_new_ids(self, count: int) -> None:
        """About so many ids will be wanted: they travel with the next answers. Those that are not are left out."""
        if self._tx.dialect == "postgres":
            self._expected_ids = self._tx.ask(NEW_IDS_POSTGRES, {"count": count})

    def new_ids(self, count: int) -> Sequence[int]:
        if count == 0:
            return ()
        if self._tx.dialect == "postgres":
            expected, self._expected_ids = self._expected_ids, None
            ids = [row[0] for row in expected.rows()[:count]] if expected is not None else []
            if len(ids) < count:
                ids += [row[0] for row in self._tx.run(NEW_IDS_POSTGRES, {"count": count - len(ids)})]
            return ids
        # SQLite has no sequences; its one writer makes a counter row as good.
        ((following,),) = self._tx.run(NEW_IDS_SQLITE, {"count": count})
        return range(following - count, following)

    def carry_over(self, tasks: Sequence[Task]) -> list[Task]:
        attempt = self._attempts[tasks[0].attempt_id]
        nodes = {task.id: self.node(task) for task in tasks if task.kind == "mapped"}
        plan = self.plan(attempt.id)
        carried = find_carried_over(self._tx, attempt, plan, tasks, nodes, self.new_ids)
        self.add(carried.tasks, carried.edges)
        if carried.value_copies():
            self.note_stores([attempt.id])
        for task in carried.resumed:
            self.touch(task)
        return carried.resumed

    def add(self, tasks: Sequence[Task], edges: Sequence[Edge]) -> None:
        for task in tasks:
            self._tasks[task.id] = self._added[task.id] = task
            if task.parent_id is not None:
                self._children.setdefault(task.parent_id, []).append(task.id)
        self._edges.extend(edges)
        for edge in edges:
            self._downstream.pop(edge.upstream_id, None)

    def touch(self, task: Task) -> None:
        self._dirty[task.id] = task

    def add_trigger(self, task: Task, deferral: Deferral) -> None:
        self._triggers.append((task, deferral))

    def record(self, event: Event) -> None:
        self._events.append(event)
        if event.before == State.DEFERRED:
            self._released.append(event)
        if event.after == State.SCHEDULED and event.task_id is not None:
            self._scheduled[event.task_id] = None

    def send(self, task: Task, errand: Errand) -> None:
        # As it is now: a retry without delay has the next number by the time this is written.
        number = task.try_number if task.parent_id is not None else 0
        task_id = task.id if task.parent_id is not None else None
        self._errands.append(NewErrand(task.attempt_id, errand, task_id, number, task.queue))

    # ---- writing -----------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write everything that was decided, except the events."""
        dirty = [task for task in self._dirty.values() if task.id not in self._added]
        dirty.sort(key=lambda task: task.id)
        update_tasks(self._tx, dirty)
        insert_tasks(self._tx, list(self._added.values()), self._edges)
        self._write_waits()
        self._write_attempts([attempt for attempt in self._attempts.values() if attempt.is_changed])
        if any(_is_taken_away(event) for event in self._unseen_events()):
            self._tx.tell(News.STOP)  # agents run what they hold no more
        if self._errands:
            self._write_errands()
        self._nudge_later_runs()
        self._dirty, self._added, self._edges = {}, {}, []
        self._children, self._downstream = {}, {}

    def _write_waits(self) -> None:
        release_triggers(self._tx, self._released)
        close_questions(self._tx, self._released, self._now)
        # The transaction may have ended a task that it let wait: another one failed, and the workflow fails fast.
        waiting = [(task, deferral) for task, deferral in self._triggers if task.state is State.DEFERRED]
        triggers = [(task, deferral) for task, deferral in waiting if deferral.question is None]
        insert_triggers(self._tx, triggers, self.new_ids(len(triggers)), self._now)
        insert_questions(self._tx, waiting, self._now)
        self._released, self._triggers = [], []

    def flush_events(self) -> None:
        """Write the events. Apart from `flush` so that one statement serves several flushes."""
        insert_events(self._tx, self._events[self._written_events :])
        self._written_events = len(self._events)

    def _unseen_events(self) -> list[Event]:
        return self._events[self._seen_events :]

    def _nudge_later_runs(self) -> None:
        rules = {one.id: self._version(one).past for one in self._attempts.values()}
        fresh, self._seen_events = self._unseen_events(), len(self._events)
        if any(rules.values()):
            ended = [self._tasks[event.task_id] for event in fresh if event.task_id is not None and event.after in FINE]
            # What an earlier attempt had done is there from the start, without an event.
            ended += [task for task in self._added.values() if task.state in FINE]
            for task in ended:
                past = rules.get(task.attempt_id)
                if past is not None and past.affected_by(task.key):
                    self._nudges.add((task.attempt_id, task.key))
            for attempt_id, past in rules.items():
                if past is not None and self._attempts[attempt_id].has_never_been:
                    self._nudges |= {(attempt_id, key) for key in past.of}
        if self._nudges:
            insert_nudges(self._tx, self._nudges)
            self._nudges, self.has_nudged = set(), True

    def _write_errands(self) -> None:
        complete = [
            explained(self._tx, self.attempt(new.attempt_id), new) if new.task_id is None else new
            for new in self._errands
        ]
        send_errands(self._tx, complete, self._now)
        self._errands, self._has_sent_errands = [], True

    def _write_attempts(self, attempts: Sequence[Attempt]) -> None:
        if attempts:
            rows = [_attempt_row(attempt) for attempt in attempts]
            self._tx.write_each(UPDATE_ATTEMPTS, rows)
            self._tx.write_each(UPDATE_RUNS, rows)
        for attempt in attempts:
            attempt.is_changed = False
            if attempt.ended_at == self._now:
                self._tx.shared(RunEndings).note(self._tx, attempt)
            workflow = self.workflow(attempt.id)
            drop_met(self._tx, attempt, workflow)
            if attempt.state == "failed" and workflow.max_consecutive_failures:
                pause_after_failures(self._tx, attempt.workflow_id, workflow.max_consecutive_failures)

    def _link(self, ids: Iterable[int], downstream: Reply) -> None:
        self._downstream.update((task_id, []) for task_id in ids)
        for upstream_id, is_setup, *row in downstream.rows():
            self._downstream[upstream_id].append(Link(upstream_id, self.known(to_task(row)), bool(is_setup)))

    def known(self, task: Task) -> Task:
        """The task as this transaction has it, which is this one if it has none yet."""
        return self._tasks.setdefault(task.id, task)

    def _link_unwritten(self, ids: set[int]) -> None:
        for edge in self._edges:
            if edge.upstream_id in ids:
                link = Link(edge.upstream_id, self._tasks[edge.downstream_id], edge.is_setup)
                self._downstream[edge.upstream_id].append(link)


def _is_taken_away(event: Event) -> bool:
    """Whether an agent held the task, and nobody asked it. A run is `running`, too, and no agent holds it."""
    is_held = event.before in HELD and event.task_id is not None
    return is_held and event.actor in (Actor.ADVANCE, Actor.USER)


def _is_called(task: Task, keys: Collection[str]) -> bool:
    return task.map_index < 0 and task.key in keys


def _attempt_row(attempt: Attempt) -> dict[str, Any]:
    return {
        "id": attempt.id,
        "run_id": attempt.run_id,
        "state": attempt.state,
        "is_cancel_requested": bool(attempt.is_cancel_requested),
        "growth": attempt.growth,
        "root_id": attempt.root_id,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "reason": attempt.reason,
    }
