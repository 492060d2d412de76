"""A push registers everything or nothing, and schedules go on where they were."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime, timedelta

import pytest

from headrace.actions.assets import emit
from headrace.actions.push import pack_folder, push
from headrace.clock import ManualClock, from_micros
from headrace.errors import LoadError, NotFoundError, StateError, UsageError
from headrace.projects.syncing import ProjectSync
from headrace.scheduler import RunStarter
from headrace.settings import ProjectFolder, load_settings
from headrace.store import (
    Store,
    archive_content,
    delete_project,
    disable_schedule,
    find_project,
    get_schedule,
    list_archives,
    list_projects,
    list_runs,
    list_workflows,
    workflows_named,
)

START = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
HOURLY = "schedule:\n  hourly>: '10:00'\n+a:\n  echo>: x\n"


class Pusher:
    """A folder, a store and a clock."""

    def __init__(self, url, folder):
        self.folder = folder / "sales"
        self.folder.mkdir()
        self.store = Store(url)
        self.clock = ManualClock(START)
        self.settings = load_settings(folder / "home", {})

    def write(self, **files):
        for name, text in files.items():
            (self.folder / name.replace("_dig", ".dig").replace("_py", ".py")).write_text(textwrap.dedent(text))

    def push(self, revision, **options):
        data = pack_folder(self.settings, self.folder)
        return push(self.store, self.clock, self.settings, "sales", revision, data, **options)

    def schedule(self, name):
        with self.store.read() as tx:
            row = get_schedule(tx, workflows_named(tx, name)[0].id)
        return None if row is None or row.logical_at is None else from_micros(row.logical_at)

    def started(self, name, at):
        """As if the schedule had started a run for this time."""
        with self.store.begin() as tx:
            row = get_schedule(tx, workflows_named(tx, name)[0].id)
            tx.connection.exec_driver_sql(
                f"UPDATE schedule SET last_logical_at = {round(at.timestamp() * 1e6)} WHERE workflow_id = {row[0]}"
            )

    def names(self):
        with self.store.read() as tx:
            return [(row.project, row.name) for row in list_workflows(tx)]


@pytest.fixture
def pusher(prepared_url, tmp_path):
    one = Pusher(prepared_url, tmp_path)
    yield one
    one.store.dispose()


def test_push_registers_files_of_both_families_with_their_archive(pusher):
    dag = "from airflow.sdk import DAG\nwith DAG('report', schedule=None):\n    pass\n"
    pusher.write(daily_dig=HOURLY, report_py=dag)
    pushed = pusher.push("1.0.0")
    assert sorted(pushed.workflows) == ["daily", "report"]
    assert pushed.project.revision.name == "1.0.0"
    with pusher.store.read() as tx:
        data = archive_content(tx, pushed.project.revision.digest)
        assert data == pack_folder(pusher.settings, pusher.folder)
        assert find_project(tx, "sales").root == ""
    assert pusher.schedule("daily") == START.replace(hour=4, minute=0, second=0)


def test_broken_file_changes_nothing_and_every_mistake_is_told(pusher):
    pusher.write(good_dig=HOURLY)
    pusher.push("1.0.0")
    pusher.write(good_dig="+b:\n  echo>: y\n", bad_dig="+a:\n  sh>: x\n  sh>: y\n", worse_dig="nonsense: 1\n")
    with pytest.raises(LoadError) as caught:
        pusher.push("1.0.1")
    assert caught.value.message == (
        "could not push project `sales`, which stays as it is: 2 files of 3 cannot be loaded"
    )
    assert "bad.dig:3" in caught.value.detail and "worse.dig" in caught.value.detail
    with pusher.store.read() as tx:
        assert [row.name for row in list_archives(tx, find_project(tx, "sales").id)] == ["1.0.0"]
    assert pusher.names() == [("sales", "good")]
    assert pusher.schedule("good") is not None


def test_revision_has_its_name_for_ever(pusher):
    pusher.write(a_dig=HOURLY)
    pusher.push("1.0.0")
    with pytest.raises(StateError, match=r"already has a revision `1\.0\.0`"):
        pusher.push("1.0.0")


def test_workflow_that_is_not_pushed_any_more_is_gone_with_its_schedule(pusher):
    pusher.write(a_dig=HOURLY, b_dig=HOURLY)
    pusher.push("1")
    (pusher.folder / "b.dig").unlink()
    pusher.push("2")
    assert pusher.names() == [("sales", "a")]
    assert pusher.schedule("b") is None


def test_two_files_with_one_workflow_are_refused(pusher):
    dag = "from airflow.sdk import DAG\nwith DAG('same', schedule=None):\n    pass\n"
    pusher.write(one_py=dag, two_py=dag)
    with pytest.raises(LoadError) as caught:
        pusher.push("1")
    assert "two.py: workflow `same` is defined twice: in `one.py` and in `two.py`" in caught.value.detail


def test_schedule_goes_on_where_it_was(pusher):
    pusher.write(a_dig=HOURLY)
    pusher.push("1")
    pusher.started("a", START.replace(hour=2, minute=0, second=0))
    pusher.clock.advance(timedelta(days=1))
    pusher.push("2")
    assert pusher.schedule("a") == START.replace(minute=0, second=0), "an unchanged schedule keeps its place"
    pusher.write(a_dig=HOURLY.replace("hourly>: '10:00'", "daily>: 07:00:00"))
    pusher.push("3")
    assert pusher.schedule("a") == START.replace(hour=0, minute=0, second=0) + timedelta(days=1)


@pytest.mark.parametrize("cleared", [("a",), None])
def test_cleared_schedule_begins_anew(pusher, cleared):
    pusher.write(a_dig=HOURLY)
    pusher.push("1")
    pusher.started("a", START)
    pusher.clock.advance(timedelta(days=1))
    pusher.push("2", cleared_schedules=cleared)
    assert pusher.schedule("a") == START.replace(minute=0, second=0) + timedelta(days=1)


def test_schedule_may_begin_at_another_time(pusher):
    pusher.write(a_dig=HOURLY)
    pusher.push("1", schedule_from=START - timedelta(days=2))
    assert pusher.schedule("a") == START.replace(minute=0, second=0) - timedelta(days=2)


def test_cleared_schedule_must_exist(pusher):
    pusher.write(daily_dig=HOURLY)
    with pytest.raises(NotFoundError, match="define no workflow `dayly`"):
        pusher.push("1", cleared_schedules=("dayly",))
    assert pusher.names() == []


def test_disabled_schedule_stays_disabled(pusher):
    pusher.write(a_dig=HOURLY)
    pusher.push("1")
    with pusher.store.begin() as tx:
        workflow_id = workflows_named(tx, "a")[0].id
        disable_schedule(tx, workflow_id, 1)
    pusher.write(a_dig=HOURLY.replace("10:00", "20:00"))
    pusher.push("2")
    with pusher.store.read() as tx:
        row = get_schedule(tx, workflow_id)
    assert row.run_at is None and row.disabled_at == 1 and row.logical_at is not None


def test_deleted_project_frees_its_name(pusher):
    pusher.write(a_dig=HOURLY)
    first = pusher.push("1").project
    with pusher.store.begin() as tx:
        delete_project(tx, first.id, 1)
        assert list_projects(tx) == []
    assert pusher.names() == []
    second = pusher.push("1").project
    assert second.id != first.id
    assert pusher.names() == [("sales", "a")]


def test_folder_and_pushes_do_not_share_a_project(pusher):
    pusher.write(a_dig=HOURLY)
    sync = ProjectSync(pusher.store, pusher.clock, [ProjectFolder("sales", pusher.folder)])
    try:
        sync.scan()
    finally:
        sync.stop()
    with pytest.raises(StateError, match="`sales` cannot be pushed: it is saved from the folder") as caught:
        pusher.push("1")
    assert "`headrace delete sales`" in caught.value.hint


def test_folder_of_a_pushed_project_is_refused(pusher):
    pusher.write(a_dig=HOURLY)
    pusher.push("1")
    sync = ProjectSync(pusher.store, pusher.clock, [ProjectFolder("sales", pusher.folder)])
    try:
        with pytest.raises(StateError, match=r"cannot be saved from `.*`: it is one that was pushed") as caught:
            sync.check()
    finally:
        sync.stop()
    assert "`--projects NAME=PATH`" in caught.value.hint


def test_folder_whose_project_is_pushed_later_says_so_once_and_comes_back(pusher, caplog):
    pusher.write(a_dig=HOURLY)
    sync = ProjectSync(pusher.store, pusher.clock, [ProjectFolder("sales", pusher.folder)])
    try:
        sync.scan()
        delete(pusher)
        pusher.push("1")
        for _ in range(3):
            sync.check_roots()
        (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert "it is one that was pushed (hint: give this folder another name" in warning
        delete(pusher)
        assert pusher.names() == []
        sync.check_roots()
        assert pusher.names() == [("sales", "a")]
    finally:
        sync.stop()


def delete(pusher):
    with pusher.store.begin() as tx:
        delete_project(tx, find_project(tx, "sales").id, 1)


@pytest.mark.parametrize("name", ["", "a/b", "x" * 256])
def test_names_are_checked(pusher, name):
    pusher.write(a_dig=HOURLY)
    with pytest.raises(UsageError, match="expected the name of a revision"):
        pusher.push(name)


def test_folder_without_workflows_is_refused(pusher):
    with pytest.raises(LoadError, match="its files define no workflow"):
        pusher.push("1")


def test_a_pushed_workflow_waits_for_assets(pusher):
    pusher.write(report_dig="schedule:\n  assets>: [orders]\n+a:\n  echo>: x\n")
    pusher.push("r1")
    emit(pusher.store, pusher.clock, "orders", {})
    RunStarter(pusher.store).tick(pusher.clock.now())
    with pusher.store.read() as tx:
        assert [run.type for run in list_runs(tx)] == ["asset_triggered"]
