"""When a workflow runs next by itself, and why then or why not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from headrace.actions.finding import find_workflow
from headrace.actions.wording import instant
from headrace.clock import Clock, from_micros, to_micros
from headrace.definition import Schedule, Workflow
from headrace.store import (
    PARKED,
    Definitions,
    ScheduleRow,
    Store,
    Transaction,
    WorkflowRow,
    current_version_of,
    get_schedule,
    list_runs,
    pending_partitions,
    queued_events,
)
from headrace.timetable import Slot, Timetable, is_met, missing_keys, timetable_for

SHOWN_TIMES = 5


class Upcoming(NamedTuple):
    row: WorkflowRow
    workflow: Workflow
    schedule: str
    """What the schedule is, in words."""
    times: list[Slot]
    """The next runs that the clock starts."""
    reason: str
    """Why the next run is when it is, or why there is none."""


def upcoming(store: Store, clock: Clock, name: str, count: int = SHOWN_TIMES) -> Upcoming:
    """What is known of a workflow's next runs."""
    with store.read() as tx:
        row = find_workflow(tx, name)
        workflow = tx.shared(Definitions).version(tx, current_version_of(tx, row.id)).workflow
        place = get_schedule(tx, row.id)
        times = _times(workflow, place, count)
        reason = _reason(tx, row, workflow, place, clock.now())
    return Upcoming(row, workflow, describe_schedule(workflow), times, reason)


def describe_schedule(workflow: Workflow) -> str:
    """`cron 0 3 * * * in Asia/Tokyo`, `every 3600 s`, `assets a and b` …"""
    schedule = workflow.schedule
    if schedule is None:
        return "none"
    spec = schedule.spec
    if schedule.type == "cron":
        return f"cron {spec.get('expression')} in {spec.get('timezone') or workflow.timezone}"
    if schedule.type == "interval":
        months = [f"{spec['months']} months"] if spec.get("months") else []
        return "every " + " and ".join([*months, *([f"{spec['seconds']:g} s"] if spec.get("seconds") else [])])
    if schedule.type == "events":
        return f"{len(spec.get('instants', ()))} listed times"
    if schedule.type == "custom":
        return f"the timetable {str(spec.get('class')).rpartition('.')[2]}"
    return _describe_assets(schedule, workflow) if schedule.type == "assets" else schedule.type


def _describe_assets(schedule: Schedule, workflow: Workflow) -> str:
    names = [key.partition(":")[2] for key in missing_keys(schedule.spec["when"], ())]
    text = f"assets {', '.join(names)}"
    if not schedule.spec.get("time"):
        return text
    beside = Schedule(**schedule.spec["time"])
    return f"{text}, or {describe_schedule(Workflow(name='', language='', nodes=(), schedule=beside))}"


def _times(workflow: Workflow, place: ScheduleRow | None, count: int) -> list[Slot]:
    if workflow.schedule is None or place is None or place.logical_at is None:
        return []
    timetable = timetable_for(workflow.schedule, workflow.timezone)
    if not timetable.is_periodic:
        parts = (place.logical_at, place.run_at, place.interval_start, place.interval_end)
        at, run_at, start, end = (from_micros(part if part is not None else place.logical_at) for part in parts)
        return [Slot(at, run_at, start, end)]
    first = timetable.slot_at(from_micros(place.logical_at))
    return list(islice(_following(timetable, first), count))


def _following(timetable: Timetable, slot: Slot | None) -> Iterator[Slot]:
    while slot is not None:
        yield slot
        slot = timetable.following(slot)


def _reason(tx: Transaction, row: WorkflowRow, workflow: Workflow, place: ScheduleRow | None, now: datetime) -> str:
    schedule = workflow.schedule
    if schedule is None or place is None:
        return "it has no schedule: somebody starts it, or nothing does"
    if row.is_paused:
        return "it is paused: no run starts until it is unpaused"
    if place.disabled_at is not None:
        return f"its schedule is disabled since {instant(place.disabled_at)}"
    if schedule.type == "assets":
        return _reason_of_assets(tx, row, schedule)
    if place.slots_wanted_at not in (None, PARKED):
        return "its timetable is about to be asked for the next time"
    if place.logical_at is None:
        return "its schedule has come to its end"
    if schedule.type == "continuous":
        return "the next run starts when the one before has ended"
    due = timetable_for(schedule, workflow.timezone).slot_at(from_micros(place.logical_at)).run_at
    if place.run_at is not None and to_micros(due) < to_micros(now) and schedule.type != "custom":
        active = sum(run.is_active for run in list_runs(tx, row.id))
        return f"a run is due since {instant(to_micros(due))}: {active} runs are active, and it waits for room"
    return f"the clock starts it at {instant(place.run_at)}"


def _reason_of_assets(tx: Transaction, row: WorkflowRow, schedule: Schedule) -> str:
    if "partitions" in schedule.spec:
        return _reason_of_partitions(tx, row, schedule)
    present = {one.key for one in queued_events(tx, row.id)}
    condition = schedule.spec["when"]
    if is_met(condition, present):
        return "the events that it waits for have come: it waits for room"
    names = ", ".join(f"`{key.partition(':')[2]}`" for key in missing_keys(condition, present))
    came = f"; {len(present)} have come" if present else ""
    return f"it waits for events of {names}{came}"


def _reason_of_partitions(tx: Transaction, row: WorkflowRow, schedule: Schedule) -> str:
    names = ", ".join(f"`{key.partition(':')[2]}`" for key in missing_keys(schedule.spec["when"], ()))
    pending = pending_partitions(tx, row.id, limit=SHOWN_TIMES)
    if not pending:
        return f"it waits for events about partitions of {names}"
    parts = ", ".join(f"`{one.partition_key}` ({one.events} have come)" for one in pending)
    return f"it waits for more events about partitions of {names}: {parts}"
