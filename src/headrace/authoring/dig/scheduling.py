"""Turns a `schedule:` section into a schedule: every kind of it is a cron pattern plus a delay."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from headrace.authoring.dig.asset_schedules import ASSETS, asset_condition
from headrace.authoring.dig.values import as_boolean, as_integer, as_seconds, as_text, shown
from headrace.authoring.dig.yaml_dialect import place_of
from headrace.definition import Place, Schedule
from headrace.errors import DefinitionError, did_you_mean
from headrace.timetable import timetable_for, zone_of

_COMMON_KEYS = ("at", "delay", "skip_on_overtime", "skip_delayed_by", "start", "end", "_type", "_command")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")


class Pattern(NamedTuple):
    expression: str
    delay_seconds: int
    interval_seconds: int = 0
    """In place of an expression: multiples of this since 1970."""


def parse_timezone(value: Any, place: Place) -> str:
    """The name of a workflow's time zone; a fixed offset in any of its spellings becomes `+09:00`."""
    name = value if isinstance(value, str) else ""
    offset = _OFFSET.fullmatch(name)
    if name in ("Z", "UT"):
        name = "UTC"
    elif offset is not None:
        name = f"{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"
    try:
        zone_of(name)
    except (DefinitionError, ValueError) as error:
        raise DefinitionError(
            f"expected `timezone` to be a time zone, got: {shown(value)}",
            hint=getattr(error, "hint", None) or "name one like `Asia/Tokyo` or `+09:00`",
            file=place.file or None,
            line=place.line,
        ) from None
    return name


def compile_schedule(section: Any, timezone: str, place: Place) -> Schedule:
    """The schedule of a workflow, or a DefinitionError with the line of what is wrong."""
    if not isinstance(section, dict):
        raise _error(f"expected `schedule` to be a map, got: {shown(section)}", place)
    return _Compiler(section, timezone, place).compile()


