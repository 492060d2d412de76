"""Assets: named things that tasks update and that DAGs are scheduled on."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from headrace.authoring.dag.triggers import BaseEventTrigger

_LONGEST = 1500


class BaseAsset:
    """Something that a schedule can name: `a & b` waits for both, `a | b` for either."""

    def __or__(self, other: Any) -> AssetAny:
        if not isinstance(other, BaseAsset):
            return NotImplemented
        return AssetAny(self, other)

    def __and__(self, other: Any) -> AssetAll:
        if not isinstance(other, BaseAsset):
            return NotImplemented
        return AssetAll(self, other)

    def condition(self) -> dict[str, Any]:
        """As the definition's schedule says it."""
        raise NotImplementedError

    def leaves(self) -> Iterator[BaseAsset]:
        """The assets and aliases in it."""
        yield self


class Asset(os.PathLike[str], BaseAsset):
    """A named thing with a URI. Its name is its identity; one that is given without the other stands for both."""

    asset_type: ClassVar[str] = "asset"

    def __init__(
        self,
        name: str | None = None,
        uri: Any = None,
        *,
        group: str | None = None,
        extra: Mapping[str, Any] | None = None,
        watchers: list[Any] | None = None,
        access_control: Any = None,
    ) -> None:
        if name is None and uri is None:
            raise TypeError(f"{type(self).__name__} needs a name or a uri")
        kind = type(self).__name__
        self.name = _identifier(f"the name of {kind}", str(uri) if name is None else name)
        if self.name in ("self", "context"):
            raise ValueError(f"an asset cannot be called `{self.name}`: functions of `@asset` use that name")
        self.uri = normalized_uri(_identifier(f"the uri of {kind}", self.name if uri is None else str(uri)))
        self.group = self.asset_type if group is None else group
        self.extra = dict(extra or {})
        self.watchers = list(watchers or ())
        self.access_control = access_control

    @staticmethod
    def ref(*, name: str = "", uri: str = "") -> AssetRef:
        """An asset that is defined elsewhere."""
        if bool(name) == bool(uri):
            raise TypeError("expected a reference to an asset to have either a name or a uri")
        return AssetNameRef(name) if name else AssetUriRef(uri)

    @property
    def normalized_uri(self) -> str:
        return self.uri

    def condition(self) -> dict[str, Any]:
        return {"asset": self.name}

    def __fspath__(self) -> str:
        return self.uri

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Asset):
            return NotImplemented
        return _fields(self) == _fields(other)

    def __hash__(self) -> int:
        return hash((self.name, self.uri))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, uri={self.uri!r})"


class Dataset(Asset):
    """What assets were called before Airflow 3; its first argument is the uri."""

    asset_type = "dataset"

    def __init__(self, uri: Any = None, extra: Mapping[str, Any] | None = None, **given: Any) -> None:
        super().__init__(given.pop("name", None), uri, extra=extra, **given)


class Model(Asset):
    """An asset that is a model."""

    asset_type = "model"


class AssetRef(BaseAsset):
    """An asset by one of its names."""


class AssetNameRef(AssetRef):
    def __init__(self, name: str) -> None:
        self.name = name

    def condition(self) -> dict[str, Any]:
        return {"asset": self.name}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AssetNameRef) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class AssetUriRef(AssetRef):
    def __init__(self, uri: str) -> None:
        self.uri = normalized_uri(uri)

    @property
    def name(self) -> str:
        """An asset that was given only a uri goes by it."""
        return self.uri

    def condition(self) -> dict[str, Any]:
        return {"asset": self.uri}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AssetUriRef) and self.uri == other.uri

    def __hash__(self) -> int:
        return hash(self.uri)


class AssetAlias(BaseAsset):
    """A name whose assets are known only when a task runs."""

    def __init__(self, name: str, *, group: str = "asset") -> None:
        self.name = _identifier("the name of an alias", name)
        self.group = group

    def condition(self) -> dict[str, Any]:
        return {"alias": self.name}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AssetAlias) and self.name == other.name

    def __hash__(self) -> int:
        return hash(("alias", self.name))

    def __repr__(self) -> str:
        return f"AssetAlias({self.name!r})"


class _Combined(BaseAsset):
    word: ClassVar[str]

    def __init__(self, *objects: BaseAsset) -> None:
        wrong = next((one for one in objects if not isinstance(one, BaseAsset)), None)
        if wrong is not None:
            raise TypeError(f"expected {type(self).__name__} to be made of assets, got: {wrong!r}")
        self.objects = list(objects)

    def condition(self) -> dict[str, Any]:
        return {self.word: [one.condition() for one in self.objects]}

    def leaves(self) -> Iterator[BaseAsset]:
        for one in self.objects:
            yield from one.leaves()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, _Combined) and self.objects == other.objects

    def __hash__(self) -> int:
        return hash((self.word, tuple(self.objects)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.objects))})"


class AssetAny(_Combined):
    """One of them is enough."""

    word = "any"

    def __or__(self, other: Any) -> AssetAny:
        return AssetAny(*self.objects, other) if isinstance(other, BaseAsset) else NotImplemented


class AssetAll(_Combined):
    """All of them are needed."""

    word = "all"

    def __and__(self, other: Any) -> AssetAll:
        return AssetAll(*self.objects, other) if isinstance(other, BaseAsset) else NotImplemented


class AssetWatcher:
    """A trigger whose events update an asset."""

    def __init__(self, name: str, trigger: BaseEventTrigger) -> None:
        if not isinstance(trigger, BaseEventTrigger):
            raise ValueError(f"expected the trigger of watcher `{name}` to be a BaseEventTrigger, got: {trigger!r}")
        self.name = name
        self.trigger = trigger


class AssetAccessControl:
    """Which teams may update an asset. There are no teams here, so that it has no effect; a warning says so."""

    def __init__(
        self,
        producer_teams: list[str] | None = None,
        consumer_teams: list[str] | None = None,
        allow_global: bool = True,
        **others: Any,
    ) -> None:
        self.producer_teams = list(producer_teams or ())
        self.consumer_teams = list(consumer_teams or ())
        self.allow_global = allow_global


class Metadata:
    """What a task yields to say more about the event of an asset."""

    def __init__(
        self, asset: Any, extra: Mapping[str, Any] | None = None, alias: AssetAlias | str | None = None
    ) -> None:
        self.asset = Asset(asset) if isinstance(asset, str) else asset
        self.extra = dict(extra or {})
        self.alias = AssetAlias(alias) if isinstance(alias, str) else alias


def normalized_uri(uri: str) -> str:
    """The same text for the same thing: no password, no fragment, no slashes at the end, the query in order."""
    parts = urllib.parse.urlsplit(uri)
    scheme = parts.scheme.lower()
    if not scheme or scheme.startswith("x-"):
        return uri
    if scheme == "airflow":
        raise ValueError(f"the uri of an asset cannot have the scheme `airflow`, which is reserved, got: {uri!r}")
    return urllib.parse.urlunsplit(
        parts._replace(
            scheme=scheme,
            netloc=parts.netloc.rpartition("@")[2] if parts.password else parts.netloc,
            path=parts.path.rstrip("/") or "/",
            query=urllib.parse.urlencode(sorted(urllib.parse.parse_qsl(parts.query))),
            fragment="",
        )
    )


def _identifier(what: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected {what} to be a word, got: {value!r}")
    if len(value) > _LONGEST:
        raise ValueError(f"expected {what} to have at most {_LONGEST} characters, got {len(value)}")
    return value


def _fields(asset: Asset) -> tuple[Any, ...]:
    return asset.name, asset.uri, asset.group, asset.extra
