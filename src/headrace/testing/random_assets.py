"""Random schedules on assets, with conditions, partitions and watchers, and random events of the same assets."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from headrace.definition import AssetUse, Schedule, Watcher
from headrace.handoff import AssetEvent
from headrace.timetable import condition_keys

_ASSETS = ("a", "b", "c")
_ALIAS = "n"
_PARTITIONS = ("x", "y", "z")
_SEGMENTS = {"segments": ["x", "y"]}
_MAPPERS: Sequence[dict[str, Any]] = (
    {"type": "identity"},
    {"type": "allowed", "keys": ["x"]},
    {"type": "rollup", "upstream": {"type": "fixed", "key": "all"}, "window": _SEGMENTS},
    {"type": "fan_out", "upstream": {"type": "identity"}, "window": _SEGMENTS, "downstream": {"type": "identity"}},
)


def random_asset_schedule(random: Random) -> tuple[Schedule, tuple[AssetUse, ...]]:
    """A schedule on some of the assets, and what its workflow says about them."""
    spec: dict[str, Any] = {"when": _condition(random, 2)}
    if random.random() < 0.4:
        spec["partitions"] = {"default": random.choice(_MAPPERS)}
    # A set would have another order in each process.
    keys = dict.fromkeys(condition_keys(spec["when"]))
    uses = tuple(_use(random, *key.split(":"), by_partition="partitions" in spec) for key in keys)
    return Schedule(type="assets", spec=spec), uses


def random_event(random: Random) -> AssetEvent:
    """An update of one of the assets, now and then by way of an alias, or of a partition only."""
    return AssetEvent(
        asset=random.choice(_ASSETS),
        aliases=(_ALIAS,) if random.random() < 0.3 else (),
        partition_key=random.choice(_PARTITIONS) if random.random() < 0.5 else None,
    )


def _condition(random: Random, depth: int) -> dict[str, Any]:
    if not depth or random.random() < 0.4:
        return {"alias": _ALIAS} if random.random() < 0.2 else {"asset": random.choice(_ASSETS)}
    parts = [_condition(random, depth - 1) for _ in range(random.randint(1, 3))]
    return {random.choice(("all", "any")): parts}


def _use(random: Random, kind: Any, name: str, *, by_partition: bool) -> AssetUse:
    watchers: tuple[Watcher, ...] = ()
    if kind == "asset" and random.random() < 0.5:
        # Others may watch the same asset in the same way, which is done once.
        watchers = (Watcher(name="w", trigger="a.Watcher", arguments={"queue": random.randint(1, 2)}),)
    return AssetUse(name=name, kind=kind, role="schedule", by_partition=by_partition, watchers=watchers)
