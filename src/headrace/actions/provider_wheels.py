"""Finds out with pip what provider packages need besides Airflow: fetches their wheels and reads what they require."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from email.parser import Parser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from headrace.actions.provider_names import AIRFLOW, PREFIX
from headrace.actions.provider_packages import plain_name
from headrace.errors import StateError

Fetch = Callable[[Requirement], Path]
"""Downloads the wheel of one package, without what it requires."""


@dataclass
class Plan:
    """What has to be installed: wheels as they are, and other packages with all that they require."""

    wheels: dict[str, Path] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def plan_wheels(wishes: Iterable[Requirement], fetch: Fetch) -> Plan:
    """Follow the requirements of providers to other providers; what is neither a provider nor Airflow is collected."""
    plan = Plan()
    wanted: dict[str, Requirement] = {}
    queue = list(wishes)
    while queue:
        wish = queue.pop(0)
        known = wanted.get(wish.name)
        merged = wish if known is None else _merged(known, wish)
        is_served = wish.name in plan.wheels and _version(plan.wheels[wish.name]) in merged.specifier
        wanted[wish.name] = merged
        if is_served and merged.extras == (known.extras if known else set()):
            continue
        wheel = plan.wheels[wish.name] = fetch(merged)
        for one in _required(wheel, merged.extras):
            if one.name.startswith(PREFIX):
                queue.append(one)
            elif one.name not in AIRFLOW:
                plan.others.append(str(one))
    plan.others = list(dict.fromkeys(plan.others))
    return plan


def _merged(one: Requirement, other: Requirement) -> Requirement:
    merged = Requirement(str(one))
    merged.specifier &= other.specifier
    merged.extras |= other.extras
    return merged


def _required(wheel: Path, extras: set[str]) -> list[Requirement]:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        if len(names) != 1:
            raise StateError(f"expected one METADATA in the wheel `{wheel.name}`, found {len(names)}")
        metadata = Parser().parsestr(archive.read(names[0]).decode())
    found = [Requirement(text) for text in metadata.get_all("Requires-Dist") or ()]
    chosen = [one for one in found if _applies(one, extras)]
    for one in chosen:
        one.name = plain_name(one.name)
        one.marker = None
    return chosen


def _applies(one: Requirement, extras: set[str]) -> bool:
    return one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras))


def _version(wheel: Path) -> Version:
    return parse_wheel_filename(wheel.name)[1]
