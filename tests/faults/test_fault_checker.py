"""Whatever the harness is to find, it finds: an honest history passes, and each lie in it is told."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from sqlalchemy import text

from headrace.definition import Node, Retry, Workflow
from headrace.handoff import TaskResult
from headrace.store import list_events
from headrace.testing import faults
from headrace.testing.engine import START, Engine
from headrace.testing.faults.checker import Schedule, check
from headrace.testing.faults.history import History, offered_at
from headrace.testing.faults.record import Line, Record

FLOW = Workflow(
    name="flow",
    language="python",
    nodes=(
        Node(key="", kind="group"),
        Node(key="first", parent="", operator="python", retry=Retry(limit=1)),
        Node(key="last", parent="", operator="python", upstream=("first",)),
    ),
)
SECOND = 1_000_000
LOGICAL = 10 * SECOND
# What a copy of a row has in common with it, and must have.
RUN = "workflow_id, type, state, run_after, params, created_at"
ATTEMPT = (
    "number, name, workflow_id, workflow_version_id, state, is_cancel_requested, growth, has_stores,"
    " max_active_tasks_scope, created_at"
)
EVENT = "attempt_id, task_id, try_number, before, after, actor, at"


class Story:
    """One run of two tasks, of which the first needed two tries; what the store and the tasks tell of it."""

    def __init__(self, engine):
        self.store = engine.store
        run = engine.start(FLOW, {"first": self.first, "last": lambda request: None}, run_key="one")
        engine.settle()
        assert run.state == "success"
        told = [
            ("start", "first", 1),
            ("start", "first", 2),
            ("end", "first", 2),
            ("start", "last", 1),
            ("end", "last", 1),
        ]
        self.lines = [
            Line(what, "flow", "one", task, number, pid=100 + at, at=float(at), wall=START.timestamp())
            for at, (what, task, number) in enumerate(told, 1)
        ]

    def first(self, request):
        if request.try_number == 1:
            return TaskResult(task_id=request.task_id, fence=request.fence, outcome="failed")
        return None

    def tamper(self, *statements):
        with self.store.begin() as tx:
            for statement in statements:
                tx.execute(text(statement))

    def note(self, what, **changed):
        self.lines.append(self.lines[0]._replace(what=what, **changed))

    def schedule_runs(self, *logical_times):
        """Runs like the one there is, for these times."""
        self.tamper(f"UPDATE run SET type = 'scheduled', logical_at = {logical_times[0]}")
        for number, at in enumerate(logical_times[1:], 2):
            self.tamper(
                f"INSERT INTO run (key, logical_at, {RUN}) SELECT 'run {number}', {at}, {RUN} FROM run WHERE id = 1",
                f"INSERT INTO attempt (run_id, {ATTEMPT}) SELECT {number}, {ATTEMPT} FROM attempt WHERE id = 1",
            )

    def found(self, *schedules):
        return [(wrong.kind, wrong.what) for wrong in check(self.store, self.lines, schedules)]

    def kinds(self, *schedules):
        return {kind for kind, _ in self.found(*schedules)}


@pytest.fixture
def story(tmp_path):
    engine = Engine(tmp_path)
    yield Story(engine)
    engine.close()


def test_an_honest_history_passes(story):
    assert story.found() == []


# ---- runs and tasks that did not end as they should --------------------------------------------------------------


def test_a_run_that_failed_is_lost(story):
    story.tamper("UPDATE run SET state = 'failed'")
    assert ("lost", "run `one` of `flow` ended as failed") in story.found()


def test_a_run_that_goes_on_is_stuck(story):
    story.tamper("UPDATE run SET state = 'running'")
    assert ("stuck", "run `one` of `flow` is still running") in story.found()


def test_a_task_that_was_forgotten_in_a_run_that_ended_is_stuck(story):
    story.tamper("UPDATE task SET state = 'scheduled' WHERE key = 'last'")
    assert "stuck" in story.kinds()


# ---- tries -------------------------------------------------------------------------------------------------------


def test_a_try_that_began_twice_is_duplicated(story):
    story.note("start", number=2)
    assert story.kinds() == {"duplicated"}


def test_a_try_that_the_store_does_not_know_is_lost(story):
    story.note("start", number=7)
    assert story.kinds() == {"lost"}


def test_a_success_without_an_end_is_lost(story):
    story.lines = [line for line in story.lines if (line.what, line.task) != ("end", "last")]
    assert story.kinds() == {"lost"}


def test_a_success_of_what_never_ran_is_lost(story):
    story.lines = [line for line in story.lines if line.task != "last"]
    ((kind, what),) = story.found()
    assert kind == "lost" and "without having run" in what


def test_a_task_that_succeeded_twice_is_duplicated(story):
    story.tamper("UPDATE try SET state = 'success'")
    assert "duplicated" in story.kinds()


def test_what_tasks_notice_is_told(story):
    story.note("overlap")
    story.note("exceeded", limit="pool narrow")
    assert story.kinds() == {"overlapped", "over limit"}


# ---- schedules ---------------------------------------------------------------------------------------------------


def test_a_logical_time_without_a_run_is_lost(story):
    story.schedule_runs(LOGICAL, LOGICAL + 2 * SECOND)
    assert "lost" not in story.kinds(Schedule("flow", 2 * SECOND))
    assert "lost" in story.kinds(Schedule("flow", SECOND))
    assert "lost" in story.kinds(Schedule("flow", 2 * SECOND, first=LOGICAL - 2 * SECOND))
    assert "lost" in story.kinds(Schedule("flow", 2 * SECOND, last=LOGICAL + 4 * SECOND))


def test_a_logical_time_with_two_runs_is_duplicated(story):
    story.schedule_runs(LOGICAL, LOGICAL)
    assert "duplicated" in story.kinds(Schedule("flow", SECOND))


def test_a_schedule_that_never_began_is_lost(story):
    assert story.kinds(Schedule("flow", SECOND)) == {"lost"}


def test_a_run_before_its_time_is_told(story):
    story.schedule_runs(round(START.timestamp() + 60) * SECOND)
    assert any("60.0 s before the time" in what for _, what in story.found())


# ---- transitions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lie",
    [
        pytest.param("DELETE FROM event WHERE task_id IS NOT NULL AND after = 'running'", id="missing"),
        pytest.param(
            f"INSERT INTO event ({EVENT}) SELECT {EVENT} FROM event WHERE task_id IS NOT NULL AND after = 'success'",
            id="doubled",
        ),
        pytest.param("UPDATE event SET actor = 'user' WHERE after = 'running'", id="by somebody who must not"),
        pytest.param("UPDATE task SET fence = fence + 1 WHERE key = 'first'", id="a claim without an event"),
        pytest.param("UPDATE task SET state = 'skipped' WHERE key = 'last'", id="a state without an event"),
    ],
)
def test_a_transition_that_is_not_as_it_should_be_is_illegal(story, lie):
    story.tamper(lie)
    assert "illegal" in story.kinds()


# ---- what the tasks themselves notice ----------------------------------------------------------------------------


@pytest.fixture
def noting(tmp_path, monkeypatch):
    """The module that the load's tasks call, as they load it."""
    monkeypatch.setenv("LOAD_FOLDER", str(tmp_path))
    monkeypatch.setenv("LOAD_SECONDS", "0")
    spec = importlib.util.spec_from_file_location("noting", Path(faults.__file__).parent / "load" / "noting.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_task_notices_another_try_of_itself(noting, tmp_path):
    with noting.noted("flow", "one", "first", 1), noting.noted("flow", "one", "first", 2):
        pass
    with noting.noted("flow", "one", "first", 3):
        pass
    assert [(line.what, line.number) for line in Record(tmp_path).lines() if line.what == "overlap"] == [("overlap", 2)]


def test_a_task_notices_that_it_is_one_too_many(noting, tmp_path):
    limits = {"pool narrow": 2}
    with (
        noting.noted("flow", "one", "a", 1, limits),
        noting.noted("flow", "one", "b", 1, limits),
        noting.noted("flow", "one", "c", 1, limits),
    ):
        pass
    told = [(line.what, line.task, line.limit) for line in Record(tmp_path).lines()]
    assert [one for one in told if one[0] == "exceeded"] == [("exceeded", "c", "pool narrow")]


def test_a_try_that_ended_is_known_by_its_process(tmp_path):
    said = {"workflow": "w", "run": "r", "task": "t", "number": 1, "pid": 7}
    lines = [
        {**said, "what": "start", "at": 1.0},
        {**said, "what": "end", "at": 2.0},
        {**said, "what": "start", "at": 3.0},
    ]
    (tmp_path / "record").write_text("".join(json.dumps(line) + "\n" for line in lines))
    record = Record(tmp_path)
    ended, under_way = (line for line in record.lines() if line.what == "start")
    assert record.came_to_its_end(ended) and not record.came_to_its_end(under_way)


def test_a_task_is_offered_again_when_the_store_schedules_it(story):
    history = History.read(story.store)
    (task,) = history.tasks_named("flow", "one", "first")
    assert history.tasks_named("flow", str(task.attempt_id), "first") == [task]
    story.tamper("UPDATE event SET at = id")
    with story.store.read() as tx:
        events = [one for one in list_events(tx, task.attempt_id) if one.task_id == task.id]
    scheduled = [one.at for one in events if one.after == "scheduled"]
    (failed_at,) = (one.at for one in events if one.after == "up_for_retry")
    assert len(scheduled) == 2
    assert offered_at(story.store, [task], failed_at) == scheduled[1]
    assert offered_at(story.store, [task], scheduled[1]) is None
