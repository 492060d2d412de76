"""Tasks update assets, and what is scheduled on them runs: the whole way through the engine."""

from __future__ import annotations

import json

import pytest

from headrace.store import list_asset_events, list_runs
from headrace.testing.run import Run

HEAD = (
    "from airflow.sdk import DAG, Asset, AssetAlias, AssetAll, AssetAny, AssetOrTimeSchedule, Metadata, asset, task\n"
)


def runs_of(engine, name):
    with engine.store.read() as tx:
        found = [row for row in list_runs(tx) if row.workflow == name][::-1]
    return [Run(engine.store, engine.clock, row.id, engine.folder / "logs") for row in found]


def rows_of(engine, name):
    with engine.store.read() as tx:
        return [row for row in list_runs(tx) if row.workflow == name][::-1]


def events(engine):
    with engine.store.read() as tx:
        return [(row.asset, json.loads(row.extra)) for row in list_asset_events(tx)[::-1]]


def test_success_of_a_task_starts_what_is_scheduled_on_its_outlet(engine):
    run = engine.start_dag(
        HEAD
        + """
orders = Asset("orders", uri="s3://shop/orders", extra={"owner": "us"})
with DAG("produce", schedule=None):
    @task(outlets=[orders])
    def make(*, outlet_events):
        outlet_events[orders].extra = {"rows": 5}
    make()
with DAG("consume", schedule=[orders]):
    @task
    def read(*, triggering_asset_events, dag_run):
        (event,) = triggering_asset_events[orders]
        assert event.source_dag_id == "produce" and event.source_task_id == "make" and dag_run.logical_date is None
        return [event.asset.uri, event.extra, dag_run.run_type]
    read()
""",
        "produce",
    )
    engine.settle()
    assert run.state == "success"
    (consumer,) = runs_of(engine, "consume")
    assert (consumer.state, consumer.value("read")) == (
        "success",
        ["s3://shop/orders", {"rows": 5}, "asset_triggered"],
    )
    (row,) = rows_of(engine, "consume")
    assert row.key.startswith("asset_triggered__2026-02-03T04:05:06+00:00_")


@pytest.mark.parametrize("ending", ["raise AirflowSkipException", "raise ValueError"])
def test_a_task_that_does_not_succeed_updates_nothing(engine, ending):
    engine.start_dag(
        HEAD
        + f"""
from airflow.exceptions import AirflowSkipException
with DAG("produce", schedule=None):
    @task(outlets=[Asset("orders")])
    def make():
        {ending}
    make()
with DAG("consume", schedule=Asset("orders")):
    task(len, task_id="t")([])
""",
        "produce",
    )
    engine.settle()
    assert (events(engine), runs_of(engine, "consume")) == ([], [])


TWO = """
a, b = Asset("a"), Asset("b")
with DAG("first", schedule=None):
    @task(outlets=[a])
    def make_a(): pass
    make_a()
with DAG("second", schedule=None):
    @task(outlets=[b])
    def make_b(): pass
    make_b()
with DAG("both", schedule=a & b):
    @task
    def seen(*, triggering_asset_events):
        return {asset.name: len(events) for asset, events in triggering_asset_events.items()}
    seen()
with DAG("either", schedule=(a | b)):
    @task
    def seen(*, triggering_asset_events):
        return sorted(asset.name for asset in triggering_asset_events)
    seen()
"""


def test_events_collapse_until_the_condition_is_met_and_all_of_them_are_seen(engine):
    for number in range(3):
        engine.start_dag(HEAD + TWO, "first", run_key=f"first{number}", session=f"2026-01-0{number + 1}")
        engine.settle()
    assert runs_of(engine, "both") == []
    assert [run.value("seen") for run in runs_of(engine, "either")] == [["a"], ["a"], ["a"]]
    engine.start_dag(HEAD + TWO, "second")
    engine.settle()
    (both,) = runs_of(engine, "both")
    assert both.value("seen") == {"a": 3, "b": 1}
    engine.start_dag(HEAD + TWO, "second", run_key="again", session="2026-01-05")
    engine.settle()
    assert len(runs_of(engine, "both")) == 1, "what was taken once does not count again"


def test_an_alias_is_resolved_by_the_task_that_runs(engine):
    engine.start_dag(
        HEAD
        + """
with DAG("produce", schedule=None):
    @task(outlets=[AssetAlias("found")])
    def make(*, outlet_events):
        outlet_events[AssetAlias("found")].add(Asset("s3://bucket/x"), extra={"n": 1})
    make()
with DAG("by_alias", schedule=AssetAlias("found")):
    @task
    def seen(*, triggering_asset_events):
        return [event.asset.name for event in triggering_asset_events[AssetAlias("found")]]
    seen()
with DAG("by_asset", schedule=Asset("s3://bucket/x")):
    @task(inlets=[Asset("s3://bucket/x"), AssetAlias("found")])
    def seen(*, inlet_events):
        return [[event.extra for event in inlet_events[n]] for n in (0, 1)]
    seen()
""",
        "produce",
    )
    engine.settle()
    assert [run.value("seen") for run in runs_of(engine, "by_alias")] == [["s3://bucket/x"]]
    assert [run.value("seen") for run in runs_of(engine, "by_asset")] == [[[{"n": 1}], [{"n": 1}]]]


