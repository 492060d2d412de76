"""Runs for partitions: of a clock, of assets, by hand and for the past; the whole way through the engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.actions.assets import emit
from headrace.actions.backfill import BackfillRequest, create_backfill
from headrace.actions.trigger import trigger
from headrace.actions.upcoming import upcoming
from headrace.errors import DefinitionError, UsageError
from headrace.scheduler import Pruner
from headrace.store import RunChoice, choose_runs, list_asset_events, list_runs, pending_partitions, triggering_events
from headrace.testing.run import Run

HEAD = "from datetime import UTC, datetime\nfrom airflow.sdk import *\norders = Asset('orders')\n"
HOURLY = (
    HEAD
    + """
every_hour = CronPartitionTimetable("0 * * * *", timezone="Europe/Berlin")
with DAG("hourly", schedule=every_hour, start_date=datetime(2026, 2, 3, 5, tzinfo=UTC)):
    @task(outlets=[orders])
    def make(*, dag_run, partition_key, partition_date, run_id, **context):
        assert "logical_date" not in context and "ds" not in context and dag_run.logical_date is None
        assert (dag_run.partition_key, dag_run.partition_date) == (partition_key, partition_date)
        return [partition_key, partition_date.isoformat(), run_id]
    make()
"""
)
CONSUMER = """
with DAG("consume", schedule=PartitionedAssetTimetable(assets=orders{mapper})):
    @task
    def read(*, dag_run, triggering_asset_events):
        keys = [event.partition_key for event in triggering_asset_events[orders]]
        return [dag_run.partition_key, str(dag_run.partition_date), keys]
    read()
"""
DAILY = ", default_partition_mapper=RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())"


def rows_of(engine, name):
    with engine.store.read() as tx:
        return [row for row in list_runs(tx, limit=200) if row.workflow == name][::-1]


def runs_of(engine, name):
    return [Run(engine.store, engine.clock, row.id, engine.folder / "logs") for row in rows_of(engine, name)]


def save(engine, source, name):
    """Save a file without a run of its own: that of `idle` ends at once."""
    idle = "\nwith DAG('idle', schedule=None):\n    task(lambda: 1, task_id='t')()\n"
    engine.start_dag(source + idle, "idle", session="none")
    engine.settle()
    return upcoming(engine.store, engine.clock, name).row.id


def test_the_clock_starts_a_run_for_the_partition_of_its_time(engine):
    save(engine, HOURLY + CONSUMER.format(mapper=""), "hourly")
    engine.advance(hours=1)
    engine.settle()
    (run,) = runs_of(engine, "hourly")
    key, about, name = run.value("make")
    assert (key, about) == ("2026-02-03T06:00:00", "2026-02-03T05:00:00+00:00")
    assert name == "scheduled__2026-02-03T05:00:00+00:00__2026-02-03T06:00:00"
    (row,) = rows_of(engine, "hourly")
    assert (row.state, row.logical_at, row.partition_key) == ("success", None, key)
    (consumed,) = runs_of(engine, "consume")
    assert consumed.value("read") == [key, "2026-02-03 05:00:00+00:00", [key]]
    engine.advance(hours=2)
    engine.settle()
    assert [row.partition_key for row in rows_of(engine, "consume")] == [key, "2026-02-03T08:00:00"]


def test_a_rollup_waits_for_all_its_hours_and_has_all_their_events(engine):
    workflow_id = save(engine, HEAD + CONSUMER.format(mapper=DAILY), "consume")
    for hour in (*range(23), 5):
        emit(engine.store, engine.clock, "orders", {}, may_be_new=True, partition_key=f"2026-02-03T{hour:02}:00:00")
    engine.settle()
    assert rows_of(engine, "consume") == []
    assert upcoming(engine.store, engine.clock, "consume").reason == (
        "it waits for more events about partitions of `orders`: `2026-02-03` (24 have come)"
    )
    emit(engine.store, engine.clock, "orders", {}, partition_key="2026-02-03T23:00:00")
    engine.settle()
    (run,) = runs_of(engine, "consume")
    key, about, sources = run.value("read")
    assert (key, about, len(sources), len(set(sources))) == ("2026-02-03", "2026-02-03 00:00:00+00:00", 25, 24)
    with engine.store.read() as tx:
        assert len(triggering_events(tx, run.id)) == 25
        assert pending_partitions(tx, workflow_id) == []


def test_tasks_say_which_partitions_they_have_updated(engine):
    run = engine.start_dag(
        HEAD
        + """
