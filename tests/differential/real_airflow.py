"""Runs DAGs on a real Airflow, in this process. Import it only there.

Airflow's own scheduler code decides (`DagRun.update_state`, `DagRun.schedule_tis`) and its own runner runs the tasks.
A run goes in steps: the scheduler decides until it finds nothing more to decide, then all tasks that may run do so at
the same time. That is a timing which Airflow may have in production too; without one fixed timing, a task that waits
for a failure and a skip ends by chance as the one or the other.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

BUNDLE = "dags-folder"

Outcome = dict[str, Any]
"""`run`, its state, and `tasks`, the states of its task instances by name."""


def prepare(home: Path, dags_folder: Path) -> None:
    """An Airflow with a database of its own; must happen before Airflow is imported."""
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags_folder),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(dags_folder / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "CRITICAL",
    }
    from airflow.utils.db import initdb

    initdb()
    logging.disable(logging.CRITICAL)
    _answer_in_line()


def can_be_saved(dag: Any) -> bool:
    """Whether Airflow's scheduler could ever run it."""
    from airflow.serialization.serialized_objects import DagSerialization

    try:
        DagSerialization.serialize_dag(dag)
    except Exception:
        return False
    return True


def save(dags: Iterable[Any], folder: Path) -> None:
    """Let the database know these DAGs, as the DAG processor would."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.utils.session import create_session

    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
    bag = DagBag(dag_folder=str(folder), bundle_path=folder, bundle_name=BUNDLE, collect_dags=False)
    for dag in dags:
        bag.bag_dag(dag)
    sync_bag_to_db(bag, BUNDLE, None)


def run(dag: Any, *, patience_seconds: float = 0.0, logical_date: datetime | None = None) -> Outcome:
    """How a run ends: its state and those of its task instances. `patience_seconds` is for tasks that wait."""
    from airflow import settings
    from airflow.sdk.definitions.dag import _run_task

    session = settings.Session()
    dag_run = _start(dag, session, logical_date)
    deadline = time.monotonic() + patience_seconds
    while True:
        scheduled = _decide(dag_run, session)
        if dag_run.state != "running" or (not scheduled and time.monotonic() >= deadline):
            break
        for instance in scheduled:
            if _run_task(ti=instance, task=dag.task_dict[instance.task_id], run_triggerer=True) is None:
                raise RuntimeError(f"{dag.dag_id}: could not run {_name(instance)}; see what Airflow logs")
        session.commit()
        if not scheduled:
            time.sleep(0.5)  # something waits for a time to come
    tasks = {_name(one): _state(one.state) for one in dag_run.get_task_instances(session=session)}
    outcome = {"run": _state(dag_run.state), "tasks": dict(sorted(tasks.items()))}
    session.close()
    return outcome


def _start(dag: Any, session: Any, logical_date: datetime | None) -> Any:
    from airflow.sdk import timezone
    from airflow.serialization.serialized_objects import DagSerialization
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    now = logical_date or timezone.utcnow()
    return DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).create_dagrun(
        run_id="recorded",
        logical_date=now,
        data_interval=(now, now),
        run_after=now,
        run_type=DagRunType.MANUAL,
        state="running",
        triggered_by=DagRunTriggeredByType.TEST,
        start_date=now,
        session=session,
    )


def _decide(dag_run: Any, session: Any) -> list[Any]:
    """Let the scheduler decide until nothing changes any more; gives what may run now."""
    before = None
    while True:
        session.expire_all()
        schedulable, _ = dag_run.update_state(session=session, execute_callbacks=False)
        dag_run.schedule_tis(schedulable, session=session)
        session.commit()
        session.expire_all()
        instances = dag_run.get_task_instances(session=session)
        states = {_name(one): _state(one.state) for one in instances}
        if states == before:
            return sorted((one for one in instances if one.state == "scheduled"), key=_name)
        before = states


def _name(instance: Any) -> str:
    return instance.task_id if instance.map_index < 0 else f"{instance.task_id}[{instance.map_index}]"


def _state(state: Any) -> str:
    return str(getattr(state, "value", state) or "none")


# ---- answering tasks in line ---------------------------------------------------------------------------------------


def _answer_in_line() -> None:
    """Let Airflow's API answer its own tasks in the calling thread.

    By itself it passes each request through three threads, which on a busy machine costs a second a task.
    """
    import anyio.to_thread
    import httpx
    from airflow.sdk.execution_time.supervisor import in_process_api_server

    class InLine(httpx.BaseTransport):
        def __init__(self, app: Any) -> None:
            self._loop = asyncio.new_event_loop()
            self._inner = httpx.ASGITransport(app=app)
            self._lifetime = AsyncExitStack()  # what it holds ends with it
            self._loop.run_until_complete(self._lifetime.enter_async_context(app.router.lifespan_context(app)))

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return self._loop.run_until_complete(self._answer(request))

        async def _answer(self, request: httpx.Request) -> httpx.Response:
            answer = await self._inner.handle_async_request(request)
            return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

    anyio.to_thread.run_sync = _call
    server = in_process_api_server()
    server.transport = InLine(server.app)


async def _call(function: Callable[..., Any], *args: Any, **_: Any) -> Any:
    return function(*args)
