"""Which siblings a task of a group waits for: sequence, `_background`, `_parallel` and `_after`."""

from __future__ import annotations

from typing import NamedTuple

from headrace.authoring.dig.directives import Parallel
from headrace.definition import Place
from headrace.errors import DefinitionError, did_you_mean


class Sibling(NamedTuple):
    """What decides a task's order among the tasks of its group."""

    name: str
    owner: str
    """How messages call it."""
    is_background: bool
    background_place: Place
    after: list[str]
    after_place: Place


def upstreams(siblings: list[Sibling], parallel: Parallel) -> dict[str, list[str]]:
    """For each sibling the names of those that it waits for, in file order."""
    if parallel.is_parallel:
        return _side_by_side(siblings, parallel.limit)
    return _in_sequence(siblings)


def _in_sequence(siblings: list[Sibling]) -> dict[str, list[str]]:
    waits: dict[str, list[str]] = {}
    since_foreground: list[str] = []
    for sibling in siblings:
        if sibling.after:
            raise _error(f"{sibling.owner} has `_after`, but its group is not `_parallel`", sibling.after_place)
        if sibling.is_background:
            waits[sibling.name] = []
            since_foreground.append(sibling.name)
        else:
            waits[sibling.name] = since_foreground
            since_foreground = [sibling.name]
    return waits


def _side_by_side(siblings: list[Sibling], limit: int) -> dict[str, list[str]]:
    waits: dict[str, list[str]] = {}
    names = [sibling.name for sibling in siblings]
    for position, sibling in enumerate(siblings):
        if sibling.is_background:
            raise _error(f"{sibling.owner} has `_background`, but its group is `_parallel`", sibling.background_place)
        chunk = position - position % limit if limit else 0
        barrier = names[max(chunk - limit, 0) : chunk]
        _check_after(sibling, waits)
        after = [name for name in names if name in sibling.after and name not in barrier] if sibling.after else []
        waits[sibling.name] = sorted([*barrier, *after], key=names.index) if after else barrier
    return waits


def _check_after(sibling: Sibling, earlier: dict[str, list[str]]) -> None:
    for name in sibling.after:
        if name not in earlier:
            raise _error(
                f"{sibling.owner} runs after `{name}`, which is not an earlier task of the same group",
                sibling.after_place,
                hint=did_you_mean(name, earlier),
            )


def _error(message: str, place: Place, hint: str | None = None) -> DefinitionError:
    return DefinitionError(message, hint=hint, file=place.file or None, line=place.line)
