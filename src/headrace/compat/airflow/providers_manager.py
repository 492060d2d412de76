"""What providers ask about each other: the hooks, SQL dialects and versions of those that are installed."""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from headrace.authoring.dag.configuration import import_string, provider_infos


class ProviderInfo(NamedTuple):
    """One installed package."""

    version: str
    data: dict[str, Any]


class HookInfo(NamedTuple):
    """Who serves a type of connection."""

    hook_class_name: str
    package_name: str
    connection_type: str

    @property
    def hook_class(self) -> Any:
        return import_string(self.hook_class_name)

    @property
    def connection_id_attribute_name(self) -> str:
        return str(self.hook_class.conn_name_attr)


class DialectInfo(NamedTuple):
    """Who knows how a database spells things."""

    name: str
    dialect_class_name: str
    provider_name: str


class _Hooks(dict[str, HookInfo]):
    def __missing__(self, connection_type: str) -> None:
        return None


class ProvidersManager:
    """Everything that the installed providers say about themselves."""

    @cached_property
    def providers(self) -> dict[str, ProviderInfo]:
        return {info["package-name"]: ProviderInfo(_version(info["package-name"]), info) for info in provider_infos()}

    @cached_property
    def hooks(self) -> dict[str, HookInfo]:
        return _Hooks(
            (one["connection-type"], HookInfo(one["hook-class-name"], package, one["connection-type"]))
            for package, provider in self.providers.items()
            for one in provider.data.get("connection-types") or ()
        )

    @cached_property
    def dialects(self) -> dict[str, DialectInfo]:
        return {
            one["dialect-type"]: DialectInfo(one["dialect-type"], one["dialect-class-name"], package)
            for package, provider in self.providers.items()
            for one in provider.data.get("dialects") or ()
        }

    def initialize_providers_hooks(self) -> None:
        """Nothing to prepare: all of it is looked up when somebody asks."""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
