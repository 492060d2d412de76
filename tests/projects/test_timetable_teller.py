"""Times that only user code can tell: it is asked in a process of its own, one time after the other."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from headrace.actions.trigger import trigger
from headrace.clock import ManualClock, to_micros
from headrace.errors import UsageError
from headrace.projects.syncing import ProjectSync
from headrace.projects.timetable_teller import TimetableTeller
from headrace.scheduler import RunStarter
from headrace.settings import ParserSettings, ProjectFolder
from headrace.store import PARKED, Store, list_runs, set_paused
from headrace.store import schema as tables

WORKDAYS = """
    import os
    from datetime import timedelta
    from airflow.sdk import DAG
    from airflow.operators.empty import EmptyOperator
    from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable
    from pendulum import datetime

    class Workdays(Timetable):
        def __init__(self, hour):
            self.hour = hour

        def serialize(self):
            return {"hour": self.hour}

        def infer_manual_data_interval(self, *, run_after):
            return DataInterval(run_after.subtract(days=1), run_after)

        def next_dagrun_info(self, *, last_automated_data_interval, restriction):
            if os.path.exists("broken"):
                raise RuntimeError("no calendar")
            day = restriction.earliest
            if last_automated_data_interval is not None:
                day = last_automated_data_interval.start.add(days=1)
            while day.day_of_week in (5, 6):
                day = day.add(days=1)
            if restriction.latest is not None and day > restriction.latest:
                return None
            return DagRunInfo(run_after=day.add(hours=self.hour), data_interval=DataInterval(day, day.add(days=1)))

    with DAG("flow", schedule=Workdays(9), start_date=datetime(2026, 3, 5), end_date=datetime(2026, 3, 10)):
        EmptyOperator(task_id="a")
"""


class Follower:
    def __init__(self, root, url):
        self.root = root
        self.store = Store(url)
        self.clock = ManualClock(datetime(2026, 3, 5, tzinfo=UTC))
        self.sync = ProjectSync(self.store, self.clock, [ProjectFolder("p", root)], ParserSettings(processes=1))
        self.teller = TimetableTeller(self.store, self.clock, ParserSettings())
        self.starter = RunStarter(self.store)

    def write(self, text):
        (self.root / "flow.py").write_text(textwrap.dedent(text))
        (saved,) = self.sync.scan()
        assert saved.error is None, saved.error
        return saved.workflows[0].id

    def pass_days(self, days):
        """Live through days, an hour at a time."""
        for _ in range(days * 24):
            self.clock.advance(timedelta(hours=1))
            if self.starter.tick(self.clock.now()):
                self.teller.tick()

    def schedule(self):
        with self.store.read() as tx:
            return tx.execute(select(tables.schedule)).one()

    def runs(self):
        with self.store.read() as tx:
            return [row.key for row in list_runs(tx)][::-1]


@pytest.fixture
def follower(tmp_path, prepared_url):
    root = tmp_path / "project"
    root.mkdir()
    follower = Follower(root, prepared_url)
    yield follower
    follower.teller._pool.close()
    follower.sync.stop()
    follower.store.dispose()


def test_each_time_is_asked_for_when_the_one_before_was_started(follower):
    follower.write(WORKDAYS)
    assert follower.schedule().slots_wanted_at is not None
    assert follower.teller.tick() == 1
    assert follower.schedule().next_run_at == to_micros(datetime(2026, 3, 5, 9, tzinfo=UTC))
    assert follower.teller.tick() == 0
    follower.pass_days(7)
    assert follower.runs() == [f"scheduled__2026-03-{day:02}T09:00:00+00:00" for day in (5, 6, 9, 10)]
    row = follower.schedule()
    assert (row.next_run_at, row.slots_wanted_at) == (None, None)


def test_timetable_that_fails_is_asked_again_later(follower, caplog, monkeypatch):
    monkeypatch.chdir(follower.root)
    follower.write(WORKDAYS)
    (follower.root / "broken").touch()
    follower.teller.tick()
    assert "could not tell when `flow` is due: RuntimeError: no calendar" in caplog.text
    assert follower.teller.tick() == 0
    (follower.root / "broken").unlink()
    follower.clock.advance(timedelta(minutes=1))
    assert follower.teller.tick() == 1
    assert follower.schedule().next_run_at is not None


def test_paused_workflow_is_asked_again_when_it_goes_on(follower):
    workflow_id = follower.write(WORKDAYS)
    follower.teller.tick()
    follower.store.transact(lambda tx: set_paused(tx, workflow_id, True))
    follower.pass_days(1)
    assert (follower.runs(), follower.schedule().slots_wanted_at) == ([], PARKED)
    follower.store.transact(lambda tx: set_paused(tx, workflow_id, False))
    assert follower.teller.tick() == 1
    follower.starter.tick(follower.clock.now())
    assert follower.runs() == ["scheduled__2026-03-05T09:00:00+00:00"]


def test_run_by_hand_is_for_the_period_that_the_timetable_says(follower):
    follower.write(WORKDAYS)
    run = trigger(follower.store, follower.clock, "flow", session="2026-03-07")
    with follower.store.read() as tx:
        row = tx.execute(select(tables.run).where(tables.run.c.id == run.id)).one()
    assert row.interval_end - row.interval_start == 86_400_000_000
    assert row.logical_at == row.interval_end
    (follower.root / "flow.py").unlink()
    with pytest.raises(UsageError, match=r"only `flow\.py` can tell"):
        trigger(follower.store, follower.clock, "flow", session="2026-03-08")
    assert trigger(follower.store, follower.clock, "flow", session="none").logical_at is None


def test_answer_to_an_old_question_changes_nothing(follower, monkeypatch):
    follower.write(WORKDAYS)
    ask = follower.teller._pool.ask

    def overtaken(*given):
        with follower.store.begin() as tx:
            tx.execute(update(tables.schedule).values(slots_wanted_at=None, next_run_at=5))
        return ask(*given)

    monkeypatch.setattr(follower.teller._pool, "ask", overtaken)
    follower.teller.tick()
    assert follower.schedule().next_run_at == 5
