"""Asks a user's own timetable for its times. This runs user code: only for processes that may be hurt by it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headrace.authoring.dag.dags import DAG
from headrace.authoring.dag.dates import to_pendulum, to_plain
from headrace.authoring.dag.schedules import timetable_of
from headrace.authoring.dag.timetables import DagRunInfo, DataInterval, TimeRestriction
from headrace.authoring.languages import SlotQuestion, ToldSlot
from headrace.errors import DefinitionError


def tell_slot(dag: DAG, question: SlotQuestion) -> ToldSlot | None:
    """The run after the last one, or the period of a run that a person starts. None: there is no more."""
    timetable = timetable_of(dag)
    if timetable is None:
        return None
    if question.manual_at is not None:
        at = to_pendulum(question.manual_at)
        return _told(DagRunInfo(at, timetable.infer_manual_data_interval(run_after=at)), dag)
    last = None
    if question.last_start is not None and question.last_end is not None:
        last = DataInterval(to_pendulum(question.last_start), to_pendulum(question.last_end))
    info = timetable.next_dagrun_info(
        last_automated_data_interval=last,
        restriction=TimeRestriction(to_pendulum(dag.start_date), to_pendulum(dag.end_date), dag.catchup),
    )
    return None if info is None else _told(info, dag)


def _told(info: Any, dag: DAG) -> ToldSlot:
    try:
        start, end = info.data_interval or (info.run_after, info.run_after)
        run_at, start, end = (_aware(moment) for moment in (info.run_after, start, end))
    except (AttributeError, TypeError, ValueError) as error:
        raise DefinitionError(f"the timetable of DAG `{dag.dag_id}` told no run that can be used: {error}") from error
    return ToldSlot(logical_time=start, run_at=run_at, interval_start=start, interval_end=end)


def _aware(moment: Any) -> datetime:
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ValueError(f"expected an aware datetime, got: {moment!r}")
    return to_plain(moment)
