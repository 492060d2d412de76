"""Events of assets as a running task sees them: those that started its run, those of its inlets, those it emits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from headrace.authoring.asking import Engine
from headrace.authoring.dag.assets import Asset, AssetAlias, AssetNameRef, AssetRef, AssetUriRef, BaseAsset

_LONGEST_KEY = 250


class AssetEventView:
    """One update of an asset."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.id: int = document["id"]
        self.asset = Asset(document["asset"], document["uri"], group=document["group"])
        self.uri = self.asset.uri
        self.extra: dict[str, Any] = document["extra"]
        self.timestamp = datetime.fromisoformat(document["timestamp"])
        self.source_dag_id: str | None = document["workflow"]
        self.source_run_id: str | None = document["run_key"]
        self.source_task_id: str | None = document["task"]
        self.source_map_index: int | None = document["map_index"]
        self.partition_key: str | None = document.get("partition_key")
        self.source_aliases = [AssetAlias(name) for name in document["aliases"]]

    def __repr__(self) -> str:
        return f"<AssetEvent {self.asset.name} {self.timestamp.isoformat()} {self.extra}>"


class _ByAsset:
    """Things that are found by an asset, by a reference to one or by an alias."""

    def __getitem__(self, key: Any) -> Any:
        raise NotImplementedError

    def for_asset(self, *, name: str | None = None, uri: str | None = None) -> Any:
        return self[Asset.ref(name=name) if name else Asset.ref(uri=uri or "")]

    def for_asset_alias(self, *, name: str) -> Any:
        return self[AssetAlias(name)]


class TriggeringEvents(_ByAsset, Mapping[Any, Sequence[AssetEventView]]):
    """The events that started the run, by asset and by alias; read when they are first looked at."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._read: dict[Any, list[AssetEventView]] | None = None

    @property
    def _events(self) -> dict[Any, list[AssetEventView]]:
        if self._read is None:
            self._read = {}
            for event in map(AssetEventView, self._engine.ask("get_triggering_events")):
                for key in (event.asset, *event.source_aliases):
                    self._read.setdefault(key, []).append(event)
        return self._read

    def __getitem__(self, key: Any) -> Sequence[AssetEventView]:
        for known, events in self._events.items():
            if _is_same(known, key):
                return events
        raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)


class InletEvents(_ByAsset, Mapping[Any, Any]):
    """What has happened to the task's inlets so far."""

    def __init__(self, inlets: Sequence[Any], engine: Engine) -> None:
        self._inlets = list(inlets)
        self._engine = engine

    def __getitem__(self, key: Any) -> EventHistory:
        inlet = self._inlets[key] if isinstance(key, int) else key
        if not any(_is_same(one, inlet) for one in self._inlets):
            raise KeyError(f"{inlet!r} is none of the task's inlets")
        return EventHistory(inlet, self._engine)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._inlets)

    def __len__(self) -> int:
        return len(self._inlets)


class EventHistory(Sequence[AssetEventView]):
    """Events of one asset or alias, oldest first; read when they are first looked at."""

    def __init__(self, asset: Any, engine: Engine) -> None:
        self._engine = engine
        self._asked: dict[str, Any] = {"alias" if isinstance(asset, AssetAlias) else "asset": asset.name}
        self._events: list[AssetEventView] | None = None

    def after(self, after: datetime | str) -> EventHistory:
        return self._ask(after=_text(after))

    def before(self, before: datetime | str) -> EventHistory:
        return self._ask(before=_text(before))

    def ascending(self, ascending: bool = True) -> EventHistory:
        return self._ask(ascending=ascending)

    def limit(self, limit: int) -> EventHistory:
        return self._ask(limit=limit)

    def _ask(self, **more: Any) -> EventHistory:
        self._asked |= more
        self._events = None
        return self

    def _read(self) -> list[AssetEventView]:
        if self._events is None:
            self._events = [AssetEventView(one) for one in self._engine.ask("get_asset_events", **self._asked)]
        return self._events

    def __getitem__(self, key: Any) -> Any:
        return self._read()[key]

    def __len__(self) -> int:
        return len(self._read())


