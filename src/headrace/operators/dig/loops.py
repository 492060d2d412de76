"""The operators that repeat `_do`: `loop>`, `for_each>`, `for_range>`. Every repetition is a named task."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from headrace.authoring.dig import as_integer, as_list, as_map, parse_parallel
from headrace.operators.dig.contract import Job, OperatorError, Outcome

_TAG_LENGTH = 8
_MOST = 100_000
"""No run may have so many tasks; whoever asks for more is told before the machine's memory is gone."""


def run_loop(job: Job) -> Outcome:
    """Repeat `_do` with `${i}` from 0."""
    count = job.params.read("count", as_integer, None)
    count = job.params.integer("_command") if count is None else count
    return _repeated(job, count, ((f"+loop-{i}", {"i": i}) for i in range(count)))


def run_for_each(job: Job) -> Outcome:
    """Repeat `_do` for each combination of values; the first variable changes slowest."""
    variables = [(name, _values(name, values)) for name, values in job.params.read("_command", as_map).items()]
    choices = [
        [(index, name, *choice) for choice in enumerate(values)] for index, (name, values) in enumerate(variables)
    ]
    return _repeated(
        job,
        math.prod(len(values) for _, values in variables),
        (
            ("+for-" + "&".join(_tag(*choice) for choice in chosen), {name: value for _, name, _, value in chosen})
            for chosen in (itertools.product(*choices) if choices else ())
        ),
    )


def run_for_range(job: Job) -> Outcome:
    """Repeat `_do` for consecutive ranges, with `${range.from}`, `${range.to}` and `${range.index}`."""
    span = job.params.read("_command", as_map)
    start, stop = _bound(span, "from"), _bound(span, "to")
    step = _step(span, start, stop)
    ranges = ((at, min(at + step, stop)) for at in range(start, stop, step))
    return _repeated(
        job,
        len(range(start, stop, step)),
        (
            (f"+range-from={low}&to={high}", {"range": {"from": low, "to": high, "index": index}})
            for index, (low, high) in enumerate(ranges)
        ),
    )


def _repeated(job: Job, count: int, repetitions: Iterable[tuple[str, dict[str, Any]]]) -> Outcome:
    if count > _MOST:
        raise OperatorError(f"too many tasks: `{job.operator}>` would add {count}, at most {_MOST} are possible")
    body = job.params.raw("_do")
    if body is None:
        raise OperatorError("parameter `_do` is required but not set")
    subtasks = {name: _with_export(body, variables) for name, variables in repetitions}
    parallel = job.params.read("_parallel", parse_parallel, None)
    if subtasks and parallel is not None and parallel.is_parallel:
        return Outcome(subtasks={"_parallel": {"limit": parallel.limit}, **subtasks})
    return Outcome(subtasks=subtasks)


def _with_export(body: Any, variables: dict[str, Any]) -> dict[str, Any]:
    """The body with the loop's variables exported; they come first, so that its own exports can refer to them."""
    joined: dict[str, Any] = {}
    for part in body if isinstance(body, list) else [body]:
        if not isinstance(part, dict):
            raise OperatorError("expected parameter `_do` to be a map")
        joined.update(part)
    own = joined.pop("_export", None) or {}
    return {"_export": {**variables, **{key: own[key] for key in own if key not in variables}}, **joined}


def _values(name: str, values: Any) -> list[Any]:
    try:
        return as_list(values)
    except ValueError as error:
        raise OperatorError(f"expected variable `{name}` of `for_each>` {error}") from None


def _tag(name_index: int, name: str, value_index: int, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"{name_index}={_shortened(name)}={value_index}={_shortened(text)}"


def _shortened(text: str) -> str:
    return quote(text[:_TAG_LENGTH], safe="").replace("~", "%7E")


def _bound(span: dict[str, Any], key: str) -> int:
    if span.get(key) is None:
        raise OperatorError(f"parameter `{key}` of `for_range>` is required but not set")
    try:
        return as_integer(span[key])
    except ValueError as error:
        raise OperatorError(f"expected parameter `{key}` of `for_range>` {error}") from None


def _step(span: dict[str, Any], start: int, stop: int) -> int:
    if ("step" in span) == ("slices" in span):
        raise OperatorError("expected `for_range>` to have either `step` or `slices`")
    key = "step" if "step" in span else "slices"
    number = _bound(span, key)
    if number <= 0:
        raise OperatorError(f"expected parameter `{key}` of `for_range>` to be positive, got: `{number}`")
    return number if key == "step" else max(-(-(stop - start) // number), 1)
