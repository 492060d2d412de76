"""Parsed files in the store: what changed is saved, mistakes are remembered, schedules keep their place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from headrace.clock import from_micros
from headrace.definition import Node, Schedule, Workflow
from headrace.projects import ParsedFile, SourceError
from headrace.projects.saving import save_parsed
from headrace.store import Store
from headrace.store import schema as tables

NOON = datetime(2026, 3, 2, 12, 30, tzinfo=UTC)
HOURLY = Schedule(type="cron", spec={"expression": "0 * * * *"}, start_at="2026-03-02T00:00:00Z")


@pytest.fixture
def store(prepared_url):
    store = Store(prepared_url)
    yield store
    store.dispose()


def flow(name="w", operator="work", **fields):
    nodes = (Node(key="", kind="group"), Node(key="a", parent="", operator=operator))
    return Workflow(name=name, language="python", nodes=nodes, **fields)


def parsed(*flows, file="f.py", digest="1", **fields):
    return ParsedFile(file=file, digest=digest, workflows=flows, **fields)


def save(store, *files, now=NOON):
    return save_parsed(store, "p", Path("/p"), files, now)


def rows(store, table):
    with store.read() as tx:
        return list(tx.execute(select(table)))


def next_run(store):
    (row,) = rows(store, tables.schedule)
    return from_micros(row.next_run_at)


def started(store, logical):
    """As if the scheduler had started the run of this time."""
    with store.begin() as tx:
        micros = int(logical.timestamp() * 1e6)
        tx.execute(tables.schedule.update().values(last_logical_at=micros, next_logical_at=micros + 3_600_000_000))


def test_new_file_gives_workflows_and_schedules(store):
    (saved,) = save(store, parsed(flow("one", schedule=HOURLY), flow("two")))
    assert [(one.name, one.is_new, one.is_changed) for one in saved.workflows] == [
        ("one", True, True),
        ("two", True, True),
    ]
    assert saved.error is None
    assert next_run(store) == datetime(2026, 3, 2, 12, tzinfo=UTC), "the newest time since the start is due at once"


def test_unchanged_file_changes_nothing_and_wakes_nobody(store):
    save(store, parsed(flow(schedule=HOURLY)))
    before = [rows(store, table) for table in (tables.revision, tables.workflow_version, tables.schedule)]
    woken = []
    store.wakeups.subscribe(lambda: woken.append(1))
    (saved,) = save(store, parsed(flow(schedule=HOURLY)), now=NOON + timedelta(days=1))
    assert not saved.has_news
    assert [rows(store, table) for table in (tables.revision, tables.workflow_version, tables.schedule)] == before
    assert woken == []


def test_news_wake_those_who_wait(store):
    woken = []
    store.wakeups.subscribe(lambda: woken.append(1))
    save(store, parsed(flow()))
    save(store, parsed(flow(operator="other"), digest="2"))
    assert len(woken) == 2


def test_unchanged_schedule_keeps_its_place_when_the_workflow_changes(store):
    save(store, parsed(flow(schedule=HOURLY)))
    started(store, datetime(2026, 3, 2, 12, tzinfo=UTC))
    before = rows(store, tables.schedule)
    (saved,) = save(store, parsed(flow(operator="other", schedule=HOURLY), digest="2"), now=NOON + timedelta(days=3))
    assert saved.workflows[0].is_changed
    assert rows(store, tables.schedule) == before


def test_changed_schedule_goes_on_after_the_last_run(store):
    save(store, parsed(flow(schedule=HOURLY)))
    started(store, datetime(2026, 3, 2, 12, tzinfo=UTC))
    daily = Schedule(type="cron", spec={"expression": "0 6 * * *"}, start_at="2026-03-02T00:00:00Z")
    save(store, parsed(flow(schedule=daily), digest="2"))
    assert next_run(store) == datetime(2026, 3, 3, 6, tzinfo=UTC)


def test_schedule_in_another_time_zone_is_another_schedule(store):
    daily = Schedule(type="cron", spec={"expression": "0 6 * * *", "semantics": "digdag"})
    save(store, parsed(flow(schedule=daily)))
    assert next_run(store) == datetime(2026, 3, 3, 6, tzinfo=UTC)
    save(store, parsed(flow(schedule=daily, timezone="Asia/Tokyo"), digest="2"))
    assert next_run(store) == datetime(2026, 3, 2, 21, tzinfo=UTC)


def test_removed_schedule_is_deleted(store):
    save(store, parsed(flow(schedule=HOURLY)))
    save(store, parsed(flow(), digest="2"))
    assert rows(store, tables.schedule) == []


def test_broken_file_keeps_its_last_good_revision_and_its_schedule(store):
    save(store, parsed(flow(schedule=HOURLY)))
    error = SourceError(message="NameError: x", file="f.py", line=3, detail="traceback", hint="define it")
    (saved,) = save(store, ParsedFile(file="f.py", digest="2", error=error))
    assert saved.error is not None and saved.has_news
    (row,) = rows(store, tables.source_error)
    assert (row.file, row.line, row.message, row.hint, row.detail) == (
        "f.py", 3, "NameError: x", "define it", "traceback",
    )  # fmt: skip
    assert [bool(row.is_gone) for row in rows(store, tables.workflow)] == [False]
    assert len(rows(store, tables.schedule)) == 1
    save(store, parsed(flow(schedule=HOURLY), digest="3"))
    assert rows(store, tables.source_error) == []


def test_schedule_that_makes_no_sense_is_a_mistake_of_the_file(store):
    bad = Schedule(type="cron", spec={"expression": "0 77 * * *"})
    (saved,) = save(store, parsed(flow(schedule=bad)))
    assert "workflow `w`: expected a schedule whose " in saved.error.message
    assert rows(store, tables.workflow) == []


def test_second_definition_of_a_workflow_is_a_mistake_of_the_second_file(store):
    first, second = save(store, parsed(flow(), file="f.py"), parsed(flow(), file="g.py"))
    assert first.error is None
    assert second.error.message == "workflow `w` is defined twice: in `f.py` and in `g.py`"
    assert [row.file for row in rows(store, tables.source_error)] == ["g.py"]
    (twice,) = save(store, parsed(flow("x"), flow("x"), file="h.py"))
    assert twice.error.message == "workflow `x` is defined twice in `h.py`"


def test_workflow_may_move_between_files_that_are_saved_together_in_any_order(store):
    save(store, parsed(flow("moved"), flow("stays"), file="a.py"))
    saved = save(store, parsed(flow("moved"), file="b.py"), parsed(flow("stays"), file="a.py", digest="2"))
    assert [one.error for one in saved] == [None, None]
    assert {(row.name, row.file, bool(row.is_gone)) for row in rows(store, tables.workflow)} == {
        ("moved", "b.py", False),
        ("stays", "a.py", False),
    }
    assert rows(store, tables.source_error) == []


def test_one_mistake_costs_one_file(store):
    error = SourceError(message="no")
    saved = save(
        store,
        parsed(flow("a"), file="a.py"),
        ParsedFile(file="b.py", digest="1", error=error),
        parsed(flow("c"), file="c.py"),
    )
    assert [one.error is None for one in saved] == [True, False, True]
    assert sorted(row.name for row in rows(store, tables.workflow)) == ["a", "c"]
