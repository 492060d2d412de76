"""Lineage of hooks: providers report what they read and write; nobody here collects it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.authoring.dag.logging_mixin import LoggingMixin

LineageContext = Any


@dataclass
class AssetLineageInfo:
    asset: Any
    count: int
    context: LineageContext


@dataclass
class ExtraLineageInfo:
    key: str
    value: Any
    count: int
    context: LineageContext


@dataclass
class HookLineage:
    """What was reported."""

    inputs: Sequence[AssetLineageInfo] = field(default_factory=list)
    outputs: Sequence[AssetLineageInfo] = field(default_factory=list)
    extra: Sequence[ExtraLineageInfo] = field(default_factory=list)


class HookLineageCollector(LoggingMixin):
    """Takes every report and keeps none."""

    # Looked for by name to tell whether the collector takes `add_extra`.
    _extra: dict[str, Any] = {}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()

    def create_asset(self, **kwargs: Any) -> None:
        return None

    def add_input_asset(self, *args: Any, **kwargs: Any) -> None:
        return None

    def add_output_asset(self, *args: Any, **kwargs: Any) -> None:
        return None

    def add_extra(self, *args: Any, **kwargs: Any) -> None:
        return None

    @property
    def collected_assets(self) -> HookLineage:
        return HookLineage()

    @property
    def has_collected(self) -> bool:
        return False


class NoOpCollector(HookLineageCollector):
    """What Airflow calls a collector that keeps nothing."""


class HookLineageReader(LoggingMixin):
    """Reads what was collected: nothing."""

    def __init__(self, **kwargs: Any) -> None:
        self.lineage_collector = get_hook_lineage_collector()

    def retrieve_hook_lineage(self) -> HookLineage:
        return self.lineage_collector.collected_assets


_collector = NoOpCollector()


def get_hook_lineage_collector() -> HookLineageCollector:
    return _collector
