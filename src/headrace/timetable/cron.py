"""Cron expressions as patterns over naive wall time; no time zones here.

Two dialects, which differ in what it means to give both a day of the month and a day of the week: `airflow` runs on
either, `digdag` on days that are both. `airflow` takes seconds as a sixth field. `|` joins alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from cronsim import CronSim, CronSimError

from headrace.definition import CRON_PRESETS
from headrace.errors import DefinitionError, did_you_mean

Dialect = Literal["airflow", "digdag"]


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    """Words for the numbers from `low` on."""


_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _DAYS),
)
_SECOND = _Field("second", 0, 59)
_ANY = datetime(2000, 1, 1)


class CronPattern:
    """One cron expression of five fields, or six with the seconds."""

    def __init__(self, fields: list[str], dialect: Dialect) -> None:
        self._text = _library_text(fields)
        self._needs_both_days = dialect == "digdag" or "*" in (fields[2], fields[4])
        self.is_every_hour = len(self._simulate(_ANY, is_reverse=False).hours) == 24

    def after(self, wall: datetime) -> Iterator[datetime]:
        """Matching wall times later than a naive one, in order."""
        return iter(self._simulate(wall, is_reverse=False))

    def before(self, wall: datetime) -> Iterator[datetime]:
        """Matching wall times earlier than a naive one, newest first."""
        return iter(self._simulate(wall, is_reverse=True))

    def _simulate(self, wall: datetime, *, is_reverse: bool) -> CronSim:
        simulation = CronSim(self._text, wall, reverse=is_reverse)
        # By itself the library follows Debian's cron, where `*/2` counts as "no day given".
        simulation.day_and = self._needs_both_days
        return simulation


def parse_cron(expression: str, dialect: Dialect) -> tuple[CronPattern, ...]:
    """The alternatives of an expression. Raises a DefinitionError that names the field that is wrong."""
    text = CRON_PRESETS.get(expression.strip().lower(), expression) if dialect == "airflow" else expression
    if text.strip().startswith("@"):
        raise DefinitionError(
            f"unknown schedule: `{expression}`",
            hint=did_you_mean(expression, (*CRON_PRESETS, "@once", "@continuous")) if dialect == "airflow" else None,
        )
    return tuple(_parse_alternative(alternative, expression, dialect) for alternative in text.split("|"))


def _parse_alternative(text: str, expression: str, dialect: Dialect) -> CronPattern:
    fields = text.upper().replace("?", "*").split()
    meanings = (*_FIELDS, _SECOND) if dialect == "airflow" and len(fields) > len(_FIELDS) else _FIELDS
    if len(fields) != len(meanings):
        raise DefinitionError(
            f"expected the schedule to be five cron fields, got: `{expression}` (found {len(fields)} fields)"
        )
    fields = [_without_wrapping(part, field) for part, field in zip(fields, meanings, strict=True)]
    try:
        return CronPattern(fields, dialect)
    except (CronSimError, AssertionError):
        raise DefinitionError(f"expected a schedule {_explain(fields)}, got: `{expression}`") from None


def _library_text(fields: list[str]) -> str:
    """The library wants the seconds first."""
    return " ".join((*fields[len(_FIELDS) :], *fields[: len(_FIELDS)]))


def _explain(fields: list[str]) -> str:
    for index, field in enumerate((*_FIELDS, _SECOND)[: len(fields)]):
        alone = ["*"] * len(fields)
        alone[index] = fields[index]
        try:
            CronSim(_library_text(alone), _ANY)
        except (CronSimError, AssertionError):
            return f"whose {field.name} is {field.low} to {field.high}"
    return "on a day that some month has"


def _without_wrapping(text: str, field: _Field) -> str:
    """Spell out ranges that go over the end, such as `22-2` or `FRI-MON`, which the library does not take."""
    return ",".join(_unwrap(term, field) for term in text.split(","))


def _unwrap(term: str, field: _Field) -> str:
    bounds, _, step = term.partition("/")
    low, dash, high = (_number(word, field) for word in bounds.partition("-"))
    if not dash or not low.isdigit() or not high.isdigit() or int(low) <= int(high) or not (step or "1").isdigit():
        return term
    if int(low) > field.high or int(high) < field.low or step == "0":
        return term
    values = [*range(int(low), field.high + 1), *range(field.low, int(high) + 1)]
    return ",".join(str(value) for value in values[:: int(step or 1)])


def _number(word: str, field: _Field) -> str:
    return str(field.names.index(word) + field.low) if word in field.names else word
