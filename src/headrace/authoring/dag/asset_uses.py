"""Which assets a DAG is scheduled on, and which its tasks update and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from headrace.authoring.dag.asset_timetables import AssetTriggeredTimetable
from headrace.authoring.dag.assets import Asset, AssetAlias, AssetRef, AssetWatcher, BaseAsset
from headrace.authoring.dag.dags import DAG
from headrace.authoring.dag.exceptions import SerializationError
from headrace.authoring.dag.schedules import timetable_of
from headrace.authoring.dag.values import encode_value
from headrace.definition import AssetUse, Watcher, to_json

Role = Literal["schedule", "outlet", "inlet"]


def asset_uses_of(dag: DAG) -> tuple[AssetUse, ...]:
    """Each use once, in the order of the file."""
    found = {(use.kind, use.name, use.role, use.task): use for use in _uses(dag)}
    return tuple(found.values())


def assets_in(values: Iterable[Any]) -> Iterator[BaseAsset]:
    """The assets and aliases among inlets or outlets, which may be of other kinds, too."""
    for value in values:
        if isinstance(value, BaseAsset):
            yield from value.leaves()


def _uses(dag: DAG) -> Iterator[AssetUse]:
    timetable = timetable_of(dag)
    if isinstance(timetable, AssetTriggeredTimetable):
        for asset in timetable.asset_condition.leaves():
            yield replace(_use(asset, "schedule", ""), by_partition=timetable.partitioned)
    for key, task in dag.task_dict.items():
        for asset in assets_in(task.settings.outlets):
            yield _use(asset, "outlet", key)
        for asset in assets_in(task.settings.inlets):
            yield _use(asset, "inlet", key)


def _use(asset: BaseAsset, role: Role, task: str) -> AssetUse:
    if isinstance(asset, AssetAlias):
        return AssetUse(name=asset.name, kind="alias", role=role, task=task, group=asset.group)
    if isinstance(asset, AssetRef):
        return AssetUse(name=asset.condition()["asset"], role=role, task=task)
    assert isinstance(asset, Asset), "combinations were taken apart"
    to_json(asset.extra)
    return AssetUse(
        name=asset.name,
        role=role,
        task=task,
        uri=asset.uri,
        group=asset.group,
        extra=asset.extra,
        watchers=tuple(_watcher(asset, one) for one in asset.watchers),
    )


def _watcher(asset: Asset, watcher: AssetWatcher) -> Watcher:
    path, arguments = watcher.trigger.serialize()
    try:
        form = {name: msgspec.json.decode(encode_value(one, name)) for name, one in arguments.items()}
    except SerializationError as error:
        raise SerializationError(f"asset `{asset.name}` cannot be watched by trigger `{path}`: {error}") from None
    return Watcher(name=watcher.name, trigger=path, arguments=form)
