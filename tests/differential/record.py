"""Asks a real Airflow how random DAGs end and keeps the answers in `recorded.json`.

The tests only read that file. To record anew, for another version of Airflow or other descriptions:

    python -m venv scratch && scratch/bin/pip install apache-airflow apache-airflow-providers-standard
    scratch/bin/python tests/differential/record.py --count 480

Airflow's own scheduler code decides (`DagRun.update_state`, `DagRun.schedule_tis`) and its own runner runs the tasks.
A step of a run is the same here and there: the scheduler decides until it finds nothing more to decide, then all tasks
that may run do so at the same time. That is a timing which Airflow may have in production too; without one fixed timing,
a task that waits for a failure and a skip ends by chance as the one or the other.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_STEPS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=480, help="how many descriptions")
    parser.add_argument("--first", type=int, default=0, help="the first seed, to record in several processes")
    parser.add_argument("--out", type=Path, default=HERE / "recorded.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="airflow-") as home:
        _prepare(Path(home))
        from generating import describe_many

        records = list(_record(list(describe_many(arguments.first, arguments.count)), Path(home)))
    lines = ",\n".join(json.dumps(record, separators=(",", ":")) for record in records)
    arguments.out.write_text(f"[\n{lines}\n]\n")
    print(f"{len(records)} DAGs in {arguments.out}")


def _prepare(home: Path) -> None:
    """An Airflow with a database of its own. Must happen before Airflow is imported."""
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "CRITICAL",
    }
    (home / "dags").mkdir()
    sys.path.insert(0, str(HERE))
    from airflow.utils.db import initdb

    initdb()
    logging.disable(logging.CRITICAL)


def _record(descriptions: list[dict[str, Any]], home: Path) -> Iterator[dict[str, Any]]:
    dags = _buildable(descriptions)
    _save([dag for _, dag in dags], home)
    for number, (description, dag) in enumerate(dags):
        outcome = _run(dag)
        print(f"{number + 1}/{len(dags)} {description['id']}: {outcome['run']}", file=sys.stderr, flush=True)
        yield {**description, **outcome}


def _buildable(descriptions: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Any]]:
    """Descriptions that Airflow accepts, with their DAGs."""
    from building import build

    dags = []
    for description in descriptions:
        try:
            dag = build(description)
            dag.validate()
            dag.check_cycle()
        except Exception as error:
            print(f"left out {description['id']}: {error}", file=sys.stderr)
        else:
            dags.append((description, dag))
    return dags


def _save(dags: list[Any], home: Path) -> None:
    """Let the database know the DAGs, as the DAG processor would."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.utils.session import create_session

    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
    bag = DagBag(dag_folder=str(home / "dags"), bundle_path=home / "dags", bundle_name="dags-folder")
    for dag in dags:
        dag.fileloc = str(home / "dags" / "generated.py")
        dag.relative_fileloc = "generated.py"
        bag.bag_dag(dag)
    sync_bag_to_db(bag, "dags-folder", None)


def _run(dag: Any) -> dict[str, Any]:
    from airflow import settings
    from airflow.sdk import timezone
    from airflow.sdk.definitions.dag import _run_task
    from airflow.serialization.serialized_objects import DagSerialization
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    session = settings.Session()
    now = timezone.utcnow()
    run = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).create_dagrun(
        run_id="recorded",
        logical_date=now,
        data_interval=(now, now),
        run_after=now,
        run_type=DagRunType.MANUAL,
        state=DagRunState.RUNNING,
        triggered_by=DagRunTriggeredByType.TEST,
        start_date=now,
        session=session,
    )
    for _ in range(_STEPS):
        scheduled = _decide(run, session)
        if run.state != DagRunState.RUNNING:
            break
        for instance in scheduled:
            try:
                _run_task(ti=instance, task=dag.task_dict[instance.task_id])
            except Exception as error:
                raise SystemExit(f"{dag.dag_id}: could not run {instance.task_id}: {error}") from error
        session.commit()
    tasks = {_name(one): _state(one.state) for one in run.get_task_instances(session=session)}
    outcome = {"run": _state(run.state), "tasks": dict(sorted(tasks.items()))}
    session.close()
    return outcome


def _decide(run: Any, session: Any) -> list[Any]:
    """Let the scheduler decide until nothing changes any more; what may run now."""
    before = None
    while True:
        session.expire_all()
        schedulable, _ = run.update_state(session=session, execute_callbacks=False)
        run.schedule_tis(schedulable, session=session)
        session.commit()
        session.expire_all()
        instances = run.get_task_instances(session=session)
        states = {_name(one): _state(one.state) for one in instances}
        if states == before:
            return sorted((one for one in instances if one.state == "scheduled"), key=_name)
        before = states


def _name(instance: Any) -> str:
    return instance.task_id if instance.map_index < 0 else f"{instance.task_id}[{instance.map_index}]"


def _state(state: Any) -> str:
    return str(getattr(state, "value", state) or "none")


if __name__ == "__main__":
    main()
