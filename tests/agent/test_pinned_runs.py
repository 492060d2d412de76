"""A run stays with the revision that it began with: real files, a real agent, real task processes."""

from __future__ import annotations

import time

import pytest

from headrace.actions.parts import Parts
from headrace.actions.trigger import trigger
from headrace.projects import parse_file
from headrace.projects.saving import save_parsed
from headrace.settings import Settings
from headrace.store import get_run, list_tasks, list_tries

LONG_SECONDS = 30.0
NOTICE = "the file changed since this run's revision was saved; running the saved one"
PYTHON = """
from airflow.sdk import DAG, task

with DAG("flow"):
    @task
    def work():
        print("it is {word}")
    work()
"""
DIG = """
+work:
  sh>: echo it is {word}
"""
BROKEN = {"flow.py": "def work(:\n", "flow.dig": "+work: [\n"}
TEXTS = {"flow.py": PYTHON, "flow.dig": DIG}


class Site:
    """One file in a project, a store, and an agent that can be started anew."""

    def __init__(self, folder, url, file):
        self.root = folder / "project"
        self.root.mkdir()
        self.path = self.root / file
        settings = Settings(home=folder, store=url, projects=(), logs_dir=folder / "logs")
        self.parts = Parts.open(settings)
        self.agent = None
        self.restart()

    def restart(self):
        """A new agent has no warm process."""
        self.stop()
        self.agent = self.parts.agent(self.parts.local_executor(2), slots=2)
        self.agent.start()

    def stop(self):
        if self.agent is not None:
            self.agent.stop(0.0)

    def save(self, word):
        self.path.write_text(TEXTS[self.path.name].replace("{word}", word))
        parsed = parse_file(self.root, self.path.name)
        (saved,) = save_parsed(self.parts.store, "p", self.root, [parsed], self.parts.clock.now())
        assert saved.error is None

    def damage(self):
        self.path.write_text(BROKEN[self.path.name])

    def trigger(self):
        return trigger(self.parts.store, self.parts.clock, "flow").id

    def finish(self, run_id):
        """How the run ended, what its task said, and whether its log begins with the notice."""
        until = time.monotonic() + LONG_SECONDS
        while (run := self._row(run_id)).is_active:
            assert time.monotonic() < until, "the run did not end"
            self.agent.step(1.0)
        lines = self._log(run_id).splitlines()
        words = [line.removeprefix("it is ") for line in lines if line.startswith("it is ")]
        return run.state, *words, lines[0] == NOTICE

    def _row(self, run_id):
        with self.parts.store.read() as tx:
            return get_run(tx, run_id)

    def _log(self, run_id):
        with self.parts.store.read() as tx:
            tasks = [one for one in list_tasks(tx, get_run(tx, run_id).attempt_id) if one.key.endswith("work")]
            (one,) = list_tries(tx, tasks[0].id)
        return (self.parts.settings.logs_dir / one.log).read_text()


@pytest.fixture(params=["flow.py", "flow.dig"])
def site(request, tmp_path, prepared_url):
    site = Site(tmp_path, prepared_url, request.param)
    yield site
    site.stop()
    site.parts.store.dispose()


def test_a_broken_file_runs_as_it_was_saved_by_a_cold_and_by_a_warm_agent(site):
    site.save("old")
    site.damage()
    assert site.finish(site.trigger()) == ("success", "old", True)
    assert site.finish(site.trigger()) == ("success", "old", True)


def test_a_file_that_breaks_under_a_warm_process_goes_on_and_survives_a_restart(site):
    site.save("old")
    assert site.finish(site.trigger()) == ("success", "old", False)
    site.damage()
    assert site.finish(site.trigger()) == ("success", "old", False)
    site.restart()
    assert site.finish(site.trigger()) == ("success", "old", True)


def test_a_run_that_began_before_a_change_runs_the_old_code_and_the_next_one_the_new(site):
    site.save("old")
    before = site.trigger()
    site.save("new")
    after = site.trigger()
    assert site.finish(before) == ("success", "old", True)
    assert site.finish(after) == ("success", "new", False)


def test_a_deleted_file_runs_as_it_was_saved(site):
    site.save("old")
    site.path.unlink()
    assert site.finish(site.trigger()) == ("success", "old", True)
