"""Branches that the clock decides: by a time of day, by the day of the week, and for the newest run only."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from typing import Any

from headrace.authoring.dag import Context
from headrace.authoring.dag.context import current_engine
from headrace.authoring.dag.exceptions import AirflowException
from headrace.operators.branch import BaseBranchOperator
from headrace.operators.instants import date_of_run, instant_of, zone_of_dag
from headrace.operators.week_day import WeekDay

Bound = datetime | time_of_day | None


class BranchDateTimeOperator(BaseBranchOperator):
    """Follows one set of tasks between two moments or times of day, and another set outside."""

    def __init__(
        self,
        *,
        follow_task_ids_if_true: str | Iterable[str],
        follow_task_ids_if_false: str | Iterable[str],
        target_lower: Bound,
        target_upper: Bound,
        use_task_logical_date: bool = False,
        use_task_execution_date: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if target_lower is None and target_upper is None:
            raise AirflowException(f"branch `{self.task_id}` has neither target_lower nor target_upper")
        self.target_lower = target_lower
        self.target_upper = target_upper
        self.follow_task_ids_if_true = follow_task_ids_if_true
        self.follow_task_ids_if_false = follow_task_ids_if_false
        self.use_task_logical_date = use_task_logical_date or use_task_execution_date

    def choose_branch(self, context: Context) -> str | Iterable[str] | None:
        now = date_of_run(context) if self.use_task_logical_date else datetime.now(UTC)
        lower, upper = self._bounds(now)
        is_inside = (lower is None or lower <= now) and (upper is None or now <= upper)
        return self.follow_task_ids_if_true if is_inside else self.follow_task_ids_if_false

    def _bounds(self, now: datetime) -> tuple[datetime | None, datetime | None]:
        """Both as instants: times of day are of the present day, and the upper one of the next if it is earlier."""
        lower, upper = self._on_day(now, self.target_lower), self._on_day(now, self.target_upper)
        has_times = isinstance(self.target_lower, time_of_day) or isinstance(self.target_upper, time_of_day)
        if has_times and lower is not None and upper is not None and upper < lower:
            upper += timedelta(days=1)
        return lower, upper

    def _on_day(self, now: datetime, bound: Bound) -> datetime | None:
        zone = zone_of_dag(self)
        if isinstance(bound, time_of_day):
            bound = datetime.combine(now.astimezone(zone).date(), bound)
        return None if bound is None else instant_of(bound, zone)


class BranchDayOfWeekOperator(BaseBranchOperator):
    """Follows one set of tasks on some days of the week, and another set on the others."""

    def __init__(
        self,
        *,
        follow_task_ids_if_true: str | Iterable[str],
        follow_task_ids_if_false: str | Iterable[str],
        week_day: str | WeekDay | Iterable[str] | Iterable[WeekDay],
        use_task_logical_date: bool = False,
        use_task_execution_day: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.follow_task_ids_if_true = follow_task_ids_if_true
        self.follow_task_ids_if_false = follow_task_ids_if_false
        self.week_day = week_day
        self.use_task_logical_date = use_task_logical_date or use_task_execution_day
        self._days = WeekDay.validate_week_day(week_day)

    def choose_branch(self, context: Context) -> str | Iterable[str] | None:
        now = date_of_run(context) if self.use_task_logical_date else datetime.now(zone_of_dag(self))
        return self.follow_task_ids_if_true if now.isoweekday() in self._days else self.follow_task_ids_if_false


class LatestOnlyOperator(BaseBranchOperator):
    """Skips the tasks after it unless its run is the newest that the schedule has had until now.

    Runs that somebody started by hand go on, and so does the last run of a schedule.
    """

    ui_color = "#e9ffdb"

    def choose_branch(self, context: Context) -> str | Iterable[str] | None:
        everything = sorted(self.downstream_task_ids)
        run = context["dag_run"]
        if run.run_type in ("manual", "operator_triggered"):
            self.log.info("run `%s` was started by hand, so it goes on", run.run_id)
            return everything
        engine = current_engine()
        following = None if engine is None else engine.ask("get_following_slot")
        if following is None or run.logical_time is None:
            self.log.info("no run follows run `%s`, so it goes on", run.run_id)
            return everything
        begin, end = run.data_interval_start, instant_of(following["interval_end"])
        is_latest = begin < datetime.now(UTC) <= end
        self.log.info("the newest run is the one between %s and %s: %s", begin, end, "this" if is_latest else "another")
        return everything if is_latest else None
