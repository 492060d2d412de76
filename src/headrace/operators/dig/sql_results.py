"""What a query gives back: a file in the project, or parameters for the tasks that follow."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.authoring.dig import as_boolean, as_text
from headrace.operators.dig.contract import Job, OperatorError, Params
from headrace.operators.dig.folders import inside_project

_MOST_ROWS = 8192
_MOST_COLUMNS = 64
_MOST_CHARACTERS = 256

Rows = Iterable[Sequence[Any]]


def wanted_results(params: Params) -> str:
    """`first`, `all` or nothing, as `store_last_results` says."""
    value = params.read("store_last_results", as_text, "false")
    if value in ("first", "all"):
        return value
    try:
        is_wanted = as_boolean(value)
    except ValueError:
        raise OperatorError(f"expected `store_last_results` to be first, all or false, got: `{value}`") from None
    # Once the only way to say it, and meant the first row.
    return "first" if is_wanted else ""


def stored_results(wanted: str, columns: Sequence[str], rows: Rows, *, is_limited: bool = True) -> Any:
    """The first row as a map, or all of them as a list, if they are not too much for parameters."""
    if not is_limited:
        found = (_as_map(columns, row) for row in rows)
        return next(found, {}) if wanted == "first" else list(found)
    if len(columns) > _MOST_COLUMNS:
        raise OperatorError(f"the result has {len(columns)} columns, at most {_MOST_COLUMNS} can be stored")
    if wanted == "first":
        return next((_stored(columns, row) for row in rows), {})
    stored: list[Any] = []
    for row in rows:
        if len(stored) == _MOST_ROWS:
            raise OperatorError(f"the result has more than {_MOST_ROWS} rows, which is too many to be stored")
        stored.append(_stored(columns, row))
    return stored


def write_csv(job: Job, name: str, columns: Sequence[str], rows: Rows) -> None:
    """Write a file with a header. It appears under its name when it is complete."""
    path = inside_project(job.root, job.folder / name, name)
    if not path.parent.is_dir():
        raise OperatorError(f"the folder of `download_file: {name}` does not exist")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\r\n")
            writer.writerow(columns)
            writer.writerows([_text(value) for value in row] for row in rows)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def as_json(value: Any) -> Any:
    """A value of a database as JSON has it."""
    if value is None or isinstance(value, str | bool | int | float | list | dict):
        return value
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() and value.is_finite() else float(value)
    return _text(value)


def _stored(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    stored = _as_map(columns, row)
    for name, value in stored.items():
        if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
            raise OperatorError(
                f"column `{name}` has {len(value)} characters, at most {_MOST_CHARACTERS} can be stored"
            )
    return stored


def _as_map(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return {name: as_json(value) for name, value in zip(columns, row, strict=True)}


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bool | dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return str(value)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
