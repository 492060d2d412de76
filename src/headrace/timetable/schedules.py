"""A definition's schedule, read into a timetable.

    cron        {"expression": "0 3 * * *", "timezone": …, "semantics": "airflow" | "digdag", "intervals": bool, …}
    interval    {"seconds": 3600, "months": 1, "intervals": …}
    events      {"instants": ["2026-02-03T04:05:06Z", …], "manual_on_tick": bool}
    once, continuous, custom   {}
    assets      {"when": {"asset": NAME} | {"alias": NAME} | {"all": […]} | {"any": […]}, "time": {"type", "spec"}}

What `partition` of a cron schedule and `partitions` of one on assets are is said in `partitions.py`.

`intervals`: a run is for the period that begins at its logical time and becomes due when the period is over; otherwise
it is due at its logical time. `delay_seconds` of elapsed time are added to that. `lookback_seconds`: a run is for a
period of this length that ends when it is due. `first_within_seconds`: how old the last time may be that a schedule
without a start begins with; `starts_at_once`: as old as it likes. A time zone in the spec stands for the workflow's.

The times of a `custom` schedule are known only to user code, which is asked for them elsewhere, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import msgspec

from headrace.definition import Schedule
from headrace.errors import DefinitionError, did_you_mean
from headrace.timetable.asset_conditions import check_condition
from headrace.timetable.cron import Dialect, parse_cron
from headrace.timetable.endless import ContinuousTimetable, NeverTimetable
from headrace.timetable.once import OnceTimetable
from headrace.timetable.partitions import TickPartitions, partition_rules
from headrace.timetable.recurring import Family, RecurringTimetable
from headrace.timetable.slots import Timetable
from headrace.timetable.ticks import CalendarTicks, CronTicks, IntervalTicks, ListedTicks, Ticks, UnionTicks
from headrace.timetable.walltime import zone_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEMANTICS: tuple[Dialect, ...] = ("airflow", "digdag")


def timetable_for(schedule: Schedule, timezone: str) -> Timetable:
    """The timetable of a schedule. Raises a DefinitionError if it makes no sense."""
    zone = zone_of(str(schedule.spec.get("timezone") or timezone))
    start, end = _instant(schedule.start_at, "start", zone), _instant(schedule.end_at, "end", zone)
    if schedule.type == "once":
        return OnceTimetable(start, end)
    if schedule.type == "continuous":
        return ContinuousTimetable(start, end)
    if schedule.type == "custom":
        return NeverTimetable()
    if schedule.type == "assets":
        check_condition(schedule.spec.get("when"))
        partition_rules(schedule.spec)
        time = schedule.spec.get("time")
        return timetable_for(msgspec.structs.replace(schedule, **time), timezone) if time else NeverTimetable()
    make_ticks = _TICKS.get(schedule.type)
    if make_ticks is None:
        known = (*_TICKS, *_WITHOUT_TICKS)
        raise DefinitionError(
            f"expected the schedule's type to be one of {', '.join(known)}, got: `{schedule.type}`",
            hint=did_you_mean(schedule.type, known),
        )
    late = schedule.skip_delayed_seconds
    ticks = make_ticks(schedule.spec, zone, start)
    return RecurringTimetable(
        ticks=ticks,
        family=_family(schedule),
        start=start,
        end=end,
        catch_up=schedule.catch_up,
        skip_later_than=None if late is None else timedelta(seconds=late),
        partitions=_partitions(schedule.spec, ticks, zone),
    )


def _partitions(spec: dict[str, Any], ticks: Ticks, zone: tzinfo) -> TickPartitions | None:
    partition = spec.get("partition")
    return None if partition is None else TickPartitions(ticks, zone, partition["format"], partition.get("offset", 0))


def _family(schedule: Schedule) -> Family:
    spec = schedule.spec
    is_digdag = _semantics(spec) == "digdag"
    within = spec.get("first_within_seconds")
    # Without a start there is no row of ticks to wait for, or somebody wants it so.
    is_eager = schedule.type == "interval" or bool(spec.get("starts_at_once", False))
    return Family(
        has_intervals=bool(spec.get("intervals", False)),
        delay=timedelta(seconds=float(spec.get("delay_seconds", 0))),
        starts_with_next=is_digdag or (schedule.type == "events" and schedule.catch_up == "latest"),
        ends_by_run_time=is_digdag,
        lookback=timedelta(seconds=float(spec.get("lookback_seconds", 0))),
        first_within=timedelta.max if is_eager else None if within is None else timedelta(seconds=float(within)),
        manual_on_tick=bool(spec.get("manual_on_tick", False)),
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
    seconds, months = spec.get("seconds", 0), spec.get("months", 0)
    if not _is_number(seconds) or not isinstance(months, int) or months * 28 * 86_400 + seconds <= 0:
        raise DefinitionError(f"expected the schedule's interval to be a positive number of seconds, got: `{seconds}`")
    anchor = start if start is not None and _semantics(spec) == "airflow" else _EPOCH
    if months:
        return CalendarTicks(anchor, months, timedelta(seconds=seconds))
    return IntervalTicks(anchor, timedelta(seconds=seconds))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _listed_ticks(spec: dict[str, Any], zone: tzinfo, start: datetime | None) -> Ticks:
    instants = {_instant(text, "events", zone) for text in spec.get("instants", ())}
    return ListedTicks(tuple(sorted(one for one in instants if one is not None)))


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
    "events": _listed_ticks,
}
_WITHOUT_TICKS = ("once", "continuous", "custom", "assets")
