"""A definition's schedule, read into a timetable.

    cron      {"expression": "0 3 * * *", "semantics": "airflow" | "digdag", "intervals": bool, "delay_seconds": n}
    interval  {"seconds": 3600, "semantics": …, "intervals": …, "delay_seconds": …}
    once      {}

`intervals`: a run is for the period that begins at its logical time and becomes due when the period is over; otherwise
it is due at its logical time. `delay_seconds` of elapsed time are added to that.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from headrace.definition import Schedule
from headrace.errors import DefinitionError, did_you_mean
from headrace.timetable.cron import Dialect, parse_cron
from headrace.timetable.once import OnceTimetable
from headrace.timetable.recurring import Family, RecurringTimetable
from headrace.timetable.slots import Timetable
from headrace.timetable.ticks import CronTicks, IntervalTicks, Ticks, UnionTicks
from headrace.timetable.walltime import zone_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEMANTICS: tuple[Dialect, ...] = ("airflow", "digdag")


def timetable_for(schedule: Schedule, timezone: str) -> Timetable:
    """The timetable of a schedule. Raises a DefinitionError if it makes no sense."""
    zone = zone_of(timezone)
    start, end = _instant(schedule.start_at, "start", zone), _instant(schedule.end_at, "end", zone)
    if schedule.type == "once":
        return OnceTimetable(start, end)
    make_ticks = _TICKS.get(schedule.type)
    if make_ticks is None:
        raise DefinitionError(
            f"expected the schedule's type to be one of {', '.join((*_TICKS, 'once'))}, got: `{schedule.type}`",
            hint=did_you_mean(schedule.type, (*_TICKS, "once")),
        )
    late = schedule.skip_delayed_seconds
    return RecurringTimetable(
        ticks=make_ticks(schedule.spec, zone, start),
        family=_family(schedule.spec),
        start=start,
        end=end,
        catch_up=schedule.catch_up,
        skip_later_than=None if late is None else timedelta(seconds=late),
    )


def _family(spec: dict[str, Any]) -> Family:
    is_digdag = _semantics(spec) == "digdag"
    return Family(
        has_intervals=bool(spec.get("intervals", False)),
        delay=timedelta(seconds=float(spec.get("delay_seconds", 0))),
        starts_with_next=is_digdag,
        ends_by_run_time=is_digdag,
    )


def _cron_ticks(spec: dict[str, Any], zone: tzinfo, start: datetime | None) -> Ticks:
    expression = spec.get("expression")
    if not isinstance(expression, str):
        raise DefinitionError(f"expected the schedule to have a cron expression, got: `{expression}`")
    dialect = _semantics(spec)
    parts = tuple(
        # Something that runs every hour runs in both of two equal hours; anything else runs once for its wall time.
        CronTicks(pattern, zone, "both" if dialect == "airflow" and pattern.is_every_hour else "second")
        for pattern in parse_cron(expression, dialect)
    )
    return parts[0] if len(parts) == 1 else UnionTicks(parts)


def _interval_ticks(spec: dict[str, Any], zone: tzinfo, start: datetime | None) -> Ticks:
    seconds = spec.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise DefinitionError(f"expected the schedule's interval to be a positive number of seconds, got: `{seconds}`")
    anchor = start if start is not None and _semantics(spec) == "airflow" else _EPOCH
    return IntervalTicks(anchor, timedelta(seconds=seconds))


def _semantics(spec: dict[str, Any]) -> Dialect:
    given = spec.get("semantics", "airflow")
    for known in _SEMANTICS:
        if given == known:
            return known
    raise DefinitionError(f"expected a schedule's semantics to be {' or '.join(_SEMANTICS)}, got: `{given}`")


def _instant(text: str | None, name: str, zone: tzinfo) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise DefinitionError(f"expected the schedule's {name} to be an ISO 8601 instant, got: `{text}`") from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)


_TICKS: dict[str, Callable[[dict[str, Any], tzinfo, datetime | None], Ticks]] = {
    "cron": _cron_ticks,
    "interval": _interval_ticks,
}