class _Compiler:
    def __init__(self, section: Mapping[str, Any], timezone: str, place: Place) -> None:
        self._section = section
        self._timezone = timezone
        self._place = place

    def compile(self) -> Schedule:
        kind, key = self._kind()
        if kind == ASSETS:
            condition = self._checked(key, lambda: asset_condition(self._command(key)))
            return Schedule(type=ASSETS, spec={"when": condition})
        pattern = self._checked(key, lambda: KINDS[kind](self._command(key), self._section))
        seconds = pattern.interval_seconds
        times: dict[str, Any] = {"seconds": seconds} if seconds else {"expression": pattern.expression}
        schedule = Schedule(
            type="interval" if seconds else "cron",
            spec={
                **times,
                "timezone": self._timezone,
                "semantics": "digdag",
                "delay_seconds": pattern.delay_seconds,
            },
            catch_up="all",
            overlap="skip" if self._read("skip_on_overtime", as_boolean) else "allow",
            start_at=self._midnight("start"),
            end_at=self._last_second("end"),
            skip_delayed_seconds=self._skip_delayed(),
        )
        self._check(schedule, key)
        return schedule

    def _check(self, schedule: Schedule, key: str) -> None:
        try:
            timetable_for(schedule, self._timezone)
        except DefinitionError as error:
            place = place_of(self._section, key, self._place)
            raise DefinitionError(error.message, hint=error.hint, file=place.file, line=place.line) from None

    def _kind(self) -> tuple[str, str]:
        keys = [key for key in self._section if key.endswith(">")]
        if "_type" in self._section:
            keys.append("_type")
        if len(keys) != 1:
            found = ", ".join(f"`{key}`" for key in keys) or "none"
            raise _error(f"expected `schedule` to have one of {', '.join(_names())}, got: {found}", self._place)
        kind = str(self._section["_type"]) if keys[0] == "_type" else keys[0].removesuffix(">")
        if kind not in KINDS and kind != ASSETS:
            raise self._unknown(keys[0], f"`{kind}>` is not a kind of schedule", f"{kind}>", _names())
        for key in self._section:
            if key != keys[0] and key not in _COMMON_KEYS:
                raise self._unknown(key, f"`schedule` has no setting `{key}`", key, _COMMON_KEYS)
        return kind, keys[0]

    def _command(self, key: str) -> Any:
        value = self._section.get("_command") if key == "_type" else self._section[key]
        value = self._section.get("at") if value is None else value
        if value is None:
            raise ValueError("to have a value")
        return value

    def _skip_delayed(self) -> float | None:
        seconds = self._read("skip_delayed_by", as_seconds)
        return None if seconds is None else float(seconds)

    def _midnight(self, key: str) -> str | None:
        day = self._read(key, _date)
        return None if day is None else self._instant(day).isoformat()

    def _last_second(self, key: str) -> str | None:
        day = self._read(key, _date)
        return None if day is None else (self._instant(day + timedelta(days=1)) - timedelta(seconds=1)).isoformat()

    def _instant(self, day: date) -> datetime:
        return datetime.combine(day, datetime.min.time(), zone_of(self._timezone)).astimezone(UTC)

    def _read(self, key: str, convert: Callable[[Any], Any]) -> Any:
        value = self._section.get(key)
        return None if value is None else self._checked(key, lambda: convert(value))

    def _checked(self, key: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except ValueError as error:
            place = place_of(self._section, key, self._place)
            raise _error(f"expected `{key}` of the schedule {error}", place) from None

    def _unknown(self, key: str, message: str, name: str, candidates: Any) -> DefinitionError:
        place = place_of(self._section, key, self._place)
        return DefinitionError(message, hint=did_you_mean(name, candidates), file=place.file or None, line=place.line)


def _hourly(value: Any, _: Mapping[str, Any]) -> Pattern:
    return Pattern("0 * * * *", _elapsed(value, "MM:SS"))


def _daily(value: Any, _: Mapping[str, Any]) -> Pattern:
    return Pattern("0 0 * * *", _elapsed(value, "HH:MM:SS"))


def _weekly(value: Any, _: Mapping[str, Any]) -> Pattern:
    day, clock = _split(value, "DDD,HH:MM:SS")
    if re.fullmatch(r"[0-7]|sun|mon|tue|wed|thu|fri|sat", day, re.IGNORECASE) is None:
        raise ValueError(f"to begin with a weekday (0 to 7, or Sun to Sat), got: {shown(day)}")
    return Pattern(f"0 0 * * {day}", _elapsed(clock, "HH:MM:SS"))


def _monthly(value: Any, _: Mapping[str, Any]) -> Pattern:
    day, clock = _split(value, "D,HH:MM:SS")
    if re.fullmatch(r"0?[1-9]|[12]\d|3[01]|L", day, re.IGNORECASE) is None:
        raise ValueError(f"to begin with a day of the month (1 to 31), got: {shown(day)}")
    return Pattern(f"0 0 {day if day.isalpha() else int(day)} * *", _elapsed(clock, "HH:MM:SS"))


def _minutes_interval(value: Any, section: Mapping[str, Any]) -> Pattern:
    minutes = as_integer(value)
    if not 1 <= minutes <= 59:
        raise ValueError(f"to be 1 to 59 minutes, got: {shown(value)}")
    return Pattern(f"*/{minutes} * * * *", _delay(section))


def _seconds_interval(value: Any, section: Mapping[str, Any]) -> Pattern:
    seconds = as_integer(value)
    if seconds < 1:
        raise ValueError(f"to be at least 1 second, got: {shown(value)}")
    return Pattern("", _delay(section), seconds)


def _cron(value: Any, section: Mapping[str, Any]) -> Pattern:
    expression = " ".join(as_text(value).split())
    for alternative in expression.split("|"):
        if len(alternative.split()) != 5:
            raise ValueError(f"to be five cron fields, got: {shown(value)}")
    return Pattern(expression, _delay(section))


KINDS: dict[str, Callable[[Any, Mapping[str, Any]], Pattern]] = {
    "hourly": _hourly,
    "daily": _daily,
    "weekly": _weekly,
    "monthly": _monthly,
    "minutes_interval": _minutes_interval,
    "seconds_interval": _seconds_interval,
    "cron": _cron,
}


def _names() -> list[str]:
    return [f"{kind}>" for kind in (*KINDS, ASSETS)]


def _delay(section: Mapping[str, Any]) -> int:
    try:
        delay = as_integer(section.get("delay", 0))
    except ValueError as error:
        raise ValueError(f"and its `delay` {error}") from None
    if delay < 0:
        raise ValueError(f"to have a `delay` that is not negative, got: {delay}")
    return delay


def _split(value: Any, form: str) -> tuple[str, str]:
    parts = [part.strip() for part in as_text(value).split(",")]
    if len(parts) != 2:
        raise ValueError(f"to look like `{form}`, got: {shown(value)}")
    return parts[0], parts[1]


def _elapsed(value: Any, form: str) -> int:
    """Seconds after the session time. It looks like a time of day, but may go on into the next day."""
    parts = as_text(value).split(":")
    if len(parts) != len(form.split(":")) or not all(re.fullmatch(r"\d{1,5}", part) for part in parts):
        raise ValueError(f"to look like `{form}`, got: {shown(value)}")
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + int(part)
    return seconds


def _date(value: Any) -> date:
    try:
        return datetime.strptime(value if len(value) == 10 else "", "%Y-%m-%d").date()
    except (TypeError, ValueError):
        raise ValueError(f"to be a date like `2026-01-31`, got: {shown(value)}") from None


def _error(message: str, place: Place) -> DefinitionError:
    return DefinitionError(message, file=place.file or None, line=place.line)
