"""What a DAG says about being late, as deadlines for the engine: `sla` of tasks and deadline alerts of runs."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

from headrace.authoring.dag.dags import aware
from headrace.authoring.dag.deadlines import (
    AverageRuntimeDeadline,
    DagRunLogicalDateDeadline,
    DagRunQueuedAtDeadline,
    DeadlineAlert,
    FixedDatetimeDeadline,
    VariableInterval,
    alerts_of,
)
from headrace.authoring.dag.variables import Variable
from headrace.definition import RUN_LATE, TASKS_LATE, Deadline, Place
from headrace.errors import DefinitionError

_SCHEDULED = ("scheduled",)


def deadlines_of(dag: Any, place: Place) -> tuple[Deadline, ...]:
    """The deadlines of a DAG's runs and tasks."""
    alerts = [_of_alert(dag, name, alert, place) for name, alert in alerts_of(dag).items()]
    return (*_of_tasks(dag, place), *alerts)


def _of_tasks(dag: Any, place: Place) -> list[Deadline]:
    slas = {key: task.settings for key, task in dag.task_dict.items() if task.settings.sla is not None}
    is_told = bool(dag.sla_miss_callback) or any(settings.email for settings in slas.values())
    deadlines = []
    for key, settings in slas.items():
        if not isinstance(settings.sla, timedelta):
            raise _mistake(f"expected `sla` of task `{key}` to be a timedelta, got: {settings.sla!r}", place)
        deadlines.append(
            Deadline(
                name=f"sla of {key}",
                task=key,
                counts_from="interval_end",
                seconds=settings.sla.total_seconds(),
                run_types=_SCHEDULED,
                errand=TASKS_LATE if is_told else "",
            )
        )
    return deadlines


def _of_alert(dag: Any, name: str, alert: DeadlineAlert, place: Place) -> Deadline:
    reference, seconds = alert.reference, _seconds(dag, alert, place)
    if isinstance(reference, DagRunLogicalDateDeadline):
        return Deadline(name=name, counts_from="logical_time", seconds=seconds, errand=RUN_LATE)
    if isinstance(reference, DagRunQueuedAtDeadline):
        return Deadline(name=name, counts_from="queued", seconds=seconds, errand=RUN_LATE)
    if isinstance(reference, FixedDatetimeDeadline):
        instant = aware(reference.instant, dag.timezone)
        assert instant is not None, "it is not None without a zone either"
        at = instant.astimezone(UTC).isoformat()
        return Deadline(name=name, counts_from="instant", instant=at, seconds=seconds, errand=RUN_LATE)
    if isinstance(reference, AverageRuntimeDeadline):
        return Deadline(
            name=name,
            counts_from="average_end",
            seconds=seconds,
            newest_runs=reference.max_runs,
            fewest_runs=reference.min_runs or reference.max_runs,
            errand=RUN_LATE,
        )
    raise _mistake(
        f"the reference `{type(reference).__name__}` of deadline `{name}` of DAG `{dag.dag_id}` is not one that"
        " Headrace can evaluate",
        place,
        "use one of DeadlineReference: DAGRUN_LOGICAL_DATE, DAGRUN_QUEUED_AT, FIXED_DATETIME or AVERAGE_RUNTIME",
    )


def _seconds(dag: Any, alert: DeadlineAlert, place: Place) -> float:
    if isinstance(alert.interval, timedelta):
        return alert.interval.total_seconds()
    assert isinstance(alert.interval, VariableInterval), "checked when the alert was made"
    try:
        return float(int(Variable.get(alert.interval.key)))
    except Exception as error:
        raise _mistake(
            f"expected the variable `{alert.interval.key}` to be the whole number of seconds of a deadline of DAG"
            f" `{dag.dag_id}`, but: {error}",
            place,
        ) from None


def _mistake(message: str, place: Place, hint: str | None = None) -> DefinitionError:
    return DefinitionError(message, hint=hint, file=place.file or None, line=place.line)
