"""Errands of Python DAGs about what was not done in time: `sla_miss_callback`, its e-mail, and deadline alerts."""

from __future__ import annotations

import importlib
import inspect
import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape
from typing import Any

from headrace.authoring.dag.context import Context, current_engine
from headrace.authoring.dag.dates import to_pendulum
from headrace.authoring.dag.deadlines import AsyncCallback, Callback, alerts_of
from headrace.authoring.dag.node import callbacks
from headrace.authoring.dag.notifier import BaseNotifier
from headrace.authoring.dag.sla_miss import SlaMiss
from headrace.authoring.dag.task_instance import DagRun, TaskInstance
from headrace.authoring.signatures import signature_of
from headrace.runner.alerts import SEND_EMAIL
from headrace.runner.callbacks import call_all
from headrace.runner.programs import named

log = logging.getLogger("airflow.task")

_ADDRESSES = "headrace.operators.email:addresses"
_BASE_URLS = ("AIRFLOW__WEBSERVER__BASE_URL", "AIRFLOW__API__BASE_URL")


def after_late_tasks(dag: Any, context: Context, payload: dict[str, Any]) -> list[Exception]:
    """Tell of tasks that were not done within their `sla`: callbacks first, then one e-mail."""
    slas = [_sla_miss(dag, miss) for miss in payload["misses"]]
    blocking = [_blocking(dag, one) for one in payload["blocking"] if one["task"] in dag.task_dict]
    told = (dag, _lines(slas), _lines(blocking), slas, blocking)
    callers = callbacks(dag.sla_miss_callback)
    errors = [error for call in callers for error in _call(call, told)]
    is_mailed = _mail(dag, slas, blocking)
    if is_mailed or len(errors) < len(callers):
        _note_sent([miss["id"] for miss in payload["misses"]], is_mailed=is_mailed)
    return errors


def after_late_run(dag: Any, context: Context, payload: dict[str, Any]) -> list[Exception]:
    """Call the callback of a deadline alert."""
    (miss,) = payload["misses"]
    alert = alerts_of(dag).get(miss["name"])
    if alert is None:
        return [LookupError(f"DAG `{dag.dag_id}` has no deadline `{miss['name']}` as it is now")]
    deadline = {"id": str(miss["id"]), "deadline_time": _instant(miss["due_at"])}
    told = {"dag_run": _told(context["dag_run"]), "deadline": deadline}
    try:
        _call_alert(alert.callback, Context({**told, "dag": dag}, {}), told)
    except Exception as error:
        log.exception("the callback of deadline `%s` failed", miss["name"])
        return [error]
    _note_sent([miss["id"]], is_mailed=False)
    return []


# ---- tasks -----------------------------------------------------------------------------------------------------------


def _sla_miss(dag: Any, miss: dict[str, Any]) -> SlaMiss:
    return SlaMiss(
        task_id=miss["task"],
        dag_id=dag.dag_id,
        execution_date=_instant(miss["logical_time"]),
        timestamp=_instant(miss["missed_at"]),
    )


def _blocking(dag: Any, one: dict[str, Any]) -> TaskInstance:
    logical_time = None if one["logical_time"] is None else datetime.fromisoformat(one["logical_time"])
    run = DagRun(dag_id=dag.dag_id, run_id=one["run_key"], run_type="scheduled", logical_time=logical_time)
    engine = current_engine()
    assert engine is not None, "an errand is running"
    instance = TaskInstance(
        task=dag.task_dict[one["task"]],
        dag=dag,
        dag_run=run,
        engine=engine,
        map_index=one["map_index"],
        try_number=one["try_number"],
    )
    instance.state = one["state"]
    return instance


def _lines(instances: Sequence[Any]) -> str:
    return "\n".join(f"{one.task_id} on {_shown(one.execution_date)}" for one in instances)


def _shown(date: Any) -> str:
    return "no date" if date is None else str(date.isoformat())


def _call(callback: Callable[..., Any], told: tuple[Any, ...]) -> list[Exception]:
    """Call with the five arguments; a notifier finds them in its context."""
    if isinstance(callback, BaseNotifier):
        names = ("dag", "task_list", "blocking_task_list", "slas", "blocking_tis")
        return call_all([callback], Context(dict(zip(names, told, strict=True)), {}), "sla_miss_callback")
    try:
        callback(*told)
    except Exception as error:
        log.exception("sla_miss_callback of DAG `%s` failed", told[0].dag_id)
        return [error]
    return []


def _mail(dag: Any, slas: Sequence[SlaMiss], blocking: Sequence[TaskInstance]) -> bool:
    """Write to everybody whom the late tasks name. What goes wrong is logged."""
    given = [dag.task_dict[sla.task_id].settings.email for sla in slas if sla.task_id in dag.task_dict]
    if not any(given):
        return False
    recipients = sorted({address for value in given for address in named(_ADDRESSES)(value)})
    try:
        named(SEND_EMAIL)(recipients, f"[airflow] SLA miss on DAG={dag.dag_id}", _body(slas, blocking))
    except Exception:
        log.exception("could not send an e-mail about tasks of DAG `%s` that are late", dag.dag_id)
        return False
    return True


def _body(slas: Sequence[SlaMiss], blocking: Sequence[TaskInstance]) -> str:
    url = next((os.environ[name] for name in _BASE_URLS if os.environ.get(name)), "")
    parts = [
        f"Tasks that were not done within their SLA:<pre><code>{escape(_lines(slas))}</code></pre>",
        f"Blocking tasks:<pre><code>{escape(_lines(blocking))}</code></pre>",
        f"{escape(url)}<br>" if url else "",
    ]
    return "\n".join(filter(None, parts))


# ---- runs ------------------------------------------------------------------------------------------------------------


def _call_alert(callback: Callback, context: Context, told: dict[str, Any]) -> None:
    target = _imported(callback.callback) if isinstance(callback.callback, str) else callback.callback
    if isinstance(target, type) and issubclass(target, BaseNotifier):
        errors = call_all([target(**callback.kwargs)], context, target.__name__)
        if errors:
            raise errors[0]
        return
    arguments = {**callback.kwargs, "context": told} if _accepts_context(target) else callback.kwargs
    returned = target(**arguments)
    if isinstance(callback, AsyncCallback) or inspect.isawaitable(returned):
        import asyncio  # large, and most errands do without

        asyncio.run(_awaited(returned))


async def _awaited(returned: Any) -> None:
    await returned


def _accepts_context(target: Callable[..., Any]) -> bool:
    parameters = signature_of(target).parameters.values()
    return any(one.name == "context" or one.kind is one.VAR_KEYWORD for one in parameters)


def _imported(path: str) -> Any:
    module, _, name = path.strip().rpartition(".")
    return getattr(importlib.import_module(module), name)


def _told(run: DagRun) -> dict[str, Any]:
    """The run as the JSON of Airflow's API has it."""
    dates = ("logical_date", "data_interval_start", "data_interval_end", "run_after", "start_date")
    moments = {name: getattr(run, name) for name in dates}
    return {
        "dag_id": run.dag_id,
        "dag_run_id": run.run_id,
        "run_type": run.run_type,
        "state": run.state,
        "conf": run.conf,
        **{name: None if moment is None else moment.isoformat() for name, moment in moments.items()},
    }


def _instant(text: str | None) -> Any:
    return None if text is None else to_pendulum(datetime.fromisoformat(text))


def _note_sent(ids: list[int], *, is_mailed: bool) -> None:
    engine = current_engine()
    assert engine is not None, "an errand is running"
    engine.ask("note_sent", misses=ids, is_mailed=is_mailed)
