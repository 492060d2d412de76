"""Partitions of a schedule: the keys of runs that a clock starts, and runs of workflows that wait for partitions.

The spec of a schedule on assets says in `partitions` how keys of events become keys of runs:
{"default": mapper, "of": {event key: mapper}, "limit": n}. The spec of a `cron` schedule says in `partition` how the
times of runs become keys: {"format": "%Y-%m-%d", "offset": ticks}.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from headrace.timetable.asset_conditions import is_met
from headrace.timetable.partition_mappers import Mapper, mapper_for
from headrace.timetable.periods import in_utc, localized
from headrace.timetable.ticks import Ticks

LONGEST_KEY = 250
MISFITS = (ValueError, TypeError, OverflowError)
"""What a mapper raises about a key that it can do nothing with; calendars have a first and a last day."""


class KeyMistake(ValueError):
    """A key cannot be the name of a partition."""


class Contribution(NamedTuple):
    """An event that counts for a partition, under the key that the schedule knows it by."""

    event_key: str
    partition_key: str
    """What the event was about."""
    partition_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """What a schedule on assets says about partitions."""

    when: dict[str, Any]
    default: Mapper
    own: dict[str, Mapper]
    limit: int = 1000
    """How many partitions one event may be for, unless its mapper says otherwise."""

    def mapper(self, event_key: str) -> Mapper:
        return self.own.get(event_key, self.default)

    def partitions_of(self, event_key: str, key: str) -> list[str]:
        """The partitions that an event is for. Raises a KeyMistake if it is for none."""
        mapper = self.mapper(event_key)
        try:
            found = list(dict.fromkeys(mapper.keys(key)))
        except MISFITS as error:
            raise KeyMistake(str(error)) from None
        limit = mapper.limit or self.limit
        if len(found) > limit:
            raise KeyMistake(f"it would be for {len(found)} partitions, and {limit} are allowed")
        for one in found:
            check_key(one)
        return found

    def is_ready(self, partition: str, events: Iterable[Contribution]) -> bool:
        """Whether the events of a partition are enough to start its run."""
        arrived: dict[str, set[str]] = {}
        for event in events:
            arrived.setdefault(event.event_key, set()).add(event.partition_key)
        return is_met(self.when, {key for key, keys in arrived.items() if self._is_complete(key, partition, keys)})

    def _is_complete(self, event_key: str, partition: str, arrived: set[str]) -> bool:
        try:
            return self.mapper(event_key).is_complete(partition, arrived)
        except MISFITS:
            return False

    def time_of(self, partition: str, events: Iterable[Contribution]) -> datetime | None:
        """When the period begins that a partition stands for; None if nobody says so, or not all the same."""
        carried, told = set(), set()
        for event in events:
            mapper = self.mapper(event.event_key)
            if mapper.carries_time:
                carried.add(event.partition_at)
            try:
                told.add(mapper.instant(partition))
            except MISFITS:
                return None
        found = (told - {None}) or (carried - {None})
        return found.pop() if len(found) == 1 else None


def partition_rules(spec: dict[str, Any]) -> PartitionRules | None:
    """The rules of a schedule on assets; None if it does not wait for partitions. Raises a DefinitionError."""
    data = spec.get("partitions")
    if data is None:
        return None
    return PartitionRules(
        when=spec["when"],
        default=mapper_for(data.get("default", {"type": "identity"})),
        own={key: mapper_for(one) for key, one in data.get("of", {}).items()},
        limit=data.get("limit", 1000),
    )


@dataclass(frozen=True, slots=True)
class TickPartitions:
    """The partition of each tick of a clock."""

    ticks: Ticks
    zone: tzinfo
    key_format: str = "%Y-%m-%dT%H:%M:%S"
    offset: int = 0
    """The partition is of the tick so many later than that of the run; negative: earlier."""

    def time(self, tick: datetime) -> datetime:
        return self._shifted(tick, self.offset)

    def tick(self, time: datetime) -> datetime:
        """The tick whose partition is of this time."""
        return self._shifted(time, -self.offset)

    def _shifted(self, tick: datetime, steps: int) -> datetime:
        for _ in range(abs(steps)):
            tick = (self.ticks.after(tick) if steps > 0 else self.ticks.before(tick)) or tick
        return tick

    def key(self, time: datetime) -> str:
        return time.astimezone(self.zone).strftime(self.key_format)

    def time_of(self, key: str) -> datetime:
        """When the period begins that a key stands for. Raises a KeyMistake if it is not of the right form."""
        try:
            moment = datetime.strptime(key, self.key_format)
            return in_utc(localized(moment, self.zone) if moment.tzinfo is None else moment)
        except MISFITS:
            raise KeyMistake(f"expected a partition key like `{self.key_format}`, got: `{key}`") from None


def check_key(key: object) -> str:
    """The key, if it can be the name of a partition."""
    if not isinstance(key, str) or not key.strip() or "\0" in key:
        raise KeyMistake(f"expected the key of a partition to be a word, got: {key!r}")
    if len(key) > LONGEST_KEY:
        raise KeyMistake(f"expected the key of a partition to have at most {LONGEST_KEY} characters, got {len(key)}")
    return key