with DAG("produce", schedule=PartitionedAtRuntime()):
    @task(outlets=[orders])
    def make(*, outlet_events):
        outlet_events[orders].extra = {"rows": 5}
        outlet_events[orders].add_partitions(["us", "eu"])
        outlet_events[orders].add_partitions("us")
    @task
    def wrong(*, outlet_events):
        for key in ("", " ", "x" * 251, "a" + chr(0)):
            try:
                outlet_events[orders].add_partitions(key)
            except ValueError as error:
                print(error)
            else:
                raise AssertionError(key)
        try:
            outlet_events[AssetAlias("alias")].add_partitions("us")
        except TypeError:
            return
        raise AssertionError("alias")
    make(), wrong()
"""
        + CONSUMER.format(mapper=""),
        "produce",
    )
    engine.settle()
    assert run.state == "success"
    with engine.store.read() as tx:
        events = list_asset_events(tx)
    assert [(row.partition_key, json.loads(row.extra)) for row in events[::-1]] == [
        ("eu", {"rows": 5}),
        ("us", {"rows": 5}),
    ]
    assert [row.partition_key for row in rows_of(engine, "consume")] == ["eu", "us"]


def test_a_run_by_hand_can_be_for_a_partition_that_fits(engine):
    save(engine, HOURLY + CONSUMER.format(mapper=DAILY), "hourly")
    row = trigger(engine.store, engine.clock, "hourly", partition_key="2026-01-01T00:00:00")
    assert (row.partition_key, row.logical_at) == ("2026-01-01T00:00:00", None)
    engine.settle()
    assert runs_of(engine, "hourly")[0].value("make")[1] == "2025-12-31T23:00:00+00:00"
    with engine.store.read() as tx:
        assert [one.id for one in choose_runs(tx, RunChoice(partition_key="2026-01-01T00:00:00"))] == [row.id]
    for name, key, message in (
        ("hourly", "today", "expected a partition key like `%Y-%m-%dT%H:%M:%S`, got: `today`"),
        ("consume", "2026-13-01", "`2026-13-01` cannot be the key of a partition: "),
        ("hourly", "0001-01-01T00:00:00", "expected a partition key like"),
        ("hourly", "a\0", "expected the key of a partition to be a word, got: "),
        ("hourly", "  ", "expected the key of a partition to be a word, got: '  '"),
        ("idle", "us", "workflow `idle` has no partitions"),
    ):
        with pytest.raises(UsageError) as caught:
            trigger(engine.store, engine.clock, name, partition_key=key)
        assert caught.value.message.startswith(message)


def test_a_backfill_is_for_partitions_and_leaves_those_alone_that_have_a_run(engine):
    source = HOURLY.replace('timezone="Europe/Berlin"', 'timezone="UTC", run_offset=-1, key_format="%m-%d %H"')
    save(engine, source, "hourly")
    engine.advance(hours=1)
    engine.settle()
    request = BackfillRequest(workflow="hourly", start="2026-02-03T02:00:00Z", end="2026-02-03T04:00:00Z")
    done = create_backfill(engine.store, engine.clock, request)
    engine.settle()
    assert [(one.slot.partition_key, one.outcome) for one in done.times] == [
        ("02-03 02", "created"),
        ("02-03 03", "created"),
        ("02-03 04", "exists"),
    ]
    assert [(row.type, row.partition_key) for row in rows_of(engine, "hourly")] == [
        ("scheduled", "02-03 04"),
        ("backfill", "02-03 02"),
        ("backfill", "02-03 03"),
    ]
    assert [one.partition_key for one in upcoming(engine.store, engine.clock, "hourly", 2).times] == [
        "02-03 05",
        "02-03 06",
    ]


def test_what_waits_is_forgotten_when_the_schedule_says_something_else_about_partitions(engine):
    pair = HEAD + CONSUMER.format(mapper="").replace("assets=orders", "assets=orders & Asset('costs')")
    workflow_id = save(engine, pair, "consume")
    emit(engine.store, engine.clock, "orders", {}, partition_key="us")
    engine.settle()

    def waiting():
        with engine.store.read() as tx:
            return [one.partition_key for one in pending_partitions(tx, workflow_id)]

    save(engine, pair.replace("def read", "def look_at").replace("read()", "look_at()"), "consume")
    assert waiting() == ["us"], "another task is no other schedule"
    save(engine, pair.replace("Asset('costs')", "Asset('prices')"), "consume")
    emit(engine.store, engine.clock, "prices", {}, partition_key="eu")
    engine.settle()
    assert waiting() == ["eu"]
    save(engine, HEAD + "with DAG('consume', schedule=orders):\n    task(lambda: 1, task_id='t')()\n", "consume")
    assert waiting() == []
    assert rows_of(engine, "consume") == []


def test_an_event_is_kept_as_long_as_a_partition_waits_for_more(engine):
    far_away = DAILY.replace("StartOfDayMapper()", "StartOfDayMapper(timezone='Asia/Tokyo')")
    save(engine, HEAD + CONSUMER.format(mapper=far_away), "consume")
    emit(engine.store, engine.clock, "orders", {}, partition_key="2026-02-03T00:00:00")
    for key in ("no time", "0001-01-01T00:00:00", "9999-12-31T23:59:59"):
        emit(engine.store, engine.clock, "orders", {}, partition_key=key)
    engine.settle()
    engine.advance(days=60)
    Pruner(engine.store, retention_days=1).tick(engine.clock.now())
    with engine.store.read() as tx:
        assert [row.partition_key for row in list_asset_events(tx)] == ["9999-12-31T23:59:59", "2026-02-03T00:00:00"]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (
            "PartitionedAssetTimetable(assets=orders, default_partition_mapper=Mine())",
            "the partition mapper `Mine` is none of Airflow's own: the scheduler runs no code of users",
        ),
        (
            "PartitionedAssetTimetable(assets=orders, default_partition_mapper=RollupMapper("
            "upstream_mapper=StartOfDayMapper(), window=MyDays()))",
            "the window `MyDays` is none of Airflow's own: the scheduler runs no code of users",
        ),
        ("MyHours('0 * * * *', timezone='UTC')", "only Airflow's own timetables can be for partitions, not `MyHours`"),
        (
            "PartitionedAssetTimetable(assets=orders, default_partition_mapper=StartOfDayMapper(timezone='Mars'))",
            "expected a time zone such as `Europe/London`, got: `Mars`",
        ),
        (
            "PartitionedAssetTimetable(assets=orders, default_partition_mapper=StartOfWeekMapper(output_format='%V'))",
            "the key format `%V` does not tell when a period begins: it lacks %Y and %d and %m",
        ),
        (
            "PartitionedAssetTimetable(assets=orders, default_partition_mapper="
            "StartOfQuarterMapper(output_format='%Y {quarter} {what}'))",
            "expected `%Y {quarter} {what}` to have no placeholder but `{quarter}`, got: `{what}`",
        ),
    ],
)
def test_a_schedule_that_the_scheduler_cannot_follow_is_refused_with_its_file(engine, schedule, message):
    source = f"""
class Mine(StartOfDayMapper):
    def to_downstream(self, key):
        return key.upper()
class MyDays(DayWindow):
    pass
class MyHours(CronPartitionTimetable):
    pass
with DAG("consume", schedule={schedule}):
    task(lambda: 1, task_id="t")()
"""
    with pytest.raises(DefinitionError) as caught:
        save(engine, HEAD + source, "consume")
    assert caught.value.message == f"the schedule of DAG `consume` cannot be used: {message}"
    assert (Path(caught.value.file or "").name, caught.value.line) == ("dags.py", 12)


def test_a_dig_workflow_says_which_partition_it_has_updated(engine):
    save(engine, HEAD + CONSUMER.format(mapper=""), "consume")
    engine.start_dig("+done:\n  asset>: orders\n  partition_key: ${region}\n", params={"region": "eu"})
    engine.settle()
    assert [row.partition_key for row in rows_of(engine, "consume")] == ["eu"]
