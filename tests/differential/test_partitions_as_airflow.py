"""Events about partitions start here the runs that they start in Airflow, and mappers make the same keys."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from partition_schedules import DAGS, STEPS

from headrace.authoring.dag import partition_mappers, partition_windows
from headrace.clock import from_micros, to_micros
from headrace.handoff import AssetEvent
from headrace.store import NewRun, RunRow, create_run, emit_events, latest_attempt, list_runs
from headrace.store.assets import Cause
from headrace.testing.engine import Engine
from headrace.timetable import mapper_for

RECORDED: dict[str, list[Any]] = json.loads((Path(__file__).parent / "recorded_partitions.json").read_text())
NAMES = {**vars(partition_mappers), **vars(partition_windows)}
SOURCE = f"{DAGS}\nwith DAG('producer', schedule=PartitionedAtRuntime()):\n    EmptyOperator(task_id='t')\n"


def mapper(text: str):
    return mapper_for(eval(text, NAMES).as_data())


def iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()


def test_keys_are_those_of_airflow():
    different = []
    for text, key, keys, date in RECORDED["keys"]:
        try:
            made = sorted(mapper(text).keys(key))
        except ValueError:
            made = None
        about = None if made is None else mapper(text).instant(made[0])
        if made != keys or iso(about) != date:
            different.append((text, key, made, iso(about)))
    assert different == []


def test_a_rollup_is_complete_with_the_keys_that_airflow_wants():
    assert len(RECORDED["members"]) > 50
    for text, key, needed in RECORDED["members"]:
        one = mapper(text)
        assert one.is_complete(key, set(needed)), (text, key)
        assert not one.is_complete(key, set(needed[1:])), (text, key)
        assert not one.is_complete(key, {*needed[1:], "another"}), (text, key)


@pytest.fixture
def engine(tmp_path, prepared_url):
    engine = Engine(tmp_path, prepared_url)
    yield engine
    engine.close()


def test_events_start_the_runs_of_airflow(engine):
    producer = engine.start_dag(SOURCE, "producer")
    engine.settle()
    known = {row.id for row in runs(engine)}
    for number, ((asset, key, date), expected) in enumerate(zip(STEPS, RECORDED["runs"], strict=True)):
        update(engine, producer.id, asset, key, date, number)
        engine.settle()
        new = [row for row in runs(engine) if row.id not in known and row.workflow not in ("producer", "plain")]
        known |= {row.id for row in runs(engine)}
        found = sorted([row.workflow, row.partition_key, at(row)] for row in new)
        assert found == expected, f"step {number}: {asset} {key} {date}"
        assert all(row.logical_at is None for row in new)
    assert [row.workflow for row in runs(engine)].count("plain") == 1, "only the event about all of the asset"


def update(engine: Engine, run_id: int, asset: str, key: str | None, date: str | None, number: int) -> None:
    """As a task of a run for this partition would."""
    about = None if date is None else to_micros(datetime.fromisoformat(date))

    def work(tx):
        workflow_id = next(row.workflow_id for row in list_runs(tx, limit=1000) if row.id == run_id)
        new = NewRun(workflow_id, f"step{number}", partition_key=key, partition_at=about)
        attempt_id = latest_attempt(tx, create_run(tx, new, to_micros(engine.clock.now())))
        emit_events(tx, [(AssetEvent(asset=asset), Cause(attempt_id, "t", -1))], to_micros(engine.clock.now()))

    engine.store.transact(work)


def runs(engine: Engine) -> list[RunRow]:
    with engine.store.read() as tx:
        return list_runs(tx, limit=1000)


def at(row: RunRow) -> str | None:
    return None if row.partition_at is None else iso(from_micros(row.partition_at))
