"""Moments as DAG files give them: datetimes, or text that a template was rendered to."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

from headrace.authoring.dag import Context


def instant_of(value: Any, zone: tzinfo = UTC) -> datetime:
    """An aware datetime; one without a time zone is taken to be in `zone`."""
    moment = _parsed(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        raise TypeError(f"expected a datetime or its ISO 8601 form, got: {value!r}")
    return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment


def date_of_run(context: Context) -> datetime:
    """The logical date of a task's run; of a run without one, the time from which it may run."""
    moment: datetime | None = context.get("logical_date") or context["dag_run"].run_after
    if moment is None:
        raise ValueError(f"run `{context['run_id']}` has no logical date")
    return moment


def zone_of_dag(operator: Any) -> tzinfo:
    """The time zone of the DAG that an operator belongs to."""
    zone: tzinfo = UTC if operator.dag is None else operator.dag.timezone
    return zone


def _parsed(text: str) -> Any:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        # Most files write ISO 8601; only the others pay for the library that reads more.
        import pendulum

        return pendulum.parse(text.strip(), strict=False)
