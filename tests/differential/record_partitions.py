"""Asks a real Airflow which runs events about partitions start, and what keys its mappers make.

The tests only read `recorded_partitions.json`. To record anew, for another version of Airflow or other schedules:

    python -m venv scratch && scratch/bin/pip install apache-airflow apache-airflow-providers-standard
    scratch/bin/python tests/differential/record_partitions.py
"""

from __future__ import annotations

import json
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import partition_keys
import real_airflow
from partition_schedules import DAGS, STEPS

HERE = Path(__file__).parent


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="airflow-") as home:
        folder = Path(home) / "dags"
        folder.mkdir()
        (folder / "dags.py").write_text(DAGS)
        real_airflow.prepare(Path(home), folder)
        recorded = {"runs": _runs(folder), "keys": _keys(), "members": _members()}
    lines = [f"{json.dumps(name)}:[\n" + ",\n".join(map(json.dumps, rows)) + "\n]" for name, rows in recorded.items()]
    (HERE / "recorded_partitions.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _runs(folder: Path) -> list[list[list[Any]]]:
    """For each step the runs that it has started: [workflow, partition key, partition date]."""
    from airflow import settings
    from airflow.assets.manager import AssetManager
    from airflow.dag_processing.dagbag import BundleDagBag
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
    from airflow.models.asset import AssetModel
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun
    from sqlalchemy import select, update

    bag = BundleDagBag(dag_folder=str(folder), bundle_path=folder, bundle_name=real_airflow.BUNDLE)
    if bag.import_errors:
        raise RuntimeError(bag.import_errors)
    real_airflow.save(bag.dags.values(), folder)
    session = settings.Session()
    session.execute(update(DagModel).values(is_paused=False))
    session.commit()
    scheduler = SchedulerJobRunner(job=Job())
    known: set[int] = set()
    found = []
    for name, key, date in STEPS:
        asset = session.scalar(select(AssetModel).where(AssetModel.name == name))
        at = None if date is None else datetime.fromisoformat(date)
        AssetManager.register_asset_change(asset=asset, session=session, partition_key=key, partition_date=at)
        session.commit()
        scheduler._create_dagruns_for_partitioned_asset_dags(session)
        session.commit()
        runs = [run for run in session.scalars(select(DagRun)) if run.id not in known]
        known |= {run.id for run in runs}
        found.append(sorted([run.dag_id, run.partition_key, _iso(run.partition_date)] for run in runs))
    return found


def _keys() -> list[list[Any]]:
    """[mapper, key, the keys that it makes of it or None, the date of the first of them]."""
    from airflow import partition_mappers

    rows = []
    for text in partition_keys.MAPPERS:
        mapper = eval(text, vars(partition_mappers))
        for key in partition_keys.KEYS:
            made = _asked(mapper.to_downstream, key)
            keys = [made] if isinstance(made, str) else made and sorted(made)
            rows.append([text, key, keys, keys and _iso(_asked(mapper.to_partition_date, keys[0]))])
    return rows


def _members() -> list[list[Any]]:
    """[rollup, the key that it makes, the keys that it needs for it]."""
    from airflow import partition_mappers

    rows = []
    for text in partition_keys.ROLLUPS:
        mapper = eval(text, vars(partition_mappers))
        for key in partition_keys.ROLLED_UP:
            made = mapper.to_downstream(key)
            rows.append([text, made, sorted(mapper.to_upstream(made))])
    return rows


def _asked(method: Any, key: str) -> Any:
    try:
        return method(key)
    except Exception:  # whatever it says of a key that does not fit
        return None


def _iso(moment: datetime | None) -> str | None:
    from datetime import UTC

    return None if moment is None else moment.astimezone(UTC).isoformat()


if __name__ == "__main__":
    main()
