"""`@asset`: a function that makes a thing, as an asset, a DAG and a task in one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from headrace.authoring.dag import DAG, Context
from headrace.authoring.dag.assets import Asset, AssetAll, BaseAsset
from headrace.authoring.dag.taskflow import TaskFunction
from headrace.authoring.signatures import signature_of
from headrace.operators.python import PythonOperator

_NOT_INLETS = ("self", "context", "outlet_events")
_OF_ASSET = ("name", "uri", "group", "extra", "watchers")


class AssetOperator(PythonOperator):
    """Calls the function of an `@asset`. Its arguments are assets by their names, `self` is the asset itself."""

    def __init__(self, *, asset_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asset_name = asset_name

    def call(self, context: Context) -> Any:
        # Around the setter, which would look for results of other tasks in the context.
        self.__dict__["op_kwargs"] = dict(self._arguments(context))
        return super().call(context)

    def _arguments(self, context: Context) -> Iterator[tuple[str, Any]]:
        engine = context["ti"].engine
        for name, parameter in signature_of(self.python_callable).parameters.items():
            if parameter.default is not parameter.empty:
                yield name, parameter.default
            elif name == "context":
                yield name, context
            elif name == "outlet_events":
                yield name, context["outlet_events"]
            else:
                found = engine.ask("get_asset", name=self.asset_name if name == "self" else name)
                yield name, Asset(found["name"], found["uri"], group=found["group"], extra=found["extra"])


class AssetDefinition(Asset):
    """The asset that a function makes."""


class MultiAssetDefinition(AssetAll):
    """The assets that a function makes together."""


class asset:
    """Make a DAG, a task and an asset of a function: `@asset(schedule="@daily")`, `@asset.multi(outlets=[…])`."""

    def __init__(self, *, schedule: Any, **given: Any) -> None:
        self._asset = {name: given.pop(name) for name in _OF_ASSET if name in given}
        self._dag = {"schedule": schedule, **given}

    def __call__(self, function: Callable[..., Any]) -> AssetDefinition:
        _check(function)
        options = dict(self._asset)
        name = options.pop("name", None) or function.__name__
        made = AssetDefinition(name, options.pop("uri", None), **options)
        _make_dag(function, name, self._dag, [made])
        return made

    class multi:
        """Several assets, updated by one function."""

        def __init__(self, *, schedule: Any, outlets: Collection[BaseAsset], **given: Any) -> None:
            if not outlets:
                raise ValueError("expected `@asset.multi` to have outlets")
            self._outlets = list(outlets)
            self._dag = {"schedule": schedule, **given}

        def __call__(self, function: Callable[..., Any]) -> MultiAssetDefinition:
            _check(function)
            _make_dag(function, function.__name__, self._dag, self._outlets)
            return MultiAssetDefinition(*self._outlets)


def _make_dag(function: Any, name: str, options: Mapping[str, Any], outlets: list[BaseAsset]) -> None:
    options = dict(options)
    with DAG(options.pop("dag_id", None) or name, **{"catchup": False, **options}):
        if isinstance(function, TaskFunction):
            function.override(outlets=outlets)()
        else:
            AssetOperator(
                task_id=function.__name__,
                python_callable=function,
                asset_name=name,
                inlets=[Asset.ref(name=one) for one in _inlets(function)],
                outlets=outlets,
            )


def _inlets(function: Callable[..., Any]) -> list[str]:
    parameters = signature_of(function).parameters
    return [name for name, one in parameters.items() if name not in _NOT_INLETS and one.default is one.empty]


def _check(function: Any) -> None:
    name = getattr(function, "__name__", str(function))
    if "<locals>" in getattr(function, "__qualname__", ""):
        raise ValueError(f"expected the function `{name}` of `@asset` to be at the top level of its file")
    for one in signature_of(function).parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise TypeError(f"the function `{name}` of `@asset` cannot have an argument `{one}`")
