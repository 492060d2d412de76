"""Schedules whose runs are for partitions: of a clock, of the assets that they wait for, or told when a task runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta, tzinfo
from typing import Any

from headrace.authoring.dag.asset_timetables import AssetTriggeredTimetable
from headrace.authoring.dag.assets import AssetAlias, BaseAsset
from headrace.authoring.dag.configuration import conf
from headrace.authoring.dag.partition_mappers import IdentityMapper, PartitionMapper
from headrace.authoring.dag.timetables import CronTriggerTimetable, NullTimetable

_KEY_FORMAT = "%Y-%m-%dT%H:%M:%S"


class CronPartitionTimetable(CronTriggerTimetable):
    """A run at each tick of a cron expression, for the partition of that tick or of one before or after it."""

    partitioned = True

    def __init__(
        self,
        cron: str,
        *,
        timezone: str | tzinfo,
        run_offset: int | None = None,
        run_immediately: bool | timedelta = False,
        key_format: str = _KEY_FORMAT,
    ) -> None:
        super().__init__(cron, timezone=timezone, run_immediately=run_immediately)
        if run_offset is not None and not isinstance(run_offset, int):
            raise ValueError(f"expected the run_offset of CronPartitionTimetable to be a number, got: {run_offset!r}")
        self._offset = run_offset or 0
        self._key_format = key_format

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        kind, spec = super().as_schedule(zone)
        offset = {"offset": self._offset} if self._offset else {}
        return kind, {**spec, "partition": {"format": self._key_format, **offset}}


class PartitionedAssetTimetable(AssetTriggeredTimetable):
    """A run for each partition for which events of these assets have come."""

    partitioned = True

    def __init__(
        self,
        *,
        assets: BaseAsset | Collection[BaseAsset],
        partition_mapper_config: Mapping[BaseAsset, PartitionMapper] | None = None,
        default_partition_mapper: PartitionMapper | None = None,
    ) -> None:
        super().__init__(assets)
        self.partition_mapper_config = dict(partition_mapper_config or {})
        self.default_partition_mapper = default_partition_mapper or IdentityMapper()

    def get_partition_mapper(self, *, name: str = "", uri: str = "") -> PartitionMapper:
        """The mapper for an asset."""
        for asset, mapper in self.partition_mapper_config.items():
            for leaf in asset.leaves():
                if (name and getattr(leaf, "name", "") == name) or (uri and getattr(leaf, "uri", "") == uri):
                    return mapper
        return self.default_partition_mapper

    def as_schedule(self, zone: str) -> tuple[str, dict[str, Any]]:
        kind, spec = super().as_schedule(zone)
        own = {
            _event_key(leaf): mapper.as_data()
            for asset, mapper in self.partition_mapper_config.items()
            for leaf in asset.leaves()
        }
        partitions = {
            "default": self.default_partition_mapper.as_data(),
            **({"of": own} if own else {}),
            "limit": conf.getint("scheduler", "partition_mapper_max_downstream_keys"),
        }
        return kind, {**spec, "partitions": partitions}


class PartitionedAtRuntime(NullTimetable):
    """Never; a run is for the partition that it is started for, and its tasks may say what else they have updated."""

    partitioned_at_runtime = True


def _event_key(leaf: BaseAsset) -> str:
    ((kind, name),) = leaf.condition().items()
    if isinstance(leaf, AssetAlias):
        raise TypeError(f"the alias `{name}` cannot have a partition mapper of its own: it has no partitions")
    return f"{kind}:{name}"
