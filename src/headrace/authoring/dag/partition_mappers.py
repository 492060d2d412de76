"""Partition mappers, as DAG files write them: for which partitions of a DAG an event about one of an asset is."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import Any, ClassVar

from headrace.authoring.dag.partition_windows import WaitForAll, WaitPolicy, Window
from headrace.authoring.dag.zones import timezone_name


class PartitionMapper:
    """What all of them have. The scheduler computes with `as_data`, and so do the methods for users."""

    is_rollup: ClassVar[bool] = False
    expected_decoded_type: ClassVar[type] = str

    def __init__(self, *, max_downstream_keys: int | None = None) -> None:
        is_wrong = not isinstance(max_downstream_keys, int) or max_downstream_keys < 1
        if max_downstream_keys is not None and is_wrong:
            raise ValueError(f"expected max_downstream_keys to be a positive number, got: {max_downstream_keys!r}")
        self.max_downstream_keys = max_downstream_keys

    def data(self) -> dict[str, Any]:
        """What it is, as data; a class of users has none."""
        raise TypeError(
            f"the partition mapper `{type(self).__name__}` is none of Airflow's own:"
            " the scheduler runs no code of users"
        )

    def as_data(self) -> dict[str, Any]:
        """As the definition's schedule says it."""
        if type(self).__module__ != __name__:
            return PartitionMapper.data(self)
        limit = {} if self.max_downstream_keys is None else {"limit": self.max_downstream_keys}
        return {**self.data(), **limit}

    def to_downstream(self, key: str) -> str | Iterable[str]:
        """The partition, or the partitions, that an event about a key is for."""
        keys: list[str] = self._computed().keys(key)
        return keys[0] if len(keys) == 1 else keys

    def to_partition_date(self, downstream_key: str) -> datetime | None:
        """When the period begins that a partition stands for."""
        found: datetime | None = self._computed().instant(downstream_key)
        return found

    def _computed(self) -> Any:
        # Named, not imported: a file that only declares them needs no time zones.
        return importlib.import_module("headrace.timetable").mapper_for(self.as_data())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(type(self))


class IdentityMapper(PartitionMapper):
    """The same key."""

    def data(self) -> dict[str, Any]:
        return {"type": "identity"}


class FixedKeyMapper(PartitionMapper):
    """One key for all."""

    def __init__(self, downstream_key: str, *, max_downstream_keys: int | None = None) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        if not isinstance(downstream_key, str) or not downstream_key:
            raise ValueError(f"expected the key of FixedKeyMapper to be a word, got: {downstream_key!r}")
        self.downstream_key = downstream_key

    def data(self) -> dict[str, Any]:
        return {"type": "fixed", "key": self.downstream_key}


class AllowedKeyMapper(PartitionMapper):
    """The same key, if it is one of these."""

    def __init__(self, allowed_keys: Iterable[str], *, max_downstream_keys: int | None = None) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.allowed_keys = list(allowed_keys)

    def data(self) -> dict[str, Any]:
        return {"type": "allowed", "keys": self.allowed_keys}


class _Combined(PartitionMapper):
    def __init__(self, *mappers: PartitionMapper, max_downstream_keys: int | None = None) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        wrong = next((one for one in mappers if not isinstance(one, PartitionMapper)), None)
        if len(mappers) < 2 or wrong is not None:
            raise TypeError(f"expected {type(self).__name__} to be made of two or more mappers, got: {mappers!r}")
        self.mappers = list(mappers)

    def _parts(self) -> list[dict[str, Any]]:
        return [one.as_data() for one in self.mappers]


class ProductMapper(_Combined):
    """A mapper for each part of a key such as `eu|2026-02-03`."""

    def __init__(self, *mappers: PartitionMapper, delimiter: str = "|", max_downstream_keys: int | None = None) -> None:
        super().__init__(*mappers, max_downstream_keys=max_downstream_keys)
        self.delimiter = delimiter

    def data(self) -> dict[str, Any]:
        return {"type": "product", "parts": self._parts(), "delimiter": self.delimiter}


class ChainMapper(_Combined):
    """One mapper after the other."""

    def data(self) -> dict[str, Any]:
        return {"type": "chain", "parts": self._parts()}


