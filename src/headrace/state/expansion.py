"""How many instances a mapped task gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import NamedTuple

from headrace.definition import Length
from headrace.state.task import FAILURES, FINISHED, State, Task


class MapSource(NamedTuple):
    """A task whose result is mapped over: how it ended and, if it has a result, how long that is."""

    state: State
    length: int | None


def source_of(task: Task, results: int, length: int | None) -> MapSource:
    """What a task is as a source: `results` counts its instances' results, `length` measures its own.

    Instances stand for a mapped task: those without a result leave a shorter list, and whether that is good enough is
    for the rule of the mapped task to say.
    """
    if not task.is_expanded:
        return MapSource(task.state, length)
    return MapSource(State.SUCCESS if task.state in FINISHED else task.state, results)


def source_keys(length: Length) -> Iterator[str]:
    """Keys of the tasks whose results decide the length."""
    if length.op == "result":
        yield length.task
    for part in length.parts:
        yield from source_keys(part)


def instance_count(length: Length, sources: Mapping[str, MapSource]) -> int | State:
    """The number of instances; or the state of the mapped task if it cannot be expanded (`none`: not yet)."""
    states = {sources[key].state if key in sources else State.REMOVED for key in source_keys(length)}
    if states & {*FAILURES, State.REMOVED}:
        return State.UPSTREAM_FAILED
    if State.SKIPPED in states:
        return State.SKIPPED
    if states - FINISHED:
        return State.NONE
    count = _evaluate(length, sources)
    return State.UPSTREAM_FAILED if count is None else count


def _evaluate(length: Length, sources: Mapping[str, MapSource]) -> int | None:
    if length.op == "literal":
        return length.length
    if length.op == "result":
        return sources[length.task].length
    parts = [_evaluate(part, sources) for part in length.parts]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if length.op == "product":
        return prod(known)
    if length.op == "concat":
        return sum(known)
    return (max if length.op == "zip_longest" else min)(known, default=0)
