"""Schedules that wait for assets, alone or beside a clock."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from headrace.authoring.dag.assets import AssetAll, BaseAsset
from headrace.authoring.dag.timetables import DagRunInfo, DataInterval, KnownTimetable, TimeRestriction, Timetable


def as_condition(assets: BaseAsset | Collection[BaseAsset]) -> BaseAsset:
    """A collection of assets means all of them."""
    if isinstance(assets, BaseAsset):
        return assets
    return AssetAll(*assets)


class AssetTriggeredTimetable(KnownTimetable):
    """A run whenever events of these assets have come."""

    def __init__(self, assets: BaseAsset | Collection[BaseAsset]) -> None:
        self.asset_condition = as_condition(assets)

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        return "assets", {"when": self.asset_condition.condition()}

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        return None


class AssetOrTimeSchedule(AssetTriggeredTimetable):
    """The runs of a timetable, and one whenever events of these assets have come."""

    def __init__(self, *, timetable: Timetable, assets: BaseAsset | Collection[BaseAsset]) -> None:
        super().__init__(assets)
        if not isinstance(timetable, KnownTimetable) or isinstance(timetable, AssetTriggeredTimetable):
            raise TypeError(
                f"expected the timetable of AssetOrTimeSchedule to be one of Airflow's own, got: {timetable!r}"
            )
        self.timetable = timetable

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        kind, spec = self.timetable.as_schedule(zone)
        return "assets", {"when": self.asset_condition.condition(), "time": {"type": kind, "spec": spec}}


class DatasetOrTimeSchedule(AssetOrTimeSchedule):
    """What it was called before Airflow 3."""

    def __init__(self, *, timetable: Timetable, datasets: BaseAsset | Collection[BaseAsset]) -> None:
        super().__init__(timetable=timetable, assets=datasets)
