"""Compares the store with the tasks' own record after the faults, and reports whatever must not be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from headrace.state import FINISHED
from headrace.store import Definitions, Store
from headrace.store.sql import Sql
from headrace.testing.faults.history import History, SeenRun, SeenTask
from headrace.testing.faults.record import Line
from headrace.testing.invariants import Checker, SeenEvent
from headrace.testing.recounting import Violation

Kind = Literal["lost", "duplicated", "stuck", "overlapped", "over limit", "illegal"]
KINDS: tuple[Kind, ...] = ("lost", "duplicated", "stuck", "overlapped", "over limit", "illegal")
CURRENT_VERSIONS = Sql("SELECT id, current_version_id FROM workflow WHERE current_version_id IS NOT NULL")


class Wrong(NamedTuple):
    """One thing that must not be."""

    kind: Kind
    what: str


class Schedule(NamedTuple):
    """What is known about the runs of a schedule: every logical time between two has its run."""

    workflow: str
    every_micros: int
    first: int | None = None
    """The first and the last logical time, where they are known beforehand."""
    last: int | None = None


def check(store: Store, lines: Sequence[Line], schedules: Sequence[Schedule]) -> list[Wrong]:
    """Everything that is wrong, once all runs have had their time to end."""
    history = History.read(store)
    return [
        *_runs_that_did_not_succeed(history),
        *_executions_that_differ(history, lines),
        *_what_tasks_noticed(lines),
        *(wrong for schedule in schedules for wrong in _logical_times(history.runs, schedule)),
        *_runs_before_their_time(history.runs, lines),
        *_transitions(store),
    ]


def _runs_that_did_not_succeed(history: History) -> Iterator[Wrong]:
    """Every task of the load has tries enough for any number of faults."""
    for run in history.runs:
        if run.state in ("queued", "running"):
            yield Wrong("stuck", f"run `{run.key}` of `{run.workflow}` is still {run.state}")
        elif run.state != "success":
            yield Wrong("lost", f"run `{run.key}` of `{run.workflow}` ended as {run.state}")
    ended = {run.attempt_id for run in history.runs if run.state not in ("queued", "running")}
    for task in history.tasks:
        if task.attempt_id in ended and task.state not in FINISHED:
            yield Wrong(
                "stuck", f"task `{task.name}` of attempt {task.attempt_id} is `{task.state}`, its run has ended"
            )


# ---- executions --------------------------------------------------------------------------------------------------


class _Told(NamedTuple):
    """The executions of the tasks of one name, as one side tells them."""

    starts: Counter[int]
    ends: Counter[int]
    """By the number of the try; 0 if it is not known."""


def _executions_that_differ(history: History, lines: Sequence[Line]) -> Iterator[Wrong]:
    noted = _noted(lines)
    runs = {run.attempt_id: run for run in history.runs}
    tasks: dict[tuple[str, str, str], list[SeenTask]] = defaultdict(list)
    for task in history.tasks:
        if task.isolation != "inline" and task.kind != "group" and task.operator != "for_each":
            tasks[_name_in_record(runs[task.attempt_id], task, noted)].append(task)
    kept: dict[int, Counter[tuple[int, str]]] = defaultdict(Counter)
    for execution in history.executions:
        kept[execution.task_id][execution.number, execution.state] += 1
    for name, told in noted.items():
        yield from _compare(name, told, [kept[task.id] for task in tasks.get(name, [])])
    for name, found in tasks.items():
        for task in found:
            successes = sum(count for (_, state), count in kept[task.id].items() if state == "success")
            if successes > 1:
                yield Wrong("duplicated", f"task {name} succeeded {successes} times")
            if successes and name not in noted:
                yield Wrong("lost", f"task {name} succeeded without having run")


def _noted(lines: Sequence[Line]) -> dict[tuple[str, str, str], _Told]:
    noted: dict[tuple[str, str, str], _Told] = defaultdict(lambda: _Told(Counter(), Counter()))
    for line in lines:
        if line.what == "start":
            noted[line.name].starts[line.number] += 1
        elif line.what == "end":
            noted[line.name].ends[line.number] += 1
    return noted


def _name_in_record(run: SeenRun, task: SeenTask, noted: Mapping[tuple[str, str, str], _Told]) -> tuple[str, str, str]:
    """Tasks of Python DAGs know their run by its key, tasks of `.dig` workflows by its attempt."""
    by_attempt = (run.workflow, str(run.attempt_id), task.name)
    return by_attempt if by_attempt in noted else (run.workflow, run.key, task.name)


def _compare(name: tuple[str, str, str], told: _Told, kept: Sequence[Counter[tuple[int, str]]]) -> Iterator[Wrong]:
    """Each execution that began is one that the store knows, and each success is one that came to its end."""
    executions: Counter[int] = Counter()
    successes: Counter[int] = Counter()
    for (number, state), count in (item for one in kept for item in one.items()):
        known = 0 if 0 in told.starts else number
        executions[known] += count
        successes[known] += count if state == "success" else 0
    for number, count in (told.starts - executions).items():
        kind: Kind = "duplicated" if executions[number] else "lost"
        yield Wrong(
            kind, f"try {number} of {name} began {told.starts[number]} times, {count} more than the store tells"
        )
    for number, count in (successes - told.ends).items():
        yield Wrong("lost", f"try {number} of {name} succeeded {count} times without having come to its end")


# ---- what tasks noticed, and when runs were due ------------------------------------------------------------------


def _what_tasks_noticed(lines: Sequence[Line]) -> Iterator[Wrong]:
    for line in lines:
        if line.what == "overlap":
            yield Wrong("overlapped", f"try {line.number} of {line.name} began while another one was alive")
        elif line.what == "exceeded":
            yield Wrong("over limit", f"try {line.number} of {line.name} was one too many for `{line.limit}`")


def _logical_times(runs: Sequence[SeenRun], schedule: Schedule) -> Iterator[Wrong]:
    times = Counter(
        run.logical_at
        for run in runs
        if run.workflow == schedule.workflow and run.logical_at is not None and run.type == "scheduled"
    )
    for at, count in times.items():
        if count > 1:
            yield Wrong("duplicated", f"`{schedule.workflow}` has {count} runs for {at}")
    if schedule.first is None and not times:
        yield Wrong("lost", f"the schedule of `{schedule.workflow}` started nothing")
        return
    first = min(times) if schedule.first is None else schedule.first
    last = max(times) if schedule.last is None else schedule.last
    for at in range(first, last + 1, schedule.every_micros):
        if at not in times:
            yield Wrong("lost", f"`{schedule.workflow}` has no run for {at}")


def _runs_before_their_time(runs: Sequence[SeenRun], lines: Sequence[Line]) -> Iterator[Wrong]:
    """By the clock of the tasks, as the store would only repeat what a wrong clock has told it."""
    due = {
        (run.workflow, name): run.logical_at
        for run in runs
        if run.type == "scheduled" and run.logical_at is not None
        for name in (run.key, str(run.attempt_id))
    }
    for line in lines:
        early = due.get((line.workflow, line.run), 0) - round(line.wall * 1e6)
        if line.what == "start" and line.wall and early > 0:
            yield Wrong("illegal", f"{line.name} began {early / 1e6:.1f} s before the time that its run is for")


# ---- transitions -------------------------------------------------------------------------------------------------


class _Afterwards(Checker):
    """Follows all events at once, when nobody knows any more who held what at which time."""

    def _check_release(self, event: SeenEvent, lost: set[int]) -> None:
        """Whether a try had been reported is what the tasks' own record tells here."""


def _transitions(store: Store) -> Iterator[Wrong]:
    """No transition is missing, doubled or against the table, and every row is what its events and edges say."""
    checker = _Afterwards(store.database, {})
    with store.read() as tx:
        versions = tx.run(CURRENT_VERSIONS)
        known = tx.shared(Definitions)
        checker.workflows = {row[0]: known.version(tx, row[1]).workflow for row in versions}
    try:
        checker.check_everything()
    except Violation as violation:
        yield Wrong("illegal", str(violation))
