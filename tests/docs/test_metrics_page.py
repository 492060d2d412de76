"""The page about metrics knows all of them, and none that does not exist."""

from __future__ import annotations

import re

from pages import ROOT

from headrace.metrics.catalogue import FAMILIES

PAGE = ROOT / "docs" / "operations" / "metrics.md"
_ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<kind>\w+) \| (?P<labels>[^|]*) \| (?P<meaning>[^|]*) \|$", re.MULTILINE)


def test_the_tables_say_what_the_code_says():
    shown = [
        (row["name"], row["kind"], tuple(re.findall(r"`(\w+)`", row["labels"])), row["meaning"])
        for row in _ROW.finditer(PAGE.read_text())
    ]
    assert shown == [(family.name, family.kind, family.labels, family.meaning) for family in FAMILIES]


def test_alerts_are_about_metrics_that_exist():
    names = {family.name for family in FAMILIES}
    mentioned = set(re.findall(r"\b(?:headrace|process)_[a-z_]+\b", PAGE.read_text()))
    assert {name.removesuffix("_bucket") for name in mentioned} <= names
