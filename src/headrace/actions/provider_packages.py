"""Provider packages of Airflow: what a person asks for, and what is installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from headrace.actions.provider_names import AIRFLOW, PREFIX, PROVIDERS
from headrace.errors import StateError, UsageError, did_you_mean

_ENTRY_POINTS = "apache_airflow_provider"


@dataclass(frozen=True, slots=True)
class ProviderPackage:
    """An installed distribution that says that it is a provider."""

    name: str
    package: str
    version: str
    summary: str


def wanted(names: Iterable[str]) -> list[Requirement]:
    """What to install for `sftp`, `amazon[aiobotocore]`, `http==6.3.0`, `common.sql` or the name of a whole package."""
    return [_requirement(name) for name in names]


def _requirement(text: str) -> Requirement:
    name, rest = re.fullmatch(r"([\w.-]*)(.*)", text.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    plain = plain_name(name)
    if not plain.startswith(PREFIX):
        if plain in AIRFLOW:
            raise UsageError(f"`{text}` is Airflow itself, which Headrace takes the place of")
        if plain not in PROVIDERS:
            hint = did_you_mean(plain, PROVIDERS) or f"a package that is not listed goes by its whole name, `{PREFIX}…`"
            raise UsageError(f"Airflow has no provider `{name}`", hint=hint)
        plain = f"{PREFIX}{plain}"
    try:
        return Requirement(f"{plain}{rest}")
    except InvalidRequirement:
        raise UsageError(f"expected `{name}`, `{name}[extra]` or `{name}==1.2.3`, got: `{text}`") from None


def plain_name(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_providers(path: Sequence[str] | None = None) -> list[ProviderPackage]:
    """Those that this Python finds, by name; told by their entry points, without running any code of theirs."""
    found = [_described(one) for one in distributions(path=list(path or sys.path)) if _is_provider(one)]
    return sorted({one.package: one for one in found}.values(), key=lambda one: one.name)


def _is_provider(one: Distribution) -> bool:
    return any(point.group == _ENTRY_POINTS for point in one.entry_points)


def _described(one: Distribution) -> ProviderPackage:
    package = plain_name(_told(one, "Name"))
    return ProviderPackage(package.removeprefix(PREFIX), package, one.version, _told(one, "Summary"))


def _told(one: Distribution, field: str) -> str:
    """What a package says about itself, if it does; half-deleted ones say nothing."""
    metadata = one.metadata
    return metadata[field] if field in metadata else ""


def refuse_beside_airflow(target: Path | None = None) -> None:
    """StateError if Airflow itself is installed where the providers are to go: both would own the same packages."""
    for one in distributions(path=[str(target)] if target is not None else sys.path):
        name = plain_name(_told(one, "Name"))
        if name in AIRFLOW:
            raise StateError(
                f"Airflow itself is installed here (`{name}` {one.version}), and providers that are installed beside it"
                " are for it",
                hint="install Headrace and the providers into an environment without Airflow",
            )
