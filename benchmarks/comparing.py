"""Measures several forms of the same work against each other.

Figures of two moments on one machine say little about each other: whatever else it does, how warm its caches are and
what the allocator has grown to differ. So all forms are loaded first and then take turns, each round in another
order, so that none always comes after the same other one, and a ratio is the median of the ratios within the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from statistics import median
from typing import Any, NamedTuple

from benchmarks.bench import Bench

Figures = dict[str, Any]
_COMPARED = {"wall": "wall_seconds", "cpu": "cpu_seconds"}


class Form(NamedTuple):
    """One way to do the work."""

    bench: Bench
    text: str
    file: str = "bench.py"


def measure_in_turns(measures: Mapping[str, Callable[[], Figures]], rounds: int) -> dict[str, list[Figures]]:
    """What each form cost in each round. A round goes through all of them."""
    found: dict[str, list[Figures]] = {name: [] for name in measures}
    for number in range(rounds):
        for name in Random(number).sample(list(measures), len(measures)):
            found[name].append(measures[name]())
    return found


def compare(forms: Mapping[str, Form], rounds: int) -> Iterator[tuple[str, Figures]]:
    """Name and figures of each form; those after the first have their ratios to it."""
    measures = {name: _measure(form) for name, form in forms.items()}
    for measure in measures.values():
        measure()  # the first run loads the file and forks the first processes
    found = measure_in_turns(measures, rounds)
    (first, *others) = found
    yield first, middle(found[first])
    for name in others:
        yield name, {**middle(found[name]), "against": first, **ratios(found[name], found[first])}


def ratios(those: list[Figures], these: list[Figures]) -> Figures:
    """How much more those cost than these, round by round and in the middle."""
    figures: Figures = {}
    for kind, field in _COMPARED.items():
        each = [round(that[field] / this[field], 3) for that, this in zip(those, these, strict=True)]
        figures |= {f"ratio_of_{kind}": round(median(each), 3), f"ratios_of_{kind}": each}
    return figures


def _measure(form: Form) -> Callable[[], Figures]:
    workflow_id = form.bench.save(form.text, form.file)
    return lambda: form.bench.measure(workflow_id)


def middle(found: list[Figures]) -> Figures:
    """The figures of the round in the middle, the wall time of every round and what was stolen in it."""
    middle = sorted(found, key=lambda one: one["wall_seconds"])[len(found) // 2]
    return {**middle, "walls": [one["wall_seconds"] for one in found], "stolen_of": [one["stolen"] for one in found]}
