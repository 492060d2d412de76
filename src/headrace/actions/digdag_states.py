"""The states of tasks in Digdag's words and numbers, for those who speak its API: a view, nothing is stored by it.

Digdag has ten states and the engine fifteen. A task that an agent has taken and one that runs are both RUNNING, a task
behind a failed one stays BLOCKED for ever, and whether a failure was the task's own or one below it is part of the
state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import pairwise

from headrace.state import State
from headrace.store import TaskRow


class DigdagState(IntEnum):
    """The numbers are those of Digdag's database and API."""

    BLOCKED = 0
    READY = 1
    RETRY_WAITING = 2
    GROUP_RETRY_WAITING = 3
    RUNNING = 4
    PLANNED = 5
    GROUP_ERROR = 6
    SUCCESS = 7
    ERROR = 8
    CANCELED = 9

    @property
    def label(self) -> str:
        """As the API writes it: `group_error`."""
        return self.name.lower()

    @property
    def is_done(self) -> bool:
        return self in (self.GROUP_ERROR, self.SUCCESS, self.ERROR, self.CANCELED)


_VIEW = {
    State.NONE: DigdagState.BLOCKED,
    State.SCHEDULED: DigdagState.READY,
    State.QUEUED: DigdagState.RUNNING,
    State.RUNNING: DigdagState.RUNNING,
    State.RESTARTING: DigdagState.RUNNING,
    State.PLANNED: DigdagState.PLANNED,
    State.UP_FOR_RETRY: DigdagState.RETRY_WAITING,
    State.UP_FOR_RESCHEDULE: DigdagState.RETRY_WAITING,
    State.DEFERRED: DigdagState.RETRY_WAITING,
    State.SUCCESS: DigdagState.SUCCESS,
    State.SKIPPED: DigdagState.SUCCESS,
    State.FAILED: DigdagState.ERROR,
    State.UPSTREAM_FAILED: DigdagState.BLOCKED,
    State.CANCELED: DigdagState.CANCELED,
    State.REMOVED: DigdagState.CANCELED,
}
_FAILED_BELOW = {State.UP_FOR_RETRY: DigdagState.GROUP_RETRY_WAITING, State.FAILED: DigdagState.GROUP_ERROR}


def digdag_state(state: str, *, failed_below: bool = False) -> DigdagState:
    """The view of one state. `failed_below`: a failure of this task is that of a task below it, not its own."""
    found = State(state)
    return _FAILED_BELOW.get(found, _VIEW[found]) if failed_below else _VIEW[found]


def digdag_states(tasks: Sequence[TaskRow]) -> dict[int, DigdagState]:
    """The view of an attempt's live tasks, by id. Give all of them: a task's state may depend on what is below it."""
    grown_well = {key.rpartition("^")[0] for key in (task.key for task in tasks) if key.endswith(("^sub", "^check"))}
    return {
        # A task that has subtasks or a check did its own work; groups have no work of their own.
        task.id: digdag_state(task.state, failed_below=task.kind != "task" or task.key in grown_well)
        for task in tasks
    }


def digdag_story(states: Iterable[str], *, failed_below: bool = False) -> list[DigdagState]:
    """What a task went through, from the states of its events; it begins as BLOCKED."""
    seen = [DigdagState.BLOCKED, *(digdag_state(state, failed_below=failed_below) for state in states)]
    return [seen[0], *(after for before, after in pairwise(seen) if before is not after)]