class _Temporal(PartitionMapper):
    """The period that a key lies in."""

    expected_decoded_type = datetime
    unit: ClassVar[str]
    default_output_format: ClassVar[str]

    def __init__(
        self,
        *,
        timezone: str | tzinfo = "UTC",
        input_format: str = "%Y-%m-%dT%H:%M:%S",
        output_format: str | None = None,
        max_downstream_keys: int | None = None,
    ) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.timezone = timezone if isinstance(timezone, str) else timezone_name(timezone)
        self.input_format = input_format
        self.output_format = output_format or self.default_output_format

    def data(self) -> dict[str, Any]:
        return {
            "type": "period",
            "unit": self.unit,
            "timezone": self.timezone,
            "input_format": self.input_format,
            "output_format": self.output_format,
        }


class StartOfHourMapper(_Temporal):
    """`2026-02-03T04:05:06` → `2026-02-03T04`."""

    unit, default_output_format = "hour", "%Y-%m-%dT%H"


class StartOfDayMapper(_Temporal):
    """`2026-02-03T04:05:06` → `2026-02-03`."""

    unit, default_output_format = "day", "%Y-%m-%d"


class StartOfWeekMapper(_Temporal):
    """`2026-02-03T04:05:06` → `2026-02-02 (W06)`."""

    unit, default_output_format = "week", "%Y-%m-%d (W%V)"


class StartOfMonthMapper(_Temporal):
    """`2026-02-03T04:05:06` → `2026-02`."""

    unit, default_output_format = "month", "%Y-%m"


class StartOfQuarterMapper(_Temporal):
    """`2026-02-03T04:05:06` → `2026-Q1`."""

    unit, default_output_format = "quarter", "%Y-Q{quarter}"


class StartOfYearMapper(_Temporal):
    """`2026-02-03T04:05:06` → `2026`."""

    unit, default_output_format = "year", "%Y"


class RollupMapper(PartitionMapper):
    """Many keys into one: a run starts when the keys of a window have come, or as many as the policy wants."""

    is_rollup = True

    def __init__(
        self,
        *,
        upstream_mapper: PartitionMapper,
        window: Window,
        wait_policy: WaitPolicy | None = None,
        max_downstream_keys: int | None = None,
    ) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        if upstream_mapper.expected_decoded_type is not window.expected_decoded_type:
            raise TypeError(
                f"{type(window).__name__} and {type(upstream_mapper).__name__} do not go together: one is about"
                f" periods of time, the other about other keys"
            )
        self.upstream_mapper = upstream_mapper
        self.window = window
        self.wait_policy = wait_policy or WaitForAll()

    def data(self) -> dict[str, Any]:
        enough = self.wait_policy.at_least()
        return {
            "type": "rollup",
            "upstream": self.upstream_mapper.as_data(),
            "window": self.window.as_data(),
            **({} if enough is None else {"at_least": enough}),
        }


class FanOutMapper(PartitionMapper):
    """One key into many: a run for each member of the window that a key stands for."""

    default_downstream_mapper_by_window_name: ClassVar[dict[str, type[_Temporal]]] = {
        "DayWindow": StartOfHourMapper,
        "WeekWindow": StartOfDayMapper,
        "MonthWindow": StartOfDayMapper,
        "QuarterWindow": StartOfMonthMapper,
        "YearWindow": StartOfMonthMapper,
    }

    def __init__(
        self,
        *,
        upstream_mapper: PartitionMapper,
        window: Window,
        downstream_mapper: PartitionMapper | None = None,
        max_downstream_keys: int | None = None,
    ) -> None:
        super().__init__(max_downstream_keys=max_downstream_keys)
        self.upstream_mapper = upstream_mapper
        self.window = window
        self.downstream_mapper = downstream_mapper or self._usual_mapper(window)

    def _usual_mapper(self, window: Window) -> PartitionMapper:
        kind = self.default_downstream_mapper_by_window_name.get(type(window).__name__)
        if kind is None:
            raise ValueError(f"FanOutMapper over a {type(window).__name__} needs a `downstream_mapper`")
        return kind()

    def data(self) -> dict[str, Any]:
        return {
            "type": "fan_out",
            "upstream": self.upstream_mapper.as_data(),
            "window": self.window.as_data(),
            "downstream": self.downstream_mapper.as_data(),
        }
