"""Every test that the page about guarantees names exists."""

from __future__ import annotations

import ast
import re

from pages import ROOT

PAGE = ROOT / "docs" / "concepts" / "guarantees.md"
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_what_is_promised_is_shown_by_tests_that_exist():
    named = _TEST.findall(PAGE.read_text())
    assert len(named) > 40
    missing = [f"{file}::{name}" for file, name in named if name not in functions_of(file)]
    assert missing == []


def test_every_promise_names_a_test():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "---" not in line]
    promises = [row for row in rows if not row.startswith("| You may rely on")]
    assert promises and [row for row in promises if not _TEST.search(row)] == []


def functions_of(file: str) -> set[str]:
    path = ROOT / "tests" / file
    if not path.is_file():
        return set()
    return {node.name for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef)}
