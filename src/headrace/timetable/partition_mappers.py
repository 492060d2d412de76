"""Which partitions of a workflow an event about a partition of an asset is for.

    identity   {}                                the same key
    fixed      {"key": KEY}                      one key for all
    allowed    {"keys": [KEY, …]}                the same key, if it is one of these
    period     {"unit": "hour" … "year", "timezone", "input_format", "output_format"}     the period it lies in
    product    {"parts": [mapper, …], "delimiter": "|"}     each part of the key by a mapper of its own
    chain      {"parts": [mapper, …]}            one mapper after the other
    rollup     {"upstream": mapper, "window": window, "at_least": n}      all members of a window make up one key;
               `at_least`: so many are enough, or, if negative, so many may be missing
    fan_out    {"upstream": mapper, "window": window, "downstream": mapper}     a key for each member of a window

A mapper also has its `type`, and may have a `limit` of keys that one event may lead to. A window is {"unit": "hour" …
"year", "is_backward": bool} or {"segments": [KEY, …]}. Pure; keys that do not fit raise a ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

from headrace.errors import DefinitionError, did_you_mean
from headrace.timetable.periods import (
    CalendarWindow,
    KeyFormat,
    SegmentWindow,
    Unit,
    in_utc,
    localized,
    unit_named,
)
from headrace.timetable.walltime import zone_of

Window = CalendarWindow | SegmentWindow


@dataclass(frozen=True, slots=True)
class Mapper:
    """The same key. Others say where they differ."""

    carries_time: bool = True
    """Whether the partition is about the same time as that of the event, which a key alone does not tell."""
    limit: int | None = None
    """How many partitions one event may be for; None: as the schedule says."""

    def keys(self, key: str) -> list[str]:
        """The partitions that an event about a key is for."""
        return [key]

    def decoded(self, key: str) -> Any:
        """What windows reckon with in place of a key that this mapper has made."""
        return key

    def encoded(self, member: Any) -> str:
        """The key of an event that is about a member of a window."""
        return str(member)

    def written(self, member: Any) -> str:
        """The key that this mapper would make for a member of a window."""
        return member.isoformat() if isinstance(member, datetime) else str(member)

    def instant(self, key: str) -> datetime | None:
        """When the period begins that a key of this mapper stands for; None if it stands for none."""
        return None

    def is_complete(self, key: str, arrived: Set[str]) -> bool:
        """Whether events about these keys are enough for a partition."""
        return bool(arrived)

    def one_key(self, key: str) -> str:
        """The only partition that an event about a key is for."""
        (only, *more) = self.keys(key)
        if more:
            raise ValueError(f"expected one partition for `{key}`, got {len(more) + 1}")
        return only


@dataclass(frozen=True, slots=True)
class _Fixed(Mapper):
    carries_time: bool = False
    key: str = ""

    def keys(self, key: str) -> list[str]:
        return [self.key]


@dataclass(frozen=True, slots=True)
class _Allowed(Mapper):
    carries_time: bool = False
    allowed: tuple[str, ...] = ()

    def keys(self, key: str) -> list[str]:
        if key not in self.allowed:
            raise ValueError(f"expected one of {', '.join(f'`{one}`' for one in self.allowed)}, got: `{key}`")
        return [key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Period(Mapper):
    carries_time: bool = False
    unit: Unit
    zone: tzinfo
    input_format: str
    output: KeyFormat

    def keys(self, key: str) -> list[str]:
        moment = datetime.strptime(key, self.input_format)
        local = localized(moment, self.zone) if moment.tzinfo is None else moment.astimezone(self.zone)
        return [self.output.write(self.unit.start(local))]

    def decoded(self, key: str) -> datetime:
        return self.output.read(key)

    def encoded(self, member: datetime) -> str:
        wall = member if member.tzinfo is None else member.astimezone(self.zone)
        return localized(wall, self.zone).strftime(self.input_format)

    def written(self, member: datetime) -> str:
        return self.output.write(member)

    def instant(self, key: str) -> datetime:
        start = self.unit.start(self.output.read(key))
        return in_utc(localized(start, self.zone) if start.tzinfo is None else start)


@dataclass(frozen=True, slots=True)
class _Product(Mapper):
    carries_time: bool = False
    parts: tuple[Mapper, ...] = ()
    delimiter: str = "|"

    def keys(self, key: str) -> list[str]:
        pieces = key.split(self.delimiter)
        if len(pieces) != len(self.parts):
            raise ValueError(f"expected {len(self.parts)} parts between `{self.delimiter}`, got: `{key}`")
        return [self.delimiter.join(part.one_key(piece) for part, piece in zip(self.parts, pieces, strict=True))]

    def instant(self, key: str) -> datetime | None:
        pieces = key.split(self.delimiter)
        if len(pieces) != len(self.parts):
            return None
        found = [part.instant(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        told = [one for one in found if one is not None]
        return told[0] if len(told) == 1 else None


@dataclass(frozen=True, slots=True)
class _Chain(Mapper):
    carries_time: bool = False
    parts: tuple[Mapper, ...] = ()

    def keys(self, key: str) -> list[str]:
        keys = [key]
        for part in self.parts:
            keys = [following for one in keys for following in part.keys(one)]
        return keys

    def instant(self, key: str) -> datetime | None:
        return self.parts[-1].instant(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rollup(Mapper):
    carries_time: bool = False
    upstream: Mapper
    window: Window
    at_least: int | None = None

    def keys(self, key: str) -> list[str]:
        return self.upstream.keys(key)

    def instant(self, key: str) -> datetime | None:
        return self.upstream.instant(key)

    def is_complete(self, key: str, arrived: Set[str]) -> bool:
        expected = {self.upstream.encoded(one) for one in self.window.members(self.upstream.decoded(key))}
        enough = len(expected) if self.at_least is None else self.at_least
        return len(arrived & expected) >= (enough if enough > 0 else max(0, len(expected) + enough))


@dataclass(frozen=True, slots=True, kw_only=True)
class _FanOut(Mapper):
    carries_time: bool = False
    upstream: Mapper
    window: Window
    downstream: Mapper

    def keys(self, key: str) -> list[str]:
        start = self.upstream.decoded(self.upstream.one_key(key))
        return [self.downstream.written(member) for member in self.window.members(start)]

    def instant(self, key: str) -> datetime | None:
        return self.downstream.instant(key)


def mapper_for(data: dict[str, Any]) -> Mapper:
    """The mapper that data stands for. Raises a DefinitionError if it makes no sense."""
    kind = data.get("type")
    make = _KINDS.get(str(kind))
    if make is None:
        hint = did_you_mean(str(kind), _KINDS)
        raise DefinitionError(f"expected a partition mapper of type {', '.join(_KINDS)}, got: `{kind}`", hint=hint)
    return replace(make(data), limit=data.get("limit"))


def _period(data: dict[str, Any]) -> Mapper:
    unit = unit_named(data.get("unit"))
    return _Period(
        unit=unit,
        zone=zone_of(str(data.get("timezone") or "UTC")),
        input_format=data.get("input_format") or "%Y-%m-%dT%H:%M:%S",
        output=KeyFormat(data.get("output_format") or unit.key_format),
    )


def _rollup(data: dict[str, Any]) -> Mapper:
    return _Rollup(upstream=mapper_for(data["upstream"]), window=_window(data), at_least=data.get("at_least"))


def _fan_out(data: dict[str, Any]) -> Mapper:
    downstream = mapper_for(data["downstream"])
    return _FanOut(upstream=mapper_for(data["upstream"]), window=_window(data), downstream=downstream)


def _window(data: dict[str, Any]) -> Window:
    window = data["window"]
    if "segments" in window:
        return SegmentWindow(tuple(window["segments"]))
    unit_named(window.get("unit"))
    return CalendarWindow(window["unit"], bool(window.get("is_backward", False)))


def _parts(data: dict[str, Any]) -> tuple[Mapper, ...]:
    return tuple(mapper_for(one) for one in data["parts"])


_KINDS: dict[str, Callable[[dict[str, Any]], Mapper]] = {
    "identity": lambda data: Mapper(),
    "fixed": lambda data: _Fixed(key=data["key"]),
    "allowed": lambda data: _Allowed(allowed=tuple(data["keys"])),
    "period": _period,
    "product": lambda data: _Product(parts=_parts(data), delimiter=data.get("delimiter", "|")),
    "chain": lambda data: _Chain(parts=_parts(data)),
    "rollup": _rollup,
    "fan_out": _fan_out,
}
