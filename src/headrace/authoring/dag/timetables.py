"""Timetables as DAG files write them. Those of this module become data; one that a user wrote is asked for its times.

`next_dagrun_info` of a timetable from here answers as the scheduler would, so that a subclass can build on it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, ClassVar, NamedTuple

from headrace.authoring.dag.dates import to_pendulum, to_plain
from headrace.authoring.dag.durations import Duration, months_and_seconds
from headrace.authoring.dag.zones import timezone_name
from headrace.clock import iso
from headrace.definition import CRON_PRESETS, Schedule


class DataInterval(NamedTuple):
    """The period whose data a run works on."""

    start: Any
    end: Any

    @classmethod
    def exact(cls, at: Any) -> DataInterval:
        return cls(at, at)


class TimeRestriction(NamedTuple):
    """Between which instants, both included, runs may lie, and whether those that were missed are wanted."""

    earliest: Any
    latest: Any
    catchup: bool


class DagRunInfo(NamedTuple):
    """One run that a timetable plans."""

    run_after: Any
    data_interval: DataInterval | None
    partition_date: Any = None
    partition_key: str | None = None

    @classmethod
    def exact(cls, at: Any) -> DagRunInfo:
        return cls(at, DataInterval.exact(at))

    @classmethod
    def interval(cls, start: Any, end: Any) -> DagRunInfo:
        return cls(end, DataInterval(start, end))

    @property
    def logical_date(self) -> Any:
        return self.data_interval.start if self.data_interval else None


class Timetable:
    """What a user's own timetable builds on. It says in `next_dagrun_info` which run comes after which."""

    description: str = ""
    periodic: bool = True
    can_be_scheduled: bool = True
    active_runs_limit: int | None = None
    partitioned: bool = False
    """Its runs are for partitions that it knows."""
    partitioned_at_runtime: bool = False
    """Its runs are for partitions that others know."""
    run_ordering: ClassVar[tuple[str, ...]] = ("data_interval_end", "logical_date")

    @property
    def summary(self) -> str:
        return type(self).__name__

    def serialize(self) -> dict[str, Any]:
        """What makes it different from others of its class, as JSON: if it changes, its runs are planned anew."""
        return {}

    @classmethod
    def deserialize(cls, data: Mapping[str, Any]) -> Any:
        return cls()

    def validate(self) -> None:
        """Raise if it makes no sense."""

    def infer_manual_data_interval(self, *, run_after: Any) -> DataInterval:
        """The period of a run that a person starts."""
        return DataInterval.exact(run_after)

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The run after the last one that was started by the timetable. None: there is none."""
        raise NotImplementedError(f"{type(self).__name__} has no next_dagrun_info()")


def has_partitions(schedule: Any) -> bool:
    """Whether runs of a DAG with this schedule may be for a partition."""
    return isinstance(schedule, Timetable) and (schedule.partitioned or schedule.partitioned_at_runtime)


class KnownTimetable(Timetable):
    """One whose times the engine knows how to compute."""

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        """The type and the spec of the schedule that it stands for."""
        raise NotImplementedError

    def serialize(self) -> dict[str, Any]:
        kind, spec = self.as_schedule("UTC")
        return {"type": kind, "spec": spec}

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        timetable = self._computed(restriction)
        last = None
        if last_automated_data_interval is not None:
            last = timetable.slot_at(to_plain(last_automated_data_interval.start))
        due = timetable.due(last, datetime.now(UTC), limit=1)
        slot = due.slots[0] if due.slots else due.next
        if slot is None:
            return None
        start, end, run_after = map(to_pendulum, (slot.interval_start, slot.interval_end, slot.run_at))
        return DagRunInfo(run_after, DataInterval(start, end))

    def infer_manual_data_interval(self, *, run_after: Any) -> DataInterval:
        slot = self._computed(TimeRestriction(None, None, False)).manual(to_plain(run_after))
        return DataInterval(to_pendulum(slot.interval_start), to_pendulum(slot.interval_end))

    def _computed(self, restriction: TimeRestriction) -> Any:
        kind, spec = self.as_schedule("UTC")
        schedule = Schedule(
            type=kind,
            spec=spec,
            catch_up="all" if restriction.catchup else "latest",
            start_at=iso(restriction.earliest),
            end_at=iso(restriction.latest),
        )
        # Named, not imported: most files need no more of it than a check, and a warm parent not even that.
        return importlib.import_module("headrace.timetable").timetable_for(schedule, "UTC")


class NullTimetable(KnownTimetable):
    """Never."""

    periodic = can_be_scheduled = False

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        return None


class OnceTimetable(KnownTimetable):
    """One run, as soon as possible."""

    periodic = False

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        return "once", {}


class ContinuousTimetable(KnownTimetable):
    """One run after the other."""

    periodic = False
    active_runs_limit = 1

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        return "continuous", {}


class _Cron(KnownTimetable):
    has_intervals: ClassVar[bool]

    def __init__(self, *crons: str, timezone: str | tzinfo) -> None:
        if not crons or not all(isinstance(one, str) for one in crons):
            raise ValueError(f"expected {type(self).__name__} to have a cron expression, got: {crons!r}")
        self.expressions = [CRON_PRESETS.get(one, one) for one in crons]
        self._zone = timezone if isinstance(timezone, str) else timezone_name(timezone)

    @property
    def summary(self) -> str:
        return ", ".join(self.expressions)

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        spec = {
            "expression": " | ".join(self.expressions),
            "timezone": self._zone,
            "semantics": "airflow",
            "intervals": self.has_intervals,
        }
        return "cron", spec


class CronDataIntervalTimetable(_Cron):
    """A run at the end of each period between two ticks of a cron expression."""

    has_intervals = True

    def __init__(self, cron: str, timezone: str | tzinfo) -> None:
        super().__init__(cron, timezone=timezone)


class MultipleCronTriggerTimetable(_Cron):
    """A run at each tick of one or more cron expressions."""

    has_intervals = False

    def __init__(
        self,
        *crons: str,
        timezone: str | tzinfo,
        interval: Duration = timedelta(0),
        run_immediately: bool | timedelta = False,
    ) -> None:
        super().__init__(*crons, timezone=timezone)
        self._interval = interval
        self._run_immediately = run_immediately

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        kind, spec = super().as_schedule(zone)
        spec |= _lookback(self._interval)
        if self._run_immediately is True:
            spec["starts_at_once"] = True
        elif isinstance(self._run_immediately, timedelta):
            spec["first_within_seconds"] = self._run_immediately.total_seconds()
        return kind, spec


class CronTriggerTimetable(MultipleCronTriggerTimetable):
    """A run at each tick of a cron expression."""

    def __init__(
        self,
        cron: str,
        *,
        timezone: str | tzinfo,
        interval: Duration = timedelta(0),
        run_immediately: bool | timedelta = False,
    ) -> None:
        super().__init__(cron, timezone=timezone, interval=interval, run_immediately=run_immediately)


class _Delta(KnownTimetable):
    has_intervals: ClassVar[bool]

    def __init__(self, delta: Duration) -> None:
        self._delta = delta
        self._months, self._seconds = months_and_seconds(delta)

    @property
    def summary(self) -> str:
        return str(self._delta)

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        spec: dict[str, Any] = {"seconds": self._seconds, "intervals": self.has_intervals}
        if self._months:
            spec["months"] = self._months
        return "interval", spec


class DeltaDataIntervalTimetable(_Delta):
    """A run at the end of each period of this length."""

    has_intervals = True


class DeltaTriggerTimetable(_Delta):
    """A run each time that so much time has passed."""

    has_intervals = False

    def __init__(self, delta: Duration, *, interval: Duration = timedelta(0)) -> None:
        super().__init__(delta)
        self._interval = interval

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        kind, spec = super().as_schedule(zone)
        return kind, spec | _lookback(self._interval)


class EventsTimetable(KnownTimetable):
    """Runs at the instants of a list. With `restrict_to_events`, a run that a person starts is for the last of them."""

    def __init__(
        self,
        event_dates: Iterable[datetime],
        restrict_to_events: bool = False,
        presorted: bool = False,
        description: str | None = None,
    ) -> None:
        self.event_dates = list(event_dates) if presorted else sorted(event_dates)
        self.restrict_to_events = restrict_to_events
        self.description = description or f"{len(self.event_dates)} events"

    @property
    def summary(self) -> str:
        return self.description

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        instants = [iso(one) if one.tzinfo is not None else one.isoformat() for one in self.event_dates]
        return "events", {"instants": instants, "manual_on_tick": self.restrict_to_events}


def _lookback(interval: Duration) -> dict[str, float]:
    months, seconds = months_and_seconds(interval)
    if months:
        raise ValueError(f"expected `interval` to have the same length at any time, got: {interval!r}")
    return {"lookback_seconds": seconds} if seconds else {}
