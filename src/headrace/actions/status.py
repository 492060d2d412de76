"""How an installation is: who is alive, what is late and why, what was lost, how much there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headrace.actions.why import explain_queued
from headrace.actions.why_task import Situation, held_back
from headrace.actions.wording import are_stopping, instant, span
from headrace.clock import Clock, to_micros
from headrace.store import SourceErrorRow, Store, Transaction, get_run, get_tasks, list_source_errors, unsaved_folders
from headrace.store.backlog import MOST, Backlog, Size, read_backlog, store_size
from headrace.store.lateness import late_runs, late_schedules, late_timetables, ready_tasks, retries
from headrace.store.presence import GivenUp, Present, given_up_processes, orphaned_tasks, present_processes

LATE_SECONDS = 60.0
_DAY = 86_400_000_000
_GROUPS = 100
"""How many groups of what waits are looked at; each costs a few statements."""
_BROKEN = {"no_scheduler", "no_agent", "no_pool", "pool_too_small", "starting"}
"""Reasons that no limit and no person has wanted."""


class Concern(NamedTuple):
    """Something that waits or is missing, as one sentence."""

    kind: str
    sentence: str
    number: int = 1
    """How many wait for this."""
    since: int | None = None
    """Microseconds since 1970."""
    hint: str | None = None
    is_problem: bool = True
    """False: somebody wanted it so, by a limit or a pause."""


class Status(NamedTuple):
    now: int
    store: str
    size: Size
    processes: list[Present]
    backlog: Backlog
    concerns: list[Concern]
    """What is wrong first, then what only waits."""
    given_up: list[GivenUp]
    """In the last day."""
    broken_files: list[SourceErrorRow]

    @property
    def is_healthy(self) -> bool:
        return not any(concern.is_problem for concern in self.concerns)


def status(store: Store, clock: Clock, late_seconds: float = LATE_SECONDS) -> Status:
    """Look at everything once."""
    now = to_micros(clock.now())
    late_before = now - round(late_seconds * 1_000_000)
    with store.read() as tx:
        processes, backlog = present_processes(tx), read_backlog(tx, now)
        alive = {one.kind for one in processes if one.lease_until >= now and one.stopping_at is None}
        stopping = [one for one in processes if one.lease_until >= now and one.stopping_at is not None]
        concerns = [
            *_missing(alive, stopping, backlog),
            *_silent(processes, now),
            *_orphaned(tx, "scheduler" in alive, late_before, now),
            *_stopping(stopping, now),
            *_unsaved_folders(tx, now),
            *_late_schedules(tx, "scheduler" in alive, late_before, now),
            *_late_timetables(tx, late_before, now),
            *_late_timer(backlog, late_before, now),
            *_late_runs(tx, late_before, now),
            *_waiting_tasks(tx, late_before, now),
            *_retries(tx, now),
        ]
        return Status(
            now=now,
            store=store.database.display_name,
            size=store_size(tx),
            processes=processes,
            backlog=backlog,
            concerns=sorted(concerns, key=lambda concern: not concern.is_problem),
            given_up=given_up_processes(tx, now - _DAY),
            broken_files=list_source_errors(tx),
        )


def _missing(alive: set[str], stopping: list[Present], backlog: Backlog) -> Iterator[Concern]:
    if "scheduler" not in alive:
        hint = "start one with `headrace scheduler`, or all in one with `headrace standalone`"
        yield Concern("no_scheduler", "no scheduler is alive: no run starts by itself and no retry", hint=hint)
    if "agent" not in alive:
        ending = [one.name for one in stopping if one.kind == "agent"]
        sentence = "no agent is alive: no task runs"
        if ending:
            sentence = f"no agent takes tasks: {are_stopping('agent', ending)}"
        yield Concern("no_agent", sentence, hint="start one with `headrace agent`")
    if backlog.triggers and "triggerer" not in alive:
        ending = [one.name for one in stopping if one.kind == "triggerer"]
        waiting = f"{_count(backlog.triggers, 'trigger')} of deferred tasks {_wait(backlog.triggers)}"
        sentence = f"no triggerer is alive: {waiting}"
        if ending:
            sentence = f"no triggerer takes triggers: {are_stopping('triggerer', ending)}; {waiting}"
        yield Concern("no_triggerer", sentence, backlog.triggers, hint="start one with `headrace triggerer`")


def _silent(processes: list[Present], now: int) -> Iterator[Concern]:
    for one in processes:
        if one.lease_until < now:
            held = f", and nobody has taken over what it holds ({one.used})" if one.used else ""
            sentence = f"{one.kind} `{one.name}` is silent for {span(one.renewed_at, now)}{held}"
            yield Concern("silent", sentence, since=one.renewed_at)


def _orphaned(tx: Transaction, has_scheduler: bool, before: int, now: int) -> Iterator[Concern]:
    """A scheduler needs a moment to take over what a process held."""
    for one in orphaned_tasks(tx):
        if has_scheduler and one.since >= before:
            continue
        what = _count(one.number, "task")
        sentence = (
            f"{one.kind} `{one.name}` has been gone for {span(one.since, now)}, and nobody has taken over its {what}"
        )
        hint = None if has_scheduler else "`headrace scheduler` does, or an agent that starts"
        yield Concern("orphaned", sentence, one.number, one.since, hint)


def _stopping(processes: list[Present], now: int) -> Iterator[Concern]:
    for one in processes:
        since = f"since {instant(one.stopping_at)} ({span(one.stopping_at, now)})"
        sentence = f"{one.kind} `{one.name}` is stopping {since}: it ends what it holds ({one.used}) and takes no more"
        yield Concern("stopping", sentence, since=one.stopping_at, is_problem=False)


def _unsaved_folders(tx: Transaction, now: int) -> Iterator[Concern]:
    for one in unsaved_folders(tx, now):
        yield Concern("unsaved_folder", one.error.message, since=one.folder.since, hint=one.error.hint)


def _late_schedules(tx: Transaction, has_scheduler: bool, before: int, now: int) -> Iterator[Concern]:
    why = "its scheduler has not come to it" if has_scheduler else "no scheduler is alive"
    for late in late_schedules(tx, before, _GROUPS):
        sentence = f"workflow `{late.workflow}` is due since {instant(late.due_at)} ({span(late.due_at, now)}): {why}"
        yield Concern("late_schedule", sentence, since=late.due_at)


def _late_timetables(tx: Transaction, before: int, now: int) -> Iterator[Concern]:
    for late in late_timetables(tx, before, _GROUPS):
        # Zero: as soon as possible, such as after it was enabled.
        since = f"since {instant(late.due_at)} ({span(late.due_at, now)}) " if late.due_at else ""
        sentence = f"workflow `{late.workflow}` waits {since}for its timetable to tell the next time"
        hint = f"a scheduler must serve the folder of project `{late.project}`"
        yield Concern("late_timetable", sentence, since=late.due_at or None, hint=hint)


def _late_timer(backlog: Backlog, before: int, now: int) -> Iterator[Concern]:
    due_at = backlog.timer_due_at
    if due_at is not None and due_at < before:
        sentence = f"a retry or time limit is due since {instant(due_at)} ({span(due_at, now)})"
        yield Concern("late_timer", sentence, since=due_at)


def _late_runs(tx: Transaction, before: int, now: int) -> Iterator[Concern]:
    """Queued runs whose time has come; those that are about to start only if they are late."""
    for late in late_runs(tx, now, _GROUPS):
        run = get_run(tx, late.run_id)
        if run is None or run.state != "queued":
            continue  # it has started since
        reason = explain_queued(tx, run, now)
        if reason.kind in _BROKEN and late.since > before:
            continue
        others = "" if late.number == 1 else f" (and {_count(late.number - 1, 'more run')} of the workflow)"
        yield Concern(
            reason.kind, reason.sentence + others, late.number, late.since, reason.hint, reason.kind in _BROKEN
        )


def _waiting_tasks(tx: Transaction, before: int, now: int) -> list[Concern]:
    """Tasks that are ready, by what keeps them from running; those that are about to be taken only if they are late."""
    found: dict[tuple[str, str], Concern] = {}
    for group in ready_tasks(tx, _GROUPS):
        run, tasks = get_run(tx, group.run_id), get_tasks(tx, [group.task_id])
        if run is None or not tasks or tasks[0].state != "scheduled":
            continue  # it has been taken since
        held = held_back(Situation(tx, run, now, tasks), tasks[0])
        if held is None and group.since >= before:
            continue
        kind, text, hint = held or ("starting", "no agent has come to it", None)
        before_it = found.get((kind, text), Concern(kind, text, 0, group.since, hint, kind in _BROKEN))
        found[kind, text] = before_it._replace(
            number=before_it.number + group.number, since=min(before_it.since or group.since, group.since)
        )
    return [one._replace(sentence=_of_tasks(one, now)) for one in found.values()]


def _retries(tx: Transaction, now: int) -> Iterator[Concern]:
    later = retries(tx, now)
    if later.number:
        wait = f"{_count(later.number, 'task')} {_wait(later.number)} for the next try"
        first = "" if later.number == 1 else "the first "
        at = f"{first}at {instant(later.first_at)} (in {span(now, later.first_at)})"
        yield Concern("up_for_retry", f"{wait}, {at}", later.number, is_problem=False)


def _of_tasks(concern: Concern, now: int) -> str:
    """`3 tasks wait for up to 41 s: pool `etl` is full, 8 of 8 slots are taken`."""
    many = concern.number > 1
    how_long = f"for up to {span(concern.since, now)}" if many else f"for {span(concern.since, now)}"
    return f"{_count(concern.number, 'task')} {_wait(concern.number)} {how_long}: {concern.sentence}"


def _count(number: int, noun: str) -> str:
    return f"{at_least(number)} {noun}{'' if number == 1 else 's'}"


def _wait(number: int) -> str:
    return "waits" if number == 1 else "wait"


def at_least(number: int) -> str:
    """A number at which counting may have stopped."""
    return f"{number:,}{'+' if number >= MOST else ''}"
