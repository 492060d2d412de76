"""`task_state_store` and `asset_state_store` of the context: what a task, or an asset, keeps beyond a try."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from headrace.authoring.asking import Engine
from headrace.authoring.dag.assets import Asset, AssetAlias, AssetNameRef, AssetUriRef, BaseAsset
from headrace.authoring.dag.configuration import Remembered, conf

NEVER_EXPIRE = timedelta.max
"""A `retention` without end."""

_log = logging.getLogger("airflow.task")


class StateStore:
    """JSON values by name. The methods with an `a` are for `async` code, which goes on meanwhile."""

    def __init__(self, engine: Engine, asset: str | None = None) -> None:
        self._engine = engine
        self._asset = asset

    def get(self, key: str, default: Any = None) -> Any:
        """What is kept under this name, or `default`."""
        try:
            return self._ask("get_memo", name=_name(key))
        except LookupError:
            return default

    def delete(self, key: str) -> None:
        """Forget what is kept under this name, if there is something."""
        self._ask("delete_memos", name=_name(key))

    def clear(self) -> None:
        """Forget everything."""
        self._ask("delete_memos")

    async def aget(self, key: str, default: Any = None) -> Any:
        return await _in_thread(self.get, key, default)

    async def adelete(self, key: str) -> None:
        await _in_thread(self.delete, key)

    async def aclear(self) -> None:
        await _in_thread(self.clear)

    def _set(self, key: str, value: Any, seconds: float | None) -> None:
        _check_size(key, _json_text(key, value))
        self._ask("set_memo", name=_name(key), value=value, seconds=seconds)

    def _ask(self, verb: str, **args: Any) -> Any:
        return self._engine.ask(verb, **args, **({} if self._asset is None else {"asset": self._asset}))


class TaskStateStore(StateStore):
    """What this task of this run keeps, over its tries and whenever it is cleared; each mapped instance for itself."""

    def set(self, key: str, value: Any, *, retention: timedelta | None = None) -> None:
        """Keep a value; without a retention for as long as `[state_store] default_retention_days` says."""
        self._set(key, value, _seconds(retention))

    async def aset(self, key: str, value: Any, *, retention: timedelta | None = None) -> None:
        await _in_thread(self.set, key, value, retention=retention)

    def __repr__(self) -> str:
        return "<TaskStateStore>"


class AssetStateStore(StateStore):
    """What is kept for one asset, over all runs of all DAGs."""

    def set(self, key: str, value: Any) -> None:
        """Keep a value until it is replaced or deleted."""
        self._set(key, value, None)

    async def aset(self, key: str, value: Any) -> None:
        await _in_thread(self.set, key, value)

    def __repr__(self) -> str:
        return f"<AssetStateStore {self._asset}>"


class AssetStateStores:
    """The stores of the assets that a task names as inlets or outlets; it stands for the store if there is only one."""

    def __init__(self, inlets: Iterable[Any], outlets: Iterable[Any], engine: Engine) -> None:
        self._engine = engine
        assets = [*_concrete(inlets, engine), *(one for one in _leaves(outlets) if not isinstance(one, AssetAlias))]
        self._stores = {name: AssetStateStore(engine, name) for name in map(_asset_name, assets)}

    def __getitem__(self, key: Asset | AssetNameRef | AssetUriRef) -> AssetStateStore:
        if not isinstance(key, Asset | AssetNameRef | AssetUriRef):
            raise TypeError(f"expected an asset or a reference to one, got: {key!r}")
        try:
            return self._stores[_asset_name(key)]
        except KeyError:
            raise KeyError(f"{key!r} is none of the task's inlets and outlets") from None

    def __getattr__(self, name: str) -> Any:
        if name not in ("get", "set", "delete", "clear", "aget", "aset", "adelete", "aclear"):
            raise AttributeError(name)
        return getattr(self._only, name)

    @property
    def _only(self) -> AssetStateStore:
        if len(self._stores) != 1:
            raise ValueError(
                f"the task has {len(self._stores)} assets as inlets and outlets: say which one is meant,"
                " as in `asset_state_store[MY_ASSET]`"
            )
        return next(iter(self._stores.values()))

    def __repr__(self) -> str:
        return f"<AssetStateStores {', '.join(self._stores)}>"


def has_assets(values: Iterable[Any]) -> bool:
    """Whether a task with these inlets or outlets can keep something for an asset."""
    # Every try asks; a function that is made for the question is more pages to copy than the answer.
    for value in values:
        if isinstance(value, BaseAsset):
            return True
    return False


def clears_on_success() -> bool:
    """Whether a task that has succeeded forgets what it kept, as the installation says."""
    return _clears_on_success.get()


def _asked_to_clear() -> bool:
    return conf.getboolean("state_store", "clear_on_success")


_clears_on_success = Remembered("state_store", "clear_on_success", _asked_to_clear)


async def _in_thread(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    # Loaded when somebody awaits: most tasks never do, and it is large.
    import asyncio

    return await asyncio.to_thread(call, *args, **named)


def _leaves(values: Iterable[Any]) -> Iterable[BaseAsset]:
    return (leaf for value in values if isinstance(value, BaseAsset) for leaf in value.leaves())


def _concrete(inlets: Iterable[Any], engine: Engine) -> Iterable[BaseAsset]:
    """The assets among inlets, and those that have come through the aliases among them."""
    for inlet in _leaves(inlets):
        if isinstance(inlet, AssetAlias):
            yield from (AssetNameRef(event["asset"]) for event in engine.ask("get_asset_events", alias=inlet.name))
        else:
            yield inlet


def _asset_name(asset: Any) -> str:
    return str(asset.condition()["asset"])


def _name(key: Any) -> str:
    if not isinstance(key, str) or not key:
        raise ValueError(f"expected the key of a state store to be a word, got: {key!r}")
    return key


def _json_text(key: str, value: Any) -> str:
    if value is None:
        raise ValueError(f"cannot keep None under `{key}`: delete the key instead")
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected the value of `{key}` to be a JSON value: {error}") from error


def _check_size(key: str, text: str) -> None:
    limit = conf.getint("state_store", "max_value_storage_bytes")
    if 0 < limit < len(text):
        _log.warning(
            "the value of `%s` in the state store takes %d bytes, more than the %d of `max_value_storage_bytes`",
            *(key, len(text), limit),
        )


def _seconds(retention: timedelta | None) -> float | None:
    if retention == NEVER_EXPIRE:
        return None
    if retention is not None:
        return retention.total_seconds()
    days = conf.getint("state_store", "default_retention_days")
    if days < 0:
        raise ValueError(f"expected `[state_store] default_retention_days` to be 0 or more, got: {days}")
    return days * 86_400 if days else None
