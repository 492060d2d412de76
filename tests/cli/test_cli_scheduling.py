"""The commands about times, backfills and assets, as somebody types them."""

from __future__ import annotations

import pytest

from headrace.clock import SystemClock
from headrace.projects.syncing import ProjectSync
from headrace.settings import ParserSettings, ProjectFolder
from headrace.store import Store
from headrace.testing.project import Project

FLOWS = """
    from airflow.sdk import DAG, Asset, task
    from pendulum import datetime
    with DAG("daily", schedule="0 3 * * *", start_date=datetime(2026, 1, 1), end_date=datetime(2026, 1, 31)):
        @task(outlets=[Asset("orders", "s3://shop/orders")])
        def load(): pass
        load()
    with DAG("report", schedule=[Asset("orders", "s3://shop/orders")]):
        task(len)([])
"""


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.write("flows.py", FLOWS)
    store = Store(f"sqlite:///{project.home}/headrace.db")
    sync = ProjectSync(store, SystemClock(), [ProjectFolder("shop", project.root)], ParserSettings(processes=1))
    (saved,) = sync.scan()
    assert saved.error is None, saved.error
    sync.stop()
    store.dispose()
    return project


def test_backfill_from_the_first_look_to_the_end(project):
    create = ("backfill", "create", "daily", "--from", "2026-01-01", "--to", "2026-01-04")
    dry = project.call(*create, "--dry-run").check()
    assert "2026-01-01T03:00:00Z  a new run" in dry.out
    assert dry.out.endswith("a dry run, nothing was done: 3 new, 0 again, 0 left out\n")
    made = project.call(*create, "--max-active-runs", "1", "-c", '{"n": 1}', "--json").check().json
    assert [one["outcome"] for one in made["times"]] == ["created"] * 3
    assert (made["backfill"]["params"], made["backfill"]["runs"]["queued"]) == ({"n": 1}, 2)
    number = str(made["backfill"]["backfill_id"])
    paused = project.call("backfill", "pause", number).check().out
    assert paused == f"backfill {number} of `daily` is paused: 2 runs wait, 1 is running\n"
    assert project.call("backfill", "unpause", number, "--json").check().json["state"] == "running"
    assert project.call("backfill", "cancel", number).check()
    (row,) = project.call("backfill", "list", "daily", "--json").check().json["backfills"]
    assert (row["state"], row["runs"]["failed"], row["runs"]["canceled"]) == ("canceled", 0, 2)
    runs = project.call("runs", "--backfill", number, "--state", "canceled", "--json").check().json["runs"]
    assert {run["type"] for run in runs} == {"backfill"} and len(runs) == 2


def test_a_backfill_whose_create_was_forgotten_is_told_of_it(project):
    done = project.call("backfill", "daily", "--from", "2026-01-01")
    assert "`headrace backfill create daily …` is for times of the workflow `daily`" in done.err


def test_backfill_needs_an_end(project):
    done = project.call("backfill", "create", "daily", "--from", "2026-01-01")
    assert (done.exit_code, done.err) == (2, "error: expected the backfill to have either `--to` or `--count`\n")


def test_assets_are_listed_and_updated_from_outside(project):
    (asset,) = project.call("assets", "list", "--json").check().json["assets"]
    assert (asset["name"], asset["updated_by"], asset["starts"]) == ("orders", ["daily.load"], ["report"])
    assert project.call("assets", "emit", "orders", "--extra", '{"rows": 2}').check().out.endswith("was updated\n")
    (event,) = project.call("assets", "events", "orders", "--json").check().json["events"]
    assert (event["extra"], event["workflow"]) == ({"rows": 2}, None)
    assert "outside" in project.call("assets", "events").check().out
    assert "orders" in project.call("assets", "list").check().out
    wrong = project.call("assets", "emit", "orders", "--extra", "[1]")
    assert wrong.err.startswith("error: expected `--extra` to be a JSON object, got: `[1]`")


def test_a_workflow_is_shown_with_its_next_times(project):
    shown = project.call("next", "report").check().out
    assert "schedule:  assets orders" in shown
    assert "next run:  it waits for events of `orders`" in shown
    assert project.call("next", "daily", "--json").check().json["schedule"] == "cron 0 3 * * * in UTC"


def test_trigger_takes_everything_that_airflow_s_takes(project):
    command = ("trigger", "daily", "-c", '{"a": 1, "b": 2}', "-p", "b=3", "-r", "mine", "-l", "2026-01-02", "--json")
    run = project.call(*command, "--note", "by hand").check().json
    assert (run["params"], run["key"], run["note"]) == ({"a": 1, "b": 3}, "mine", "by hand")
    assert run["logical_time"] == "2026-01-02T00:00:00Z"
    assert project.call("trigger", "daily", "-l", "none", "--json").check().json["logical_time"] is None
    assert "expected `--conf` to be a JSON object" in project.call("trigger", "daily", "-c", "{").err


def test_events_and_runs_are_about_partitions(project):
    said = project.call("assets", "emit", "orders", "--partition-key", "us").check().out
    assert said.endswith(": partition `us` of asset `orders` was updated\n")
    (event,) = project.call("assets", "events", "orders", "--json").check().json["events"]
    assert event["partition_key"] == "us"
    assert project.call("assets", "emit", "orders", "--partition-key", " ").exit_code == 2
    wrong = project.call("trigger", "report", "--partition-key", "us")
    assert (wrong.exit_code, "workflow `report` has no partitions" in wrong.err) == (2, True)
    assert project.call("runs", "--partition-key", "us", "--json").check().json["runs"] == []
