"""Every test that the page about guarantees names exists."""

from __future__ import annotations

import ast
import re

from pages import ROOT

from headrace.testing.faults.__main__ import FAULTS
from headrace.testing.faults.bursts import MANY, burst

PAGE = ROOT / "docs" / "concepts" / "guarantees.md"
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_what_is_promised_is_shown_by_tests_that_exist():
    named = _TEST.findall(PAGE.read_text())
    assert len(named) > 40
    missing = [f"{file}::{name}" for file, name in named if name not in functions_of(file)]
    assert missing == []


def test_every_promise_names_a_test():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "---" not in line]
    promises = [row for row in rows if not row.startswith(("| You may rely on", "| fault |"))]
    assert promises and [row for row in promises if not _TEST.search(row)] == []


def test_every_fault_of_the_list_is_told_about():
    told = PAGE.read_text().partition("## In each fault")[2].partition("\n## ")[0].splitlines()
    rows = [line.split(" | ")[0].removeprefix("| ") for line in told if line.startswith("| ")]
    assert rows[2:] == [fault.name for fault in (*FAULTS, burst(MANY))]


def functions_of(file: str) -> set[str]:
    path = ROOT / "tests" / file
    if not path.is_file():
        return set()
    return {node.name for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef)}