def test_metadata_can_be_yielded(engine):
    run = engine.start_dag(
        HEAD
        + """
with DAG("produce", schedule=None):
    @task(outlets=[Asset("a"), AssetAlias("b")])
    def make():
        yield Metadata(Asset("a"), {"rows": 1})
        yield Metadata(Asset("c"), {"rows": 2}, alias=AssetAlias("b"))
        return "done"
    make()
"""
    )
    engine.settle()
    assert run.value("make") == "done"
    assert events(engine) == [("a", {"rows": 1}), ("c", {"rows": 2})]


def test_a_function_can_be_an_asset(engine):
    run = engine.start_dag(
        HEAD
        + """
@asset(schedule=None, uri="file:///tmp/raw", extra={"k": 1})
def raw(self, context):
    return [self.name, self.uri, context["dag_run"].dag_id]

@asset(schedule=raw)
def clean(self, raw, outlet_events):
    outlet_events[self].extra = {"of": raw.uri}
    return [raw.name, raw.extra]

@asset.multi(schedule=clean, outlets=[Asset("x"), Asset("y")])
def split():
    pass
""",
        "raw",
    )
    engine.settle()
    assert run.error("raw") is None
    assert run.value("raw") == ["raw", "file:///tmp/raw", "raw"]
    assert [one.value("clean") for one in runs_of(engine, "clean")] == [["raw", {"k": 1}]]
    assert [one.state for one in runs_of(engine, "split")] == ["success"]
    assert events(engine) == [("raw", {}), ("clean", {"of": "file:///tmp/raw"}), ("x", {}), ("y", {})]


def test_assets_and_a_clock_both_start_runs(engine):
    source = (
        HEAD
        + """
from airflow.sdk import CronTriggerTimetable
with DAG("produce", schedule=None):
    @task(outlets=[Asset("a")])
    def make(): pass
    make()
hourly = CronTriggerTimetable("0 * * * *", timezone="UTC")
with DAG("consume", schedule=AssetOrTimeSchedule(timetable=hourly, assets=[Asset("a")])):
    @task
    def seen(*, dag_run): return dag_run.run_type
    seen()
"""
    )
    engine.start_dag(source, "produce")
    engine.settle()
    # The clock's hour was missed by five minutes, which counts as now.
    engine.advance(hours=1)
    engine.settle()
    assert sorted(run.value("seen") for run in runs_of(engine, "consume")) == [
        "asset_triggered",
        "scheduled",
        "scheduled",
    ]


def test_an_instance_of_a_mapped_task_updates_its_outlets_too(engine):
    engine.start_dag(
        HEAD
        + """
with DAG("produce", schedule=None):
    @task(outlets=[Asset("a")])
    def make(n, *, outlet_events):
        outlet_events[Asset("a")].extra = {"n": n}
    make.expand(n=[1, 2])
"""
    )
    engine.settle()
    assert sorted(extra["n"] for _, extra in events(engine)) == [1, 2]


def test_the_last_successful_run_is_known_by_its_logical_time(engine):
    source = """
        from airflow.sdk import DAG, task
        with DAG("flow", schedule=None):
            @task
            def look(*, prev_data_interval_start_success, prev_start_date_success, dag_run):
                if dag_run.run_id == "broken":
                    raise ValueError
                before = prev_data_interval_start_success
                return None if before is None else [before.to_date_string(), prev_start_date_success.to_date_string()]
            look()
    """
    looks = []
    for key, session in (
        ("third", "2026-01-03"),
        ("first", "2026-01-01"),
        ("broken", "2026-01-04"),
        ("x", "2026-01-05"),
    ):
        run = engine.start_dag(source, run_key=key, session=session)
        engine.settle()
        looks.append(run.value("look"))
    assert looks == [None, None, None, ["2026-01-03", "2026-02-03"]]


def test_both_families_meet_at_assets(engine):
    """A Python DAG starts a `.dig` workflow, which starts another Python DAG."""
    engine.write("middle.dig", "schedule:\n  assets>: [orders]\n\n+done:\n  asset>: report\n  extra: {rows: 3}\n")
    source = (
        HEAD
        + """
with DAG("produce", schedule=None):
    @task(outlets=[Asset("orders")])
    def make(): pass
    make()
with DAG("consume", schedule=[Asset("report")]):
    @task
    def seen(*, triggering_asset_events):
        return [event.extra for event in triggering_asset_events[Asset("report")]]
    seen()
"""
    )
    engine.start_dig((engine.folder / "project" / "middle.dig").read_text(), "middle", session="2020-01-01")
    engine.start_dag(source, "produce")
    engine.settle()
    assert [run.state for run in runs_of(engine, "middle")] == ["success", "success"]
    assert [run.value("seen") for run in runs_of(engine, "consume")] == [[{"rows": 3}]] * 2


def test_continuous_runs_follow_one_another(engine):
    engine.start_dag(
        """
        from airflow.sdk import DAG, task
        with DAG("loop", schedule="@continuous", max_active_runs=1):
            @task
            def step(*, data_interval_start, data_interval_end):
                return (data_interval_end - data_interval_start).total_seconds()
            step()
        """,
        session="2020-01-01",
    )
    engine.settle()
    for _ in range(3):
        engine.advance(seconds=1)
        engine.settle()
    _, *scheduled = runs_of(engine, "loop")
    assert [run.value("step") for run in scheduled] == [1.0, 1.0, 1.0], "the first one waits for the run by hand"
