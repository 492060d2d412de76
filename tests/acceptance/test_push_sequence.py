"""From a push to the end of a run, on both databases: everything that belongs together becomes true together."""

from __future__ import annotations

import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.actions.push import pack_folder, push
from headrace.clock import ManualClock, to_micros
from headrace.errors import LoadError
from headrace.scheduler import RunStarter
from headrace.settings import load_settings
from headrace.store import Store, find_project, list_archives, list_schedules, list_workflows
from headrace.store.sql import Sql

EXAMPLE = Path(__file__).parents[2] / "examples" / "digdag_project"
NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
HOURLY = "schedule:\n  hourly>: '00:00'\n+a:\n  echo>: 1\n+b:\n  echo>: 2\n"

# One statement sees one state of the database.
TOGETHER = Sql(
    """
    SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM attempt WHERE state = 'running'),
           (SELECT count(*) FROM task),
           (SELECT count(*) FROM schedule WHERE last_logical_at IS NOT NULL)
    """
)
REGISTERED = Sql(
    """
    SELECT (SELECT count(*) FROM archive), (SELECT count(*) FROM workflow_version),
           (SELECT count(*) FROM workflow WHERE NOT is_gone), (SELECT count(*) FROM schedule)
    """
)


class Watch:
    """Looks at the database again and again while something happens; keeps every different sight."""

    def __init__(self, url, question):
        self._url = url
        self._question = question
        self._done = threading.Event()
        self._looked = threading.Event()
        self.sights = set()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self):
        self._thread.start()
        assert self._looked.wait(30)
        return self.sights

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _look(self):
        store = Store(self._url)
        is_last = False
        while not is_last:
            is_last = self._done.is_set()
            with store.read() as tx:
                self.sights.add(tuple(tx.run(self._question)[0]))
            self._looked.set()
        store.dispose()


class Shop:
    def __init__(self, url, folder):
        self.url = url
        self.store = Store(url)
        self.clock = ManualClock(NOW)
        self.settings = load_settings(folder / "home", {})
        self.folder = folder / "shop"
        self.folder.mkdir()

    def push(self, revision, **files):
        for name, text in files.items():
            (self.folder / f"{name}.dig").write_text(text)
        data = pack_folder(self.settings, self.folder)
        return push(self.store, self.clock, self.settings, "shop", revision, data)


@pytest.fixture
def shop(prepared_url, tmp_path):
    one = Shop(prepared_url, tmp_path)
    yield one
    one.store.dispose()


def test_due_schedule_becomes_run_attempt_and_tasks_in_one_transaction_of_one_scheduler(shop):
    shop.push("1.0.0", **{f"w{number}": HOURLY for number in range(4)})
    due = NOW + timedelta(hours=1)
    ready = threading.Barrier(3)
    stores = [Store(shop.url) for _ in range(3)]

    def schedule(store):
        starter = RunStarter(store, batch_size=1)
        ready.wait()
        while starter.tick(due):
            pass
        store.close()

    threads = [threading.Thread(target=schedule, args=(store,)) for store in stores]
    with Watch(shop.url, TOGETHER) as sights:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for store in stores:
        store.dispose()
    # However many there are at a moment, each run has its attempt, its three tasks and a schedule that knows of it.
    assert sights <= {(runs, runs, 3 * runs, runs) for runs in range(5)}
    assert max(sights) == (4, 4, 12, 4), "and each schedule was served exactly once"
    with shop.store.read() as tx:
        assert {row.logical_at for row in list_schedules(tx)} == {to_micros(NOW.replace(hour=6, minute=0, second=0))}


def test_push_registers_everything_at_once_and_a_broken_file_changes_nothing(shop):
    with Watch(shop.url, REGISTERED) as sights:
        shop.push("1.0.0", **{f"w{number}": HOURLY for number in range(5)})
        with pytest.raises(LoadError, match="1 file of 6 cannot be loaded"):
            shop.push("1.0.1", w0="+other:\n  echo>: 1\n", broken="+a:\n  sh>: 1\n  sh>: 2\n")
    assert sights == {(0, 0, 0, 0), (1, 5, 5, 5)}
    with shop.store.read() as tx:
        assert [row.name for row in list_archives(tx, find_project(tx, "shop").id)] == ["1.0.0"]
        assert [row.name for row in list_workflows(tx)] == [f"w{number}" for number in range(5)]
    (shop.folder / "broken.dig").unlink()
    shop.push("1.0.1")
    with shop.store.read() as tx:
        assert find_project(tx, "shop").revision.name == "1.0.1"


def test_pushed_project_runs_on_a_machine_that_never_saw_its_folder(make_cluster, prepared_url, tmp_path):
    cluster = make_cluster(prepared_url)
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    pushed = cluster.command("push", "shop", "--project", str(folder), "-r", "1.0.0")
    assert pushed.returncode == 0, pushed.stderr
    shutil.rmtree(folder)
    shutil.rmtree(cluster.home / "revisions")
    cluster.start("scheduler")
    cluster.agent()
    started = cluster.ask("start", "shop", "orders", "--session", "2026-01-31")
    run = cluster.wait_for_end(started["run_id"])
    assert run.state == "success", cluster.stderr()
    (place,) = (cluster.home / "revisions").iterdir()
    assert (place / "build" / "report.txt").read_text() == "orders of 2026-01-31: 7 orders, rate 1.17\n"


def test_example_runs_in_local_mode(make_cluster, tmp_path):
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    done = make_cluster().command("run", str(folder / "orders.dig"), "--session", "2026-01-31")
    assert done.returncode == 0, done.stderr
    assert (folder / "build" / "report.txt").read_text() == "orders of 2026-01-31: 7 orders, rate 1.17\n"


def test_scheduler_of_a_folder_needs_no_other_process(make_cluster, tmp_path):
    cluster = make_cluster()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "often.dig").write_text(f"schedule:\n  seconds_interval>: 1\n+a:\n  sh>: touch {tmp_path}/done\n")
    member = cluster.start("scheduler", "--project", str(folder))
    cluster.wait_until((tmp_path / "done").exists, "the schedule has started a run")
    assert member.terminate() == 0