class OutletEvent:
    """What the task will say about one of its outlets when it has succeeded."""

    def __init__(self, key: BaseAsset) -> None:
        self.key = key
        self.extra: dict[str, Any] = {}
        self.added: list[tuple[Any, dict[str, Any]]] = []
        """Of an alias: the assets that were updated through it."""
        self.partition_keys: set[str] = set()
        """The partitions that were updated; empty: that of the run."""

    def add_partitions(self, keys: str | Iterable[str]) -> None:
        """Say that partitions of the asset were updated: there is an event for each."""
        if isinstance(self.key, AssetAlias):
            raise TypeError(f"the alias `{self.key.name}` has no partitions: they are those of an asset")
        added = [keys] if isinstance(keys, str) else list(keys)
        for key in added:
            if not isinstance(key, str) or not key.strip() or "\0" in key or len(key) > _LONGEST_KEY:
                raise ValueError(f"expected a partition key of 1 to {_LONGEST_KEY} characters, got: {key!r}")
        self.partition_keys.update(added)

    def add(self, asset: Asset | AssetRef, extra: Mapping[str, Any] | None = None) -> None:
        """Update an asset through this alias."""
        if isinstance(self.key, AssetAlias):
            self.added.append((asset, dict(extra or {})))


class OutletEvents(_ByAsset, Mapping[Any, OutletEvent]):
    """One for each asset that the task speaks of; made when it is first looked at."""

    def __init__(self) -> None:
        self._events: list[OutletEvent] = []

    def __getitem__(self, key: Any) -> OutletEvent:
        if isinstance(key, str):
            key = AssetNameRef(key)
        if not isinstance(key, BaseAsset):
            raise KeyError(f"expected an asset or an alias, got: {key!r}")
        for event in self._events:
            if _is_same(event.key, key):
                return event
        self._events.append(OutletEvent(key))
        return self._events[-1]

    def __iter__(self) -> Iterator[Any]:
        return (event.key for event in self._events)

    def __len__(self) -> int:
        return len(self._events)


def emitted(outlets: Sequence[BaseAsset], said: OutletEvents, resolve: Callable[[str], Any]) -> list[dict[str, Any]]:
    """The events of a task that has succeeded: one for each outlet, and those that came through an alias."""
    events: list[dict[str, Any]] = []
    for outlet in outlets:
        event = said[outlet]
        if not isinstance(outlet, AssetAlias):
            said_of = {**_identity(outlet), "extra": event.extra}
            events += [{**said_of, "partition_key": key} for key in sorted(event.partition_keys)] or [said_of]
    through: dict[tuple[str, str], dict[str, Any]] = {}
    for alias in (one for one in outlets if isinstance(one, AssetAlias)):
        for asset, extra in said[alias].added:
            found = resolve(asset.condition()["asset"]) if isinstance(asset, AssetRef) else asset
            # The same event may come through several aliases, and is still one.
            key = (found.name, repr(sorted(extra.items())))
            event_ = through.setdefault(key, {**_identity(found), "extra": extra, "aliases": []})
            event_["aliases"].append(alias.name)
    return [*events, *through.values()]


def _identity(asset: Any) -> dict[str, Any]:
    if isinstance(asset, AssetRef):
        return {"asset": asset.condition()["asset"]}
    return {"asset": asset.name, "uri": asset.uri, "group": asset.group}


def _is_same(known: Any, key: Any) -> bool:
    """Whether two ways to speak of an asset mean the same one."""
    if isinstance(known, AssetAlias) or isinstance(key, AssetAlias):
        return bool(known == key)
    if isinstance(known, AssetUriRef) or isinstance(key, AssetUriRef):
        return getattr(known, "uri", None) == getattr(key, "uri", "")
    return isinstance(known, BaseAsset) and isinstance(key, BaseAsset) and _name(known) == _name(key)


def _name(asset: Any) -> str | None:
    name: str | None = getattr(asset, "name", None)
    return name


def _text(moment: datetime | str) -> str:
    return moment if isinstance(moment, str) else moment.isoformat()
